#!/usr/bin/env python3
"""Runs every group of tests and adds up the results.

A group is a GoogleTest executable of the build, the golden tests (lit), or a Python script that
prints lines "PASS name", "FAIL name: why" and "SKIP name: why". As many groups run at once as there
are cores, those that take longest first; the time of each is printed at the end. The last line printed is "N passed, N failed, N skipped";
the exit status is 1 if anything failed.
"""

import argparse
import collections
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field

from kept_folders import forget_old, kept_folder

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIT = "/usr/lib/llvm-19/build/utils/lit/lit.py"
# Groups of half a minute and more, so that none of them is left alone at the end; those of a build that has run them are
# known from what they took the last time.
LONGEST = ["torch_test", "jax_test", "tensorflow_test", "onnxruntime_test", "data", "new_backend_test", "opencl_test", "jax_samples_test",
           "conform_test", "graphs_test", "digits_test", "nvrtc_test", "guide_test", "bits_test", "hlo_lower", "math_test", "python_test", "faults_test", "samples"]
TIMES = "group_seconds.json"  # In the build folder.
SHARDS = {"data": 8}  # Thousands of tests that compile programs.
MOST_JOBS = 16
MOST_KEPT_KERNELS = 100_000_000  # Bytes; one run makes 8 million.
# The environments of Python that groups use. All groups at once: they are made one after another beside the first groups, since most
# of that time is waiting for an index and a disk, and groups begin when theirs are there. A named group makes its own.
ENVIRONMENTS = {
    "jax": ["jax_test", "jax_suite_test", "hlo_proto_test", "bench_test", "nvrtc_test", "opencl_test", "digits_test", "new_backend_test"],
    "torch": ["torch_test", "digits_test", "new_backend_test"],
    "tensorflow": ["tensorflow_test", "digits_test", "new_backend_test"],
    "onnxruntime": ["onnxruntime_test", "bench_test", "digits_test", "new_backend_test"],
    "python": ["python_test"],
    "onnx": ["onnx_test"],
}
# What starts builds and groups of its own: with --full it runs after the others, with nothing beside it.
LAST_AND_ALONE = ["style_test", "sanitizer_test"]


@dataclass
class Outcome:
    """Counts of one group and the lines worth showing."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    notes: list[str] = field(default_factory=list)
    absent: bool = False  # A prerequisite is missing.
    seconds: float = 0
    processor_seconds: float = 0
    suites: dict[str, collections.Counter] = field(default_factory=dict)  # Those that report the steps that ran on a device.

    def add(self, other: "Outcome") -> None:
        self.passed += other.passed
        self.seconds += other.seconds
        self.processor_seconds += other.processor_seconds
        self.failed += other.failed
        self.skipped += other.skipped
        self.notes += other.notes
        for name, counts in other.suites.items():
            self.suites.setdefault(name, collections.Counter()).update(counts)

    def add_suite(self, name: str, case: dict, verdict: str) -> None:
        """A case that recorded how many steps ran on the device."""
        counts = self.suites.setdefault(name, collections.Counter())
        counts["steps"] += int(case["device_steps"])
        counts[verdict] += 1
        if "skip_reason" in case:
            counts["skipped: " + case["skip_reason"]] += 1

    def suite_lines(self) -> list[str]:
        """The steps that ran on the device, one line per suite."""
        lines = []
        for name, counts in self.suites.items():
            reasons = "".join(f"; {count} {reason}" for reason, count in counts.items() if reason.startswith("skipped: "))
            lines.append(f"{name}: {counts['passed']} passed, {counts['steps']} steps on the device{reasons}")
        return lines


class Children:
    """The commands that run, each in a process group of its own, so that an end takes what they started along."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.running: set[subprocess.Popen] = set()
        self.ended = False

    def start(self, command: list[str], variables: dict[str, str], output: int) -> subprocess.Popen:
        with self.lock:
            if self.ended:
                raise KeyboardInterrupt
            child = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT, start_new_session=True,
                                     env={**os.environ, **variables})
            self.running.add(child)
            return child

    def wait(self, child: subprocess.Popen, timeout: float) -> None:
        """Waits, and counts the processor's seconds of the child and of what it waited for to the thread."""
        end = time.monotonic() + timeout
        while child.returncode is None:
            # Popen.wait() does not tell what the child used.
            found, status, used = os.wait4(child.pid, os.WNOHANG)
            if found:
                child.returncode = os.waitstatus_to_exitcode(status)
                USED.seconds = getattr(USED, "seconds", 0) + used.ru_utime + used.ru_stime
            elif time.monotonic() > end:
                raise subprocess.TimeoutExpired(child.args, timeout)
            else:
                time.sleep(0.02)

    def forget(self, child: subprocess.Popen) -> None:
        with self.lock:
            self.running.discard(child)

    def end(self) -> None:
        with self.lock:
            self.ended = True
            for child in self.running:
                kill_group(child)


CHILDREN = Children()
USED = threading.local()  # .seconds: of the processor, by children of this thread.


def kill_group(child: subprocess.Popen) -> None:
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run(command: list[str], timeout: float, variables: dict[str, str] | None = None) -> tuple[int, str]:
    """The exit status and output of a command, which has a folder of its own for temporary files; a time-out is status -1."""
    with tempfile.TemporaryDirectory(prefix="tenon-test-") as folder, tempfile.TemporaryFile() as output:
        child = CHILDREN.start(command, {"TMPDIR": folder, "TEST_TMPDIR": folder, **(variables or {})}, output.fileno())
        try:
            CHILDREN.wait(child, timeout)
            status = child.returncode
        except subprocess.TimeoutExpired:
            kill_group(child)
            child.wait()
            status = -1
        finally:
            CHILDREN.forget(child)
        output.seek(0)
        said = output.read().decode(errors="replace")
    return status, said if status != -1 else f"{said}\nno end after {timeout:.0f} s"


def run_gtest(command: list[str], variables: dict[str, str], shard: int = 0, shards: int = 1) -> Outcome:
    """One of `shards` parts of the tests of a GoogleTest executable; status 77 means that a prerequisite is missing."""
    outcome = Outcome()
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        status, output = run([*command, f"--gtest_output=json:{report}", "--gtest_brief=1"], 3600,
                             {**variables, "GTEST_TOTAL_SHARDS": str(shards), "GTEST_SHARD_INDEX": str(shard)})
        if status == 77:
            outcome.absent = True
            outcome.skipped = 1
            outcome.notes.append(output.strip().splitlines()[-1] if output.strip() else "skipped")
            return outcome
        if not report.exists():
            outcome.failed = 1
            outcome.notes.append(f"exit status {status}\n{output[-4000:]}")
            return outcome
        for suite in json.loads(report.read_text())["testsuites"]:
            for case in suite["testsuite"]:
                name = f"{suite['name']}.{case['name']}"
                skipped = case.get("result") == "SKIPPED" or case.get("status") == "NOTRUN"
                if "device_steps" in case:
                    outcome.add_suite(suite["name"], case,
                                      "failed" if case.get("failures") else "skipped" if skipped else "passed")
                if case.get("failures"):
                    outcome.failed += 1
                    outcome.notes.append(f"FAILED {name}\n{case['failures'][0]['failure'][:2000]}")
                elif skipped:
                    outcome.skipped += 1
                    if "skip_reason" not in case:  # Otherwise counted with its suite.
                        outcome.notes.append(f"skipped {name}")
                else:
                    outcome.passed += 1
    if status != 0 and outcome.failed == 0:
        outcome.failed = 1
        outcome.notes.append(f"exit status {status}\n{output[-4000:]}")
    return outcome


def run_lit(folder: str, build: str) -> Outcome:
    """Golden tests: FileCheck over what the tools print."""
    status, output = run([sys.executable, LIT, "-v", "-DTENON_BUILD=" + build, folder], 900)
    outcome = Outcome()
    for key, words in {"passed": "Passed", "failed": "Failed|Unresolved|Timed Out",
                       "skipped": "Unsupported"}.items():
        for count in re.findall(rf"(?:{words})\s*:\s*(\d+)", output):
            setattr(outcome, key, getattr(outcome, key) + int(count))
    if status != 0:
        outcome.failed = max(outcome.failed, 1)
        outcome.notes.append(output[-6000:])
    return outcome


def run_script(command: list[str]) -> Outcome:
    """A script that prints PASS, FAIL and SKIP lines."""
    # With --full a group may take hours: the suite under each sanitizer.
    status, output = run(command, 8 * 3600)
    outcome = Outcome()
    for line in output.splitlines():
        if line.startswith("PASS "):
            outcome.passed += 1
            if re.search(r": .*\d", line):  # a figure
                outcome.notes.append(line)
        elif line.startswith("FAIL "):
            outcome.failed += 1
            outcome.notes.append(line)
        elif line.startswith("SKIP "):
            outcome.skipped += 1
            outcome.notes.append(line)
    if status != 0 and outcome.failed == 0:
        outcome.failed = 1
        outcome.notes.append(f"exit status {status}\n{output[-4000:]}")
    return outcome


def groups(build: pathlib.Path, full: bool) -> dict[str, list[Callable[[], Outcome]]]:
    """Name to the functions that each run a part of the group."""
    found: dict[str, list[Callable[[], Outcome]]] = {}
    listing = subprocess.run(["meson", "introspect", "--tests", str(build)], check=True,
                             capture_output=True, text=True).stdout
    for test in json.loads(listing):
        shards = SHARDS.get(test["name"], 1)
        found[test["name"]] = [functools.partial(run_gtest, test["cmd"], test["env"], shard, shards) for shard in range(shards)]
    if (ROOT / "tests/golden").exists():
        found["golden"] = [functools.partial(run_lit, str(ROOT / "tests/golden"), str(build))]
    for script in sorted((ROOT / "tests").glob("*/*_test.py")):
        found[script.stem] = [functools.partial(run_script, [sys.executable, str(script), str(build)] + (["--full"] if full else []))]
    return found


def taken_before(build: pathlib.Path) -> dict[str, float]:
    """The seconds that each group took when it last ran in this build."""
    try:
        return json.loads((build / TIMES).read_text())
    except (OSError, ValueError):
        return {}


class Waiting:
    """Parts of groups in the order in which they are to begin, each once the environments of its group are there."""

    def __init__(self, parts: list[tuple[str, Callable[[], Outcome]]], environments: list[str]) -> None:
        self.changed = threading.Condition()
        self.parts = parts
        self.missing = {name: {each for each in environments if name in ENVIRONMENTS[each]} for name, _ in parts}

    def made(self, environment: str) -> None:
        with self.changed:
            for each in self.missing.values():
                each.discard(environment)
            self.changed.notify_all()

    def take(self) -> tuple[str, Callable[[], Outcome]]:
        with self.changed:
            while True:
                for place, (name, _) in enumerate(self.parts):
                    if not self.missing[name]:
                        return self.parts.pop(place)
                self.changed.wait()


def make_environments(environments: list[str], build: pathlib.Path, waiting: Waiting) -> None:
    """One after another. A group whose environment cannot be made says why."""
    for each in environments:
        start = time.monotonic()
        try:
            status, _ = run([str(ROOT / "frameworks" / each / "make-venv")], 1800, {"BUILD_DIR": str(build)})
            print(f"environment of {each}: {'made' if status == 0 else 'not made'} in {time.monotonic() - start:.0f} s", flush=True)
        except KeyboardInterrupt:  # The run has ended: whoever waits goes on, and ends too.
            pass
        except Exception:
            traceback.print_exc()
        finally:
            waiting.made(each)


def run_groups(chosen: dict[str, list[Callable[[], Outcome]]], jobs: int, before: dict[str, float], build: pathlib.Path,
               environments: list[str]) -> dict[str, Outcome]:
    """The outcome of each group; `jobs` parts run at once. Prints a group's counts when its last part has ended."""
    def timed() -> tuple[str, Outcome]:
        name, part = waiting.take()
        start = time.monotonic()
        USED.seconds = 0
        try:
            outcome = part()
        except Exception:  # A group that cannot be run fails; the others go on.
            outcome = Outcome(failed=1, notes=[traceback.format_exc()])
        outcome.seconds = time.monotonic() - start
        outcome.processor_seconds = USED.seconds
        return name, outcome

    unknown = {name: 1e6 - i for i, name in enumerate(LONGEST)}
    order = sorted(chosen, key=lambda name: -before.get(name, unknown.get(name, 0)))
    outcomes: dict[str, Outcome] = {}
    waiting = Waiting([(name, part) for name in order for part in chosen[name]], environments)
    threading.Thread(target=make_environments, args=(environments, build, waiting), daemon=True).start()
    pool = concurrent.futures.ThreadPoolExecutor(jobs)
    try:
        parts: dict[str, list[Outcome]] = collections.defaultdict(list)
        for end in concurrent.futures.as_completed([pool.submit(timed) for _ in list(waiting.parts)]):
            name, found = end.result()
            parts[name].append(found)
            if len(parts[name]) < len(chosen[name]):
                continue
            outcome = outcomes[name] = merge(parts[name])
            for note in outcome.notes + outcome.suite_lines():
                print("  " + note.replace("\n", "\n  "))
            print(f"{name}: {outcome.passed} passed, {outcome.failed} failed, {outcome.skipped} skipped"
                  f" ({outcome.seconds:.1f} s)", flush=True)
    finally:
        # On an interrupt: nothing that waits is begun, and what runs is killed with what it started.
        pool.shutdown(wait=False, cancel_futures=True)
        if sys.exc_info()[0] is not None:
            CHILDREN.end()
    return outcomes


def print_times(outcomes: dict[str, Outcome]) -> None:
    """A line a group, longest first: what the next to shorten is."""
    print("seconds, and those of the processor, of each group:")
    for name, outcome in sorted(outcomes.items(), key=lambda item: -item[1].seconds):
        print(f"{outcome.seconds:8.1f} {outcome.processor_seconds:8.1f}  {name}")
    print(f"{sum(each.seconds for each in outcomes.values()):8.1f} "
          f"{sum(each.processor_seconds for each in outcomes.values()):8.1f}  all")


def available_cores() -> int:
    """Those that this process may use: fewer than the machine has, in a container."""
    cores = len(os.sched_getaffinity(0))
    try:
        quota, period = pathlib.Path("/sys/fs/cgroup/cpu.max").read_text().split()
        if quota != "max":
            cores = min(cores, max(1, int(quota) // int(period)))
    except (OSError, ValueError):
        pass
    return cores


def merge(parts: list[Outcome]) -> Outcome:
    """The outcome of a group; where a prerequisite is missing, each part says so, and one is counted."""
    if all(part.absent for part in parts):
        return parts[0]
    whole = Outcome()
    for part in parts:
        whole.add(part)
    return whole


def keep_compiled_kernels(build: pathlib.Path) -> None:
    """Lets tests on the template take what the C compiler made of a kernel before, in this run or an earlier one, of any clone."""
    folder = kept_folder("cc") or build / "cc_cache"
    folder.mkdir(exist_ok=True)
    forget_old(folder, MOST_KEPT_KERNELS)
    os.environ.setdefault("TENON_CC_CACHE", str(folder))
    os.environ.setdefault("TENON_TEMPLATE_CC", str(ROOT / "tests/sdk/cached_cc"))


def compile_modules_when_imported() -> None:
    """Environments of Python have tens of thousands of modules, of which tests import a third."""
    os.environ["PIP_NO_COMPILE"] = "0"  # pip takes a false value for "no" options that are set.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="groups to run; all if none is named")
    parser.add_argument("--build", default="build", help="build folder")
    parser.add_argument("--full", action="store_true", help="also the long tests")
    parser.add_argument("--jobs", type=int, default=min(available_cores(), MOST_JOBS),
                        help="groups that run at once; default: one a core")
    parser.add_argument("--list", action="store_true", help="list the groups and end")
    arguments = parser.parse_args()
    build = pathlib.Path(arguments.build).resolve()
    os.environ["TENON_BUILD"] = str(build)
    if arguments.full:
        os.environ["TENON_FULL"] = "1"  # For tests in C++, and of PyTorch.
    keep_compiled_kernels(build)
    compile_modules_when_imported()
    available = groups(build, arguments.full)
    if arguments.list:
        print("\n".join(available))
        return 0
    unknown = [name for name in arguments.names if name not in available]
    if unknown:
        parser.error(f"no group {', '.join(unknown)}; there are {', '.join(available)}")
    def terminate(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # It may come twice: to the process, and to its group.
        sys.exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, terminate)
    start = time.monotonic()
    jobs = max(1, arguments.jobs)
    chosen = {name: available[name] for name in arguments.names or available}
    last = {name: chosen.pop(name) for name in LAST_AND_ALONE if arguments.full and name in chosen}
    before = taken_before(build)
    environments = [] if arguments.names else list(ENVIRONMENTS)
    outcomes = run_groups(chosen, jobs, before, build, environments) | run_groups(last, 1, before, build, [])
    (build / TIMES).write_text(json.dumps(before | {name: round(outcome.seconds, 1) for name, outcome in outcomes.items()}))
    total = Outcome()
    for each in outcomes.values():
        total.add(each)
    print_times(outcomes)
    print(f"{(time.monotonic() - start) / 60:.1f} min, {jobs} groups at once")
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return 1 if total.failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
