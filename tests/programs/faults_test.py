#!/usr/bin/env python3
"""Twenty programs on devices on which each call is made to fail in turn: interp, the template (whose chip is
also killed), the CPU, the simulated GPU, and interp as a plug-in. A leak is a failure if GCC's leak sanitizer
is available. More schedules with --full."""

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def environment(build: pathlib.Path) -> dict[str, str]:
    """Loads the leak sanitizer first, except into the compilers that are run; a build with sanitizers has its own."""
    options = json.loads((build / "meson-info/intro-buildoptions.json").read_text())
    if any(option["name"] == "b_sanitize" and option["value"] != "none" for option in options):
        return dict(os.environ)
    library = subprocess.run(["gcc", "-print-file-name=liblsan.so"], text=True, stdout=subprocess.PIPE, check=False)
    path = library.stdout.strip()
    if not os.path.isabs(path):
        return dict(os.environ)
    return {**os.environ, "LD_PRELOAD": path, "TENON_TEMPLATE_CC": "env -u LD_PRELOAD cc"}


def main() -> int:
    build = ROOT / next((word for word in sys.argv[1:] if not word.startswith("--")), "build")
    schedules = 1000 if "--full" in sys.argv else 200
    status = 0
    for device, kills in (("interp", 0), ("cpu", 0), ("gpu-sim", 0), ("template", 100),
                          (str(build / "core/libtenon_interp.so"), 0)):
        done = subprocess.run([str(build / "conformance/faults_test"), f"--device={device}",
                               f"--schedules={schedules}", f"--kills={kills}"], cwd=ROOT,
                              env=environment(build), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        print(done.stdout.replace(str(build) + "/", ""))
        status = status or done.returncode
    return status


if __name__ == "__main__":
    sys.exit(main())
