#!/usr/bin/env python3
"""Twenty programs on devices on which each call is made to fail in turn: interp, the template (whose chip is
also killed), the CPU, the simulated GPU, and interp as a plug-in (ten of them). A leak is a failure if GCC's leak
sanitizer is available. With --full there are more schedules, more moments to kill the chip, and all programs everywhere."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

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
    return {**os.environ, "LD_PRELOAD": path, "TENON_TEMPLATE_CC": f"env -u LD_PRELOAD {os.environ.get('TENON_TEMPLATE_CC', 'cc')}"}


LOOP = """func.func @main(%x: tensor<70000xf32>) -> tensor<70000xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<5> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<70000xf32>
  cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    %z = stablehlo.add %y, %y : tensor<70000xf32>
    stablehlo.return %j, %z : tensor<i32>, tensor<70000xf32>
  }
  return %r#1 : tensor<70000xf32>
}
"""


def test_devices_that_are_given_up(build: pathlib.Path) -> bool:
    """A loop that the host walks (the layer trace declines it whole) on a device that records no event: the host gives the device
    up within the loop, and the run ends."""
    good, ends = True, 0
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "loop.mlir"
        program.write_text(LOOP)
        for device in ("interp", "cpu"):
            for seed in (3, 6, 7, 8):
                settings = {**os.environ, "TENON_FAULTS": f"record%2 seed={seed}", "TENON_TRACE": f"{folder}/trace.json"}
                try:
                    done = subprocess.run([build / "tenon", "run", program, "--device", device, "--layer=faults,trace", "--arg", "0=1",
                                           "--quiet"], env=settings, text=True, capture_output=True, timeout=120)
                except subprocess.TimeoutExpired:
                    print(f"FAIL {device}: a device that records no event (seed {seed}): the run does not end")
                    good = False
                    continue
                ends += "no event can be recorded" in done.stderr
    if good:
        print(f"PASS devices that record no event are given up, and the run ends: {ends} of 8 runs")
    return good and ends > 0


def main() -> int:
    build = ROOT / next((word for word in sys.argv[1:] if not word.startswith("--")), "build")
    schedules, kills = (1000, 100) if "--full" in sys.argv else (60, 50)
    status = 0 if test_devices_that_are_given_up(build) else 1
    plugin = str(build / "core/libtenon_interp.so")
    for device, killed in (("interp", 0), ("cpu", 0), ("gpu-sim", 0), ("template", kills), (plugin, 0)):
        # The plug-in's device is that of interp.
        programs = 10 if device == plugin and "--full" not in sys.argv else 20
        done = subprocess.run([str(build / "conformance/faults_test"), f"--device={device}", f"--programs={programs}",
                               f"--schedules={schedules}", f"--kills={killed}"], cwd=ROOT,
                              env=environment(build), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        print(done.stdout.replace(str(build) + "/", ""))
        status = status or done.returncode
    return status


if __name__ == "__main__":
    sys.exit(main())
