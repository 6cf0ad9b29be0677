"""jax.profiler: profiles have the device's programs, and on request their steps."""

import json
import os

import pytest

PROFILED = """
import glob, gzip, json
import jax, jax.numpy as jnp, numpy as np

@jax.jit
def before(x):
    return jnp.sin(x) @ x + 1

@jax.jit
def within(x):
    return jnp.cos(x) * 2

x = jnp.ones((32, 32))
before(x).block_until_ready()
folder = FOLDER
with jax.profiler.trace(folder, create_perfetto_trace=True):
    for _ in range(3):
        before(x).block_until_ready()
    within(x).block_until_ready()
    jax.device_put(np.ones(5, np.float32)).block_until_ready()
before(x).block_until_ready()

[file] = glob.glob(folder + "/**/*.xplane.pb", recursive=True)
[plane] = [plane for plane in jax.profiler.ProfileData.from_file(file).planes if plane.name.startswith("/device:")]
events = {line.name: [(event.name, event.start_ns, event.end_ns) for event in line.events] for line in plane.lines}
host = [plane for plane in jax.profiler.ProfileData.from_file(file).planes if plane.name == "/host:CPU"]
calls = [event for line in host[0].lines for event in line.events if "CompileAndLoad" in event.name]

[file] = glob.glob(folder + "/**/perfetto_trace.json.gz", recursive=True)
perfetto = json.loads(gzip.open(file).read())["traceEvents"]
[process] = [each["pid"] for each in perfetto if each.get("name") == "process_name" and each["args"]["name"] == plane.name]
shown = [each["name"] for each in perfetto if each.get("ph") == "X" and each["pid"] == process]
print(json.dumps({"plane": plane.name, "events": events, "shown": shown,
                  "compiled": [(call.start_ns, call.end_ns) for call in calls]}))
"""


def profile(run_program, folder, **variables):
    return json.loads(run_program(PROFILED.replace("FOLDER", repr(str(folder))), **variables).splitlines()[-1])


def test_programs(run_program, tmp_path):
    found = profile(run_program, tmp_path)
    events = found["events"]
    assert found["plane"].startswith("/device:CUSTOM:")
    assert [name for name, _, _ in events["XLA Modules"]] == 3 * ["jit_before"] + ["jit_within"]
    assert [name for name, _, _ in events["Compilations"]] == ["jit_within"]
    assert "host to device" in [name for line, rows in events.items() if line.startswith("Transfers") for name, _, _ in rows]
    assert "XLA Ops" not in events
    assert found["shown"].count("jit_before") == 3
    # By the clock of JAX's own events.
    [(begin, end)] = found["compiled"]
    [(_, begin_here, end_here)] = events["Compilations"]
    apart = 50e6  # Nanoseconds, in which another process may have run between the readings of two clocks.
    assert begin - apart <= begin_here < end_here <= end + apart


def test_steps(run_program, tmp_path):
    if os.environ.get("TENON_DEVICE") == "reference":
        pytest.skip("the evaluator has no steps")
    events = profile(run_program, tmp_path, TENON_PROFILE="steps")["events"]
    programs = events["XLA Modules"]
    steps = events["XLA Ops"]
    assert len(programs) == 4 and len(steps) >= 4
    for name, begin, _ in steps:
        assert any(first <= begin <= last for _, first, last in programs), name


def test_twice(run_program, tmp_path):
    """A process may profile again, and a profile without work of the device has no plane of it."""
    output = run_program(f"""
    import glob, jax, jax.numpy as jnp
    x = jnp.ones(5)
    (x + 1).block_until_ready()
    for i in range(3):
        with jax.profiler.trace({str(tmp_path)!r} + str(i)):
            for _ in range(i):
                (x + 1).block_until_ready()
        [file] = glob.glob({str(tmp_path)!r} + str(i) + "/**/*.xplane.pb", recursive=True)
        planes = [plane for plane in jax.profiler.ProfileData.from_file(file).planes if plane.name.startswith("/device:")]
        print([len(list(line.events)) for plane in planes for line in plane.lines if line.name == "XLA Modules"])
    """)
    assert output.splitlines()[-3:] == ["[]", "[1]", "[2]"]
