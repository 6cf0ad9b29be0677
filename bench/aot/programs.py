"""bench/aot/: the models of compare, each as a JAX function, and as an ONNX model where one is easily written."""

import dataclasses
import pathlib
import sys
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/peers"))

import models as peers  # noqa: E402


@dataclasses.dataclass
class Model:
    name: str
    function: Callable
    arguments: list  # Arrays, or trees of them.
    onnx: Callable | None = None  # Makes a model that gives the same results; its inputs are `onnx_arguments`.
    onnx_arguments: list | None = None
    plain_onnx: Callable | None = None  # The same of simple ops, for importers that lack some; its inputs are the arguments.
    weights_apart: bool = False  # The weights are arguments here, and lie in a file of their own beside the ONNX model.


def onnx_model(nodes, weights, inputs, results, opset=18):
    """`inputs` and `results`: name to an array of the type and shape."""
    import onnx
    def described(name, array):
        return onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
    graph = onnx.helper.make_graph(nodes, "model", [described(*each) for each in inputs.items()], [described(*each) for each in results.items()],
                                   [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])
    model.ir_version = 9
    return model


def lstm(layers=3, units=60, steps=16):
    """A network of a phone: layers of an LSTM over a sequence; gives the last output."""
    random = np.random.default_rng(0)
    weights = [(random.uniform(-0.2, 0.2, (2 * units, 4 * units)).astype(np.float32),
                random.uniform(-0.2, 0.2, (1, 4 * units)).astype(np.float32)) for _ in range(layers)]

    def step(state, x):
        after = []
        value = x[None]
        for (h, c), (w, b) in zip(state, weights):
            i, f, g, o = jnp.split(jnp.concatenate([value, h], 1) @ w + b, 4, 1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            value = jax.nn.sigmoid(o) * jnp.tanh(c)
            after.append((value, c))
        return after, None

    def start():
        return [(jnp.zeros((1, units)), jnp.zeros((1, units))) for _ in range(layers)]

    def plain_onnx():
        import onnx
        nodes, made = [], iter(range(100_000))
        initial = {"zeros": np.zeros((1, units), np.float32)} | {f"{name}{k}": part for k, each in enumerate(weights) for name, part in zip("wb", each)}
        initial |= {f"at{i}": np.array([i], np.int64) for i in range(max(steps + 1, 4 * units + 1))}

        def add(kind, *operands, **attributes):
            name = f"v{next(made)}"
            nodes.append(onnx.helper.make_node(kind, list(operands), [name], **attributes))
            return name

        state = [("zeros", "zeros")] * layers
        for step_index in range(steps):
            value = add("Slice", "x", f"at{step_index}", f"at{step_index + 1}", "at0")
            for k, (h, c) in enumerate(state):
                z = add("Add", add("MatMul", add("Concat", value, h, axis=1), f"w{k}"), f"b{k}")
                i, f, g, o = (add("Slice", z, f"at{n * units}", f"at{(n + 1) * units}", "at1") for n in range(4))
                c = add("Add", add("Mul", add("Sigmoid", f), c), add("Mul", add("Sigmoid", i), add("Tanh", g)))
                value = add("Mul", add("Sigmoid", o), add("Tanh", c))
                state[k] = (value, c)
        nodes.append(onnx.helper.make_node("Identity", [value], ["y"]))
        return onnx_model(nodes, initial, {"x": np.zeros((steps, units), np.float32)}, {"y": np.zeros((1, units), np.float32)})

    def as_onnx():
        import onnx
        nodes, initial, value = [], {}, "x"
        for k, (w, b) in enumerate(weights):
            gates = [np.split(part, 4, 1) for part in (w[:units], w[units:], b)]
            w_x, w_h, bias = (np.concatenate([each[0], each[3], each[1], each[2]], 1) for each in gates)  # i, o, f, c
            initial |= {f"w{k}": w_x.T[None].copy(), f"r{k}": w_h.T[None].copy(),
                        f"b{k}": np.concatenate([bias, np.zeros_like(bias)], 1)}
            outputs = [f"y{k}"] if k < layers - 1 else ["", "last"]
            nodes.append(onnx.helper.make_node("LSTM", [value, f"w{k}", f"r{k}", f"b{k}"], outputs, hidden_size=units))
            if k < layers - 1:
                nodes.append(onnx.helper.make_node("Squeeze", [f"y{k}", "one"], [f"x{k + 1}"]))
                value = f"x{k + 1}"
        initial["one"] = np.array([1], np.int64)
        nodes.append(onnx.helper.make_node("Squeeze", ["last", "zero"], ["y"]))
        initial["zero"] = np.array([0], np.int64)
        return onnx_model(nodes, initial, {"x": np.zeros((steps, 1, units), np.float32)}, {"y": np.zeros((1, units), np.float32)})

    sequence = random.standard_normal((steps, units)).astype(np.float32)
    return Model(f"LSTM, {layers} layers of {units}, {steps} steps", lambda x: lax.scan(step, start(), x)[0][-1][0], [sequence], as_onnx,
                 [sequence[:, None]], plain_onnx)


def digits():
    """A classifier 64-128-10 in 8-bit integers, batch 1."""
    random = np.random.default_rng(0)
    w1, w2 = (random.integers(-127, 128, shape, np.int8) for shape in ((64, 128), (128, 10)))
    s1, s2 = (random.uniform(0.5, 1, shape).astype(np.float32) * 0.01 for shape in ((1, 128), (1, 10)))
    b1, b2 = (random.standard_normal(shape).astype(np.float32) for shape in ((1, 128), (1, 10)))

    def product(x, w):
        return lax.dot(x, w, preferred_element_type=jnp.int32).astype(jnp.float32)

    def forward(image):
        hidden = (jnp.clip(product(image, w1) * s1 + b1, 0, 127) + 0.5).astype(jnp.int8)
        return product(hidden, w2) * s2 + b2

    def as_onnx():
        import onnx
        node = onnx.helper.make_node
        nodes = [node("MatMulInteger", ["x", "w1"], ["i1"]), node("Cast", ["i1"], ["f1"], to=1), node("Mul", ["f1", "s1"], ["m1"]),
                 node("Add", ["m1", "b1"], ["a1"]), node("Clip", ["a1", "low", "high"], ["c1"]), node("Add", ["c1", "half"], ["h1"]),
                 node("Cast", ["h1"], ["q1"], to=3), node("MatMulInteger", ["q1", "w2"], ["i2"]), node("Cast", ["i2"], ["f2"], to=1),
                 node("Mul", ["f2", "s2"], ["m2"]), node("Add", ["m2", "b2"], ["y"])]
        initial = {"w1": w1, "w2": w2, "s1": s1, "s2": s2, "b1": b1, "b2": b2, "low": np.float32(0), "high": np.float32(127), "half": np.float32(0.5)}
        return onnx_model(nodes, initial, {"x": np.zeros((1, 64), np.int8)}, {"y": np.zeros((1, 10), np.float32)})

    image = random.integers(0, 17, (1, 64)).astype(np.int8)
    return Model("digits, int8", forward, [image], as_onnx, [image])


def resnet18():
    """Of a picture of 224 x 224, weights as constants."""
    forward, (weights, image) = peers.resnet18()
    shapes = [part["w"].shape for part in weights["parts"]]

    def as_onnx():
        import onnx
        nodes, initial = [onnx.helper.make_node("Transpose", ["x"], ["v0"], perm=[0, 3, 1, 2])], {}
        made = iter(range(1, 1000))

        def add(kind, *operands, **attributes):
            name = f"v{next(made)}"
            nodes.append(onnx.helper.make_node(kind, list(operands), [name], **attributes))
            return name

        def normalised(x, part, stride, size):
            k = len(initial)
            initial[f"w{k}"] = weights["parts"][part]["w"].transpose(3, 2, 0, 1).copy()
            initial[f"s{k}"], initial[f"b{k}"] = (weights["parts"][part][name][:, None, None].copy() for name in ("scale", "bias"))
            total = max(shapes[part][0] - (stride if size % stride == 0 else size % stride), 0)
            pads = [total // 2, total // 2, total - total // 2, total - total // 2]
            y = add("Conv", x, f"w{k}", strides=[stride, stride], pads=pads)
            return add("Add", add("Mul", y, f"s{k}"), f"b{k}")

        x = add("Relu", normalised("v0", 0, 2, 224))
        x = add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[0, 0, 1, 1])
        part, size = 1, 56
        for block in range(4):
            for first in (True, False):
                stride = 2 if first and block > 0 else 1
                y = add("Relu", normalised(x, part, stride, size))
                y = normalised(y, part + 1, 1, size // stride)
                part += 2
                if stride == 2:
                    x = normalised(x, part, 2, size)
                    part += 1
                size //= stride
                x = add("Relu", add("Add", x, y))
        initial["classes"] = weights["classes"]
        nodes.append(onnx.helper.make_node("MatMul", [add("Flatten", add("GlobalAveragePool", x)), "classes"], ["y"]))
        return onnx_model(nodes, initial, {"x": image}, {"y": np.zeros((1, 1000), np.float32)})

    return Model("ResNet-18, 224 x 224", lambda x: forward(weights, x), [image], as_onnx, [image])


def onnx_decode(weights, cache):
    """peers.decode: the inputs are the cache, token and place; the results are the logits and the cache after."""
    import onnx
    heads, places, size = cache[0][0].shape
    features, tokens = heads * size, len(weights["tokens"])
    nodes, made = [], iter(range(100_000))
    shapes = {"apart": (3 * heads, 1, size), "flat": (1, features), "tall": (features, 1), "one": (1,), "all": (tokens,), "along": (0, 1)}
    initial = {name: np.array(shape, np.int64) for name, shape in shapes.items()}
    initial |= {name: np.float32(value) for name, value in (("scale", 1 / np.sqrt(size)), ("never", -1e9), ("ones", np.ones(features)))}
    initial |= {"tokens": weights["tokens"], "places": weights["places"], "all_places": np.arange(places, dtype=np.int32),
                "rows": np.array([[[head, 0]] for head in range(heads)], np.int64)}

    def add(kind, *operands, result=None, **attributes):
        name = result or f"v{next(made)}"
        nodes.append(onnx.helper.make_node(kind, list(operands), [name], **attributes))
        return name

    def normalised(x):
        return add("LayerNormalization", x, "ones", epsilon=1e-5)

    x = add("Add", *(add("Gather", table, add("Reshape", index, "one")) for table, index in (("tokens", "token"), ("places", "place"))))
    at = add("Add", "rows", add("Mul", add("Cast", "place", to=onnx.TensorProto.INT64), "along"))
    seen = add("LessOrEqual", "all_places", "place")
    for n, layer in enumerate(weights["layers"]):
        initial |= {f"{name}{n}": part for name, part in layer.items()}
        parts = [f"query{n}", f"key{n}", f"value{n}"]
        nodes.append(onnx.helper.make_node("Split", [add("Reshape", add("MatMul", normalised(x), f"qkv{n}"), "apart")], parts, num_outputs=3))
        keys, values = (add("ScatterND", f"old_{part}", at, part, result=f"new_{part}") for part in parts[1:])
        scores = add("Mul", add("MatMul", parts[0], add("Transpose", keys, perm=[0, 2, 1])), "scale")
        shares = add("Softmax", add("Where", seen, scores, "never"), axis=-1)
        x = add("Add", x, add("MatMul", add("Reshape", add("MatMul", shares, values), "flat"), f"out{n}"))
        x = add("Add", x, add("MatMul", add("Gelu", add("MatMul", normalised(x), f"up{n}"), approximate="tanh"), f"down{n}"))
    # Table times column, so that no importer keeps, or makes in each call, a table with its axes exchanged.
    add("Reshape", add("MatMul", "tokens", add("Reshape", normalised(x), "tall")), "all", result="logits")
    caches = {f"{name}{n}": array for n, pair in enumerate(cache) for name, array in zip(("key", "value"), pair)}
    inputs = {f"old_{name}": array for name, array in caches.items()} | {name: np.zeros((), np.int32) for name in ("token", "place")}
    results = {"logits": np.zeros(tokens, np.float32)} | {f"new_{name}": array for name, array in caches.items()}
    return onnx_model(nodes, initial, inputs, results, opset=20)


def gpt2_decode(**sizes):
    """A token of a GPT-2 of the smallest size, a cache of 256 places; the weights are arguments. `sizes`: others, of peers.decode."""
    step, arguments = peers.decode(**{"layers": 12, "tokens": 50_257} | sizes)
    weights, cache, token, place = arguments
    inputs = [*(array for pair in cache for array in pair), np.asarray(token), np.asarray(place)]
    return Model("GPT-2 of 124 M, a token", step, arguments, lambda: onnx_decode(weights, cache), inputs, weights_apart=True)


MODELS = [lstm, digits, resnet18, gpt2_decode]
