"""Programs compiled ahead of time for devices that nobody has opened, by jax.experimental.topologies."""

import os

DEVICE = os.environ.get("TENON_DEVICE", "cpu")

COMPILE = """
    import os
    import jax, jax.numpy as jnp, numpy as np
    from jax.experimental import serialize_executable, topologies
    device = os.environ.get("TENON_DEVICE", "cpu")
    [described] = topologies.get_topology_desc(device, "tenon").devices
    sharding = jax.sharding.SingleDeviceSharding(described)
    compiled = jax.jit(lambda x: jnp.sin(x) * 2, in_shardings=sharding, out_shardings=sharding).lower(
        jax.ShapeDtypeStruct((4,), jnp.float32)).compile()
"""


def test_describes_devices(run_program):
    output = run_program(COMPILE + """
    print(described.platform, len(topologies.get_topology_desc("interp", "tenon", device_count="3").devices))
    assert described.device_kind == jax.devices("tenon")[0].device_kind
    assert described.default_memory().kind == "device"
    assert [memory.kind for memory in described.addressable_memories()] == ["device", "pinned_host"]
    print(compiled.memory_analysis().argument_size_in_bytes, "sine" in compiled.as_text())
    try:
        topologies.get_topology_desc("nonesuch", "tenon")
    except Exception as error:
        print(type(error).__name__, error)
    """)
    assert output.splitlines()[:2] == ["tenon 3", "16 True"], output
    assert "JaxRuntimeError NOT_FOUND" in output, output


def test_is_loaded_without_compiling(run_program, tmp_path):
    saved = tmp_path / "saved"
    run_program(COMPILE + f"""
    import pickle
    with open({str(saved)!r}, "wb") as file:
        pickle.dump(serialize_executable.serialize(compiled), file)
    """)
    output = run_program(f"""
    import pickle
    import jax, numpy as np
    from jax.experimental import serialize_executable
    with open({str(saved)!r}, "rb") as file:
        loaded = serialize_executable.deserialize_and_load(*pickle.load(file), backend="tenon",
                                                           execution_devices=jax.devices("tenon"))
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_allclose(loaded(x), np.sin(x) * 2, rtol=1e-6)
    try:
        jax.jit(lambda x: x + 1)(x)
    except jax.errors.JaxRuntimeError as error:
        print("compiles:", error)
    """, TENON_LAYERS="faults", TENON_FAULTS="compile%1 plan%1")
    if DEVICE != "reference":  # Where nothing is compiled, nothing fails.
        assert "compiles: INTERNAL: a planned fault: compile" in output, output


def test_of_a_platform_for_one_device(run_program):
    output = run_program("""
    from jax_plugins import tenon
    tenon.add_platform("npu", "interp:1", device_count=2)
    from jax.experimental import topologies
    print([(device.platform, device.backend_device) for device in topologies.get_topology_desc("", "npu").devices])
    """, JAX_PLATFORMS="npu,tenon,cpu")
    assert output.strip() == "[('npu', 'interp:1'), ('npu', 'interp:2')]", output


def test_text_of_a_program_with_shardings(run_program):
    run_program("""
    import jax, numpy as np
    here = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("x",))
    split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    for sharding in (here, split):
        text = jax.jit(lambda x: -x, in_shardings=sharding).lower(np.ones(4, np.float32)).compile().as_text()
        assert "negate" in text, text
    """)
