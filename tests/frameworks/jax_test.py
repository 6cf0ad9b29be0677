#!/usr/bin/env python3
"""JAX on Tenon's devices: frameworks/jax/tests on each of them, with a pip-installed JAX.

    jax_test.py BUILD [--full]

All tests run on the device cpu; on every other device a part of them, another one each, and with --full all. Prints PASS,
FAIL and SKIP lines. With --full also on the device cpu with the oldest JAX that the package takes, and with the newest one that the
newest Python here installs."""

import os
import pathlib
import shutil
import subprocess
import sys

from on_devices import ROOT, has_environment, pytest

JAX = ROOT / "frameworks/jax"
MOST_BYTES = 40_000_000  # Of the wheel, which the environment of the tests has installed.


def test_wheel(build: pathlib.Path) -> None:
    folder = build / "jax_wheel"
    done = subprocess.run([JAX / "make-wheel", folder], env=dict(os.environ, BUILD_DIR=str(build), PYTHON=str(JAX / ".venv/bin/python")), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wheels = list(folder.glob("tenon_jax-*-py3-none-*.whl"))
    size = wheels[0].stat().st_size if wheels else 0
    good = done.returncode == 0 and len(wheels) == 1 and 0 < size <= MOST_BYTES
    print(f"{'PASS' if good else 'FAIL'} the wheel: {size} bytes{'' if good else ': ' + done.stdout[-500:]}")
    shutil.rmtree(folder, ignore_errors=True)


def test_version(build: pathlib.Path, python: str, jax: str) -> None:
    """All tests with another version of JAX, in an environment beside the build folder."""
    folder = build.with_name(build.name + "-jax-versions") / f"{pathlib.Path(python).name}-{jax}"
    wanted = [jax, jax.replace("jax", "jaxlib"), "numpy", "scipy", "ml_dtypes", "pytest", "pytest-timeout", "setuptools"]
    made = subprocess.run([python, "-m", "venv", folder], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if made.returncode == 0:
        made = subprocess.run([folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade", *wanted],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if made.returncode != 0:
        print(f"SKIP {folder.name}: it cannot be installed: {' / '.join(made.stdout.splitlines()[-2:])}")
        return
    package = folder / "tenon"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(JAX / "jax_plugins", package / "jax_plugins")
    shutil.copy(build / "frameworks/pjrt/libtenon_pjrt.so", package / "jax_plugins/tenon")
    (folder / "lib" / pathlib.Path(python).name / "site-packages/tenon.pth").write_text(f"{package}\n", encoding="utf-8")
    said = subprocess.run([folder / "bin/python", "-c", "import jax; print(jax.__version__)"], text=True, capture_output=True, check=True)
    pytest(JAX, "cpu", f"JAX {said.stdout.strip()}", python=folder / "bin/python", JAX_PLATFORMS="tenon,cpu")


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    status = has_environment(JAX, build)
    if status is not None:
        return status
    others = {"interp": "interp", "template": "template", f"{build}/backends/libtenon_template.so:0": "template as a plug-in",
              "gpu-sim": "gpu-sim", "reference": "reference"}
    test_wheel(build)
    pytest(JAX, "cpu", "cpu", JAX_PLATFORMS="tenon,cpu")
    for i, (device, label) in enumerate(others.items()):
        part = "1/1" if "--full" in sys.argv else f"{i + 1}/{len(others)}"
        pytest(JAX, device, label, "--part", part, JAX_PLATFORMS="tenon,cpu")
    if "--full" in sys.argv:
        test_version(build, f"python{sys.version_info.major}.{sys.version_info.minor}", "jax==0.10.0")
        pythons = [shutil.which(f"python3.{minor}") for minor in range(19, 10, -1)]
        runs = (each for each in pythons if each and subprocess.run([each, "-c", ""], capture_output=True).returncode == 0)
        test_version(build, next(runs), "jax<0.13")
    return 0


if __name__ == "__main__":
    sys.exit(main())
