"""Programs that another process has compiled: JAX's compilation cache, and its serialised executables."""

import os
from importlib.metadata import version

import pytest

PROGRAM = """
    import jax, numpy as np
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    weights = np.arange(6, dtype=np.float32).reshape(3, 2)
    layer = jax.jit(lambda x: jax.nn.relu(x @ weights).sum(axis=0))
    print("result", np.asarray(layer(np.ones((4, 3), np.float32))).tolist())
"""


def test_a_cached_program_is_not_compiled(run_program, tmp_path):
    first = run_program(PROGRAM, JAX_COMPILATION_CACHE_DIR=str(tmp_path))
    kept = sorted(path.name for path in tmp_path.iterdir())
    assert any(name.startswith("jit__lambda") for name in kept), kept
    if os.environ.get("TENON_DEVICE") == "reference":  # Its serial form has only the source.
        assert run_program(PROGRAM, JAX_COMPILATION_CACHE_DIR=str(tmp_path)) == first
        return
    # The device's compiler always fails.
    faults = {"TENON_LAYERS": "faults", "TENON_FAULTS": "compile%1 plan%1"}
    with pytest.raises(AssertionError, match="a planned fault"):
        run_program(PROGRAM, JAX_COMPILATION_CACHE_DIR=str(tmp_path / "empty"), **faults)
    again = run_program(PROGRAM, JAX_COMPILATION_CACHE_DIR=str(tmp_path), **faults)
    assert again == first
    assert "result [24.0, 36.0]" in first


def test_callbacks_are_those_of_this_process(run_program, tmp_path, seen_and_hidden):
    """JAX caches programs with callbacks from version 0.11 on; which function is called is found out anew."""
    for order in ([10, 20], [10, 20], [20, 10]):
        said = run_program(f"""
            import gc, jax, numpy as np
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
            jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
            shape = jax.ShapeDtypeStruct((), np.float32)
            def add(n):
                return jax.jit(lambda x: jax.pure_callback(lambda a: np.float32(a + n), shape, x) + 1)
            made = [add(n) for n in {order}]
            first = [float(each(1.0)) for each in made]
            gc.collect()
            print(first, [float(each(1.0)) for each in made])
        """, JAX_COMPILATION_CACHE_DIR=str(tmp_path))
        wanted = [n + 2.0 for n in order]
        assert said.strip().endswith(f"{wanted} {wanted}"), said
    kept = [path.name for path in tmp_path.iterdir() if path.name.startswith("jit__lambda")]
    assert not kept or version("jax").split(".")[:2] != ["0", "10"], kept


def test_a_loaded_executable_calls_lapack(run_program, tmp_path, seen_and_hidden):
    file = tmp_path / "program"
    run_program(f"""
        import jax, jax.numpy as jnp, numpy as np, pickle
        from jax.experimental import serialize_executable
        made = jax.jit(jnp.linalg.eigvals).lower(np.eye(3, dtype=np.float32)).compile()
        pickle.dump(serialize_executable.serialize(made), open({str(file)!r}, "wb"))
    """)
    text = run_program(f"""
        import jax, numpy as np, pickle
        from jax.experimental import serialize_executable
        made = serialize_executable.deserialize_and_load(*pickle.load(open({str(file)!r}, "rb")))
        print(np.sort(np.asarray(made(np.diag([3, 1, 2]).astype(np.float32))).real).tolist())
    """)
    assert "[1.0, 2.0, 3.0]" in text


def test_a_serialized_executable_is_loaded(run_program, tmp_path):
    file = tmp_path / "program"
    run_program(f"""
        import jax, numpy as np, pickle
        from jax.experimental import serialize_executable
        made = jax.jit(lambda x: x * 2 + 1).lower(np.arange(4.0, dtype=np.float32)).compile()
        pickle.dump(serialize_executable.serialize(made), open({str(file)!r}, "wb"))
    """)
    text = run_program(f"""
        import jax, numpy as np, pickle
        from jax.experimental import serialize_executable
        made = serialize_executable.deserialize_and_load(*pickle.load(open({str(file)!r}, "rb")))
        print(np.asarray(made(np.arange(4.0, dtype=np.float32))).tolist())
    """)
    assert "[1.0, 3.0, 5.0, 7.0]" in text
