#!/usr/bin/env python3
"""Twenty programs on devices on which everything fails in turn: interp, the template (whose chip is
also killed), and interp as a plug-in. More schedules with --full."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main() -> int:
    build = ROOT / (sys.argv[1] if len(sys.argv) > 1 else "build")
    schedules = 1000 if "--full" in sys.argv else 200
    status = 0
    for device, kills in (("interp", 0), ("template", 100),
                          (str(build / "core/libtenon_interp.so"), 0)):
        done = subprocess.run([str(build / "conformance/faults_test"), f"--device={device}",
                               f"--schedules={schedules}", f"--kills={kills}"], cwd=ROOT,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        print(done.stdout.replace(str(build) + "/", ""))
        status = status or done.returncode
    return status


if __name__ == "__main__":
    sys.exit(main())
