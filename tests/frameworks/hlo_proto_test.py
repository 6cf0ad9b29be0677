#!/usr/bin/env python3
"""Programs as HLO protos, which TensorFlow and PyTorch/XLA send: what jaxlib makes of JAX functions, read by Tenon, gives JAX's
numbers on its CPU.

    hlo_proto_test.py BUILD [--write DIR]     --write: the protos that seed the fuzzer

Prints a line "PASS name", "FAIL name: why" or "SKIP why"."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
JAX = ROOT / "frameworks/jax"
ABSENT = 77  # make-venv: there is no Python, or no index to install from.

# In the environment with JAX: writes NAME.pb, and in NAME.json arguments and results.
EXPORT = r'''
import json, pathlib, sys
import jax, jax.numpy as jnp, numpy as np
from jax import lax
rng = np.random.default_rng(0)
f = lambda *shape: rng.standard_normal(shape).astype(np.float32)
i = lambda high, *shape: rng.integers(0, high, shape).astype(np.int32)
square = lambda n: f(n, n) @ f(n, n).T + 3 * np.eye(n, dtype=np.float32)
spd = lambda n: (lambda a: (a @ a.T + n * np.eye(n)).astype(np.float32))(f(n, n))
conv = lambda x, w, **k: lax.conv_general_dilated(x, w, **k)
CASES = {
    "elementwise": (lambda x: jnp.tanh(x) * jnp.exp(-x * x) + jnp.sqrt(jnp.abs(x)) - lax.rsqrt(1 + x * x), f(3, 5)),
    "unary": (lambda x: [jnp.sin(x), jnp.cos(x), jnp.tan(x), jnp.log1p(x * x), jnp.expm1(x), jnp.floor(x), jnp.ceil(x), jnp.round(x),
                         jnp.sign(x), jax.nn.sigmoid(x), jnp.cbrt(x), lax.is_finite(x)], f(7)),
    "hyperbolic": (lambda x: [jnp.sinh(x), jnp.cosh(x), jnp.arcsinh(x), jnp.arccosh(2 + x * x), jnp.arctanh(x / 9), lax.erf(x), lax.erf_inv(x / 9)], f(7)),
    "arcs": (lambda x: [jnp.arcsin(x / 9), jnp.arccos(x / 9), jnp.arctan2(x, 1 + x)], f(7)),
    "integers": (lambda x, y: [x & y, x | y, x ^ y, ~x, x << 2, x >> 1, lax.shift_right_logical(x, y), lax.population_count(x), lax.clz(x),
                               x // (y + 1), x % (y + 1)], i(1000, 6), i(7, 6)),
    "compare_select": (lambda x, y: jnp.where(x > y, x, y * 2) + jnp.clip(x, -0.5, 0.5), f(4, 4), f(4, 4)),
    "complex": (lambda x, y: [jnp.abs(lax.complex(x, y)), jnp.real(lax.complex(x, y) ** 2), jnp.imag(lax.complex(x, y))], f(5), f(5)),
    "bits": (lambda x: [lax.bitcast_convert_type(x, jnp.int32), x.astype(jnp.bfloat16).astype(jnp.float32), lax.reduce_precision(x, 5, 7)], f(8)),
    "shapes": (lambda x: [x.T, x.reshape(6, 2), x[1:, ::2], jnp.flip(x, 0), jnp.pad(x, ((1, 2), (0, 1))), jnp.concatenate([x, x], 1),
                          jnp.broadcast_to(x[:, None], (3, 2, 4)), jnp.arange(5.0)], f(3, 4)),
    "pad_inside": (lambda x: lax.pad(x, 0.0, [(1, -1, 2), (-1, 2, 0)]), f(3, 4)),
    "reductions": (lambda x: [x.sum(0), x.max(), x.min(1), x.prod(), x.argmax(1), jnp.any(x > 0), jnp.all(x > -9, 0)], f(4, 6)),
    "dots": (lambda x, y: [jnp.einsum("bij,bjk->bik", x, y), jnp.tensordot(x, y, ([0, 2], [0, 1]))], f(2, 3, 4), f(2, 4, 5)),
    "convolution": (lambda x, w: conv(x, w, window_strides=(2, 1), padding=((1, 2), (0, 1)), rhs_dilation=(1, 2)), f(2, 3, 9, 8), f(4, 3, 3, 2)),
    "convolution_groups": (lambda x, w: conv(x, w, window_strides=(1, 1), padding="SAME", feature_group_count=2,
                                             dimension_numbers=("NHWC", "HWIO", "NHWC")), f(1, 5, 5, 4), f(3, 3, 2, 6)),
    "convolution_gradient": (jax.grad(lambda w, x: jnp.sum(conv(x, w, window_strides=(2, 2), padding="SAME") ** 2)), f(3, 2, 3, 3), f(2, 2, 7, 7)),
    "pooling": (lambda x: [lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2), (1, 2, 2), "VALID"),
                           lax.reduce_window(x, 0.0, lax.add, (1, 3, 3), (1, 1, 1), "SAME")], f(2, 6, 6)),
    "pooling_gradient": (jax.grad(lambda x: jnp.sum(lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2), (1, 2, 2), "VALID") ** 2)), f(2, 6, 6)),
    "cumulative": (lambda x: [jnp.cumsum(x, 1), lax.cummax(x, 0)], f(3, 7)),
    "gathers": (lambda x, k: [x[k], jnp.take_along_axis(x, k[:, None] % 4, 1)], f(5, 4), i(5, 5)),
    "gather_gradient": (jax.grad(lambda x, k: jnp.sum(x[k] ** 2)), f(5, 4), i(5, 6)),
    "scatters": (lambda x, k, y: [x.at[k].add(y), x.at[k[:1]].set(y[:1]), x.at[k].max(y)], f(5, 4), i(5, 3), f(3, 4)),
    "slices": (lambda x, k: [lax.dynamic_slice(x, (k[0], k[1]), (2, 2)), lax.dynamic_update_slice(x, x[:2, :2] * 2, (k[0], k[1]))], f(5, 4), i(3, 2)),
    "sorts": (lambda x: [jnp.sort(x, 1), jnp.argsort(x, 0), lax.top_k(x, 2)[0]], f(4, 6)),
    "while": (lambda x: lax.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, s[1] * 1.5, s[2] + s[1].sum()), (0, x, 0.0)), f(3)),
    "fori": (lambda x: lax.fori_loop(0, 4, lambda j, s: s + j * x, x), f(4)),
    "scan": (lambda x: lax.scan(lambda c, y: (c * 0.5 + y, c), jnp.zeros(3), x), f(6, 3)),
    "cond": (lambda x, k: lax.cond(k > 2, lambda y: jnp.sin(y), lambda y: y * 2, x), f(4), np.int32(3)),
    "switch": (lambda x, k: lax.switch(k, [lambda y: y + 1, lambda y: y * 3, lambda y: -y], x), f(4), np.int32(2)),
    "calls": (lambda x: jax.jit(lambda y: y + 1)(jax.nn.relu(x)) + jax.nn.gelu(x), f(9)),
    "ffts": (lambda x: [jnp.abs(jnp.fft.fft(x)), jnp.fft.irfft(jnp.fft.rfft(x), 8)], f(2, 8)),
    "cholesky": (lambda a: lax.linalg.cholesky(a), spd(5)),
    "triangular": (lambda a, b: lax.linalg.triangular_solve(jnp.tril(a), b, left_side=True, lower=True), spd(4), f(4, 2)),
    "random": (lambda k: [jax.random.uniform(k, (5,)), jax.random.normal(k, (4,)), jax.random.randint(k, (6,), 0, 10)], np.array([0, 42], np.uint32)),
    "rng_bits": (lambda k: lax.rng_bit_generator(k, (8,), algorithm=lax.RandomAlgorithm.RNG_THREE_FRY)[1], np.array([1, 2, 3, 4], np.uint32)),
    "constants": (lambda x: x + np.arange(6, dtype=np.float32).reshape(2, 3) + jnp.array([True, False, True]), f(2, 3)),
    "layer": (lambda x, w, b: jax.nn.softmax(jnp.dot(x, w) + b), f(4, 6), f(6, 3), f(3)),
    "layer_gradient": (jax.grad(lambda w, x: -jnp.mean(jax.nn.log_softmax(x @ w)[:, 0])), f(6, 3), f(4, 6)),
    "norm": (lambda x: (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5), f(4, 8)),
    "barrier": (lambda x, y: lax.optimization_barrier((x + 1, y)), f(3), f(2)),
    "donation": (jax.jit(lambda x: x * 2, donate_argnums=0), f(5)),
}
LINALG = ("cholesky", "triangular")
out = pathlib.Path(sys.argv[1])
for name, (function, *arguments) in CASES.items():
    jitted = function if hasattr(function, "lower") else jax.jit(function)
    # For its CPU, JAX writes calls of LAPACK in place of HLO's own ops.
    lowered = jitted.trace(*arguments).lower(lowering_platforms=("tpu",)) if name in LINALG else jitted.lower(*arguments)
    proto = lowered.compiler_ir("hlo").as_serialized_hlo_module_proto()
    (out / f"{name}.pb").write_bytes(proto)
    np.savez(out / f"{name}.npz", *jax.tree.leaves(jitted(*arguments)))
    for n, each in enumerate(arguments):
        np.save(out / f"{name}.{n}.npy", each)
'''
COMPARE = r'''
import json, pathlib, sys
import numpy as np
folder, name, said = pathlib.Path(sys.argv[1]), sys.argv[2], json.load(open(sys.argv[3]))
expected = np.load(folder / f"{name}.npz")
assert len(said["results"]) == len(expected.files), f"{len(said['results'])} results, JAX has {len(expected.files)}"
for result, key in zip(said["results"], expected.files):
    want = expected[key]
    got = np.array(result["value"], dtype=object).astype(np.float64).reshape(want.shape) if want.size else np.zeros(want.shape)
    np.testing.assert_allclose(got, want.astype(np.float64), rtol=2e-5, atol=2e-5)
'''


def run(*command: object, **more) -> subprocess.CompletedProcess:
    return subprocess.run([str(each) for each in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300, **more)


def fault(build: pathlib.Path, python: pathlib.Path, folder: pathlib.Path, name: str) -> str | None:
    arguments = sorted(folder.glob(f"{name}.[0-9].npy"))
    words = [word for n, path in enumerate(arguments) for word in ("--arg", f"{n}=@{path}")]
    done = run(build / "tenon", "run", folder / f"{name}.pb", *words, "--device", "cpu", "--json")
    if done.returncode != 0:
        return done.stderr.strip()[-300:]
    said = folder / f"{name}.said.json"
    said.write_text(done.stdout)
    if json.loads(done.stdout)["steps"]["device"] == 0:
        return "no step ran on the device"
    compared = run(python, "-c", COMPARE, folder, name, said)
    return compared.stderr.strip()[-400:] if compared.returncode != 0 else None


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    made = run(JAX / "make-venv", env=dict(os.environ, BUILD_DIR=str(build)))
    if made.returncode != 0:
        absent = made.returncode == ABSENT
        print(f"{'SKIP' if absent else 'FAIL'} hlo protos: the environment with JAX cannot be made: {made.stderr.strip()[-300:]}")
        return 0 if absent else 1
    python = JAX / ".venv/bin/python"
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(sys.argv[3]) if "--write" in sys.argv else pathlib.Path(folder)
        exported = run(python, "-c", EXPORT, folder, env=dict(os.environ, JAX_PLATFORMS="cpu"))
        if exported.returncode != 0:
            print(f"FAIL hlo protos: JAX: {exported.stderr[-500:]}")
            return 1
        good = True
        for path in sorted(folder.glob("*.pb")):
            why = fault(build, python, folder, path.stem)
            good &= why is None
            print(f"PASS {path.stem}" if why is None else f"FAIL {path.stem}: {' / '.join(why.splitlines())}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
