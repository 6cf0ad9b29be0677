"""A device with a platform of its own name (jax_plugins.tenon.add_platform), beside the platform `tenon`."""


def test_both_platforms_in_one_process(run_program):
    said = run_program("""
        from jax_plugins import tenon

        tenon.add_platform("npu", "interp:2", device_count=2)
        tenon.add_platform("npu", "interp:2", device_count=2)  # It is there already.
        try:
            tenon.add_platform("npu", "nonesuch")
        except ValueError as error:
            assert "is there already, for the device interp:2" in str(error)
        else:
            raise AssertionError("another device took the name")
        import jax
        import jax.numpy as jnp
        import numpy as np

        assert jax.default_backend() == "npu" and len(jax.devices()) == 2
        npu, other, cpu = jax.devices("npu")[1], jax.devices("tenon")[0], jax.devices("cpu")[0]
        assert (npu.platform, other.platform) == ("npu", "tenon")

        @jax.jit
        def f(x):
            jax.debug.callback(lambda y: print("seen", y), x[0])
            return jax.pure_callback(lambda y: y + 1, x, x) * 2

        for device in (npu, other, cpu):
            x = jax.device_put(np.arange(3.0, dtype=np.float32), device)
            y = f(x)
            assert y.devices() == {device}, y.devices()
            np.testing.assert_array_equal(y, [2, 4, 6])
            matrix = jax.device_put(np.diag(np.float32([1, 4, 9])), device)
            np.testing.assert_allclose(np.sort(jnp.linalg.eigvalsh(matrix)), [1, 4, 9], rtol=1e-5)
        jax.effects_barrier()
        # JAX drops donations on platforms that it does not know.
        kept = jax.device_put(np.zeros(8, np.float32), npu)
        jax.jit(lambda x: x + 1, donate_argnums=0)(kept).block_until_ready()
        assert kept.is_deleted()
    """, JAX_PLATFORMS="npu,tenon,cpu")
    assert said.split() == ["seen", "0.0"] * 3, said


def test_what_cannot_be_a_platform(run_program):
    said = run_program("""
        from jax_plugins import tenon

        for name in ("cpu", "tenon", "my chip"):
            try:
                tenon.add_platform(name, "interp")
            except ValueError as error:
                print(error)
    """)
    assert said.count("cannot be the name of a platform") == 3, said


def test_a_missing_device_does_not_stop_jax(run_program):
    said = run_program("""
        from jax_plugins import tenon

        tenon.add_platform("npu", "/nonesuch/libnpu.so")
        import jax

        print(jax.devices()[0].platform)
        try:
            jax.devices("npu")
        except RuntimeError as error:
            print(error)
    """, JAX_PLATFORMS="")
    first, *rest = said.splitlines()
    assert first != "npu" and "npu" in "".join(rest), said
