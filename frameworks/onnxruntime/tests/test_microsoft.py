"""Ops of the domain com.microsoft: a model of one op gives the results of ONNX Runtime's CPU provider, and the op is taken."""

import numpy as np
import pytest
from models import Session, model, on_cpu, random, total, value
from onnx import TensorProto, helper

S, H, N = 6, 64, 4  # Length, hidden size, heads.


def quantized(*dims, seed=0, dtype=np.uint8):
    """Signed numbers, the weights, have seven bits: on x86 without VNNI ONNX Runtime adds two products of unsigned and signed bytes in 16 bits,
    which saturate."""
    least, most = (-64, 63) if dtype == np.int8 else (0, 255)
    return np.random.default_rng(seed).integers(least, most + 1, dims).astype(dtype)


def number(x, dtype=np.float32):
    return np.array(x, dtype)


def point(x, dtype=np.uint8):
    return np.array(x, dtype)


def ids(*dims, most=10, seed=0, dtype=np.int32):
    return np.random.default_rng(seed).integers(0, most, dims).astype(dtype)


def cache(length, size):
    angles = np.arange(length)[:, None] / 100 ** (np.arange(size) / size)[None, :]
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


COSINE, SINE = cache(16, H // N // 2)
X = random(2, S, H, seed=1)
Q = [quantized(2, 3, 8, 8), number(0.02), point(120)]  # An array, its scale and its zero point.
R = [quantized(2, 3, 8, 8, seed=1), number(0.03), point(7)]
Y = [number(0.05), point(130)]  # A result's.


def attention(*more, **attributes):
    return ("Attention", [X, random(H, 3 * H, seed=2) / 6, random(3 * H, seed=3), *more], {"num_heads": N, **attributes})


def multi_head(*more, keys=S, **attributes):
    return ("MultiHeadAttention", [X, random(2, keys, H, seed=2), random(2, keys, H, seed=3), *more], {"num_heads": N, **attributes})


def grouped(past, length, whole, *, shared=2, rotary=True, batches=2, **attributes):
    size = H // N
    lasts = np.array([whole - 1] * batches, np.int32)
    arrays = [random(batches, length, H, seed=1), random(batches, length, shared * size, seed=2), random(batches, length, shared * size, seed=3),
              random(batches, shared, past, size, seed=4), random(batches, shared, past, size, seed=5), lasts, np.array(whole, np.int32),
              *([COSINE, SINE] if rotary else [])]
    return ("GroupQueryAttention", arrays, {"num_heads": N, "kv_num_heads": shared, "do_rotary": int(rotary), **attributes})


def weights_of_bits(bits, *, points=False, bias=False, rows=24, depth=70, block=32):
    blocks = -(-depth // block)
    arrays = [random(3, depth, seed=1), quantized(rows, blocks, block * bits // 8, seed=2), random(rows * blocks, seed=3) / 10]
    arrays.append(quantized(rows * -(-blocks * bits // 8), seed=4) if points else None)
    if bias:
        arrays += [None, random(rows, seed=5)]
    return ("MatMulNBits", arrays, {"bits": bits, "block_size": block, "N": rows, "K": depth})


GEMM = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}  # All are wanted.

# The op, its inputs, its attributes; its results, if there are several, and its domain.
CASES = {
    "BiasGelu": ("BiasGelu", [X, random(H)], {}),
    "Gelu": ("Gelu", [X], {}),
    "FastGelu": ("FastGelu", [X, random(H)], {}),
    "FastGelu without bias": ("FastGelu", [X], {}),
    "QuickGelu": ("QuickGelu", [X], {"alpha": 1.5}),
    "FusedMatMul": ("FusedMatMul", [X, random(2, 5, H)], {"transB": 1, "alpha": 0.5}),
    "FusedMatMul of a transposed": ("FusedMatMul", [random(2, H, S), random(2, 5, H)], {"transA": 1, "transB": 1}),
    "FusedGemm": ("FusedGemm", [random(5, 8), random(6, 8), random(6)], {**GEMM, "transB": 1, "alpha": 0.5, "activation": "LeakyRelu", "activation_alpha": 0.1}),
    "FusedConv": ("FusedConv", [random(1, 3, 9, 9), random(4, 3, 3, 3), random(4)], {"activation": "Relu", "pads": [1, 1, 1, 1]}),
    "FusedConv with a sum": ("FusedConv", [random(1, 3, 9, 9), random(4, 3, 3, 3), random(4), random(1, 4, 7, 7)], {"activation": "Relu"}),
    "FusedConv clipped": ("FusedConv", [random(1, 3, 9, 9), random(4, 3, 3, 3)], {"activation": "Clip", "activation_params": [-0.5, 0.5]}),
    "SkipLayerNormalization": ("SkipLayerNormalization", [X, random(2, S, H), random(H), random(H), random(H)], {"epsilon": 1e-5}, ["output", "", "", "sum"]),
    "SkipLayerNormalization broadcast": ("SkipLayerNormalization", [X, random(1, S, H), random(H)], {}),
    "SkipSimplifiedLayerNormalization": ("SkipSimplifiedLayerNormalization", [X, random(2, S, H), random(H), random(H)], {}, ["output", "", "", "sum"]),
    "SimplifiedLayerNormalization": ("SimplifiedLayerNormalization", [X, random(H)], {"axis": -1, "epsilon": 1e-6}, ["y"], ""),
    "EmbedLayerNormalization": ("EmbedLayerNormalization", [ids(2, S), ids(2, S, most=2), random(10, H), random(S, H), random(2, H), random(H), random(H), ids(2, S, most=2)],
                                {}, ["output", "mask", "sum"]),
    "SkipSimplifiedLayerNormalization of small numbers": ("SkipSimplifiedLayerNormalization", [X / 1000, random(2, S, H) / 1000, random(H)], {}),
    "SimplifiedLayerNormalization of halves": ("SimplifiedLayerNormalization", [X.astype(np.float16), random(H)], {}, ["y"], ""),
    "EmbedLayerNormalization without segments": ("EmbedLayerNormalization", [ids(2, S), None, random(10, H), random(S, H), random(2, H), random(H), random(H)], {}, ["output", "mask"]),
    "EmbedLayerNormalization with positions": ("EmbedLayerNormalization", [ids(2, S), None, random(10, H), random(S, H), None, random(H), random(H), None, ids(2, S, most=S)],
                                               {}, ["output", "mask"]),
    "GatherND": ("GatherND", [X, ids(3, 2, most=2, dtype=np.int64)], {}),
    "GridSample": ("GridSample", [random(1, 2, 5, 5), random(1, 3, 3, 2) / 2], {"mode": "bilinear", "padding_mode": "zeros"}),
    "ExpandDims": ("ExpandDims", [X, number(1, np.int32)], {}),
    "Trilu": ("Trilu", [X, number(1, np.int64)], {"upper": 0}),
    "Pad": ("Pad", [random(3, 4), np.array([1, 0, 0, 2], np.int64), number(1.5)], {}),
    "CDist": ("CDist", [random(5, 7), random(4, 7, seed=1)], {"metric": "euclidean"}),
    "Attention": attention(),
    "Attention with lengths": attention(np.array([4, 6], np.int32)),
    "Attention with a mask": attention(ids(2, S, most=2, seed=3)),
    "Attention with a mask for each query": attention(ids(2, S, S, most=2, seed=3)),
    "Attention with a past": ("Attention", [*attention()[1], None, random(2, 2, N, 3, H // N)], {"num_heads": N, "unidirectional": 1}, ["output", "present"]),
    "Attention with a bias of scores": attention(None, None, random(2, N, S, S)),
    "QAttention": ("QAttention", [quantized(2, S, H), quantized(H, 3 * H, dtype=np.int8), random(3 * H), number(0.01), number(0.01), None, point(128),
                                  point(0, np.int8)], {"num_heads": N}),
    "MultiHeadAttention": multi_head(),
    "MultiHeadAttention of other keys": multi_head(random(3 * H), ids(2, 9, most=2), keys=9),
    "MultiHeadAttention with a bias of scores": multi_head(None, None, random(1, N, S, S), scale=0.2),
    "MultiHeadAttention with a past": ("MultiHeadAttention", [*multi_head()[1], None, None, None, random(2, N, 3, H // N), random(2, N, 3, H // N)],
                                       {"num_heads": N, "unidirectional": 1}, ["output", "key", "value"]),
    "RotaryEmbedding": ("RotaryEmbedding", [X, ids(2, S, most=16, dtype=np.int64), COSINE, SINE], {}),
    "RotaryEmbedding from a place on": ("RotaryEmbedding", [X, np.array([3], np.int64), COSINE, SINE], {"interleaved": 1}),
    "RotaryEmbedding of heads": ("RotaryEmbedding", [random(2, N, S, H // N), ids(2, S, most=16, dtype=np.int64), COSINE, SINE], {}),
    "GroupQueryAttention of a prompt": (*grouped(0, S, S), ["output", "key", "value"]),
    "GroupQueryAttention of a step": (*grouped(S, 1, S + 1), ["output", "key", "value"]),
    "GroupQueryAttention in a longer cache": (*grouped(12, 1, 9, softcap=5.0), ["output", "key", "value"]),
    "GroupQueryAttention of some steps": (*grouped(7, 3, 10, rotary=False, batches=1), ["output", "key", "value"]),
    "GroupQueryAttention in a window": (*grouped(S, 1, S + 1, local_window_size=4, scale=0.3), ["output", "key", "value"]),
    "MatMulNBits": weights_of_bits(4),
    "MatMulNBits with zero points": weights_of_bits(4, points=True),
    "MatMulNBits with a bias": weights_of_bits(4, bias=True, points=True),
    "MatMulNBits of 8 bits": weights_of_bits(8, points=True),
    "DynamicQuantizeMatMul": ("DynamicQuantizeMatMul", [random(4, 16), quantized(16, 6, dtype=np.int8), number(0.02), point(3, np.int8), random(6)], {}),
    "MatMulIntegerToFloat": ("MatMulIntegerToFloat", [quantized(4, 16), quantized(16, 6), number(0.02), random(6) / 100, point(120), quantized(6)], {}),
    "QGemm": ("QGemm", [quantized(4, 16), number(0.02), point(100), quantized(6, 16, dtype=np.int8), number(0.03), point(0, np.int8),
                        ids(6, most=1000), number(0.5), point(128)], {"transB": 1}),
    "QGemm to floats": ("QGemm", [quantized(4, 16), number(0.02), point(100), quantized(16, 6, dtype=np.int8), np.abs(random(6)) / 50, quantized(6, dtype=np.int8) * 0], {"alpha": 0.5}),
    "QGemm to floats with a scale": ("QGemm", [quantized(4, 16), number(0.02), point(100), quantized(16, 6, dtype=np.int8), number(0.03), point(0, np.int8), None, number(0.5)], {}),
    "QLinearAdd": ("QLinearAdd", [*Q, *R, *Y], {}),
    "QLinearAdd broadcast": ("QLinearAdd", [*Q, quantized(8), number(0.03), point(7), *Y], {}),
    "QLinearMul": ("QLinearMul", [*Q, *R, *Y], {}),
    "QLinearSigmoid": ("QLinearSigmoid", [*Q, number(1 / 256), point(0)], {}),
    "QLinearLeakyRelu": ("QLinearLeakyRelu", [*Q, *Y], {"alpha": 0.2}),
    "QLinearSoftmax": ("QLinearSoftmax", [*Q, number(1 / 256), point(0)], {"opset": 13, "axis": -1}),
    "QLinearSoftmax of old": ("QLinearSoftmax", [*Q, number(1 / 256), point(0)], {"opset": 12, "axis": 2}),
    "QLinearSoftmax of old, without an axis": ("QLinearSoftmax", [*Q, number(1 / 256), point(0)], {"opset": 12}),
    "QLinearConcat": ("QLinearConcat", [*Y, *Q, *R], {"axis": 1}),
    "QLinearWhere": ("QLinearWhere", [quantized(2, 3, 8, 8) > 127, *Q, *R, *Y], {}),
    "QLinearAveragePool": ("QLinearAveragePool", [*Q, *Y], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "QLinearAveragePool, channels last": ("QLinearAveragePool", [*Q, *Y], {"kernel_shape": [2, 2], "channels_last": 1}),
    "QLinearGlobalAveragePool": ("QLinearGlobalAveragePool", [*Q, *Y], {}),
    "QLinearGlobalAveragePool, channels last": ("QLinearGlobalAveragePool", [*Q, *Y], {"channels_last": 1}),
    "QLinearConv, channels last": ("QLinearConv", [quantized(1, 8, 8, 3), number(0.02), point(120), quantized(4, 3, 3, 3, dtype=np.int8), number(0.02), point(0, np.int8),
                                                   number(0.1), point(128), ids(4, most=500)], {"channels_last": 1, "kernel_shape": [3, 3]}),
    "DequantizeLinear": ("DequantizeLinear", [quantized(3, 8), random(8), quantized(8)], {"axis": 1}),
    "QuantizeLinear": ("QuantizeLinear", [random(3, 8), np.abs(random(8)) / 50, quantized(8)], {"axis": 1}),
}
VALID_KEYS = {"GroupQueryAttention in a longer cache": 9}  # Behind them, caches hold anything.
REFUSED = {  # A form that is not taken, and why.
    "MatMulNBits with an order": (("MatMulNBits", [*weights_of_bits(4)[1], ids(70, most=3)], weights_of_bits(4)[2]), "g_idx"),
    "FusedGemm": (("FusedGemm", [random(5, 8), random(8, 6)], {**GEMM, "activation": "Elu", "activation_alpha": 1.0}), "the activation Elu is not supported"),
    "a packed batch": (("RotaryEmbedding", [X, ids(2, S, most=16, dtype=np.int64), COSINE, SINE], {"is_packed_batching": 1, "num_heads": N}), "packed batches are not supported"),
}


def model_of(case, fed):
    """Inputs that are not fed are constants."""
    op, arrays, attributes, outputs, domain = (*case, *(["y"], "com.microsoft")[len(case) - 3:])
    names = [f"i{i}" if array is not None else "" for i, array in enumerate(arrays)]
    given = {name: array for name, array in zip(names, arrays, strict=True) if name}
    made = helper.make_node(op, names, outputs, domain=domain, **attributes)
    feeds = {name: given.pop(name) for name in list(given) if fed(name)}
    results = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in outputs if name]
    for each in results:  # Their types follow from the op.
        each.ClearField("type")
    return model([made], [value(name, array.shape, array.dtype) for name, array in feeds.items()], results, given, microsoft=True), feeds


def check_case(case, folder, fed, keys=None):
    data, feeds = model_of(case, fed)
    reference, session = on_cpu(data), Session(data, folder, small_groups=True)
    for got, expected in zip(session.run(**feeds), reference.run(None, feeds), strict=True):
        assert got.dtype == expected.dtype and got.shape == expected.shape
        got, expected = got[..., :keys, :] if got.ndim == 4 else got, expected[..., :keys, :] if got.ndim == 4 else expected
        if got.dtype.itemsize == 1:
            apart = np.abs(got.astype(np.int64) - expected.astype(np.int64))
            assert apart.max() <= 1 and (apart != 0).mean() < 0.05, f"{(apart != 0).sum()} of {apart.size} differ, by up to {apart.max()}"
        else:
            np.testing.assert_allclose(got, expected, rtol=2e-5, atol=2e-5 * max(1, np.abs(expected).max(initial=0)))
    report = session.report()
    assert report["claimed"] == 1 and report["left"] == [] and total(report, "runs") == 1, report


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_the_cpu_provider(tmp_path, name):
    check_case(CASES[name], tmp_path, lambda each: each == "i0", VALID_KEYS.get(name))


@pytest.mark.parametrize("name", REFUSED)
def test_other_forms_are_left(tmp_path, name):
    case, why = REFUSED[name]
    data, _ = model_of(case, lambda each: each == "i0")
    report = Session(data, tmp_path).report()
    assert report["claimed"] == 0 and why in report["left"][0], report
