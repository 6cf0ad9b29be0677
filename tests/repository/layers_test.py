#!/usr/bin/env python3
"""The shape of the tree: which folder may include which, how large folders and files may be. Prints PASS and FAIL lines.

  tests/repository/layers_test.py           checks
  tests/repository/layers_test.py --edges   prints the table of allowed edges
  tests/repository/layers_test.py --folders prints every folder of code: number of its entries, purpose, head file
"""

import collections
import graphlib
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A unit is a folder of the second level (of the first, where that has code of its own; of the third, where others may include
# that folder alone: conformance/ calls plug-ins through the PJRT C API, which frameworks/pjrt implements). To each unit, the units that
# its files may include beside itself; "core" means every unit of core/. Units stand in an order in which each
# includes earlier ones alone. Tests may include more: ALLOWED_IN_TESTS.
ALLOWED = {
    "core/base": "",
    "core/types": "core/base",
    "core/kernel": "core/base core/types",
    "core/program": "core/base core/types core/kernel",
    "core/backend": "core/base core/types core/kernel core/program",
    "core/runtime": "core/base core/types core/kernel core/program core/backend",
    "hlo/types": "core/base core/types",
    "hlo/ops": "core/base core/types hlo/types",
    "hlo/ir": "core/base hlo/types hlo/ops",
    "hlo/text": "core/base core/types hlo/ops hlo/ir",
    "hlo/artifact": "core/base core/types hlo/types hlo/ops hlo/ir",
    "hlo/proto": "core/base hlo/ir",
    "hlo/inference": "hlo/ir",
    "hlo/verify": "core/types hlo/ops hlo/ir hlo/inference",
    "hlo/builder": "hlo/ir hlo/verify",
    "hlo/sample": "core/base hlo/builder",
    "hlo/decomposition": "core/base core/types hlo/ops hlo/ir hlo/inference hlo/builder",
    "hlo/import": "hlo/ops hlo/ir hlo/text hlo/artifact hlo/proto hlo/verify",
    "hlo/evaluator": "core/types hlo/types hlo/ir hlo/inference hlo/builder hlo/decomposition",
    "hlo/onnx": "core/base core/types hlo/types hlo/ir hlo/builder hlo/evaluator",
    "hlo/buffers": "core/base core/program core/kernel",
    "hlo/lower": "core/base core/types core/kernel core/program hlo/types hlo/ir hlo/inference hlo/builder hlo/text hlo/buffers",
    "hlo/passes": "core/base core/types hlo/ir hlo/text hlo/inference hlo/verify hlo/builder hlo/decomposition hlo/evaluator hlo/lower hlo/sample",
    "hlo/registry": "hlo/ops hlo/inference hlo/decomposition hlo/evaluator hlo/lower hlo/sample",
    "hlo/driver": "core hlo/ir hlo/import hlo/evaluator hlo/passes hlo/lower hlo/buffers",
    "backends/support": "core",
    "backends/llvm": "core",
    "backends/template": "core",
    "backends/cpu": "core backends/support backends/llvm",
    "backends/gpu": "core backends/support backends/llvm",
    "backends": "core backends/template backends/cpu backends/gpu",
    "frameworks/pjrt/c_api": "core/base core/types",
    "conformance": "core hlo backends frameworks/pjrt/c_api",
    "frameworks/pjrt": "core hlo backends frameworks/pjrt/c_api",
    "frameworks/client": "frameworks/pjrt/c_api",
    "frameworks/onnxruntime": "core/base hlo/types hlo/onnx hlo/text frameworks/pjrt/c_api frameworks/client",
    "frameworks/python": "frameworks/pjrt/c_api frameworks/client",
    "frameworks/torch": "",
    "frameworks/tensorflow": "",
    "tools": "core hlo backends conformance",
    "fuzz": "core hlo",
    "bench": "core hlo backends",
    "tests": "core hlo backends conformance",
}
# Further includes that tests and their helpers may use, by the first folder of their path. Backends are tested with the
# SDK that vendors get.
ALLOWED_IN_TESTS = {"core": "core", "hlo": "core hlo conformance", "backends": "core backends", "conformance": "conformance",
                    "frameworks": "frameworks", "tools": "tools"}
# The simulated chip is the device of a vendor: a process of its own.
ALONE = "backends/template/chip"
MOST_ENTRIES = 25
MOST_LINES = 800
CODE = (".cpp", ".h", ".c", ".inc")


def tracked() -> list[pathlib.PurePosixPath]:
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True, text=True,
                            stdout=subprocess.PIPE).stdout.split("\n")
    return [pathlib.PurePosixPath(name) for name in listed if name and (ROOT / name).exists()]


def unit_of(path: pathlib.PurePosixPath) -> str:
    folders = ["/".join(path.parts[:depth]) for depth in (3, 2)]
    return next((folder for folder in folders if folder in ALLOWED), path.parts[0])


def is_test(path: pathlib.PurePosixPath) -> bool:
    return path.stem.endswith(("_test", "_test_util")) or "testing" in path.parts


def allows(allowed: str, unit: str) -> bool:
    return any(unit == each or unit.startswith(each + "/") for each in allowed.split())


def included(path: pathlib.PurePosixPath) -> list[tuple[int, pathlib.PurePosixPath]]:
    """The line and path of each include of a file of this repository."""
    lines = (ROOT / path).read_text().splitlines()
    found = [(number, re.match(r'#include "([^"]+/[^"]+)"', line)) for number, line in enumerate(lines, 1)]
    return [(number, pathlib.PurePosixPath(match.group(1))) for number, match in found if match]


def code() -> list[pathlib.PurePosixPath]:
    return [path for path in tracked() if path.suffix in CODE and path.parts[0] in {unit.split("/")[0] for unit in ALLOWED}
            and "examples" not in path.parts]


def check_edges(files: list[pathlib.PurePosixPath]) -> dict[str, list[str]]:
    """Faults by unit: includes that are not allowed, and allowed edges that are not used."""
    faults = collections.defaultdict(list)
    used = collections.defaultdict(set)
    for path in files:
        unit = unit_of(path)
        faults[unit] += []
        for number, other in included(path):
            target = unit_of(other)
            if str(path).startswith(ALONE) and str(other.parent) != ALONE:
                faults[unit].append(f"{path}:{number} includes {other}")
            if target == unit or not (ROOT / other).exists():
                continue  # Its own, or one that the build writes.
            extra = ALLOWED_IN_TESTS.get(path.parts[0], "") if is_test(path) else ""
            used[unit].add(target)
            if not allows(ALLOWED[unit] + " " + extra, target):
                faults[unit].append(f"{path}:{number} includes {target}/")
    for unit, allowed in ALLOWED.items():
        for each in allowed.split():
            if not any(allows(each, target) for target in used[unit]):
                faults[unit].append(f"nothing includes {each}/, which it may")
    return faults


def cycles() -> str:
    """The fault of the order of ALLOWED, if any."""
    graph = {unit: {other for other in ALLOWED if other != unit and allows(allowed, other)} for unit, allowed in ALLOWED.items()}
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return f"a cycle: {' -> '.join(error.args[1])}"
    return ""


def entries() -> dict[str, int]:
    """Number of entries of each folder of code: one that has sources, or folders with some."""
    children = collections.defaultdict(set)
    for path in tracked():
        for i in range(1, len(path.parts)):
            children["/".join(path.parts[:i])].add(path.parts[i])
    folders = {str(parent) for path in code() for parent in path.parents if str(parent) != "."}
    return {folder: len(children[folder]) for folder in sorted(folders)}


def heads() -> dict[str, list[tuple[str, pathlib.PurePosixPath]]]:
    """The purpose of each folder, stated at the top of its head file as "// FOLDER/: PURPOSE", and that file."""
    found = collections.defaultdict(list)
    for path in tracked():
        if path.suffix not in CODE and path.name != "meson.build":
            continue
        comment = re.match(r"(?:(?://|#|/\*| \* |  ) ?.*\n)+", (ROOT / path).read_text())
        said = re.split(r"\n(?:// ?|# ?|   )?", comment.group(0).replace("*/", "")) if comment else []
        for i, line in enumerate(said):
            head = re.match(r"(?:// |# |/\* )?([\w/]+)/: (.*)", line)
            if head is None:
                continue
            words = [head.group(2)]
            for more in said[i + 1:]:  # The sentence may go on.
                if words[-1].rstrip().endswith("."):
                    break
                words.append(more)
            found[head.group(1)].append((" ".join(words).strip().removesuffix("."), path))
    return found


def check_heads(folders: dict[str, int]) -> list[str]:
    found = heads()
    faults = [f"{folder} has {len(found[folder])} head files" for folder in folders if len(found[folder]) != 1]
    faults += [f"the purpose of {folder} is no short sentence with a full stop: {said[0][0][:80]} …"
               for folder, said in found.items() if len(said[0][0]) > 160]
    faults += [f"{path} is the head of {folder}, where it is not" for folder, said in found.items() for _, path in said
               if not str(path).startswith(folder + "/")]
    return faults


def print_folders() -> None:
    found = heads()
    for folder, count in entries().items():
        purpose, path = found[folder][0]
        print(f"{count:>3}  {folder + '/':<38} {purpose} ({path.relative_to(folder)})")


def print_edges() -> None:
    width = max(map(len, ALLOWED))
    for unit, allowed in ALLOWED.items():
        print(f"{unit:<{width}}  {allowed or '-'}")


def main() -> int:
    if "--edges" in sys.argv:
        print_edges()
        return 0
    if "--folders" in sys.argv:
        print_folders()
        return 0
    files = code()
    outcomes = [(f"edges of {unit}", "; ".join(faults)) for unit, faults in check_edges(files).items()]
    outcomes.append(("no cycles", cycles()))
    outcomes += [(f"entries of {folder}", f"{count} of at most {MOST_ENTRIES}" if count > MOST_ENTRIES else "")
                 for folder, count in entries().items()]
    outcomes.append(("each folder says its purpose", "; ".join(check_heads(entries()))))
    long = [f"{path} has {lines} lines" for path in files if path.suffix != ".inc"
            for lines in [len((ROOT / path).read_text().splitlines())] if lines > MOST_LINES]
    outcomes.append(("no long files", "; ".join(long)))
    for name, why in outcomes:
        print(f"FAIL {name}: {why}" if why else f"PASS {name}")
    return 1 if any(why for _, why in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
