"""What JAX's users compute beside the layers of networks, for the lists of programs.py: sampling, statistics, physics, graphs, text,
images, optimization. Each is a small whole program; a call takes some 50 microseconds to 50 ms."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from models import cross_entropy, descended, labels_of, layer_norm, numbers, scaled


def positive(*shape: int, seed: int = 0) -> np.ndarray:
    return np.abs(numbers(*shape, seed=seed)) + np.float32(0.1)


def integers(high: int, *shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, high, shape).astype(np.int32)


def mlp(weights, x):
    for w, b in weights[:-1]:
        x = jnp.tanh(x @ w + b)
    return x @ weights[-1][0] + weights[-1][1]


def mlp_weights(*sizes: int, dtype=np.float32) -> list:
    return [(scaled(m, n, seed=i).astype(dtype), np.zeros(n, dtype)) for i, (m, n) in enumerate(zip(sizes, sizes[1:]))]


def in_bf16(tree):
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.bfloat16), tree)


# --- Derivatives


def per_example_gradients():
    def loss(weights, x, y):
        return ((mlp(weights, x) - y) ** 2).sum()
    return jax.vmap(jax.grad(loss), (None, 0, 0)), [mlp_weights(32, 64, 64, 1), numbers(128, 32), numbers(128, 1)]


def hessian():
    def loss(w, x, y):
        return jnp.log1p(jnp.exp(-y * (jnp.tanh(x @ w.reshape(16, 4)).sum(-1)))).mean()
    return jax.hessian(loss), [numbers(64), numbers(256, 16), np.sign(numbers(256, seed=3))]


def ensemble():
    def loss(weights, x, y):
        return ((mlp(weights, x) - y) ** 2).mean()
    weights = jax.tree.map(lambda w: np.stack([w] * 32), mlp_weights(16, 32, 32, 1))
    return jax.vmap(descended(loss), (0, None, None)), [weights, numbers(64, 16), numbers(64, 1)]


def bf16_step():
    def loss(weights, x, y):
        return cross_entropy(mlp(weights, x).astype(jnp.float32), y)
    return descended(loss), [in_bf16(mlp_weights(256, 512, 512, 10)), in_bf16(numbers(128, 256)), labels_of(128)]


def bf16_block():
    def block(w, x):
        q, k, v = (jnp.einsum("bld,dhf->bhlf", x, w[n]) for n in "qkv")
        scores = jnp.einsum("bhqf,bhkf->bhqk", q, k).astype(jnp.float32) / 8
        masked = jnp.where(jnp.tril(jnp.ones((128, 128), bool)), scores, -jnp.inf)
        mixed = jnp.einsum("bhqk,bhkf->bhqf", jax.nn.softmax(masked).astype(jnp.bfloat16), v)
        x = x + jnp.einsum("bhlf,hfd->bld", mixed, w["o"])
        return x + jax.nn.gelu(x @ w["up"]) @ w["down"]
    w = {**{n: scaled(256, 4, 64, seed=i) for i, n in enumerate("qkv")}, "o": scaled(4, 64, 256), "up": scaled(256, 1024), "down": scaled(1024, 256)}
    return block, [in_bf16(w), in_bf16(numbers(2, 128, 256))]


def f16_images():
    def step(w, x):
        x = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return jax.nn.relu(x).mean((1, 2))
    return step, [scaled(3, 3, 32, 32).astype(np.float16), numbers(4, 28, 28, 32).astype(np.float16)]


# --- Sampling and statistics


def option_prices():
    def price(key, spot):
        z = jax.random.normal(key, (64, 4096))
        paths = spot * jnp.exp(jnp.cumsum(0.2 * 0.125 * z - 0.0003, 0))
        return jnp.maximum(paths.mean(0) - 1.0, 0).mean()
    return jax.value_and_grad(price, 1), [jax.random.key_data(jax.random.key(0)), np.float32(1)]


def hamiltonian():
    def energy(q):
        return 0.5 * (q @ q) + 0.1 * (q ** 4).sum()
    def run(key, q):
        def turn(q, key):
            p = jax.random.normal(key, q.shape)
            def leap(_, state):
                q, p = state
                p = p - 0.05 * jax.grad(energy)(q)
                q = q + 0.1 * p
                return q, p - 0.05 * jax.grad(energy)(q)
            new, after = lax.fori_loop(0, 10, leap, (q, p))
            lost = energy(q) + 0.5 * (p @ p) - energy(new) - 0.5 * (after @ after)
            accept = jnp.log(jax.random.uniform(jax.random.fold_in(key, 1))) < lost
            return jnp.where(accept, new, q), q[0]
        return lax.scan(turn, q, jax.random.split(key, 100))
    return run, [jax.random.key_data(jax.random.key(0)), numbers(32)]


def particles():
    def run(key, observed):
        def turn(x, inputs):
            key, y = inputs
            a, b = jax.random.split(key)
            x = 0.9 * x + 0.3 * jax.random.normal(a, x.shape)
            w = jax.nn.softmax(-0.5 * (y - x) ** 2)
            u = (jnp.arange(1024) + jax.random.uniform(b)) / 1024
            return x[jnp.clip(jnp.searchsorted(jnp.cumsum(w), u), 0, 1023)], (w * x).sum()
        return lax.scan(turn, jnp.zeros(1024), (jax.random.split(key, 50), observed))[1]
    return run, [jax.random.key_data(jax.random.key(0)), numbers(50)]


def mixture():
    def step(x, mu, sigma, pi):
        distance = ((x[:, None] - mu) ** 2 / sigma).sum(-1)
        r = jax.nn.softmax(jnp.log(pi) - 0.5 * (distance + jnp.log(sigma).sum(-1)), 1)
        n = r.sum(0)
        mu = r.T @ x / n[:, None]
        return mu, jnp.einsum("nk,nkd->kd", r, (x[:, None] - mu) ** 2) / n[:, None], n / len(x)
    return step, [numbers(4096, 8), numbers(16, 8, seed=1), positive(16, 8), np.full(16, 1 / 16, np.float32)]


def k_means():
    def step(x, centres):
        distances = (x * x).sum(1)[:, None] - 2 * x @ centres.T + (centres * centres).sum(1)
        nearest = distances.argmin(1)
        sums = jax.ops.segment_sum(x, nearest, 64)
        return sums / jnp.maximum(jnp.bincount(nearest, length=64), 1)[:, None]
    return step, [numbers(8192, 16), numbers(64, 16, seed=1)]


def gaussian_process():
    def likelihood(theta, x, y):
        d = ((x[:, None] - x) ** 2).sum(-1)
        k = jnp.exp(theta[0]) * jnp.exp(-0.5 * d / jnp.exp(theta[1])) + jnp.exp(theta[2]) * jnp.eye(len(x))
        l = jnp.linalg.cholesky(k)
        a = jax.scipy.linalg.cho_solve((l, True), y)
        return 0.5 * y @ a + jnp.log(jnp.diagonal(l)).sum()
    return jax.value_and_grad(likelihood), [np.zeros(3, np.float32), numbers(256, 4), numbers(256, seed=1)]


def bootstrap():
    def means(key, x):
        places = jax.random.randint(key, (500, 1000), 0, 1000)
        return jnp.percentile(x[places].mean(1), jnp.array([2.5, 97.5]))
    return means, [jax.random.key_data(jax.random.key(0)), numbers(1000)]


def regression_by_newton():
    def fit(x, y):
        def turn(_, w):
            p = jax.nn.sigmoid(x @ w)
            h = (x.T * (p * (1 - p))) @ x + 1e-3 * jnp.eye(32)
            return w - jnp.linalg.solve(h, x.T @ (p - y) + 1e-3 * w)
        return lax.fori_loop(0, 8, turn, jnp.zeros(32))
    return fit, [numbers(2000, 32), (numbers(2000, seed=1) > 0).astype(np.float32)]


def moving_statistics():
    def run(x):
        ones = jnp.ones(50) / 50
        mean = jnp.convolve(x, ones, "valid")
        return mean, jnp.convolve(x * x, ones, "valid") - mean ** 2, jnp.diff(x), jnp.histogram(x, 64)[0]
    return run, [numbers(20000)]


def correlations():
    return lambda x: jnp.corrcoef(x.T), [numbers(4096, 64)]


# --- Physics


def bodies():
    def step(x, v):
        d = x[None] - x[:, None]
        r = (d * d).sum(-1) + 1e-2
        v = v + 1e-3 * (d / (r * jnp.sqrt(r))[..., None]).sum(1)
        return x + 1e-3 * v, v
    return step, [numbers(1024, 3), numbers(1024, 3, seed=1)]


def waves_of_shallow_water():
    def run(u, v, h):
        def dx(a):
            return (jnp.roll(a, -1, 0) - jnp.roll(a, 1, 0)) * 0.5
        def dy(a):
            return (jnp.roll(a, -1, 1) - jnp.roll(a, 1, 1)) * 0.5
        def turn(_, s):
            u, v, h = s
            return u - 0.01 * dx(h), v - 0.01 * dy(h), h - 0.01 * (dx(u * h) + dy(v * h))
        return lax.fori_loop(0, 20, turn, (u, v, h))
    return run, [numbers(128, 128), numbers(128, 128, seed=1), positive(128, 128)]


def spectral_flow():
    def step(w):
        k = jnp.fft.fftfreq(128, 1 / 128)
        kx, ky = k[:, None], jnp.arange(65.0)[None]
        h = jnp.fft.rfft2(w)
        psi = h / jnp.maximum(kx ** 2 + ky ** 2, 1)
        u, v = jnp.fft.irfft2(1j * ky * psi), -jnp.fft.irfft2(1j * kx * psi)
        advection = u * jnp.fft.irfft2(1j * kx * h) + v * jnp.fft.irfft2(1j * ky * h)
        return w - 0.01 * advection
    return step, [numbers(128, 128)]


def life():
    def run(x):
        def turn(_, x):
            n = sum(jnp.roll(x, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
            return ((n == 3) | ((x == 1) & (n == 2))).astype(jnp.int32)
        return lax.fori_loop(0, 20, turn, x)
    return run, [integers(2, 256, 256)]


def ising():
    def run(key, s):
        mask = (jnp.arange(128)[:, None] + jnp.arange(128)) % 2
        def half(s, key, parity):
            field = jnp.roll(s, 1, 0) + jnp.roll(s, -1, 0) + jnp.roll(s, 1, 1) + jnp.roll(s, -1, 1)
            flip = jax.random.uniform(key, s.shape) < jnp.exp(-0.88 * s * field)
            return jnp.where(flip & (mask == parity), -s, s)
        def turn(s, key):
            a, b = jax.random.split(key)
            s = half(half(s, a, 0), b, 1)
            return s, s.mean()
        return lax.scan(turn, s, jax.random.split(key, 10))
    return run, [jax.random.key_data(jax.random.key(0)), np.sign(numbers(128, 128))]


def lorenz():
    def field(s):
        x, y, z = s[..., 0], s[..., 1], s[..., 2]
        return jnp.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z], -1)
    def run(s):
        def turn(s, _):
            a = field(s)
            b = field(s + 0.005 * a)
            c = field(s + 0.005 * b)
            d = field(s + 0.01 * c)
            s = s + 0.01 / 6 * (a + 2 * b + 2 * c + d)
            return s, s
        return lax.scan(turn, s, None, 200)[1]
    return run, [numbers(64, 3)]


def neural_ode():
    def loss(weights, x, y):
        def turn(x, _):
            a = mlp(weights, x)
            return x + 0.1 * mlp(weights, x + 0.05 * a), None
        return ((lax.scan(turn, x, None, 20)[0] - y) ** 2).mean()
    return jax.grad(loss), [mlp_weights(8, 64, 8), numbers(64, 8), numbers(64, 8, seed=1)]


def conjugate_gradients():
    def run(b):
        def a(x):
            return 4.1 * x - jnp.roll(x, 1, 0) - jnp.roll(x, -1, 0) - jnp.roll(x, 1, 1) - jnp.roll(x, -1, 1)
        return jax.scipy.sparse.linalg.cg(a, b, tol=0, atol=0, maxiter=30)[0]
    return run, [numbers(128, 128)]


# --- Graphs, text and sequences


def graph_layer():
    def step(w, x, edges):
        messages = jax.nn.relu(x[edges[0]] @ w)
        return jax.ops.segment_sum(messages, edges[1], 2000) / 8
    return step, [scaled(64, 64), numbers(2000, 64), integers(2000, 2, 16000)]


def graph_attention():
    def step(w, a, x, edges):
        h = x @ w
        e = jax.nn.leaky_relu((h[edges[0]] * a).sum(-1) + (h[edges[1]] * a).sum(-1))
        e = jnp.exp(e - jax.ops.segment_max(e, edges[1], 2000)[edges[1]])
        e = e / (jax.ops.segment_sum(e, edges[1], 2000)[edges[1]] + 1e-6)
        return jax.ops.segment_sum(h[edges[0]] * e[:, None], edges[1], 2000)
    return step, [scaled(32, 32), numbers(32), numbers(2000, 32), integers(2000, 2, 16000)]


def page_rank():
    def run(edges, degree):
        def turn(_, r):
            return 0.15 / 4000 + 0.85 * jax.ops.segment_sum((r / degree)[edges[0]], edges[1], 4000)
        return lax.fori_loop(0, 20, turn, jnp.full(4000, 1 / 4000))
    edges = integers(4000, 2, 40000)
    return run, [edges, np.maximum(np.bincount(edges[0], minlength=4000), 1).astype(np.float32)]


def shortest_paths():
    def run(d):
        return lax.fori_loop(0, 128, lambda k, d: jnp.minimum(d, d[:, k, None] + d[k]), d)
    return run, [positive(128, 128) * (1 - np.eye(128, dtype=np.float32))]


def word_vectors():
    def loss(table, centre, context, negative):
        c = table[centre]
        good = jax.nn.log_sigmoid((c * table[context]).sum(-1))
        return -(good + jax.nn.log_sigmoid(-jnp.einsum("bd,bnd->bn", c, table[negative])).sum(-1)).mean()
    return descended(loss), [numbers(10000, 64), integers(10000, 256), integers(10000, 256, seed=1), integers(10000, 256, 5, seed=2)]


def viterbi():
    def run(transitions, scores):
        def turn(best, s):
            paths = best[:, None] + transitions
            return paths.max(0) + s, paths.argmax(0)
        last, back = lax.scan(turn, scores[0], scores[1:])
        def follow(state, row):
            return row[state], row[state]
        end = last.argmax()
        return jnp.append(lax.scan(follow, end, back, reverse=True)[1], end)
    return run, [numbers(48, 48), numbers(200, 48)]


def forward_algorithm():
    def run(transitions, scores):
        def turn(a, s):
            return jax.nn.logsumexp(a[:, None] + transitions, 0) + s, None
        return jax.nn.logsumexp(lax.scan(turn, scores[0], scores[1:])[0])
    return jax.grad(run), [numbers(32, 32), numbers(100, 32)]


def edit_distances():
    def distance(a, b):
        def row(before, x):
            def cell(left, inputs):
                up, diagonal, y = inputs
                here = jnp.minimum(jnp.minimum(left, up) + 1, diagonal + (x != y))
                return here, here
            _, new = lax.scan(cell, before[0] + 1, (before[1:], before[:-1], b))
            return jnp.concatenate([before[:1] + 1, new]), None
        return lax.scan(row, jnp.arange(len(b) + 1), a)[0][-1]
    return jax.vmap(distance), [integers(4, 64, 40), integers(4, 64, 40, seed=1)]


def sampled_text():
    def run(key, w, table, h):
        def turn(state, key):
            h, token = state
            h = jnp.tanh(h @ w + table[token])
            token = jax.random.categorical(key, h @ table.T / 0.8)
            return (h, token), token
        return lax.scan(turn, (h, jnp.zeros(8, jnp.int32)), jax.random.split(key, 32))[1]
    return run, [jax.random.key_data(jax.random.key(0)), scaled(128, 128), numbers(256, 128), numbers(8, 128)]


def experts():
    def run(gate, up, down, x):
        probability, chosen = lax.top_k(jax.nn.softmax(x @ gate), 2)
        weight = (jax.nn.one_hot(chosen, 8) * probability[..., None]).sum(1)
        y = jax.nn.silu(jnp.einsum("td,edf->etf", x, up))
        return jnp.einsum("etf,efd,te->td", y, down, weight)
    return run, [scaled(128, 8), scaled(8, 128, 256), scaled(8, 256, 128), numbers(256, 128)]


def sorted_experts():
    """Tokens sorted by their experts, each multiplied by the matrices of its own; gradients."""
    def loss(weights, x):
        gate, up, down = weights
        probability, chosen = lax.top_k(jax.nn.softmax(x @ gate), 2)
        order = jnp.argsort(chosen.reshape(-1))
        sizes = jnp.bincount(chosen.reshape(-1), length=8).astype(jnp.int32)
        y = lax.ragged_dot(jax.nn.silu(lax.ragged_dot(x[order // 2], up, sizes)), down, sizes)
        y = jnp.zeros_like(y).at[order].set(y).reshape(-1, 2, x.shape[1])
        return ((y * probability[..., None]).sum(1) ** 2).mean()
    return jax.grad(loss), [[scaled(128, 8), scaled(8, 128, 256), scaled(8, 256, 128)], numbers(256, 128)]


def rotary():
    def run(x):
        angle = jnp.arange(256)[:, None] * 10000.0 ** (-jnp.arange(32) / 32)
        a, b = x[..., :32], x[..., 32:]
        return jnp.concatenate([a * jnp.cos(angle) - b * jnp.sin(angle), b * jnp.cos(angle) + a * jnp.sin(angle)], -1)
    return run, [numbers(4, 8, 256, 64)]


def linear_attention():
    def run(q, k, v):
        def turn(state, inputs):
            q, k, v = inputs
            state = 0.95 * state + k[..., None] * v[..., None, :]
            return state, jnp.einsum("hk,hkv->hv", q, state)
        return lax.scan(turn, jnp.zeros((4, 32, 32)), (q, k, v))[1]
    return run, [numbers(200, 4, 32), numbers(200, 4, 32, seed=1), numbers(200, 4, 32, seed=2)]


def state_space():
    def run(a, b, x):
        def joined(l, r):
            return l[0] * r[0], r[0] * l[1] + r[1]
        return lax.associative_scan(joined, (jax.nn.sigmoid(a * x), b * x))[1]
    return run, [numbers(64), numbers(64, seed=1), numbers(1024, 64)]


# --- Images and signals


def rotated():
    def run(x):
        y, z = jnp.meshgrid(jnp.arange(256.0), jnp.arange(256.0), indexing="ij")
        c, s = jnp.cos(0.3), jnp.sin(0.3)
        return jax.scipy.ndimage.map_coordinates(x, [c * (y - 128) - s * (z - 128) + 128, s * (y - 128) + c * (z - 128) + 128], 1)
    return run, [numbers(256, 256)]


def augmented():
    def run(key, x):
        a, b, c = jax.random.split(key, 3)
        starts = jax.random.randint(a, (64, 2), 0, 9)
        padded = jnp.pad(x, ((0, 0), (4, 4), (4, 4), (0, 0)))
        x = jax.vmap(lambda x, s: lax.dynamic_slice(x, (s[0], s[1], 0), (32, 32, 3)))(padded, starts)
        x = jnp.where(jax.random.bernoulli(b, 0.5, (64, 1, 1, 1)), x[:, :, ::-1], x)
        return jnp.clip(x * jax.random.uniform(c, (64, 1, 1, 1), minval=0.8, maxval=1.2), 0, 1)
    return run, [jax.random.key_data(jax.random.key(0)), np.random.default_rng(0).random((64, 32, 32, 3), np.float32)]


def resized():
    return lambda x: jax.image.resize(x, (8, 112, 112, 3), "bilinear"), [numbers(8, 64, 64, 3)]


def blurred():
    def run(x):
        k = jnp.exp(-0.5 * (jnp.arange(-6, 7) / 2.0) ** 2)
        k = k / k.sum()
        return jax.vmap(lambda r: jnp.convolve(r, k, "same"))(jax.vmap(lambda r: jnp.convolve(r, k, "same"))(x).T).T
    return run, [numbers(256, 256)]


def edges():
    def run(x):
        gx = x[2:, 1:-1] - x[:-2, 1:-1]
        gy = x[1:-1, 2:] - x[1:-1, :-2]
        m = jnp.hypot(gx, gy)
        return jnp.where(m > jnp.percentile(m, 90), jnp.arctan2(gy, gx), 0)
    return run, [numbers(256, 256)]


def spectrogram():
    def run(x):
        frames = jnp.stack([x[i * 128:i * 128 + 512] for i in range(120)]) * jnp.hanning(512)
        return jnp.log1p(jnp.abs(jnp.fft.rfft(frames)))
    return run, [numbers(16384)]


def ray_marching():
    def run(directions):
        def distance(p):
            return jnp.minimum(jnp.linalg.norm(p - jnp.array([0., 0, 4]), axis=-1) - 1, p[..., 1] + 1)
        def turn(_, t):
            return t + distance(directions * t[..., None])
        t = lax.fori_loop(0, 32, turn, jnp.zeros(directions.shape[:-1]))
        return jnp.exp(-0.1 * t)
    x = numbers(128, 128, 3)
    return run, [x / np.linalg.norm(x, axis=-1, keepdims=True)]


def transport():
    def run(a, b, cost):
        def turn(_, fg):
            f, g = fg
            f = -0.1 * jax.nn.logsumexp((g - cost) / 0.1 + jnp.log(b), 1)
            return f, -0.1 * jax.nn.logsumexp((f[:, None] - cost) / 0.1 + jnp.log(a)[:, None], 0)
        return lax.fori_loop(0, 20, turn, (jnp.zeros(128), jnp.zeros(128)))
    even = np.full(128, 1 / 128, np.float32)
    return run, [even, even, positive(128, 128)]


# --- Optimization and learning


def lamb_step():
    def step(p, g, m, v):
        def one(p, g, m, v):
            m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
            u = m / (jnp.sqrt(v) + 1e-6) + 0.01 * p
            return p - 0.01 * jnp.linalg.norm(p) / (jnp.linalg.norm(u) + 1e-6) * u, m, v
        clip = jnp.minimum(1, 1 / jnp.sqrt(sum((x * x).sum() for x in g)))
        return [one(p, g * clip, m, v) for p, g, m, v in zip(p, g, m, v)]
    def group(seed):
        return [positive(256, 256, seed=seed + i) for i in range(8)]
    return step, [group(0), group(8), group(16), group(24)]


def policy_gradient():
    def loss(weights, observed, actions, rewards):
        def back(total, r):
            total = r + 0.99 * total
            return total, total
        returns = lax.scan(back, jnp.zeros(16), rewards, reverse=True)[1]
        logits = jax.nn.log_softmax(mlp(weights, observed))
        chosen = jnp.take_along_axis(logits, actions[..., None], -1)[..., 0]
        return -(chosen * (returns - returns.mean())).mean()
    return jax.grad(loss), [mlp_weights(8, 64, 64, 4), numbers(100, 16, 8), integers(4, 100, 16), numbers(100, 16)]


def contrastive():
    def loss(w, x, y):
        a, b = x @ w, y @ w
        a, b = a / jnp.linalg.norm(a, axis=1, keepdims=True), b / jnp.linalg.norm(b, axis=1, keepdims=True)
        scores = a @ b.T / 0.1
        return -(jnp.diagonal(jax.nn.log_softmax(scores, 1)) + jnp.diagonal(jax.nn.log_softmax(scores, 0))).mean()
    return jax.value_and_grad(loss), [scaled(256, 128), numbers(256, 256), numbers(256, 256, seed=1)]


def factorised():
    def loss(uv, rows, columns, values):
        u, v = uv
        return (((u[rows] * v[columns]).sum(-1) - values) ** 2).mean() + 1e-3 * (u ** 2).mean()
    return descended(loss), [(numbers(5000, 32), numbers(2000, 32)), integers(5000, 8192), integers(2000, 8192, seed=1), numbers(8192)]


def masked_reconstruction():
    def loss(w, key, x):
        keep = jax.random.bernoulli(key, 0.75, x.shape[:2])
        y = layer_norm(jnp.where(keep[..., None], x, 0) @ w)
        return jnp.where(keep, 0, ((y - x) ** 2).mean(-1)).mean()
    return jax.grad(loss), [scaled(128, 128), jax.random.key_data(jax.random.key(0)), numbers(16, 64, 128)]


def remade():
    def loss(weights, x):
        layer = jax.checkpoint(lambda x, w: jnp.tanh(x @ w))
        return (functools.reduce(layer, weights, x) ** 2).mean()
    return jax.grad(loss), [[scaled(256, 256, seed=i) for i in range(6)], numbers(128, 256)]


def polynomial():
    return jnp.polyval, [numbers(64), numbers(300000) / np.float32(4)]


def squared_distances(x, y):
    return (x**2).sum(1)[:, None] - 2 * x @ y.T + (y**2).sum(1)[None]


def nearest():
    return lambda x, y: lax.top_k(-squared_distances(x, y), 8), [numbers(4096, 16), numbers(4096, 16, seed=1)]


def kernel_sums():
    def total(x, y, weights):
        return ((jnp.exp(squared_distances(x, y) / -8) @ weights) ** 2).sum()
    return jax.grad(total), [numbers(4096, 16), numbers(4096, 16, seed=1), numbers(4096, 8, seed=2)]


def loss_of_words():
    """Of the logits of a large vocabulary; gradients of what they are made of."""
    def loss(x, words, labels):
        return -jnp.take_along_axis(jax.nn.log_softmax(x @ words.T), labels[:, None], 1).mean()
    labels = np.random.RandomState(0).randint(0, 16000, 1024).astype(np.int32)
    return jax.grad(loss, (0, 1)), [numbers(1024, 256), np.float32(0.1) * numbers(16000, 256, seed=1), labels]


# --- What forward passes leave for gradients


def generator():
    """From 4 x 4 places to images of 32 x 32, by three transposed convolutions."""
    def images(weights, x):
        *hidden, last = weights
        for w in hidden:
            x = jax.nn.relu(lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
        return jnp.tanh(lax.conv_transpose(x, last, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
    def loss(weights, x, y):
        return ((images(weights, x) - y) ** 2).mean()
    filters = [np.float32(0.1) * numbers(4, 4, i, o) for i, o in ((64, 32), (32, 32), (32, 3))]
    return jax.grad(loss), [filters, numbers(8, 4, 4, 64), numbers(8, 32, 32, 3, seed=1)]


def gradient_penalty():
    """Of a critic of images: the gradient of the norms of its gradients."""
    def critic(weights, x):
        *filters, last = weights
        for w in filters:
            x = jax.nn.leaky_relu(lax.conv_general_dilated(x[None], w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))[0])
        return x.reshape(-1) @ last
    def loss(weights, images):
        slopes = jax.vmap(jax.grad(critic, 1), (None, 0))(weights, images)
        return ((jnp.sqrt((slopes ** 2).sum((1, 2, 3)) + 1e-6) - 1) ** 2).mean()
    filters = [np.float32(0.1) * numbers(5, 5, i, o) for i, o in ((1, 16), (16, 32))]
    return jax.grad(loss), [[*filters, numbers(7 * 7 * 32)], numbers(8, 28, 28, 1)]


def triplets():
    """The hardest other and the farthest own of each of 384, by differences of what a layer makes."""
    def loss(w, x, labels):
        y = x @ w
        squares = ((y[:, None] - y[None]) ** 2).sum(-1)
        same = labels[:, None] == labels[None]
        own, other = jnp.where(same, squares, 0).max(1), jnp.where(same, 1e9, squares).min(1)
        return jax.nn.relu(own - other + 0.2).mean()
    return jax.grad(loss), [scaled(128, 32), numbers(384, 128), integers(16, 384)]


def focal_loss():
    """Of 20 classes of 2,000 places of 8 images, most of which are empty."""
    def loss(logits, labels):
        right = jax.nn.one_hot(labels, 20)
        p = jax.nn.sigmoid(logits)
        miss = right * (1 - p) + (1 - right) * p
        cross = jnp.maximum(logits, 0) - logits * right + jnp.log1p(jnp.exp(-jnp.abs(logits)))
        return ((0.25 * right + 0.75 * (1 - right)) * miss ** 2 * cross).sum() / 2000
    return jax.value_and_grad(loss), [numbers(8, 2000, 20), integers(200, 8, 2000)]


def relative_attention():
    """A bias for each distance, learned, and masked keys."""
    def loss(weights, x, keep, y):
        w, bias = weights
        q, k, v = (x @ w).reshape(2, 256, 3, 4, 64).transpose(2, 0, 3, 1, 4)
        apart = jnp.clip(jnp.arange(256)[None] - jnp.arange(256)[:, None], -16, 15) + 16
        scores = q @ k.swapaxes(-1, -2) / 8 + bias[:, apart] + jnp.where(keep, 0, -1e9)[:, None, None]
        return ((jax.nn.softmax(scores) @ v - y) ** 2).mean()
    return jax.grad(loss), [(scaled(256, 768), numbers(4, 32)), numbers(2, 256, 256), numbers(2, 256) > -1, numbers(2, 4, 256, 64, seed=1)]


APPLICATIONS = {
    "gradients of 128 examples": per_example_gradients, "hessian of 64 weights": hessian, "32 networks at once": ensemble,
    "MLP step, bf16": bf16_step, "encoder layer, bf16": bf16_block, "convolution and mean, f16": f16_images,
    "option prices, 4096 paths": option_prices, "Hamiltonian sampling, 100 turns": hamiltonian, "particle filter, 1024": particles,
    "mixture of 16 Gaussians": mixture, "k-means of 8192 points": k_means, "Gaussian process of 256": gaussian_process,
    "bootstrap of 1000": bootstrap, "logistic regression by Newton": regression_by_newton, "moving statistics of 20000": moving_statistics,
    "correlations of 64 columns": correlations, "1024 bodies": bodies, "shallow water 128x128": waves_of_shallow_water,
    "spectral flow 128x128": spectral_flow, "life 256x256, 20 turns": life, "Ising 128x128, 10 sweeps": ising,
    "Lorenz, 64 orbits": lorenz, "neural ODE, gradient": neural_ode, "conjugate gradients 128x128": conjugate_gradients,
    "graph layer, 16000 edges": graph_layer, "graph attention, 16000 edges": graph_attention, "page rank, 40000 edges": page_rank,
    "shortest paths of 128": shortest_paths, "word vectors step": word_vectors, "Viterbi, 200 x 48": viterbi,
    "forward algorithm, gradient": forward_algorithm, "64 edit distances": edit_distances, "sampled text, 32 tokens": sampled_text,
    "8 experts, 256 tokens": experts, "8 experts, sorted tokens, gradient": sorted_experts, "polynomial of 64 coefficients": polynomial,
    "rotary embedding": rotary, "linear attention, 200 tokens": linear_attention,
    "state space, 1024 x 64": state_space, "rotated image 256x256": rotated, "augmented images, 64": augmented,
    "resized images, 8": resized, "blurred image 256x256": blurred, "edges of 256x256": edges, "spectrogram of 16384": spectrogram,
    "ray marching 128x128": ray_marching, "optimal transport of 128": transport, "LAMB of 8 arrays": lamb_step,
    "policy gradient": policy_gradient, "contrastive loss of 256": contrastive, "matrix factorisation step": factorised,
    "masked reconstruction": masked_reconstruction, "recomputed layers, gradient": remade,
    "nearest 8 of 4096 points": nearest, "kernel sums of 4096 points, gradient": kernel_sums, "loss of 16000 words, gradient": loss_of_words,
    "image generator, gradient": generator, "gradient penalty of a critic": gradient_penalty, "triplets of 384, gradient": triplets,
    "focal loss of 16000 places, gradient": focal_loss, "attention with learned distances, gradient": relative_attention,
}
