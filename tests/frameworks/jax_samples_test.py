#!/usr/bin/env python3
"""The programs of samples/jax on the device cpu, a few steps of each, against JAX's CPU in the same process.

    jax_samples_test.py BUILD [--full]     --full: on template and gpu-sim too, and more steps

A program passes if its numbers agree with those of JAX's CPU, its loss falls, and a picture is written. Prints PASS, FAIL
and SKIP lines."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

from on_devices import kept_code

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "samples/jax"
ABSENT = 77  # make-venv: there is no Python, or no index to install from.
STEPS = {"text": 12, "spirals": 40, "science": 8, "diffusion": 8, "recurrent": 30}
# Not fallen: the constants of an oscillator, and integrals of the waves.
NO_LOSS = ["science"]


def attempt(python: pathlib.Path, name: str, device: str, steps: int, folder: pathlib.Path) -> str | None:
    """What is wrong, or nothing."""
    picture = folder / f"{name}.png"
    settings = {**os.environ, "TENON_DEVICE": device, "MPLCONFIGDIR": str(folder)}
    for variable in ("JAX_PLATFORMS", "TENON_LAYERS", "TENON_PJRT_LIBRARY"):
        settings.pop(variable, None)
    settings |= kept_code(device)
    done = subprocess.run([python, SAMPLES / f"{name}.py", "--steps", str(steps), "--picture", picture, "--check"],
                          env=settings, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=1800)
    compared = re.search(r"^agrees with JAX's CPU: (\d+) numbers", done.stdout, re.MULTILINE)
    if done.returncode != 0 or not compared or int(compared.group(1)) < min(steps, 5):
        return f"exit status {done.returncode}: {' / '.join(done.stdout.splitlines()[-8:])}"
    if "(tenon, " not in done.stdout.splitlines()[0]:
        return f"ran elsewhere: {done.stdout.splitlines()[0]}"
    first, last = map(float, re.search(r"^(\S+) -> (\S+) in ", done.stdout, re.MULTILINE).groups())
    if name not in NO_LOSS and last > 0.9 * first:
        return f"does not learn: {first} -> {last}"
    if not picture.is_file() or not picture.read_bytes().startswith(b"\x89PNG") or picture.stat().st_size < 10_000:
        return f"no picture {picture}"
    return None


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    full = "--full" in sys.argv
    made = subprocess.run([str(SAMPLES / "make-venv")], env=dict(os.environ, BUILD_DIR=str(build)), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if made.returncode != 0:
        absent = made.returncode == ABSENT
        why = " / ".join(made.stdout.strip().splitlines()[-1 if absent else -5:])
        print(f"{'SKIP' if absent else 'FAIL'} samples/jax: its environment cannot be made: {why}")
        return 0 if absent else 1
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for device in ["cpu", "template", "gpu-sim"] if full else ["cpu"]:
            for name, steps in STEPS.items():
                wrong = attempt(SAMPLES / ".venv/bin/python", name, device, steps * (2 if full and device == "cpu" else 1),
                                pathlib.Path(folder))
                good &= wrong is None
                print(f"FAIL {device} {name}: {wrong}" if wrong else f"PASS {device} {name}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
