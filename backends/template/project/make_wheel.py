#!/usr/bin/env python3
"""Makes a wheel of each Python package, with the plug-in: `ninja -C build wheel` calls it.

    make_wheel.py PLUGIN [FOLDER]     writes the wheels to FOLDER, by default the current one

The packages are the folders here that have a pyproject.toml, one for each framework. A wheel holds the code of one processor and one C
library, which its name says.
"""

import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def make(package, plugin, target):
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    # The sources stay as they are.
    with tempfile.TemporaryDirectory() as folder:
        staging = pathlib.Path(folder)
        shutil.copytree(package, staging, dirs_exist_ok=True)
        for module in staging.glob("*/__init__.py"):
            shutil.copy(plugin, module.parent)
        (staging / "setup.cfg").write_text(f"[bdist_wheel]\nplat_name = {platform}\npython_tag = py3\n")
        subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps",
                        "--no-build-isolation", "--wheel-dir", staging / "made", staging], check=True)
        for wheel in (staging / "made").glob("*.whl"):
            shutil.copy(wheel, target)
            print(target / wheel.name)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    target = pathlib.Path(sys.argv[2] if len(sys.argv) == 3 else ".").resolve()
    for project in sorted(HERE.glob("*/pyproject.toml")):
        make(project.parent, pathlib.Path(sys.argv[1]), target)


if __name__ == "__main__":
    main()
