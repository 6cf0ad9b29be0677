#!/usr/bin/env python3
"""bench/peers/report: the text that it writes for made-up figures, and the text that it does not change; regressions: what counts as
slower. Prints PASS and FAIL lines."""

import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/peers"))
import regressions  # noqa: E402

REPORT = ROOT / "bench/peers/report"
HEAD, FOOT = "# By hand\n\n", "\nby hand too\n"
MARKS = "<!-- figures: bench/peers/run writes what follows -->\n", "<!-- end of figures -->\n"


def program(group: str, name: str, xla: float, **more) -> dict:
    return {"group": group, "name": name, "load": 1.0, "tenon": 1e-6, "xla": xla * 1e-6, "tenon_compile": 0.01,
            "xla_compile": 0.02, "tenon_temporaries": 0, "xla_temporaries": 20480} | more


def write_figures(folder: pathlib.Path, parts: dict[str, str], load: float) -> None:
    """With the commit of each part."""
    programs = [program("rows", "softmax", 0.5, torch=3e-6), program("rows", "sum", 2, wrong="tenon"),
                program("small", "scan", 1, lowered="apart"), program("small", "while", 16), program("models", "digits step", 1),
                program("contractions", "8 8 8", 1.5, torch=1e-6)]
    libraries = [{"group": "contractions", "name": "8 8 8", "tenon": 2e-6, "execute": 4e-6, "openblas": 1e-6, "onednn": 3e-6},
                 {"group": "contractions", "name": "1 1 1", "tenon": 2e-6, "execute": 4e-6, "openblas": 1e-6, "onednn": 3e-6,
                  "wrong": "onednn"}]
    kernels = {"benchmarks": [
        {"run_name": "launch/sum/reduce/real_time", "aggregate_name": "median", "real_time": 2.5, "bytes_per_second": 4e9,
         "ops/s": 1e9},
        {"run_name": "launch/sum/reduce/real_time", "aggregate_name": "mean", "real_time": 99},
        {"run_name": "compile/sum/reduce/real_time", "aggregate_name": "median", "real_time": 5000}]}
    about = {"machine": "a machine", "cores": 2, "peers": {"jax": "1.2.3"}}
    files = {"about.json": about, "kernels.json": kernels}
    for part, commit in parts.items():
        files[f"{part}.about"] = {"seconds": 60, "load": [0.5, load], "commit": commit, "date": "2000-01-01"}
    for threads in (1, 2):
        files |= {f"compare-{threads}.json": programs, f"contractions-{threads}.json": libraries}
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value))


def report(folder: pathlib.Path, page: pathlib.Path) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, REPORT, folder, page], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def check(folder: pathlib.Path) -> dict[str, str]:
    """The fault of each test, or nothing, by the test's name."""
    write_figures(folder, {"compare-1": "0123456789", "kernels": "0123456789"}, 1.5)
    page = folder / "page.md"
    page.write_text("no marks\n")
    without_marks = report(folder, page)
    left = page.read_text()
    page.write_text(HEAD + "".join(MARKS) + FOOT)
    done = report(folder, page)
    text = page.read_text()
    again = report(folder, page)
    unchanged = page.read_text() == text
    write_figures(folder, {"compare-1": "0123456789", "kernels": "9876543210"}, 9)
    report(folder, page)
    busy = page.read_text()
    expected = {
        # sqrt(1 * 16) of a goal of 2; sqrt(0.5 * 2) of 1; 1 / 2 of 0.85.
        "a goal that is met": "| small-operation programs, XLA's time / Tenon's | 2 | 2.00 | 4.00 | met | 8.50 | 1.00 | 1 |",
        "a goal that is just met": "| rows, XLA's time / Tenon's | 2 | 1.00 | 1.00 | met | 1.25 | 0.50 | 1 |",
        "a goal that is missed": "/ Tenon's | 2 | 0.85 | 0.50 | **missed** | 0.50 | 0.50 | 2 |",
        "PyTorch where it has the op": "| softmax | 1.00 | 0.50 | 3.00 | 0.50 | 3.00 | 1.00 | 0.50 |",
        "a wrong result, without PyTorch": "| sum (**tenon differs**) | 1.00 | 2.00 |  | 2.00 |  | 1.00 | 2.00 |",
        "libraries": "| 8 8 8 | 2.00 | 4.00 | 1.00 | 3.00 | 0.50 | 0.25 | 2.00 | 1.00 | 0.50 |",
        "a library's wrong result": "| 1 1 1 (**onednn differs**) | 2.00 |",
        "other StableHLO": "| scan (**other StableHLO**) | 1.00 |",
        "compile time and temporaries": "| models: digits step | 10 | 20 | 2.00 | 0 | 20 KiB |",
        "medians of kernels": "| sum: reduce | 2.50 | 4.0 | 1.00 | 5.0 |",
        "commit and peers": "on 2 cores of a machine, at commit 0123456789 on 2000-01-01.",
    }
    expected_busy = {
        "parts of several commits": "compare-1 at commit 0123456789 on 2000-01-01; kernels at commit 9876543210 on 2000-01-01",
        "other work on the machine": "figures of two threads say little",
    }
    wrong = {name: "" if line in text else f"no line '{line}'" for name, line in expected.items()}
    wrong |= {name: "" if line in busy and line not in text else f"'{line}' is not there, or always"
              for name, line in expected_busy.items()}
    wrong["exit status"] = "" if done.returncode == 0 else done.stdout[-500:]
    wrong["what is written by hand stays"] = "" if text.startswith(HEAD + MARKS[0]) and text.endswith(MARKS[1] + FOOT) else text
    wrong["a second time changes nothing"] = "" if again.returncode == 0 and unchanged else "it does"
    wrong["a page without marks"] = ("" if without_marks.returncode == 1 and left == "no marks\n"
                                     and "lacks the lines" in without_marks.stdout else without_marks.stdout)
    return wrong


def check_regressions() -> dict[str, str]:
    """The same for lists of figures: by the test's name the change of a program, and what is found of it."""
    steady = program("rows", "softmax", 2, spread=0.05)
    changes = {
        "nothing": ({}, []),
        "a slower machine": ({"tenon": 3e-6, "xla": 6e-6, "tenon_compile": 0.03, "xla_compile": 0.06}, []),
        "a tenth slower": ({"tenon": 1.1e-6}, []),
        "a quarter slower": ({"tenon": 1.25e-6}, ["time"]),
        "a quarter slower, within the spread": ({"tenon": 1.25e-6, "spread": 0.3}, []),
        "a tenth of the speed, beyond every spread": ({"tenon": 1e-5, "spread": 3}, ["time"]),
        "faster": ({"tenon": 1e-7, "tenon_compile": 0.001}, []),
        "compiled at half the speed": ({"tenon_compile": 0.02}, ["compile time"]),
        "more temporaries": ({"tenon_temporaries": 4}, ["temporaries"]),
        "wrong": ({"wrong": "tenon"}, ["results"]),
        "another program": ({"name": "sum", "tenon": 1}, []),
    }
    outcomes = {}
    for name, (change, expected) in changes.items():
        found = [each.what for each in regressions.worse([steady], [steady | change])]
        outcomes[f"regressions: {name}"] = "" if found == expected else f"{found}, expected {expected}"
    wrong_before = regressions.worse([steady | {"wrong": "tenon"}], [steady | {"wrong": "tenon"}])
    outcomes["regressions: wrong before"] = "" if not wrong_before else str(wrong_before)
    several = regressions.worse([steady, steady | {"name": "sum"}], [steady | {"tenon": 2e-6}, steady | {"name": "sum", "tenon": 4e-6}])
    outcomes["regressions: the greatest first"] = "" if [each.name for each in several] == ["sum", "softmax"] else str(several)
    line = str(several[0])
    outcomes["regressions: a line"] = "" if "rows: sum" in line and "2 -> 0.5 of XLA" in line else line
    return outcomes


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        outcomes = check(pathlib.Path(folder)) | check_regressions()
    for name, why in outcomes.items():
        print(f"FAIL {name}: {why}" if why else f"PASS {name}")
    return 1 if any(outcomes.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
