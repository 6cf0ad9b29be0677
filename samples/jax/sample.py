"""What the samples share: the device, options, progress, pictures, and a comparison with JAX's CPU.

Import it before jax: it selects the platform `tenon`, whose device the variable TENON_DEVICE names, unless
JAX_PLATFORMS says otherwise.
"""

import argparse
import dataclasses
import os
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "tenon,cpu")

import jax  # noqa: E402  It reads JAX_PLATFORMS when it is imported.
import numpy as np  # noqa: E402


@dataclasses.dataclass
class Outcome:
    """What a run computed: `series`, the numbers that two devices must agree on, in order, and what the picture shows."""

    series: list
    shown: dict


def steps(count: int, what: str):
    """Counts to `count`, with a progress bar on a terminal."""
    from tqdm import tqdm

    return tqdm(range(count), desc=what, unit="step", disable=not sys.stderr.isatty())


def main(description: str, run, draw, *, default_steps: int, tolerance: float) -> int:
    """The command line of a sample.

    run(steps) computes on JAX's default device and returns an Outcome; draw(figure, outcome) makes the picture.
    With --check it runs on JAX's CPU too, and the numbers of both must agree within `tolerance` (relative).
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--steps", type=int, default=default_steps, help=f"default: {default_steps}")
    parser.add_argument("--picture", metavar="FILE", help="draw the result to this file (.png, .svg, .pdf)")
    parser.add_argument("--check", action="store_true", help="run on JAX's CPU too and compare")
    options = parser.parse_args()
    device = jax.devices()[0]
    print(f"on {device} ({device.platform}, {device.device_kind})", flush=True)
    start = time.monotonic()
    with jax.default_device(device):
        outcome = run(options.steps)
    print(f"{outcome.series[0]:.4g} -> {outcome.series[-1]:.4g} in {time.monotonic() - start:.1f} s with compiling")
    if options.picture:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        figure = pyplot.figure(figsize=(10, 4.5), layout="constrained")
        draw(figure, outcome)
        figure.savefig(options.picture, dpi=110)
        print(f"wrote {options.picture}")
    return 0 if not options.check or agrees(outcome, run, options.steps, tolerance) else 1


def agrees(outcome: Outcome, run, count: int, tolerance: float) -> bool:
    with jax.default_device(jax.devices("cpu")[0]):
        expected = np.asarray(run(count).series)
    got = np.asarray(outcome.series)
    worst = np.max(np.abs(got - expected) / np.maximum(np.abs(expected), 1e-3))
    good = bool(worst <= tolerance)  # False for NaN.
    print(f"{'agrees with' if good else 'DIFFERS from'} JAX's CPU: {len(got)} numbers, "
          f"largest relative difference {worst:.1e} (allowed {tolerance:.1e})")
    return good


def draw_series(axes, outcome: Outcome, title: str) -> None:
    axes.plot(outcome.series)
    axes.set(title=title, xlabel="step", yscale="log")
