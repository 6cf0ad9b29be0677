"""Failures of a device: every waiting caller gets the error, and the process continues."""

import json
import os

import pytest

FAULT = """
    import jax, jax.numpy as jnp, numpy as np
    f = jax.jit(lambda x: x * 2)
    x = jax.device_put(np.arange(4, dtype=np.float32))
    good = f(x)
    good.block_until_ready()
"""


@pytest.mark.skipif(os.environ.get("TENON_DEVICE") == "reference", reason="the evaluator launches nothing")
def test_launch_that_fails(run_program):
    output = run_program("""
    import jax, numpy as np
    f = jax.jit(lambda x: x * 2)
    x = jax.device_put(np.arange(4, dtype=np.float32))
    results = [f(x) for _ in range(20)]  # None waits for another, so the error comes later.
    bad = []
    for result in results:
        try:
            result.block_until_ready()
        except jax.errors.JaxRuntimeError as error:
            bad.append(result)
            print("error:", error)
    assert len(bad) == 1, bad
    try:
        np.asarray(f(bad[0]))
    except jax.errors.JaxRuntimeError as error:
        print("dependent:", error)
    print("then:", np.asarray(f(x)), np.asarray(results[-1]))
    """, TENON_LAYERS="faults", TENON_FAULTS="launch@9")
    assert "error: INTERNAL: a planned fault: launch (in stablehlo." in output, output
    assert "dependent: INTERNAL: a planned fault: launch" in output
    assert "then: [0. 2. 4. 6.] [0. 2. 4. 6.]" in output


def test_event_that_fails(run_program):
    output = run_program(FAULT + """
    failures = 0
    for _ in range(40):
        try:
            np.asarray(f(x))
        except jax.errors.JaxRuntimeError as error:
            failures += 1
            last = error
    print(failures, "failed:", last)
    print("then:", np.asarray(f(x)))
    """, TENON_LAYERS="validate,faults", TENON_FAULTS="event@30")
    assert "1 failed:" in output, output
    assert "then: [0. 2. 4. 6.]" in output


def test_no_room(run_program):
    output = run_program("""
    import jax, numpy as np
    x = jax.device_put(np.arange(3 << 20, dtype=np.float32)).block_until_ready()
    y = jax.device_put(np.arange(3 << 20, dtype=np.float32)).block_until_ready()
    try:
        jax.jit(lambda x, y: x[::-1] + y, donate_argnums=0)(x, y)  # not in the memory of x
    except jax.errors.JaxRuntimeError as error:
        print("error:", error)
    print("alive:", not x.is_deleted(), not y.is_deleted(), float(x[1]))
    x.delete()
    print("then:", np.asarray(jax.jit(lambda y: y * y)(y))[:3])
    """, TENON_DEVICE="template", TENON_CHIP_MEMORY=str(34 << 20))
    assert "error: RESOURCE_EXHAUSTED: there is no room for 12582912 bytes of result 0" in output, output
    assert "alive: True True 1.0" in output
    assert "then: [0. 1. 4.]" in output


def test_lost_device(run_program):
    output = run_program(FAULT + """
    for _ in range(30):
        try:
            np.asarray(f(x))
        except jax.errors.JaxRuntimeError as error:
            print("error:", error)
            break
    try:
        f(x).block_until_ready()  # What was on the device is lost …
    except (jax.errors.JaxRuntimeError, ValueError) as error:  # JAX raises the second for calls that fail.
        print("after:", error)
    y = jax.device_put(np.arange(4, dtype=np.float32))
    print("then:", np.asarray(f(y)), np.asarray(jax.jit(lambda x: x + 1)(y)))  # … and the device is back.
    """, TENON_LAYERS="faults", TENON_FAULTS="lost@40")
    assert "error: UNAVAILABLE" in output, output
    assert "after: UNAVAILABLE" in output
    assert "then: [0. 2. 4. 6.] [1. 2. 3. 4.]" in output


def test_no_such_device(run_program):
    output = run_program("""
    import jax
    print(jax.devices())
    try:
        jax.devices("tenon")
    except RuntimeError as error:
        print(error)
    """, JAX_PLATFORMS="", TENON_DEVICE="nonesuch")
    assert "Device(id=0)" in output and "TenonDevice" not in output
    assert "there is no backend 'nonesuch'" in output


def test_no_library(run_program):
    output = run_program("import jax; print(jax.devices())", JAX_PLATFORMS="", TENON_PJRT_LIBRARY="/nonesuch.so")
    assert "Device(id=0)" in output and "TenonDevice" not in output


def test_layers_write_the_ends_of_their_files(run_program, tmp_path):
    """Even if the program ends while its work is in flight."""
    trace = tmp_path / "trace.json"
    run_program("""
    import jax, jax.numpy as jnp, numpy as np
    x = jax.device_put(np.ones((220, 220), np.float32))
    y = jax.jit(lambda x: jnp.sin(x) @ x)(x)
    """, TENON_DEVICE="interp", TENON_LAYERS="trace", TENON_TRACE=str(trace))
    events = json.loads(trace.read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    assert any("launch" in str(event) or "kernel" in str(event) for event in events), events[:5]
