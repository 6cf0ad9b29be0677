"""Python programs in processes of their own: forked from one that has imported TensorFlow, which takes two seconds, and nothing more."""

import multiprocessing
import os
import subprocess
import sys
import tempfile

_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(["tensorflow"])


def _execute(program: str, environment: dict[str, str], output: str, error: str) -> None:
    os.environ.clear()
    os.environ.update(environment)
    for number, file in ((1, output), (2, error)):
        os.dup2(os.open(file, os.O_WRONLY), number)
    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", buffering=1, closefd=False)
    exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
    sys.stdout.flush()


def run(program: str, *, timeout: float = 280, **variables: str) -> subprocess.CompletedProcess:
    """As `python -c program` with further variables of the environment, and without TF_XLA_FLAGS."""
    environment = {name: value for name, value in os.environ.items() if name != "TF_XLA_FLAGS"} | variables
    with tempfile.NamedTemporaryFile("r") as output, tempfile.NamedTemporaryFile("r") as error:
        process = _SERVER.Process(target=_execute, args=(program, environment, output.name, error.name))
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
        return subprocess.CompletedProcess(["python", "-c", program], process.exitcode, output.read(), error.read())


def run_alone(program: str, *, timeout: float = 280, **variables: str) -> subprocess.CompletedProcess:
    """The same in a process that begins with nothing imported, and whose end is the interpreter's own."""
    environment = {name: value for name, value in os.environ.items() if name != "TF_XLA_FLAGS"} | variables
    return subprocess.run([sys.executable, "-c", program], env=environment, text=True, capture_output=True, timeout=timeout)
