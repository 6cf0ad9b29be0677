#!/usr/bin/env python3
"""Makes a wheel of the JAX package with the plug-in: `ninja -C build wheel` calls it.

    jax/make_wheel.py PLUGIN [FOLDER]     writes the wheel to FOLDER, by default the current one

It holds the code of one processor and one C library, which its name says.
"""

import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    plugin = pathlib.Path(sys.argv[1])
    target = pathlib.Path(sys.argv[2] if len(sys.argv) == 3 else ".").resolve()
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    # The sources stay as they are.
    with tempfile.TemporaryDirectory() as staging:
        shutil.copytree(HERE, staging, dirs_exist_ok=True)
        shutil.copy(plugin, pathlib.Path(staging) / "jax_template")
        (pathlib.Path(staging) / "setup.cfg").write_text(f"[bdist_wheel]\nplat_name = {platform}\npython_tag = py3\n")
        made = pathlib.Path(staging) / "made"
        subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps",
                        "--no-build-isolation", "--wheel-dir", made, staging], check=True)
        for wheel in made.glob("*.whl"):
            shutil.copy(wheel, target)
            print(target / wheel.name)


if __name__ == "__main__":
    main()
