#!/usr/bin/env python3
"""Checks the output of scripts/demo on a terminal: the sample's accuracy, a falling loss, and JAX training on the CPU and on a
device whose backend is generated during the run. Prints PASS, FAIL and SKIP lines; figures are for people.

    demo_test.py BUILD
"""

import os
import pathlib
import pty
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def on_terminal(command: list[str]) -> tuple[int, str]:
    """Exit status and output of a command whose output is a terminal."""
    ours, its = pty.openpty()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=its, stderr=its, cwd=ROOT)
    os.close(its)
    output = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # The other end is closed.
            part = b""
        if not part:
            break
        output += part
    os.close(ours)
    return process.wait(), output.decode(errors="replace")


def check_training(device: str, text: str, least: float) -> str:
    """The fault in the output of one training of JAX, or nothing."""
    percents = [float(each) for each in re.findall(r"([0-9.]+) % of the test images right", text)]
    losses = [float(each) for each in re.findall(r"loss ([0-9.]+)", text)]
    if not percents or percents[-1] <= least:
        return f"accuracies are {percents}"
    if losses[-1] >= losses[0] / 4:
        return f"losses are {losses}"
    if f"[{'#' * 10}{'.' * 10}]" not in text:
        return "there is no progress bar"
    if device not in text.splitlines()[0]:
        return f"it runs {text.splitlines()[0].strip()}, not on {device}"
    return "" if re.search(r"[0-9.]+ s, compilation included", text) else "its time is missing"


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    status, output = on_terminal([sys.executable, str(ROOT / "scripts/demo.py"), str(build / "tenon")])
    outcomes = {"demo": "" if status == 0 else f"exit status {status}: {output[-2000:]}"}
    figures = {"demo": (re.findall(r"^([0-9.]+ s)\. ", output, re.MULTILINE) or [""])[-1]}
    share = re.search(r"of 360 test images right: ([0-9.]+) %", output)
    outcomes["demo, a trained network"] = "" if share and float(share[1]) > 97 else output[:2000]
    losses = [float(each) for each in re.findall(r"step +\d+  loss ([0-9.]+)", output)]
    outcomes["demo, training step by step"] = "" if len(losses) == 20 and losses[-1] < losses[0] / 4 else f"losses are {losses}"
    absent = re.search(r"left out, there is no JAX here: (.*)", output)
    if absent:
        print(f"SKIP demo, JAX: {absent[1].strip()}")
    else:
        trainings = re.split(r"^   on ", output, flags=re.MULTILINE)[1:]
        if len(trainings) != 2:
            outcomes["demo, JAX"] = f"it trains {len(trainings)} times: {output[-2000:]}"
        for device, text in zip(("cpu", "mychip"), trainings):
            outcomes[f"demo, JAX on {device}"] = check_training(device, text, 95)
            figures[f"demo, JAX on {device}"] = (re.findall(r"([0-9.]+ %) of the test", text) or [""])[-1]
    for name, wrong in outcomes.items():
        figure = figures.get(name)
        print(f"FAIL {name}: {wrong}" if wrong else f"PASS {name}" + (f": {figure}" if figure else ""))
    return 1 if any(outcomes.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
