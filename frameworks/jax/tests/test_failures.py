"""What goes wrong on a device: the error reaches whoever waits, and the process lives on."""

FAULT = """
    import jax, jax.numpy as jnp, numpy as np
    f = jax.jit(lambda x: x * 2)
    x = jax.device_put(np.arange(4, dtype=np.float32))
    good = f(x)
    good.block_until_ready()
"""


def test_launch_that_fails(run_program):
    output = run_program(FAULT + """
    bad = f(x)
    try:
        bad.block_until_ready()
    except jax.errors.JaxRuntimeError as error:
        print("error:", error)
    try:
        np.asarray(f(bad))
    except jax.errors.JaxRuntimeError as error:
        print("dependent:", error)
    print("then:", np.asarray(f(x)), np.asarray(good))
    """, TENON_LAYERS="faults", TENON_FAULTS="launch@2")
    assert "error: INTERNAL" in output or "error: UNAVAILABLE" in output, output
    assert "dependent: " in output
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
    output = run_program(FAULT + """
    g = jax.jit(lambda x: x + 1, donate_argnums=0)
    np.asarray(g(jnp.arange(4.0)))
    y = jax.device_put(np.arange(1 << 23, dtype=np.float32)).block_until_ready()
    try:
        g(y).block_until_ready()
    except jax.errors.JaxRuntimeError as error:
        print("error:", str(error)[:60])
    print("alive:", not y.is_deleted(), float(y[3]))
    """, TENON_LAYERS="faults", TENON_FAULTS="allocate@3")
    assert "error: " in output, output
    assert "alive: True 3.0" in output


def test_lost_device(run_program):
    output = run_program(FAULT + """
    for _ in range(30):
        try:
            np.asarray(f(x))
        except jax.errors.JaxRuntimeError as error:
            print("error:", error)
            break
    try:
        jax.device_put(np.arange(4)).block_until_ready()
    except jax.errors.JaxRuntimeError as error:
        print("after:", error)
    print("lives")
    """, TENON_LAYERS="faults", TENON_FAULTS="lost@40")
    assert "error: UNAVAILABLE" in output, output
    assert "after: UNAVAILABLE" in output
    assert "lives" in output


def test_no_such_device(run_program):
    output = run_program("""
    import jax
    print(jax.devices())
    try:
        jax.devices("tenon")
    except RuntimeError as error:
        print(error)
    """, JAX_PLATFORMS="", TENON_DEVICE="nonesuch")
    assert "CpuDevice" in output
    assert "there is no backend 'nonesuch'" in output


def test_no_library(run_program):
    output = run_program("import jax; print(jax.devices())", JAX_PLATFORMS="", TENON_PJRT_LIBRARY="/nonesuch.so")
    assert "CpuDevice" in output
