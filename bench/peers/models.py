"""Whole models for the lists of programs.py, in plain jax.numpy: a call of each takes some 1 to 100 ms."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def scaled(*shape: int, seed: int = 0) -> np.ndarray:
    """Weights of which products keep the size of their operands: the last dimension is that of the results."""
    return numbers(*shape, seed=seed) / np.float32(np.sqrt(np.prod(shape[:-1])))


def convolved(x, w, stride=1):
    return lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def layer_norm(x):
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)


def group_norm(x, groups=8):
    parts = x.reshape(*x.shape[:-1], groups, -1)
    centred = parts - parts.mean((1, 2, 4), keepdims=True)
    return (centred * lax.rsqrt((centred * centred).mean((1, 2, 4), keepdims=True) + 1e-5)).reshape(x.shape)


def cross_entropy(logits, labels):
    return -(labels * jax.nn.log_softmax(logits)).sum(-1).mean()


def attention(q, k, v):
    """Of [batch, heads, length, features]."""
    scores = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.float32(np.sqrt(q.shape[-1]))
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, -1), v)


def descended(loss):
    """A training step: the parameters, the first argument, less a part of the gradient."""
    def step(parameters, *rest):
        return jax.tree.map(lambda p, g: p - 0.01 * g, parameters, jax.grad(loss)(parameters, *rest))
    return step


def labels_of(count: int, classes: int = 10) -> np.ndarray:
    return np.eye(classes, dtype=np.float32)[np.arange(count) % classes]


# --- Images


def resnet18():
    """Of a picture of 224 x 224, its normalisations as factors and biases."""
    def normalised(x, part):
        return convolved(x, part["w"], part["stride"]) * part["scale"] + part["bias"]
    def forward(weights, x):
        parts = [{**each, "stride": stride} for each, stride in zip(weights["parts"], strides)]
        x = jax.nn.relu(normalised(x, parts[0]))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        rest = iter(parts[1:])
        for first, block in blocks:
            y = jax.nn.relu(normalised(x, next(rest)))
            y = normalised(y, next(rest))
            if first and block > 0:
                x = normalised(x, next(rest))
            x = jax.nn.relu(x + y)
        return x.mean((1, 2)) @ weights["classes"]
    shapes, strides = [(7, 7, 3, 64)], [2]
    blocks = [(first, block) for block in range(4) for first in (True, False)]
    features = 64
    for first, block in blocks:
        wide = 64 << block
        stride = 2 if first and block > 0 else 1
        shapes += [(3, 3, features, wide), (3, 3, wide, wide)]
        strides += [stride, 1]
        if stride == 2:
            shapes.append((1, 1, features, wide))
            strides.append(2)
        features = wide
    parts = [{"w": scaled(*shape, seed=i), "scale": 1 + 0.1 * numbers(shape[-1], seed=i), "bias": 0.1 * numbers(shape[-1])}
             for i, shape in enumerate(shapes)]
    parts = [{name: value.astype(np.float32) for name, value in part.items()} for part in parts]
    return forward, [{"parts": parts, "classes": scaled(512, 1000)}, numbers(1, 224, 224, 3)]


def unet_block():
    """One step down and up again: two convolutions each, a half of the size between, and the way around it."""
    def forward(w, x):
        def twice(x, first, second):
            return jax.nn.silu(group_norm(convolved(jax.nn.silu(group_norm(convolved(x, first))), second)))
        around = twice(x, w[0], w[1])
        low = lax.reduce_window(around, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        low = twice(low, w[2], w[3])
        up = jnp.repeat(jnp.repeat(low, 2, 1), 2, 2)
        return twice(jnp.concatenate([around, up], -1), w[4], w[5])
    shapes = [(3, 3, 32, 64), (3, 3, 64, 64), (3, 3, 64, 128), (3, 3, 128, 128), (3, 3, 192, 64), (3, 3, 64, 64)]
    return forward, [[scaled(*shape, seed=i) for i, shape in enumerate(shapes)], numbers(1, 32, 32, 32)]


def diffusion_block():
    """A residual block that is told the time, then attention over its 16 x 16 places."""
    def forward(w, x, time):
        frequencies = jnp.exp(-jnp.arange(64) * (np.log(10_000.0) / 64))
        angles = time[:, None] * frequencies
        told = jax.nn.silu(jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1) @ w["time"])
        y = convolved(jax.nn.silu(group_norm(x)), w["first"]) + told[:, None, None, :]
        x = x + convolved(jax.nn.silu(group_norm(y)), w["second"])
        flat = group_norm(x).reshape(x.shape[0], -1, x.shape[-1])
        def heads(w):
            return (flat @ w).reshape(x.shape[0], -1, 4, 32).transpose(0, 2, 1, 3)
        seen = attention(heads(w["q"]), heads(w["k"]), heads(w["v"])).transpose(0, 2, 1, 3).reshape(flat.shape)
        return x + (seen @ w["o"]).reshape(x.shape)
    w = {name: scaled(128, 128, seed=i) for i, name in enumerate(("time", "q", "k", "v", "o"))}
    w |= {name: scaled(3, 3, 128, 128, seed=i) for i, name in enumerate(("first", "second"))}
    return forward, [w, numbers(2, 16, 16, 128), np.array([3, 500], np.float32)]


def cnn_step():
    def loss(w, x, y):
        for filters in (w["first"], w["second"]):
            x = jax.nn.relu(convolved(x, filters))
            x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return cross_entropy(jax.nn.relu(x.reshape(x.shape[0], -1) @ w["dense"]) @ w["classes"], y)
    w = {"first": scaled(3, 3, 1, 32), "second": scaled(3, 3, 32, 64), "dense": scaled(49 * 64, 128), "classes": scaled(128, 10)}
    return descended(loss), [w, numbers(16, 28, 28, 1), labels_of(16)]


# --- Sequences


def mlp_step():
    def loss(layers, x, y):
        for w, b in layers[:-1]:
            x = jax.nn.relu(x @ w + b)
        return cross_entropy(x @ layers[-1][0] + layers[-1][1], y)
    sizes = (784, 512, 256, 10)
    layers = [(scaled(m, n, seed=n), np.zeros(n, np.float32)) for m, n in zip(sizes, sizes[1:])]
    return descended(loss), [layers, numbers(64, 784), labels_of(64)]


def gru_step():
    def loss(w, xs, y):
        def step(h, x):
            a, b = x @ w["in"], h @ w["own"]
            r, z, n = jnp.split(a, 3, -1)
            p, q, m = jnp.split(b, 3, -1)
            r, z = jax.nn.sigmoid(r + p), jax.nn.sigmoid(z + q)
            return (1 - z) * jnp.tanh(n + r * m) + z * h, None
        return cross_entropy(lax.scan(step, jnp.zeros((16, 64)), xs)[0] @ w["classes"], y)
    w = {"in": scaled(64, 192), "own": scaled(64, 192, seed=1), "classes": scaled(64, 10)}
    return descended(loss), [w, numbers(30, 16, 64), labels_of(16)]


def transformer_layer(w, x, mask):
    """With the normalisation first, of [batch, length, features] and 4 heads."""
    batch, length, features = x.shape
    q, k, v = jnp.split(layer_norm(x) @ w["qkv"], 3, -1)
    def heads(x):
        return x.reshape(batch, length, 4, -1).transpose(0, 2, 1, 3)
    scores = jnp.einsum("bhqd,bhkd->bhqk", heads(q), heads(k)) / np.float32(np.sqrt(features / 4)) + mask
    seen = jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores, -1), heads(v))
    x = x + seen.transpose(0, 2, 1, 3).reshape(x.shape) @ w["out"]
    return x + jax.nn.gelu(layer_norm(x) @ w["up"]) @ w["down"]


def transformer_step(length: int = 64, batch: int = 4, features: int = 128, words: int = 1000):
    """Next-token training of 2 layers."""
    def loss(w, tokens):
        x = w["tokens"][tokens[:, :-1]] + w["places"]
        mask = jnp.where(jnp.tri(length, dtype=bool), 0.0, -1e9)
        for layer in w["layers"]:
            x = transformer_layer(layer, x, mask)
        return cross_entropy(layer_norm(x) @ w["tokens"].T, jax.nn.one_hot(tokens[:, 1:], words))
    layers = [{"qkv": scaled(features, 3 * features, seed=i), "out": scaled(features, features, seed=i),
               "up": scaled(features, 4 * features, seed=i), "down": scaled(4 * features, features, seed=i)} for i in range(2)]
    w = {"tokens": 0.1 * numbers(words, features), "places": 0.1 * numbers(length, features), "layers": layers}
    w = jax.tree.map(lambda x: x.astype(np.float32), w)
    return descended(loss), [w, np.random.default_rng(0).integers(0, words, (batch, length + 1)).astype(np.int32)]


def decode(layers: int = 4, tokens: int = 16_384, heads: int = 12, places: int = 256):
    """One token of a GPT-2 of layers of `heads` times 64, with a cache of `places`; batch 1."""
    features = 64 * heads
    def step(w, cache, token, place):
        x = w["tokens"][token] + w["places"][place]
        after = []
        for layer, (keys, values) in zip(w["layers"], cache):
            q, k, v = jnp.split((layer_norm(x) @ layer["qkv"]).reshape(3 * heads, 64), 3, 0)
            keys = lax.dynamic_update_slice(keys, k[:, None], (0, place, 0))
            values = lax.dynamic_update_slice(values, v[:, None], (0, place, 0))
            scores = jnp.where(jnp.arange(places) <= place, jnp.einsum("hd,hkd->hk", q, keys) / 8, -1e9)
            x = x + jnp.einsum("hk,hkd->hd", jax.nn.softmax(scores, -1), values).reshape(features) @ layer["out"]
            x = x + jax.nn.gelu(layer_norm(x) @ layer["up"]) @ layer["down"]
            after.append((keys, values))
        return layer_norm(x) @ w["tokens"].T, after
    weights = [{"qkv": scaled(features, 3 * features, seed=i), "out": scaled(features, features, seed=i),
                "up": scaled(features, 4 * features, seed=i), "down": scaled(4 * features, features, seed=i)} for i in range(layers)]
    w = {"tokens": np.float32(0.1) * numbers(tokens, features), "places": np.float32(0.1) * numbers(places, features), "layers": weights}
    cache = [(numbers(heads, places, 64, seed=i), numbers(heads, places, 64, seed=9 + i)) for i in range(layers)]
    return step, [w, cache, np.int32(7), np.int32(min(100, places // 2))]


def encoder_of_768(gradient: bool):
    """A layer of 768 over 128 places."""
    def forward(w, x):
        return transformer_layer(w, x, np.float32(0))
    def total(w, x):
        return (forward(w, x) ** 2).sum()
    w = {"qkv": scaled(768, 2304), "out": scaled(768, 768), "up": scaled(768, 3072), "down": scaled(3072, 768)}
    return jax.grad(total) if gradient else forward, [w, numbers(1, 128, 768)]


def adam_of_100():
    """Adam over 100 arrays of some thousand numbers each."""
    def step(parameters, first, second, gradients):
        first = [0.9 * m + 0.1 * g for m, g in zip(first, gradients)]
        second = [0.999 * v + 0.001 * g * g for v, g in zip(second, gradients)]
        changed = [p - 0.001 * m / (jnp.sqrt(v) + 1e-8) for p, m, v in zip(parameters, first, second)]
        return changed, first, second
    shapes = [(64 + i, 96) if i % 4 else (768,) for i in range(100)]
    arrays = [[numbers(*shape, seed=4 * i + j) for i, shape in enumerate(shapes)] for j in range(4)]
    arrays[2] = [np.abs(each) for each in arrays[2]]
    return step, arrays


MODELS = {
    "ResNet-18, 224x224": resnet18,
    "U-Net block, 32x32x64": unet_block,
    "diffusion block, batch 2, 16x16x128": diffusion_block,
    "CNN step, batch 16, 28x28": cnn_step,
    "MLP step, batch 64, 784-512-256-10": mlp_step,
    "GRU step, batch 16, 30 x 64": gru_step,
    "transformer step, 2 layers, 4 x 64 x 128": transformer_step,
    "transformer step, 2 layers, 2048 x 256": lambda: transformer_step(2048, 1, 256, 4096),
    "encoder layer, 128 x 768": lambda: encoder_of_768(False),
    "encoder layer, 128 x 768, gradient": lambda: encoder_of_768(True),
    "GPT decode, 4 layers of 768": decode,
    "Adam over 100 arrays": adam_of_100,
}


def attentions():
    """Of 4 heads of 64: name, function and arguments."""
    def total(q, k, v):
        return (attention(q, k, v) ** 2).sum()
    gradients = jax.grad(total, (0, 1, 2))
    for length in (256, 1024, 2048):
        arrays = [numbers(1, 4, length, 64, seed=i) for i in range(3)]
        yield f"4 heads of {length} x 64", attention, arrays
        yield f"4 heads of {length} x 64, gradient", gradients, arrays


def draws():
    """Random numbers: name, function and arguments."""
    key = np.array([0, 42], np.uint32)
    yield "bits, 1 M", lambda key: jax.random.bits(key, (1 << 20,)), [key]
    yield "uniform, 1 M", lambda key: jax.random.uniform(key, (1 << 20,)), [key]
    yield "normal, 1 M", lambda key: jax.random.normal(key, (1 << 20,)), [key]
    yield "split into 1000", lambda key: jax.random.split(key, 1000), [key]
