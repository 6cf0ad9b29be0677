#!/usr/bin/env python3
"""`tenon conform`: the case list, the smoke tier on each device, reports, and mutants that the suite must catch. With --write the
list of cases is written; with --full, the full tier on interp and cpu."""

import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIST = ROOT / "conformance/cases/list.txt"
DEVICES = ["reference", "interp", "cpu", "gpu-sim", "template"]
# One of each kind; all of them run by `build/conformance/mutants`.
CAUGHT = ["kernel/sub/f32/swaps_operands", "kernel/mul/f32/rounds_down", "kernel/add/f32/drops_nan", "kernel/floor/f64/becomes_other",
          "kernel/div/s32/gives_zero_for_zero_divisor", "kernel/shl/s32/shifts_modulo_width", "seam/copy/is_short", "seam/launch/is_skipped",
          "seam/launch/swaps_buffers"]


def run(*command: object) -> subprocess.CompletedProcess:
    return subprocess.run(list(map(str, command)), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=ROOT)


def check(name: str, good: bool, found: object) -> bool:
    print(f"PASS {name}" if good else f"FAIL {name}: {str(found)[-1500:]}")
    return good


def grouped(names: list[str]) -> str:
    """The list of cases: a line "op/add/*/prime/nan: bf16 f16 …" for the types that a case has."""
    types: dict[str, list[str]] = {}
    for name in names:
        parts = name.split("/", 3)
        pattern = f"{parts[0]}/{parts[1]}/*/{parts[3]}" if len(parts) == 4 else f"{'/'.join(parts[:-1])}/*"
        types.setdefault(pattern, []).append(parts[2] if len(parts) == 4 else parts[-1])
    return "".join(f"{pattern}: {' '.join(of)}\n" for pattern, of in types.items())


def test_list(tenon: pathlib.Path, write: bool) -> bool:
    lines = run(tenon, "conform", "--list").stdout.splitlines()
    if write:
        LIST.write_text(grouped(lines))
    good = check("cases are those of conformance/cases/list.txt", grouped(lines) == LIST.read_text(), "run tests/programs/conform_test.py build --write")
    parts = [run(tenon, "conform", "--list", "--shard", f"{i}/3").stdout.splitlines() for i in (1, 2, 3)]
    good &= check("shards have each case once", sorted(sum(parts, [])) == sorted(lines), [len(part) for part in parts])
    return good


def test_device(tenon: pathlib.Path, device: str, tier: str, folder: pathlib.Path) -> bool:
    report = folder / f"{device}.json"
    done = run(tenon, "conform", "--device", device, "--tier", tier, "--json", report)
    if done.returncode != 0:
        return check(f"{tier} on {device}", False, done.stdout)
    found = json.loads(report.read_text())
    passed = found["counts"].get("pass", 0)
    steps = sum(case["steps"]["kernels"] + case["steps"]["calls"] for case in found["cases"])
    good = found["passed"] and passed == len(found["cases"]) and steps >= passed
    return check(f"{tier} on {device}: {passed} cases, {steps} steps on the device", good, found["counts"])


def test_same_twice(tenon: pathlib.Path, folder: pathlib.Path) -> bool:
    reports = []
    for i in range(2):
        run(tenon, "conform", "--device", "interp", "--tier", "smoke", "--seed", "5", "--json", folder / f"{i}.json")
        report = json.loads((folder / f"{i}.json").read_text())
        for each in [report, *report["cases"]]:
            del each["seconds"]
        reports.append(report)
    return check("one seed gives one report, but for times", reports[0] == reports[1], "")


def test_usage(tenon: pathlib.Path) -> bool:
    good = True
    for arguments, status, said in [(["op/no_such_op/*"], 2, "no case matches"), (["--shard", "3/2"], 1, "is no shard"),
                                    (["--tier", "fast"], 1, "is no tier"), (["--device", "nothing", "op/add/f32/one/*"], 1, "does not open")]:
        done = run(tenon, "conform", *arguments)
        good &= check(f"conform {' '.join(arguments)}", done.returncode == status and said in done.stdout, (done.returncode, done.stdout))
    return good


def test_mutants(build: pathlib.Path) -> bool:
    done = run(build / "conformance/mutants", "--tier", "smoke", *CAUGHT)
    return check(f"{len(CAUGHT)} mutants are caught", f"{len(CAUGHT)} mutants changed something, {len(CAUGHT)} caught" in done.stdout, done.stdout)


def main() -> int:
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
    tenon = build / "tenon"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        good = test_list(tenon, "--write" in sys.argv)
        for device in DEVICES:
            good &= test_device(tenon, device, "smoke", folder)
        if "--full" in sys.argv:
            good &= all([test_device(tenon, device, "full", folder) for device in ("interp", "cpu")])
        good &= test_same_twice(tenon, folder)
        good &= test_usage(tenon)
        good &= test_mutants(build)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
