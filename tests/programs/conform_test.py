#!/usr/bin/env python3
"""`tenon conform`: the case list, the smoke tier on each device, reports, declarations, waivers, profiles, runs that go on,
submissions, rates, and mutants that the suite must catch. With --write the list of cases is written; with --full, the full tier on interp and cpu."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIST = ROOT / "conformance/cases/list.txt"
DEVICES = ["reference", "interp", "cpu", "gpu-sim", "template"]
CLASSES = ["multiply and add f32", "exp f32", "tanh f32", "sum of rows f32", "sum of columns f32", "transpose f32", "gather f32", "scatter f32",
           "sort f32", "dot f32", "dot bf16", "dot s8", "convolution f32", "fft c64"]


def run(*command: object, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(list(map(str, command)), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=ROOT,
                          env={**os.environ, **environment})


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
    left = run(tenon, "conform", "--list", "--exclude", "op/add/f64/*", "--exclude", "op/add/*/prime/*", "op/add/*").stdout.splitlines()
    good &= check("a pattern behind --exclude", len(left) > 100 and all(re.match("op/add/(?!f64/)[^/]*/(?!prime/)", each) for each in left), left[:3])
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
    """Every third case of the tier, with --full each."""
    reports = []
    part = "1/1" if "--full" in sys.argv else "1/3"
    for i in range(2):
        run(tenon, "conform", "--device", "interp", "--tier", "smoke", "--shard", part, "--seed", "5", "--json", folder / f"{i}.json")
        report = json.loads((folder / f"{i}.json").read_text())
        for each in [report, *report["cases"]]:
            del each["seconds"]
        reports.append(report)
    good = reports[0] == reports[1] and len(reports[0]["cases"]) > 100
    return check("one seed gives one report, but for times", good, len(reports[0]["cases"]))


def test_usage(tenon: pathlib.Path) -> bool:
    good = True
    for arguments, status, said in [(["op/no_such_op/*"], 2, "no case matches;"),
                                    (["speed/*"], 2, "no case matches in the tier full;"), (["--shard", "3/2"], 2, "is no shard"),
                                    (["--tier", "fast"], 2, "is no tier"), (["--timeout", "0"], 2, "more than 0 seconds"), (["--jobs", "-1"], 2, "number of processes"),
                                    (["--junit", "/nowhere/x.xml"], 2, "there is no folder /nowhere"), (["--measure", "--pjrt", "x.so"], 2, "excludes"), (["--device", "nothing", "op/add/f32/one/*"], 1, "does not open")]:
        done = run(tenon, "conform", *arguments)
        good &= check(f"conform {' '.join(arguments)}", done.returncode == status and said in done.stdout, (done.returncode, done.stdout))
    return good


class Terms:
    """Runs a few cases under a declaration and waivers, and looks at the outcome."""

    def __init__(self, tenon: pathlib.Path, folder: pathlib.Path):
        self.tenon, self.folder, self.good = tenon, folder, True

    def expect(self, name: str, device: object, pattern: str, status: int, counts: dict[str, int] | None, *said: str, mutant: str = "",
               declaration: object = None, waivers: object = None) -> None:
        report = self.folder / "terms.json"
        report.unlink(missing_ok=True)
        command: list = [self.tenon, "conform", "--device", device, pattern, "--no-reduce", "--json", report]
        for option, document in [("declaration", declaration), ("waivers", waivers)]:
            if document is not None:
                file = self.folder / f"{option}.json"
                file.write_text(document if isinstance(document, str) else json.dumps(document))
                command += [f"--{option}", file]
        done = run(*command, **({"TENON_MUTANT": mutant} if mutant else {}))
        found = json.loads(report.read_text())["counts"] if report.exists() else None
        good = done.returncode == status and found == counts and all(each in done.stdout for each in said)
        self.good &= check(name, good, (done.returncode, found, done.stdout))


def declared(**members: object) -> dict:
    return {"device": "X1", "vendor": "Example", "version": "2.0", **members}


def waiver(cases: str, expires: str = "2999-12-31") -> dict:
    return {"cases": cases, "reason": "a known bug", "owner": "A. Smith", "link": "https://example.com/7", "expires": expires}


def test_declarations(tenon: pathlib.Path, build: pathlib.Path, folder: pathlib.Path) -> bool:
    terms = Terms(tenon, folder)
    wrong, declines = build / "conformance/libmutant.so", build / "core/libdeclines.so"
    add, tan, multiply = "op/add/f32/prime/nan", "op/tan/f32/prime/ordinary", "op/multiply/f32/prime/ordinary"
    inaccurate, truncates = "kernel/tan/f32/is_inaccurate", "kernel/mul/f32/rounds_down"
    relaxed = [{"op": "stablehlo.tan", "type": "f32", "ulp": 200}]
    terms.expect("an error beyond its bound fails", wrong, tan, 1, {"fail": 1}, "first failure:", "to blame: kernel", "bound: 5 ULP", mutant=inaccurate)
    terms.expect("within a relaxed bound it is a quality warning", wrong, tan, 0, {"quality-warning": 1}, "quality warnings:", "relaxed to 200 ULP",
                 mutant=inaccurate, declaration=declared(relaxed=relaxed))
    terms.expect("a bound that is not relaxed enough", wrong, tan, 1, {"fail": 1}, mutant=inaccurate,
                 declaration=declared(relaxed=[{**relaxed[0], "ulp": 16}]))
    terms.expect("a bound of another type", wrong, tan, 1, {"fail": 1}, mutant=inaccurate,
                 declaration=declared(relaxed=[{**relaxed[0], "type": "f64"}]))
    terms.expect("an exact op within a relaxed bound", wrong, multiply, 0, {"quality-warning": 1}, "bound: exact, relaxed to 1 ULP", mutant=truncates,
                 declaration=declared(relaxed=[{"op": "stablehlo.multiply", "type": "*", "ulp": 1}]))
    terms.expect("a relaxed bound that is not needed", "interp", tan, 0, {"pass": 1}, declaration=declared(relaxed=relaxed))
    unsupported = [{"cases": "op/add/*", "reason": "no adder"}]
    terms.expect("a declined kernel that nothing excuses", declines, add, 1, {"not-supported": 1}, "the device declined")
    terms.expect("a declined kernel that is declared", declines, add, 0, {"not-supported": 1}, declaration=declared(not_supported=unsupported))
    terms.expect("a declined kernel outside of the declared profile", declines, "op/sort/f32/vector/ordinary", 0, {"not-supported": 1},
                 declaration=declared(profile="minimal"))
    terms.expect("a declined kernel within the declared profile", declines, add, 1, {"not-supported": 1}, declaration=declared(profile="minimal"))
    terms.expect("a pass that is declared as not supported", "interp", add, 1, {"unexpected-pass": 1}, "it passes, but is declared as not supported: no adder",
                 declaration=declared(not_supported=unsupported))
    terms.expect("a declaration that is no JSON", "interp", add, 1, None, "declaration.json:1:2: error: not JSON", declaration="{oops")
    terms.expect("a declaration without a vendor", "interp", add, 1, None, "declaration.json: /vendor: this member is missing",
                 declaration={"device": "X1", "version": "2"})
    return terms.good


def test_waivers(tenon: pathlib.Path, build: pathlib.Path, folder: pathlib.Path) -> bool:
    terms = Terms(tenon, folder)
    wrong, mutant = build / "conformance/libmutant.so", "kernel/add/f32/drops_nan"
    case = "op/add/f32/prime/nan"
    terms.expect("a failure that is waived", wrong, case, 0, {"waived": 1}, "a known bug (A. Smith, until 2999-12-31", mutant=mutant, waivers=[waiver(case)])
    terms.expect("a failure that another waiver is for", wrong, case, 1, {"fail": 1}, mutant=mutant, waivers=[waiver("op/add/f64/*")])
    terms.expect("a pass that is waived", "interp", case, 1, {"unexpected-pass": 1}, "it passes, but is waived: a known bug", waivers=[waiver(case)])
    terms.expect("a waiver that expired", wrong, case, 1, None, f"the waiver of '{case}' (A. Smith) expired on 2020-02-29", mutant=mutant,
                 waivers=[waiver(case, "2020-02-29")])
    terms.expect("a waiver without a case", "interp", case, 0, {"pass": 1}, "the waiver of 'op/no_such_op/*' (A. Smith) matches no case",
                 waivers=[waiver("op/no_such_op/*")])
    for member in waiver(case):
        terms.expect(f"a waiver without its {member}", "interp", case, 1, None, f"waivers.json: /0/{member}: this member is missing",
                     waivers=[{name: value for name, value in waiver(case).items() if name != member}])
    return terms.good


def test_blame(tenon: pathlib.Path) -> bool:
    done = run(tenon, "conform", "op/add/f32/prime/nan", "--layer=faults", TENON_FAULTS="launch%1")
    good = done.returncode == 1 and done.stdout.index("first failure:") < done.stdout.index("1 cases:") and "to blame: interface" in done.stdout
    return check("an error of the device's function is blamed on the interface", good, done.stdout)


def test_profiles(tenon: pathlib.Path, folder: pathlib.Path) -> bool:
    def listed(*arguments: object) -> list[str]:
        return run(tenon, "conform", "--list", *arguments).stdout.splitlines()

    sizes = [len(listed("--profile", name)) for name in ("minimal", "inference", "training", "full")]
    good = check(f"profiles grow: {sizes}", 0 < sizes[0] < sizes[1] < sizes[2] < sizes[3] == len(listed()), sizes)
    mine = folder / "mine.txt"
    mine.write_text("# mine\nop/add/*/prime/*\n-op/add/f64/*\n")
    found = listed("--profile", mine)
    good &= check("a profile from a file", "op/add/f32/prime/nan" in found and all(re.match("op/add/(?!f64/).*/prime/", each) for each in found), found)
    helped = run(tenon, "conform", "--help").stdout
    good &= check("--help lists the profiles", "minimal, inference, training or full" in " ".join(helped.split()), helped)
    done = run(tenon, "conform", "--profile", "tiny")
    return good & check("an unknown profile", done.returncode == 1 and "there is no profile 'tiny': expected minimal" in done.stdout, done.stdout)


def test_resume(tenon: pathlib.Path, folder: pathlib.Path) -> bool:
    report = folder / "resumed.json"
    journal = folder / "resumed.json.partial"
    command = [tenon, "conform", "--jobs", 1, "op/abs/*"]
    process = subprocess.Popen(list(map(str, [*command, "--json", report])), stdout=subprocess.DEVNULL)
    while process.poll() is None and not (journal.exists() and journal.read_bytes().count(b"\n") > 20):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    process.wait()
    interrupted = json.loads(report.read_text())
    had = journal.read_bytes().count(b"\n") - 1 if journal.exists() else 0
    good = check("an interrupted run keeps its journal", interrupted["interrupted"] and not interrupted["passed"] and had == len(interrupted["cases"]) >= 20,
                 (had, len(interrupted["cases"])))
    for wrong, said in [(["--seed", 3], "its seed is 0, that of this run is 3"), (["op/c*"], "its selection of cases"), (["--device", "cpu"], "its device is")]:
        done = run(*command, "--resume", report, *wrong)
        good &= check(f"no other run goes on: {wrong}", done.returncode == 1 and said in done.stdout, done.stdout)
    done = run(*command, "--resume", report)
    resumed = json.loads(report.read_text())
    run(*command, "--json", folder / "whole.json")
    whole = json.loads((folder / "whole.json").read_text())
    taken = sum(a == b for a, b in zip(interrupted["cases"], resumed["cases"], strict=False))
    for each in [resumed, whole, *resumed["cases"], *whole["cases"]]:
        del each["seconds"]
    good &= check(f"the run goes on after {had} cases", done.returncode == 0 and resumed == whole and taken == had and not journal.exists(), done.stdout)
    done = run(*command, "--resume", report)
    return good & check("nothing is left to resume", done.returncode == 1 and "resumed.json.partial" in done.stdout, done.stdout)


# A compiler that takes the difference of floats for their sum.
WRONG_COMPILER = """#!/bin/sh
for argument; do
  case $argument in *.c) sed -i 's/\\(const float v[0-9]* = v[0-9]*\\) + /\\1 - /' "$argument" ;; esac
done
exec cc "$@"
"""


def test_listings(build: pathlib.Path, folder: pathlib.Path) -> bool:
    """The kernel to blame is shown as the device gets it, and beside each line what is right there."""
    tenon, report, page, junit = build / "tenon", folder / "listing.json", folder / "listing.html", folder / "listing.xml"
    done = run(tenon, "conform", "--device", build / "conformance/libmutant.so", "op/add/f32/prime/nan", "--json", report, "--html", page,
               "--junit", junit, TENON_MUTANT="kernel/add/f32/drops_nan")
    listing = json.loads(report.read_text())["cases"][0].get("listing", "")
    line = re.search(r"^ *(%\d+) = add %\d+, %\d+ : f32 +\| \1 = nan$", listing, re.MULTILINE)
    good = check("a wrong operation is shown with its right value", line and line.group(0).strip() in done.stdout, (listing, done.stdout))
    stored = re.search(r"^ *store .*\| %y\[.*\] = nan, the device: (\S+)$", listing, re.MULTILINE)
    good &= check("the store has the device's value too", stored and stored.group(1) != "nan", listing)
    good &= check("reports for people have the kernel", "%y[0] = nan, the device: " in page.read_text() and "= nan, the device: " in junit.read_text(), done.stdout)
    run(tenon, "conform", "--device", build / "conformance/libmutant.so", "kernel/op/add/f32", "--json", report, TENON_MUTANT="kernel/add/f32/drops_nan")
    case = json.loads(report.read_text())["cases"][0]
    good &= check("a kernel's own case has its listing", case["blame"] == "kernel" and "= nan, the device: " in case.get("listing", ""), case)
    compiler = folder / "wrong_cc"
    compiler.write_text(WRONG_COMPILER)
    compiler.chmod(0o755)
    run(tenon, "conform", "--device", build / "backends/libtenon_template_c.so", "op/add/f32/prime/ordinary", "--json", report,
        TENON_TEMPLATE_CC=str(compiler))
    listing = json.loads(report.read_text())["cases"][0].get("listing", "")
    loads = dict(re.findall(r"\| (v\d+) = (\S+)$", listing, re.MULTILINE))
    line = re.search(r"const float (v\d+) = (v\d+) [+] (v\d+); +\| \1 = (\S+)$", listing, re.MULTILINE)
    right = line and abs(float(loads[line.group(2)]) + float(loads[line.group(3)]) - float(line.group(4))) < 1e-5
    return good & check("a device that compiles C sees its source", bool(right) and "restrict" in listing and ", the device: " in listing, listing)


def test_junit(tenon: pathlib.Path, build: pathlib.Path, folder: pathlib.Path) -> bool:
    report = folder / "junit.xml"
    run(tenon, "conform", "--device", build / "conformance/libmutant.so", "op/add/f32/*", "op/abs/f32/*", "--junit", report,
        TENON_MUTANT="kernel/add/f32/drops_nan")
    root = xml.etree.ElementTree.parse(report).getroot()
    failed = {case.get("name") for case in root.iter("testcase") if case.find("failure") is not None}
    cases = run(tenon, "conform", "--list", "op/add/f32/*", "op/abs/f32/*").stdout.split()
    good = {case.get("name") for case in root.iter("testcase")} == set(cases) and int(root.get("tests")) == len(cases)
    good &= {suite.get("name") for suite in root.iter("testsuite")} == {"op/add", "op/abs"}
    return check("JUnit XML has each case", good and "op/add/f32/prime/nan" in failed and int(root.get("failures")) == len(failed), sorted(failed))


# Appended to the page: chooses a cell, and writes what the page shows before and after.
LOOK = """<script>
const look = {tiles: Object.fromEntries([...document.querySelectorAll('.tile')].map((each) => [each.dataset.kind, Number(each.querySelector('b').textContent)])),
  verdict: byId('verdict').textContent, dots: document.querySelectorAll('#chart circle').length, first: document.querySelector('.case .name').textContent,
  details: document.querySelector('.case .more').textContent};
document.querySelector('.cell[data-op=abs][data-type=f32]').click();
look.abs = {names: [...document.querySelectorAll('.case .name')].map((each) => each.textContent), count: byId('count').textContent};
document.querySelector('.cell[data-op=abs][data-type=f32]').click();
document.querySelector('.tile[data-kind=fail]').click();
look.failed = document.querySelectorAll('.case').length;
document.body.replaceChildren('LOOK' + JSON.stringify(look) + 'LOOK');
</script>"""


def browser() -> str | None:
    return next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)


def test_page(tenon: pathlib.Path, build: pathlib.Path, folder: pathlib.Path) -> bool:
    page = folder / "report.html"
    patterns = ["op/add/f32/*", "op/abs/*", "op/tan/*/prime/*"]
    done = run(tenon, "conform", "--device", build / "conformance/libmutant.so", *patterns, "--html", page, "--json", folder / "page.json",
               TENON_MUTANT="kernel/add/f32/drops_nan")
    text = page.read_text()
    good = check("the page refers to nothing outside of it", not re.search(r"(src|href)=|url\(|@import|https?://(?!www\.w3\.org/2000/svg)", text), done.stdout)
    program = browser()
    if program is None:
        print("SKIP the page in a browser: there is no chromium")
        return good
    looking = folder / "look.html"
    looking.write_text(text.replace("</body>", LOOK + "</body>"))
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={folder}/browser"]
    shown = subprocess.run([program, *flags, "--dump-dom", looking.as_uri()], text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    found = re.search("<body>LOOK(.*)LOOK", shown, re.DOTALL)
    if not found:
        return check("the page in a browser", False, shown)
    look = json.loads(found.group(1).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
    report = json.loads((folder / "page.json").read_text())
    counts, ledger = report["counts"], report["ledger"]
    good &= check("the page has the counts of the report", look["tiles"] == counts and look["verdict"] == "not conformant", (look["tiles"], counts))
    good &= check("the page has a dot for each entry of the ledger", look["dots"] == len(ledger) > 0, (look["dots"], len(ledger)))
    good &= check("the page lists failures first, in full", look["first"].startswith("op/add/f32/") and "to blamekernel" in look["details"], look)
    names = [case["name"] for case in report["cases"] if case["name"].startswith("op/abs/f32/")]
    good &= check("a cell filters the cases", sorted(look["abs"]["names"]) == sorted(names) and
                  look["abs"]["count"] == f"{len(names)} of {len(report['cases'])} cases", look["abs"])
    return good & check("a tile filters the cases", look["failed"] == counts["fail"], look["failed"])


def test_submission(tenon: pathlib.Path, folder: pathlib.Path) -> bool:
    declaration = folder / "submitted.json"
    declaration.write_text(json.dumps(declared(profile="minimal")))
    place = folder / "submission"
    submit = [tenon, "conform", "--device", "interp", "--declaration", declaration, "--submission", place]
    good = True
    for arguments, said in [(["--tier", "quick"], "a submission is of the tier full, not quick"), (["op/add/*"], "no patterns"),
                            (["--shard", "1/2"], "no patterns, --exclude or --shard")]:
        done = run(*submit, *arguments)
        good &= check(f"no submission of {' '.join(arguments)}", done.returncode == 1 and said in done.stdout and not place.exists(), done.stdout)
    done = run(*submit, "--profile", "minimal")
    files = {each.name for each in place.iterdir()} if place.exists() else set()
    expected = {"statement.json", "declaration.json", "waivers.json", "results.json", "cases.txt", "DIGESTS"}
    good &= check("a submission of the profile minimal", done.returncode == 0 and files == expected, done.stdout)
    done = run(tenon, "conform", "verify", place)
    good &= check("verify", done.returncode == 0 and "X1 2.0 of Example, profile minimal" in done.stdout and "verified" in done.stdout, done.stdout)
    results = json.loads((place / "results.json").read_text())
    results["cases"][3]["outcome"] = "fail"
    (place / "results.json").write_text(json.dumps(results))
    done = run(tenon, "conform", "verify", place)
    name = results["cases"][3]["name"]
    good &= check("verify finds a changed result", done.returncode == 1 and "results.json is not that of DIGESTS" in done.stdout and f"{name}: fail" in done.stdout,
                  done.stdout)
    done = run(tenon, "conform", "verify", folder / "nothing")
    return good & check("verify without a submission", done.returncode == 1 and "statement.json" in done.stdout, done.stdout)


def test_diff(tenon: pathlib.Path, build: pathlib.Path, folder: pathlib.Path) -> bool:
    right, wrong = folder / "right.json", folder / "wrong.json"
    for report, mutant in [(right, {}), (wrong, {"TENON_MUTANT": "kernel/tan/f32/is_inaccurate"})]:
        run(tenon, "conform", "--device", build / "conformance/libmutant.so", "op/tan/f32/prime/*", "--json", report, **mutant)
    same, worse, better = [run(tenon, "conform", "diff", *pair) for pair in ((right, right), (right, wrong), (wrong, right))]
    good = check("diff of equal reports", same.returncode == 0 and same.stdout == "0 changes, 0 worse\n", same.stdout)
    good &= check("diff of a worse report", worse.returncode == 1 and "worse op/tan/f32/prime/ordinary: pass -> fail" in worse.stdout and
                  bool(re.search(r"worse stablehlo.tan of f32: \S+ ULP -> \S+ ULP", worse.stdout)), worse.stdout)
    good &= check("diff of a better report", better.returncode == 0 and "better op/tan/f32/prime/ordinary: fail -> pass" in better.stdout, better.stdout)
    found = json.loads(run(tenon, "conform", "diff", "--json", right, wrong).stdout)
    good &= check("diff as JSON", found["worse"] == len(found["outcomes"]) + len(found["ledger"]) > 1, found)
    done = run(tenon, "conform", "diff", right, folder / "junit.xml")
    return good & check("diff of what is no report", done.returncode == 1 and "junit.xml:1:1: error: not JSON" in done.stdout, done.stdout)


def test_pjrt(build: pathlib.Path, folder: pathlib.Path) -> bool:
    """Cases through the PJRT C API, on Tenon's own plug-in, which is a stranger like any other there."""
    report = folder / "pjrt.json"
    done = run(build / "tenon", "conform", "--pjrt", build / "frameworks/pjrt/libtenon_pjrt.so", "--pjrt-option", "device=cpu", "--tier", "smoke",
               "--json", report)
    if done.returncode != 0:
        return check("smoke through the PJRT plug-in", False, done.stdout)
    found = json.loads(report.read_text())
    passed = found["counts"].get("pass", 0)
    good = check(f"smoke through the PJRT plug-in: {passed} cases", passed == len(found["cases"]) > 100, found["counts"])
    return good & check("the report names the plug-in, the API and the device",
                        all(any(part in line for line in found["device"]) for part in ("libtenon_pjrt.so", "PJRT C API 0.", "platform: tenon", ", cpu")),
                        found["device"])


def test_pjrt_errors(build: pathlib.Path) -> bool:
    """Files that are no plug-ins of the PJRT C API, and a plug-in that is too old, or declines everything."""
    fake = build / "conformance/libfake_pjrt.so"
    good = True
    for plugin, arguments, minor, status, said in [
            (build / "nothing.so", [], "57", 1, "No such file"), (LIST, [], "57", 1, "it is not an ELF file"),
            (build / "backends/libtenon_template_c.so", [], "57", 1, "does not export GetPjrtApi"),
            (fake, [], "54", 1, "it has version 0.54 of the PJRT C API; 0.57 or newer is needed"),
            (fake, ["--pjrt-option", "fault=create"], "57", 1, "INTERNAL: no such device"),
            (fake, ["--pjrt-option", "fault=declines"], "57", 1, "1 cases: 1 not-supported"),
            (fake, ["--pjrt-option", "fault"], "57", 1, "is not NAME=VALUE"), (fake, ["--device", "interp"], "57", 2, "excludes")]:
        done = run(build / "tenon", "conform", "--pjrt", plugin, *arguments, "op/add/f32/one/ordinary", FAKE_PJRT_MINOR=minor)
        good &= check(f"conform --pjrt {plugin.name} {' '.join(arguments)}: {said}", done.returncode == status and said in done.stdout,
                      (done.returncode, done.stdout))
    return good


def test_mutants(build: pathlib.Path) -> bool:
    done = run(build / "conformance/mutants", "--named")
    said = done.stdout.splitlines()[-2:]
    good = done.returncode == 0 and len(said) == 2 and said[0].startswith("40 mutants changed something, 40 caught")
    return check("the named mutants are caught, the device itself passes", good and said[1].startswith("the device itself passes"), done.stdout)


def test_measure(tenon: pathlib.Path, build: pathlib.Path, folder: pathlib.Path) -> bool:
    """Rates of a plug-in, and that the file beside it changes what the device states."""
    plugin = folder / "libcalls.so"
    shutil.copy(build / "core/libcalls.so", plugin)
    rates = plugin.with_suffix(".tuning")
    rates.write_text("tile_k = 8\n")
    path = {"TENON_PLUGIN_PATH": str(plugin)}
    done = run(tenon, "conform", "--measure", "--device", plugin, "--json", folder / "rates.json", "--target-info", rates)
    if done.returncode != 0:
        return check("conform --measure", False, done.stdout)
    report = json.loads((folder / "rates.json").read_text())
    good = check("--measure has a rate for every class", [each["class"] for each in report["classes"]] == CLASSES
                 and all(each.get("seconds", 0) > 0 for each in report["classes"]) and all(name in done.stdout for name in CLASSES), done.stdout)
    stated = dict(line.split(" = ") for line in rates.read_text().splitlines())
    good &= check("--target-info keeps parameters", stated.pop("tile_k", "") == "8", rates.read_text())
    after = run(tenon, "devices", "--verbose", **path).stdout
    rows = [line.split() for line in after.split("\ncalls ")[-1].split("\ncpu ")[0].splitlines()]
    found = [any(row[:1] == [name] and len(row) == 2 and float(row[1]) == float(value) for row in rows) for name, value in stated.items()]
    return good & check("the file changes what the device states", found == [True] * 3, after)


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
        good &= test_blame(tenon)
        good &= test_declarations(tenon, build, folder)
        good &= test_waivers(tenon, build, folder)
        good &= test_profiles(tenon, folder)
        good &= test_resume(tenon, folder)
        good &= test_listings(build, folder)
        good &= test_junit(tenon, build, folder)
        good &= test_page(tenon, build, folder)
        good &= test_submission(tenon, folder)
        good &= test_diff(tenon, build, folder)
        good &= test_pjrt(build, folder)
        good &= test_pjrt_errors(build)
        good &= test_mutants(build)
        good &= test_measure(tenon, build, folder)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
