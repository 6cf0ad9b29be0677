#!/usr/bin/env python3
"""How the tests of a backend's project compare results (backends/template/project/tests/run.py).

    project_run_test.py [BUILD]

Prints a line a test: "PASS name" or "FAIL name: why".
"""

import importlib.util
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/repository"))
from functions import run_tests_of  # noqa: E402

spec = importlib.util.spec_from_file_location("run", ROOT / "backends/template/project/tests/run.py")
project = importlib.util.module_from_spec(spec)
spec.loader.exec_module(project)

DENORMAL = 1e-40  # Of f32.


def result(*values, element_type="f32"):
    return {"type": element_type, "dims": [len(values)], "value": list(values)}


def difference(found, expected, flushed=frozenset(), tolerance=0.0, element_type="f32"):
    return project.difference(result(*found, element_type=element_type),
                              result(*expected, element_type=element_type), tolerance, flushed)


def test_equal_results_do_not_differ():
    assert difference([1.0, "nan", "inf"], [1.0, "-nan", "inf"]) == ""
    assert difference([1.0], [2.0]) == "element 0 is 1.0, expected 2.0"


def test_a_denormal_is_no_zero_unless_the_device_flushes_it():
    assert difference([0.0], [DENORMAL]) != ""
    assert difference([0.0], [DENORMAL], {"f16"}) != ""
    assert difference([0.0, 1.0], [DENORMAL, 1.0], {"f32"}) == ""
    assert difference([-0.0], [-DENORMAL], {"f32"}) == ""
    assert difference([-0.0], [DENORMAL], {"f32"}) != "", "the sign counts"
    assert difference([0.0], [DENORMAL], {"f32", "f64"}, element_type="f64") != "", "it is none of f64"
    assert difference([0.0], [2.0**-126], {"f32"}) != "", "the least normal number is none"


def test_the_device_says_what_it_flushes():
    rows = [{"description": "from /a/libnpu.so", "target": ["name npu", "types f32 f16", "flushed f16 f32"]},
            {"description": "from /a/libother.so", "target": ["flushed f64"]},
            {"description": "/a/libnpu.so is broken"}]
    assert project.flushed_types(rows, "/a/libnpu.so") == {"f16", "f32"}
    assert project.flushed_types(rows[2:], "/a/libnpu.so") == set()


if __name__ == "__main__":
    sys.exit(run_tests_of(globals()))
