#!/usr/bin/env python3
"""In which order scripts/run_tests.py begins groups that wait for environments of Python.

    run_tests_test.py [BUILD]

Prints a line a test: "PASS name" or "FAIL name: why".
"""

import pathlib
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import run_tests  # noqa: E402
from functions import run_tests_of  # noqa: E402


def begun(groups: list[str], environments: list[str], make) -> list[str]:
    """The groups, longest first, and the environments, in the order in which they begin and are made, by one worker.

    `make(name)` returns an exit status; it is called when the worker waits, or has nothing left that could begin."""
    order, idle = [], threading.Event()

    def made(command, *_):
        idle.wait(10)  # All that waits for nothing has begun.
        name = pathlib.Path(command[0]).parent.name
        order.append(f"made {name}")
        return make(name), ""

    class Watched(run_tests.Waiting):
        def take(self):
            if not any(not self.missing[name] for name, _ in self.parts):
                idle.set()
            return super().take()

    def part(name):
        def run():
            order.append(name)
            return run_tests.Outcome(passed=1)
        return [run]

    real = run_tests.run, run_tests.Waiting
    run_tests.run, run_tests.Waiting = made, Watched
    try:
        lengths = {name: len(groups) - place for place, name in enumerate(groups)}
        outcomes = run_tests.run_groups({name: part(name) for name in groups}, 1, lengths, ROOT / "build", environments)
    finally:
        run_tests.run, run_tests.Waiting = real
    assert sorted(outcomes) == sorted(groups), outcomes
    assert all(each.passed == 1 for each in outcomes.values()), outcomes
    return order


def test_groups_wait_for_their_environments_and_others_do_not():
    order = begun(["torch_test", "digits_test", "cpu", "jax_test"], ["jax", "torch"], lambda _: 0)
    assert order[:2] == ["cpu", "made jax"], order
    assert order.index("made jax") < order.index("jax_test"), order
    assert order.index("made torch") < order.index("torch_test") < order.index("digits_test"), order


def test_groups_go_on_without_an_environment():
    def make(name):
        if name == "torch":
            raise OSError("no space left")
        return 77
    order = begun(["torch_test", "jax_test"], ["jax", "torch"], make)
    assert sorted(order) == ["jax_test", "made jax", "made torch", "torch_test"], order


def test_named_groups_wait_for_none():
    assert begun(["torch_test", "jax_test"], [], lambda _: 0) == ["torch_test", "jax_test"]


def test_groups_and_environments_exist():
    for environment, groups in run_tests.ENVIRONMENTS.items():
        assert (ROOT / "frameworks" / environment / "make-venv").exists(), environment
        for group in groups:
            assert list((ROOT / "tests").glob(f"*/{group}.py")), group


if __name__ == "__main__":
    sys.exit(run_tests_of(globals()))
