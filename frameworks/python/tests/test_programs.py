"""Programs: compiled, run, saved; their errors."""

import threading

import numpy as np
import pytest

import tenon

SUM_AND_DIFFERENCE = """
module @both {
  func.func @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %0 = stablehlo.add %x, %y : tensor<2x3xf32>
    %1 = stablehlo.subtract %x, %y : tensor<2x3xf32>
    return %0, %1 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}"""
DOUBLE = """
func.func @main(%x: tensor<1000xf32>) -> tensor<1000xf32> {
  %0 = stablehlo.add %x, %x : tensor<1000xf32>
  return %0 : tensor<1000xf32>
}"""


def test_results_are_a_tuple_or_one_array():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    total, difference = tenon.compile(SUM_AND_DIFFERENCE)(x, 2 * x)
    np.testing.assert_array_equal(total, 3 * x)
    np.testing.assert_array_equal(difference, -x)
    long = np.arange(1000, dtype=np.float32)
    np.testing.assert_array_equal(tenon.compile(DOUBLE)(long), 2 * long)


def test_what_a_program_says_of_itself():
    program = tenon.compile(SUM_AND_DIFFERENCE)
    assert program.name == "both"
    assert program.outputs == [(np.dtype("float32"), (2, 3))] * 2
    assert program.memory["arguments"] >= 48 and program.memory["results"] >= 48
    assert "stablehlo.add" in program.text
    assert repr(program) == "tenon.Executable('both' -> float32[2, 3], float32[2, 3])"


@pytest.mark.parametrize("file", ["program.mlir", "program.mlirbc"])
def test_a_sample_from_a_file(samples, file):
    folder = samples / "digits_inference"
    inputs = [np.load(path) for path in sorted(folder.glob("in_*.npy"))]
    expected = np.load(folder / "out_0.npy")
    results = tenon.compile(folder / file).run(inputs)
    np.testing.assert_allclose(results[0], expected, rtol=1e-4, atol=1e-5)


def test_saved_programs_load_in_the_same_client(client):
    x = np.ones(1000, np.float32)
    again = client.load(tenon.compile(DOUBLE).serialize())
    np.testing.assert_array_equal(again(x), 2 * x)
    with pytest.raises(tenon.Error) as raised:
        client.load(b"not a program")
    assert raised.value.code in ("INVALID_ARGUMENT", "DATA_LOSS")


def test_errors_have_a_place():
    with pytest.raises(tenon.Error) as raised:
        tenon.compile("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %0 = stablehlo.foo %x : tensor<4xf32>\n}")
    assert raised.value.code == "INVALID_ARGUMENT"
    assert raised.value.place[1:] == (2, 8)
    assert "stablehlo.foo" in str(raised.value)


def test_wrong_arguments_are_errors_of_the_call():
    program = tenon.compile(DOUBLE)
    for arguments in [(), (np.ones(3, np.float32),), (np.ones(1000, np.int32),)]:
        with pytest.raises(tenon.Error) as raised:
            program(*arguments)
        assert raised.value.code == "INVALID_ARGUMENT" and raised.value.place is None
    np.testing.assert_array_equal(program(np.ones(1000, np.float32)), np.full(1000, 2, np.float32))


def test_options(device):
    tenon.compile(DOUBLE, disable_rules=["add-zero"], native_math=True)
    with pytest.raises(tenon.Error, match="no_such_option"):
        tenon.compile(DOUBLE, no_such_option=True)
    if device != "reference":
        tenon.compile(DOUBLE, strict=True)
    with pytest.raises(tenon.Error, match="nonesuch"):
        tenon.Client("nonesuch")
    with pytest.raises(tenon.Error):
        tenon.Client(plugin=__file__)


def test_layers_and_a_time_limit(device, endless_program):
    if device == "reference":
        pytest.skip("the evaluator has no device to stop")
    client = tenon.Client("interp", layers="validate", time_limit=0.2)
    np.testing.assert_array_equal(client.compile(DOUBLE)(np.ones(1000, np.float32)), np.full(1000, 2, np.float32))
    endless = client.compile(endless_program)
    with pytest.raises(tenon.Error, match="time limit of 200 ms") as raised:
        endless(np.int32(1))
    assert raised.value.code == "UNAVAILABLE"


def test_an_argument_that_the_program_may_take():
    program = tenon.compile("""
        func.func @main(%x: tensor<1000xf32> {tf.aliasing_output = 0 : i32}) -> tensor<1000xf32> {
          %0 = stablehlo.add %x, %x : tensor<1000xf32>
          return %0 : tensor<1000xf32>
        }""")
    x = np.ones(1000, np.float32)
    on_device = tenon.array(x)
    y = program(on_device)
    np.testing.assert_array_equal(y, 2 * x)
    assert on_device.is_deleted and repr(on_device) == "tenon.Array(float32[1000], deleted)"
    with pytest.raises(tenon.Error):
        program(on_device)
    # Arrays of the host are never written.
    np.testing.assert_array_equal(program(x), 2 * x)
    np.testing.assert_array_equal(x, np.ones(1000, np.float32))


def test_threads_compile_and_run_side_by_side():
    wrong = []

    def work(seed: int) -> None:
        x = np.full(1000, seed, np.float32)
        program = tenon.compile(DOUBLE)
        for _ in range(20):
            if not np.array_equal(program(x), 2 * x):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_sequence_that_changes_under_the_call():
    program = tenon.compile(DOUBLE)
    x = np.arange(1000, dtype=np.float32)

    class Fresh:
        """A sequence that nobody else holds the elements of."""

        def __len__(self):
            return 1

        def __getitem__(self, index):
            if index > 0:
                raise IndexError
            return tenon.array(x)

    np.testing.assert_array_equal(program.run(Fresh())[0], 2 * x)
    pair = tenon.compile("""
        func.func @main(%x: tensor<1000xf32>, %y: tensor<1000xf32>) -> tensor<1000xf32> {
          %0 = stablehlo.add %x, %y : tensor<1000xf32>
          return %0 : tensor<1000xf32>
        }""")
    arguments = [tenon.array(x)]

    class Clears:
        def __array__(self, dtype=None, copy=None):
            arguments.clear()
            return x

    arguments.append(Clears())
    np.testing.assert_array_equal(pair.run(arguments)[0], 2 * x)


def test_saved_programs_load_on_another_device(device):
    client = tenon.Client("interp", device_count=2)
    saved = client.compile(DOUBLE).serialize()
    x = np.ones(1000, np.float32)
    np.testing.assert_array_equal(client.load(saved, device=1)(x), 2 * x)


def test_errors_with_bytes_that_are_no_text():
    with pytest.raises(tenon.Error) as raised:
        tenon.compile(b"func.func @main() -> \xff\xfe { }")
    assert raised.value.code == "INVALID_ARGUMENT" and raised.value.place
