#!/usr/bin/env python3
"""Science in JAX: waves by Fourier transforms, and an oscillator whose constants are found by gradients through an ODE solver.

    TENON_DEVICE=cpu python samples/jax/science.py --picture science.png

Two solitons of the Korteweg-de Vries equation u_t + u u_x + d^2 u_xxx = 0 (Zabusky and Kruskal, 1965) are followed by an
integrating factor and Runge-Kutta steps. The damping and stiffness of an oscillator are fitted to its path by BFGS,
whose gradients come from the adjoint of an adaptive Dormand-Prince solver.
"""

import sys

import sample
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.ode import odeint
from jax.scipy.optimize import minimize

POINTS, DISPERSION, TIME_STEP = 256, 0.022, 2e-4


def solitons(x):
    """The sum of a fast wave and a slow one, at rest apart."""

    def wave(height, place):
        return 3 * height / jnp.cosh(jnp.sqrt(height) * (x - place) / (2 * DISPERSION)) ** 2

    return wave(0.3, 0.4) + wave(0.1, 0.9)


def waves(count: int):
    """The shapes of the waves, one behind every 50 steps: [count, POINTS]."""
    x = jnp.arange(POINTS) * (2.0 / POINTS)
    k = jnp.fft.rfftfreq(POINTS, 2.0 / POINTS).astype(jnp.float32) * 2 * jnp.pi
    half = jnp.exp(0.5j * TIME_STEP * DISPERSION**2 * k**3)

    def slope(spectrum):
        u = jnp.fft.irfft(spectrum, POINTS)
        return -0.5j * k * jnp.fft.rfft(u * u)

    def step(spectrum, _):  # RK4 behind the factor exp(i d^2 k^3 t), which the linear term is solved by.
        a = TIME_STEP * slope(spectrum)
        b = TIME_STEP * slope(half * (spectrum + a / 2))
        c = TIME_STEP * slope(half * spectrum + b / 2)
        d = TIME_STEP * slope(half**2 * spectrum + half * c)
        return half**2 * spectrum + (half**2 * a + 2 * half * (b + c) + d) / 6, None

    def fifty(spectrum, _):
        spectrum, _ = jax.lax.scan(step, spectrum, None, length=50)
        return spectrum, jnp.fft.irfft(spectrum, POINTS)

    return jax.jit(lambda: jax.lax.scan(fifty, jnp.fft.rfft(solitons(x)), None, length=count)[1])()


def path(constants, times):
    """Places of an oscillator that starts at 1: x'' = -damping x' - stiffness x."""
    damping, stiffness = constants

    def slope(state, _):
        return jnp.stack([state[1], -damping * state[1] - stiffness * state[0]])

    return odeint(slope, jnp.array([1.0, 0.0]), times, rtol=1e-5, atol=1e-5)[:, 0]


def fit():
    """The constants found from a noisy path, and the paths."""
    times = jnp.linspace(0.0, 8.0, 60)
    noise = np.random.RandomState(0).randn(60).astype(np.float32) * 0.02
    seen = jax.jit(path)(jnp.array([0.35, 4.0]), times) + noise
    found = jax.jit(lambda start: minimize(lambda c: jnp.mean((path(c, times) - seen) ** 2), start, method="BFGS",
                                           options={"maxiter": 20}).x)(jnp.array([0.1, 3.0]))
    return found, times, seen, jax.jit(path)(found, times)


def run(count: int) -> sample.Outcome:
    shapes = waves(count)
    found, times, seen, fitted = fit()
    # Mass and energy of the waves stay; the constants are near 0.35 and 4.
    series = [*np.asarray(found), float(jnp.mean(shapes[-1])), float(jnp.mean(shapes[-1] ** 2)),
              float(jnp.mean(shapes[0] ** 2))]
    return sample.Outcome(series, {"shapes": np.asarray(shapes), "paths": [np.asarray(each) for each in (times, seen, fitted)],
                                   "found": np.asarray(found)})


def draw(figure, outcome: sample.Outcome) -> None:
    left, right = figure.subplots(1, 2)
    left.imshow(outcome.shown["shapes"], aspect="auto", origin="lower", extent=(0, 2, 0, len(outcome.shown["shapes"])))
    left.set(title="two solitons pass each other", xlabel="place", ylabel="time")
    times, seen, fitted = outcome.shown["paths"]
    right.plot(times, seen, ".", times, fitted, "-")
    right.set(title="damping {:.3f}, stiffness {:.3f}".format(*outcome.shown["found"]), xlabel="time")


if __name__ == "__main__":
    sys.exit(sample.main(__doc__.splitlines()[0], run, draw, default_steps=200, tolerance=2e-2))
