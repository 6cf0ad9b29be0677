#!/usr/bin/env python3
"""Replays a recorded run of each sample, on the device on which it was recorded and on another, bit for bit; and
on a device with one deliberately broken kernel, up to that kernel's first launch. Also traces the same runs.
With --full, includes the sample that takes half a minute. Prints PASS and FAIL lines.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEVICES = ("interp", "template")
SLOW = "mlp_784_train_step"

# A C compiler for the template that flips one bit of the result of one kernel.
COMPILER = """#!/usr/bin/env python3
import pathlib, re, subprocess, sys
for name in sys.argv[1:]:
    if name.endswith(".c"):
        path = pathlib.Path(name)
        text = path.read_text()
        found = re.search(r"^(?:static )?void {kernel}\\([^)]*\\*(?:restrict )?(\\w+)\\) {{.*?^}}", text, re.MULTILINE | re.DOTALL)
        change = f"  ((unsigned char *){{found.group(1)}})[0] ^= 1;\\n"
        path.write_text(text[:found.end() - 1] + change + text[found.end() - 1:])
sys.exit(subprocess.run(["cc", *sys.argv[1:]]).returncode)
"""


class Failure(Exception):
    """A failed check."""


def expect(condition, text):
    if not condition:
        raise Failure(text)


def tenon(build, *arguments, code=0, **environment):
    """Standard output of a command that must end with `code`."""
    done = subprocess.run([build / "tenon", *map(str, arguments)], capture_output=True, text=True, timeout=600,
                          cwd=ROOT, env={**os.environ, "NO_COLOR": "1", **environment})
    expect(done.returncode == code and not done.stderr, f"{arguments[0]}: exit code {done.returncode}: {done.stdout[-300:]} {done.stderr}")
    return done.stdout


def arguments_of(folder):
    """--arg for each input of a sample: its file, or random numbers where none is stored."""
    manifest = json.loads((folder / "manifest.json").read_text())
    arguments = []
    for number, given in enumerate(manifest["inputs"]):
        value = f"@{folder / given['file']}" if "file" in given else f"random:{number}"
        arguments += ["--arg", f"{number}={value}"]
    return arguments


def replay(build, file, device, *options, **more):
    return json.loads(tenon(build, "replay", file, "--device", device, "--json", *options, **more))


def check_same(build, file, recorded_on, device):
    """A replay in which nothing differs."""
    report = replay(build, file, device)
    expect(not report["differences"], f"{recorded_on} on {device}: {report['differences']}")
    expect(not report["stopped"] and not report["left_out"] and not report["errors"], f"{report}")
    expect(report["compared"] > report["launches"] > 0, f"{recorded_on} on {device}: compared {report['compared']}")
    way = "modules_loaded" if device == recorded_on else "modules_compiled"
    expect(report[way] == 1, f"{recorded_on} on {device}: {report}")
    return report["launches"]


def check_broken(build, file, folder):
    """The replay stops at the first launch of the kernel that was broken."""
    launches = re.findall(r"^ *(\d+)  launch @(\w+)\(.*%y ", tenon(build, "replay", file, "--list"), re.MULTILINE)
    # A name that is reserved in C is changed in the source; a constant may be NaN, which stays NaN.
    names = [name for _, name in launches if not name.startswith(("select", "broadcast"))]
    kernel = names[len(names) // 2]
    first = next(int(entry) for entry, name in launches if name == kernel)
    compiler = folder / "broken-cc"
    compiler.write_text(COMPILER.format(kernel=kernel))
    compiler.chmod(0o755)
    report = replay(build, file, "template", code=1, TENON_TEMPLATE_CC=str(compiler))
    expect(report["stopped"] and len(report["differences"]) == 1, f"@{kernel} broken: {report}")
    found = report["differences"][0]
    expect((found["entry"], found["kernel"], found["buffer"], found["element"], found["differing"]) ==
           (first, kernel, "y", 0, 1), f"@{kernel} of entry {first} is broken; found {found}")
    expect(found["recorded"] != found["replayed"], f"{found}")
    # With --keep-going it reports every launch of that kernel, and of no other.
    report = replay(build, file, "template", "--keep-going", "--most", "1000", code=1, TENON_TEMPLATE_CC=str(compiler))
    others = {each["kernel"] for each in report["differences"]} - {kernel, ""}
    expect(not others, f"@{kernel} is broken, but {others} differ too")
    count = sum(name == kernel for _, name in launches)
    expect(len(report["differences"]) == count, f"{len(report['differences'])} of {count} launches differ")


def check_trace(path, launches):
    """A slice for each launch of the recording."""
    events = json.loads(path.read_text())["traceEvents"]
    slices = [e for e in events if e["ph"] == "X" and e["pid"] == 1 and e["tid"] == 0]
    traced = [e for e in slices if "kernel" in e["args"]]
    expect(len(traced) == launches, f"{len(traced)} launches in the trace, {launches} in the recording")
    expect(all(e["dur"] >= 0 and e["args"]["bytes_written"] >= 0 for e in traced), "a slice without length or bytes")
    expect(any(e["args"]["flops"] > 0 for e in traced) or launches < 40, "no flops")


def check_sample(build, sample):
    """Name and failure (or nothing) of each check of a sample."""
    outcomes = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for device in DEVICES:
            try:
                file, trace = folder / f"{device}.record", folder / f"{device}.json"
                tenon(build, "run", sample / "program.mlir", "--device", device, "--quiet", "--layer=trace,record",
                      *arguments_of(sample), TENON_RECORD=str(file), TENON_TRACE=str(trace))
                launches = [check_same(build, file, device, other) for other in DEVICES]
                # After each launch the recording reads back the results: the trace, outside, does not see that.
                check_trace(trace, launches[0])
                if device == "interp":
                    check_broken(build, file, folder)
                outcomes.append((f"{sample.name} recorded on {device}", ""))
            except (Failure, subprocess.TimeoutExpired, ValueError, OSError, KeyError, StopIteration) as error:
                outcomes.append((f"{sample.name} recorded on {device}", " ".join(str(error).split()) or repr(error)))
    return outcomes


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
    samples = [path.parent for path in sorted((ROOT / "samples").glob("*/manifest.json"))
               if path.parent.name != SLOW or "--full" in sys.argv]
    failed = not samples
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for outcomes in pool.map(lambda sample: check_sample(build, sample), samples):
            for name, why in outcomes:
                failed |= bool(why)
                print(f"FAIL {name}: {why}" if why else f"PASS {name}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
