"""Sessions: what is taken, programs by sizes, options, errors, memory, threads."""

import concurrent.futures
import os
import pathlib
import random as dice
import shutil

import numpy as np
import onnxruntime
import pytest
from models import DEVICE, Session, check, mixed, mlp, model, on_cpu, random, total, value
from onnx import helper

import tenon_ort

node = helper.make_node


def test_a_program_for_each_size(tmp_path):
    report = check(mlp(), tmp_path, [{"x": random(n, 64)} for n in (1, 3, 8, 3, 1, 8, 8)])
    assert report["claimed"] >= 4 and report["left"] == []
    assert [total(report, each) for each in ("compiled", "hits", "runs")] == [3, 4, 7]


def test_programs_are_bounded(tmp_path):
    report = check(mlp(), tmp_path, [{"x": random(n, 64)} for n in (1, 2, 3, 1)], cache_size=2)
    assert [total(report, each) for each in ("compiled", "dropped")] == [4, 2]


def test_known_sizes_are_compiled_with_the_session(tmp_path):
    session = Session(mlp(batch=4), tmp_path)
    report = session.report()
    assert [total(report, each) for each in ("compiled", "runs")] == [1, 0]


def test_the_rest_runs_on_onnx_runtime(tmp_path):
    report = check(mixed(), tmp_path, [{"x": random(4, 32)}])
    assert report["claimed"] == 3 and len(report["groups"]) == 2 and total(report, "runs") == 2
    assert report["left"] == ["node 'silu', com.microsoft.ScaledSiLU of opset 1: the op is not supported"]


@pytest.mark.parametrize("constant_elements", [0, 4096, 10**9])
def test_constants_of_programs_and_of_devices(tmp_path, constant_elements):
    check(mlp(), tmp_path, [{"x": random(2, 64)}], constant_elements=constant_elements)


def chain(*sizes: int) -> bytes:
    """Products with ops between them that Tenon lacks: a group each."""
    nodes, constants = [], {}
    for i, size in enumerate(sizes):
        constants[f"w{i}"] = random(sizes[i - 1] if i else 8, size, seed=i) / 4
        nodes.append(node("MatMul", ["x" if i == 0 else f"s{i - 1}", f"w{i}"], [f"m{i}"]))
        nodes.append(node("ScaledSiLU", [f"m{i}"], [f"s{i}"], domain="com.microsoft"))
    return model(nodes, [value("x", [4, 8])], [value(f"s{len(sizes) - 1}", [4, sizes[-1]])], constants, microsoft=True)


@pytest.mark.parametrize("most, expected", [(0, [0, 0, 0]), (300, [128, 0, 128]), (512, [128, 256, 128]), (None, [128, 256, 128])])
def test_constants_of_programs_are_bounded_in_a_session(tmp_path, most, expected):
    """All groups together; what is too much for one leaves room for a later one. The next session has as much again."""
    for _ in range(2):
        settings = {} if most is None else {"prepared_elements": most}
        report = check(chain(16, 16, 8), tmp_path, [{"x": random(4, 8)}] * 2, constant_elements=0, small_groups=True, **settings)
        assert [group["prepared"] for group in report["groups"]] == expected


def branches(condition_is_known: bool, foreign: bool = False) -> bytes:
    one = node("ScaledSiLU", ["a"], ["t"], domain="com.microsoft") if foreign else node("Tanh", ["a"], ["t"])
    then = helper.make_graph([node("MatMul", ["x", "w"], ["a"]), one], "then", [], [value("t", [4, 32])])
    otherwise = helper.make_graph([node("Sub", ["x", "offset"], ["e"])], "else", [], [value("e", [4, 32])])
    inputs = [value("x", [4, 32])] + ([] if condition_is_known else [value("flag", [], np.bool_)])
    nodes = [node("If", ["flag"], ["r"], name="choice", then_branch=then, else_branch=otherwise), node("Relu", ["r"], ["y"])]
    constants = {"w": random(32, 32, seed=4), "offset": random(32, seed=5)}
    if condition_is_known:
        constants["flag"] = np.array(True)
    return model(nodes, inputs, [value("y", [4, 32])], constants, microsoft=True)


def test_branches(tmp_path):
    report = check(branches(False), tmp_path, [{"x": random(4, 32), "flag": np.array(flag)} for flag in (True, False, True)])
    assert report["left"] == [] and len(report["groups"]) == 1 and total(report, "runs") == 3
    check(branches(True), tmp_path, [{"x": random(4, 32)}])


def test_branches_with_a_node_that_is_left(tmp_path):
    feeds = [{"x": random(4, 32), "flag": np.array(flag)} for flag in (True, False)]
    report = check(branches(False, foreign=True), tmp_path, feeds)
    assert any(each.startswith("node 'choice', If of opset 17: ") and "ScaledSiLU" in each for each in report["left"])
    assert report["claimed"] >= 2 and total(report, "runs") >= 2  # Within a branch, and behind.


def test_loops(tmp_path):
    """A carried value, one of the graph around, and results that are collected."""
    body = helper.make_graph([node("MatMul", ["state", "w"], ["p"]), node("Tanh", ["p"], ["next"]), node("Identity", ["yes"], ["goes"]),
                              node("ReduceSum", ["next"], ["sum"], keepdims=0)], "body",
                             [value("i", [], np.int64), value("going", [], np.bool_), value("state", [4, 8])],
                             [value("goes", [], np.bool_), value("next", [4, 8]), value("sum", [])])
    data = model([node("Loop", ["count", "", "x"], ["y", "sums"], body=body)], [value("x", [4, 8])],
                 [value("y", [4, 8]), value("sums", [5])], {"count": np.array(5), "yes": np.array(True), "w": random(8, 8, seed=2)})
    report = check(data, tmp_path, [{"x": random(4, 8)}])
    assert report["left"] == [] and total(report, "runs") == 1


def test_values_that_decide_a_shape(tmp_path):
    data = model([node("Reshape", ["x", "sizes"], ["r"], name="reshape"), node("Exp", ["r"], ["y"])],
                 [value("x", [8, 12]), value("sizes", [2], np.int64)], [value("y", ["A", "B"])])
    feeds = [{"x": random(8, 12), "sizes": np.array(sizes)} for sizes in ([4, 24], [-1, 6], [4, 24])]
    report = check(data, tmp_path, feeds)
    assert report["claimed"] == 2 and [total(report, each) for each in ("compiled", "hits")] == [2, 1]
    report = check(data, tmp_path, feeds, shape_values=False)
    assert report["claimed"] == 1 and "node 'reshape', Reshape of opset 17: input 1 ('sizes') decides a shape" in report["left"][0]


def test_no_values_decide_a_shape(tmp_path):
    """An empty array has no address in a device's own memory."""
    data = model([node("Mul", ["x", "x"], ["squares"]), node("ReduceSum", ["squares", "axes"], ["s"]), node("Sqrt", ["s"], ["y"])],
                 [value("x", [4, 6]), value("axes", [0], np.int64)], [value("y", [1, 1])])
    report = check(data, tmp_path, [{"x": random(4, 6), "axes": np.zeros(0, np.int64)}], small_groups=True)
    assert report["left"] == [] and total(report, "runs") == 1


def test_shapes_that_follow_from_sizes(tmp_path):
    data = model([node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["n"], axis=0), node("Concat", ["n", "rest"], ["to"], axis=0),
                  node("Reshape", ["x", "to"], ["r"]), node("MatMul", ["r", "w"], ["y"])],
                 [value("x", ["N", 4, 8])], [value("y", ["N", 16])],
                 {"zero": np.array([0]), "rest": np.array([32]), "w": random(32, 16)})
    report = check(data, tmp_path, [{"x": random(n, 4, 8)} for n in (1, 5)])
    assert report["left"] == [] and total(report, "compiled") == 2


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int32, np.int64, np.uint8])
def test_element_types(tmp_path, dtype):
    data = model([node("Add", ["x", "y"], ["s"]), node("Mul", ["s", "x"], ["z"]), node("Greater", ["z", "s"], ["flags"])],
                 [value("x", [16, 8], dtype), value("y", [8], dtype)], [value("z", [16, 8], dtype), value("flags", [16, 8], np.bool_)])
    x, y = np.arange(128).reshape(16, 8) % 7, np.arange(8)
    report = check(data, tmp_path, [{"x": x.astype(dtype), "y": y.astype(dtype)}])
    assert report["left"] == [] and total(report, "runs") == 1


def test_scalars_and_empty_arrays(tmp_path):
    data = model([node("Mul", ["x", "k"], ["a"]), node("ReduceSum", ["a"], ["sum"], keepdims=0)],
                 [value("x", ["N", 80]), value("k", [])], [value("a", ["N", 80]), value("sum", [])])
    report = check(data, tmp_path, [{"x": random(n, 80), "k": np.array(2, np.float32)} for n in (0, 1, 3)], tolerance=1e-4)
    assert total(report, "compiled") == 3


def test_groups_that_are_not_worth_a_call(tmp_path):
    data = model([node("Identity", ["x"], ["y"])], [value("x", [2])], [value("y", [2])])
    report = check(data, tmp_path, [{"x": random(2)}])
    assert report["claimed"] == 0 and report["left"][0].endswith("its group is not worth a call")
    report = check(data, tmp_path, [{"x": random(2)}], small_groups=True)
    assert report["claimed"] == 1 and total(report, "runs") == 1


def test_io_binding(tmp_path):
    """Results are written where the caller says; the same binding serves many runs."""
    session = Session(mlp(), tmp_path)
    x = onnxruntime.OrtValue.ortvalue_from_numpy(random(4, 64))
    y = onnxruntime.OrtValue.ortvalue_from_shape_and_type([4, 10], np.float32)
    binding = session.session.io_binding()
    binding.bind_ortvalue_output("y", y)
    reference = on_cpu(mlp())
    for seed in range(3):
        x.update_inplace(random(4, 64, seed=seed))
        binding.bind_ortvalue_input("x", x)  # Each time: ONNX Runtime copies it here for a device of its own memory.
        session.session.run_with_iobinding(binding)
        np.testing.assert_allclose(y.numpy(), reference.run(None, {"x": random(4, 64, seed=seed)})[0], atol=1e-6)
    binding.clear_binding_outputs()
    binding.bind_output("y")
    session.session.run_with_iobinding(binding)
    np.testing.assert_allclose(binding.copy_outputs_to_cpu()[0], y.numpy())
    del binding
    assert total(session.report(), "runs") == 4


def test_memory_that_is_not_aligned(tmp_path):
    bytes_of = np.zeros(4 * 64 * 4 + 1, np.uint8)
    x = bytes_of[1:].view(np.float32).reshape(4, 64)
    x[:] = random(4, 64)
    assert not x.flags.aligned
    aligned = np.frombuffer(bytearray(4 * 64 * 4 + 8), np.uint8)[4:-4].view(np.float32).reshape(4, 64)
    aligned[:] = x
    check(mlp(), tmp_path, [{"x": aligned}])


def test_strict_refuses_by_name(tmp_path):
    with pytest.raises(Exception, match=r"node 'silu', com\.microsoft\.ScaledSiLU of opset 1: the op is not supported"):
        Session(mixed(), tmp_path, strict=True)
    check(mlp(), tmp_path, [{"x": random(2, 64)}], strict=True)  # The process lives.


def test_other_inputs_than_numbers(tmp_path):
    nodes = [node("StringNormalizer", ["words"], ["upper"], name="upper", case_change_action="UPPER", locale="C"), node("Exp", ["x"], ["y"])]
    words = helper.make_tensor_value_info("words", 8, [2])
    data = model(nodes, [words, value("x", [100])], [helper.make_tensor_value_info("upper", 8, ["n"]), value("y", [100])])
    session = Session(data, tmp_path)
    upper, y = session.run(words=np.array(["a", "b"], object), x=random(100))
    assert list(upper) == ["A", "B"]
    np.testing.assert_allclose(y, np.exp(random(100)), rtol=1e-5)
    report = session.report()
    assert report["claimed"] == 1 and report["left"] == ["node 'upper', StringNormalizer of opset 17: the op is not supported"]
    with pytest.raises(Exception, match="StringNormalizer of opset 17"):
        Session(data, tmp_path, strict=True)


@pytest.mark.parametrize(("settings", "words"), [
    ({"strickt": 1}, "there is no option 'strickt'; there are .*strict"), ({"strict": "yes"}, "option 'strict' is 0 or 1, not 'yes'"),
    ({"cache_size": 0}, "option 'cache_size' is a number from 1, not '0'"), ({"device": "nothing"}, "there is no backend 'nothing'"),
    ({"device": "cpu:77"}, "77"), ({"pjrt_library": "/none/lib.so"}, "/none/lib.so")])
def test_wrong_options(tmp_path, settings, words):
    with pytest.raises(Exception, match=words):
        Session(mlp(), tmp_path, **{"device": "cpu", **settings})
    check(mlp(), tmp_path, [{"x": random(2, 64)}])


def test_errors_of_a_run_name_the_node(tmp_path):
    """Sizes that do not fit: no program can be made, and the next call succeeds."""
    data = model([node("Add", ["x", "y"], ["s"], name="sum"), node("Exp", ["s"], ["z"])],
                 [value("x", ["A", "B"]), value("y", ["C", "D"])], [value("z", ["E", "F"])])
    session = Session(data, tmp_path)
    with pytest.raises(Exception, match=r"'sum', Add of opset 17"):
        session.run(x=random(3, 100), y=random(2, 100))
    session.run(x=random(3, 100), y=random(3, 100))
    assert total(session.report(), "runs") == 1


def test_time_limit(tmp_path):
    """A loop that does not end: ONNX Runtime must not repeat it on the CPU."""
    body = helper.make_graph([node("Add", ["state", "one"], ["next"]), node("Identity", ["going"], ["goes"])], "body",
                             [value("i", [], np.int64), value("going", [], np.bool_), value("state", [64])],
                             [value("goes", [], np.bool_), value("next", [64])])
    data = model([node("Loop", ["", "going", "x"], ["y"], body=body)], [value("x", [64]), value("going", [], np.bool_)],
                 [value("y", [64])], {"one": np.ones(64, np.float32)})
    session = Session(data, tmp_path, device="interp", time_limit=300)
    with pytest.raises(Exception, match="time limit"):
        session.run(x=random(64), going=np.array(True))
    del session
    check(mlp(), tmp_path, [{"x": random(2, 64)}])


def test_programs_are_kept_in_a_folder(tmp_path):
    folder = tmp_path / "cache"
    first = check(mlp(), tmp_path, [{"x": random(2, 64)}], cache_directory=folder)
    again = check(mlp(), tmp_path, [{"x": random(2, 64)}], cache_directory=folder)
    assert [total(each, "compiled") for each in (first, again)] == [1, 0] and total(again, "loaded") == 1
    [file] = folder.iterdir()
    file.write_bytes(file.read_bytes()[:100])
    damaged = check(mlp(), tmp_path, [{"x": random(2, 64)}], cache_directory=folder)
    assert total(damaged, "compiled") == 1 and total(damaged, "loaded") == 0


def test_programs_as_text(tmp_path):
    check(mlp(), tmp_path, [{"x": random(2, 64)}], dump_directory=tmp_path / "dump")
    [file] = (tmp_path / "dump").glob("*.mlir")
    assert "stablehlo.dot_general" in file.read_text()


def test_sessions_and_threads(tmp_path):
    """Two sessions, eight threads, more sizes than programs are kept."""
    reference = on_cpu(mlp())
    sessions = []
    for i in range(2):
        (tmp_path / str(i)).mkdir()
        sessions.append(Session(mlp(), tmp_path / str(i), cache_size=3))
    expected = {n: reference.run(None, {"x": random(n, 64)})[0] for n in range(1, 6)}

    def work(i: int) -> None:
        for k in range(20):
            n = (i + k) % 5 + 1
            np.testing.assert_allclose(sessions[i % 2].run(x=random(n, 64))[0], expected[n], atol=1e-6)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert sum(total(session.report(), "runs") for session in sessions) == 160


def test_a_provider_for_each_device(tmp_path):
    """The name of a registration tells its device; several may be used in one process."""
    for name in ("tenon", "tenon-interp", "TenonReference"):
        device = tenon_ort.provider(name)
        assert device.ep_name == ("TenonExecutionProvider" if name == "tenon" else name)
        options = onnxruntime.SessionOptions()
        options.add_provider_for_devices([device], {"report_file": str(tmp_path / name)})
        session = onnxruntime.InferenceSession(mlp(), options)
        assert session.get_providers()[0] == device.ep_name
        session.run(None, {"x": random(2, 64)})
    del session
    for name, used in (("tenon", DEVICE), ("tenon-interp", "interp"), ("TenonReference", "reference")):
        report = (tmp_path / name).read_text()
        assert f'"device": "{used}"' in report and '"runs": 1' in report
    assert pathlib.Path(tenon_ort.library()).exists()


def test_a_maker_ships_it_under_a_name(tmp_path):
    """Copies of the libraries with a plug-in beside them: the name of the registration finds it."""
    plugin = pathlib.Path(os.environ.get("TENON_BUILD", "")) / "backends/libtenon_template.so"
    if not plugin.exists():
        pytest.skip("TENON_BUILD names no build")
    library = pathlib.Path(tenon_ort.library())
    for file in (library, library.with_name("libtenon_pjrt.so")):
        shutil.copy(file, tmp_path)
    shutil.copy(plugin, tmp_path / "libacme.so")
    onnxruntime.register_execution_provider_library("acme", str(tmp_path / library.name))
    [device] = [each for each in onnxruntime.get_ep_devices() if each.ep_name == "acme"]
    options = onnxruntime.SessionOptions()
    options.add_provider_for_devices([device], {"report_file": str(tmp_path / "report.json"), "strict_device": "1"})
    session = onnxruntime.InferenceSession(mlp(), options)
    np.testing.assert_allclose(session.run(None, {"x": random(2, 64)})[0], on_cpu(mlp()).run(None, {"x": random(2, 64)})[0], atol=1e-6)
    del session
    assert f'"device": "{tmp_path / "libacme.so"}"' in (tmp_path / "report.json").read_text()


@pytest.mark.parametrize("largest", [0, 1])
def test_greatest_elements_among_nans(tmp_path, largest):
    """NaN is greater than all numbers, of either sign; equal elements come in their order."""
    x = np.random.default_rng(5).choice(np.array([np.nan, -np.nan, 1, 2, -np.inf, np.inf, 0, -0.0], np.float32), (40, 9))
    for k in (1, 4, 9):
        data = model([node("TopK", ["x", "k"], ["v", "i"], largest=largest)], [value("x", [40, 9])],
                     [value("v", [40, k]), value("i", [40, k], np.int64)], {"k": np.array([k])})
        assert check(data, tmp_path, [{"x": x}], small_groups=True)["claimed"] == 1
        # Elements come as they are, zeros and NaNs with their signs.
        found, _ = Session(data, tmp_path, small_groups=True).run(x=x)
        expected, places = on_cpu(data).run(None, {"x": x})
        np.testing.assert_array_equal(np.signbit(found), np.signbit(np.take_along_axis(x, places, 1)))
        assert (expected == 0).any() or k == 1
    assert np.isnan(x).sum() > 20


@pytest.mark.parametrize("automatic", ["NOTSET", "SAME_UPPER", "SAME_LOWER"])
def test_sizes_of_transposed_convolutions(tmp_path, automatic):
    """`output_shape` cuts an odd or even number of places."""
    for size, stride, extra in ((4, 1, 0), (5, 1, 0), (6, 2, 0), (7, 2, 1), (8, 3, 1), (9, 3, 0)):
        words = {} if automatic == "NOTSET" else {"auto_pad": automatic}
        data = model([node("ConvTranspose", ["x", "w"], ["y"], strides=[stride], output_shape=[size], output_padding=[extra], **words)],
                     [value("x", [2, 3, 4])], [value("y", [2, 2, size])], {"w": random(3, 2, 4, seed=1)})
        assert check(data, tmp_path, [{"x": random(2, 3, 4)}], small_groups=True)["claimed"] == 1


@pytest.mark.parametrize("low, high", [(-1, 3), (2, -1), (-3, 4), (3, -3), (7, 0)])
def test_pads_that_repeat_what_negative_ones_leave(tmp_path, low, high):
    data = model([node("Pad", ["x", "pads"], ["y"], mode="wrap")], [value("x", [5])], [value("y", [5 + low + high])],
                 {"pads": np.array([low, high], np.int64)})
    assert check(data, tmp_path, [{"x": np.arange(5, dtype=np.float32)}], small_groups=True)["claimed"] == 1


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs(tmp_path, seed):
    """Nodes that are taken and nodes that are left in any order: groups make no cycle, and results are those of the CPU."""
    dice.seed(seed)
    nodes, names = [], ["x"]
    for i in range(20):
        kind = dice.choice(["Add", "Mul", "Tanh", "Sigmoid", "ScaledSiLU", "ScaledSiLU"])
        inputs = dice.sample(names[-6:] * 2, 2 if kind in ("Add", "Mul") else 1)
        nodes.append(node(kind, inputs, [f"v{i}"], domain="com.microsoft" if kind == "ScaledSiLU" else ""))
        names.append(f"v{i}")
    data = model(nodes, [value("x", ["N", 80])], [value(name, ["N", 80]) for name in names[-4:]], microsoft=True)
    report = check(data, tmp_path, [{"x": random(n, 80)} for n in (1, 3)], tolerance=1e-4)
    assert total(report, "runs") == 2 * len(report["groups"]) and report["claimed"] > 0
