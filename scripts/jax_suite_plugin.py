"""A plug-in of pytest for scripts/jax-suite: writes each outcome as it comes, so that none is lost in a crash.

JAX_SUITE_LOG      the file of outcomes, a JSON object a line: begun, then the outcome
JAX_SUITE_DONE     a file of test names, one a line, that are not run
JAX_SUITE_ONLY     the same, of those that are run alone
JAX_SUITE_SAMPLE   N: every N-th test
JAX_SUITE_TREE     the tree of JAX's sources, for modules of jax._src that are not installed
JAX_SUITE_COUNTS_AS  the platform that the tests take the device for
"""

import json
import os
import pathlib


def _names(variable: str) -> set[str] | None:
    path = os.environ.get(variable)
    return set(pathlib.Path(path).read_text().splitlines()) if path else None


def _log(**entry) -> None:
    with open(os.environ["JAX_SUITE_LOG"], "a", encoding="utf-8") as log:
        log.write(json.dumps(entry) + "\n")


def pytest_configure(config):
    import jax._src

    jax._src.__path__.append(f"{os.environ['JAX_SUITE_TREE']}/jax/_src")
    counts_as = os.environ.get("JAX_SUITE_COUNTS_AS")
    if counts_as:
        from jax._src import test_util

        del test_util
        jax.config.update("jax_test_dut", counts_as)


def pytest_collection_modifyitems(config, items):
    done, only = _names("JAX_SUITE_DONE"), _names("JAX_SUITE_ONLY")
    if only is None:
        items[:] = items[::int(os.environ.get("JAX_SUITE_SAMPLE", "1"))]
    items[:] = [each for each in items
                if (done is None or each.nodeid not in done) and (only is None or each.nodeid in only)]


def pytest_runtest_logstart(nodeid, location):
    _log(test=nodeid, outcome="begun")


def pytest_runtest_logreport(report):
    if report.when != "call" and report.outcome == "passed":
        return
    text = ""
    if report.outcome == "failed":
        crash = getattr(report.longrepr, "reprcrash", None)
        text = crash.message if crash is not None else str(report.longrepr)
    elif report.outcome == "skipped":
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    _log(test=report.nodeid, outcome=report.outcome, text=text[:4000])
