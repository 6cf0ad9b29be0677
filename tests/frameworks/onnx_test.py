#!/usr/bin/env python3
"""ONNX's node tests on the CPU: models of one op, or of the ops that define it, with arguments and expected results; and the networks
that come with them; and those of onnx_long_cases.py.

    onnx_test.py BUILD [--full]     every sixth of ONNX's and every fifth of these, or all

Those with values other than tensors of numbers are left out. An op that Tenon does not support must be one of REFUSED. Prints a
line "PASS name", "FAIL name: why" or "SKIP name: why" a test."""

import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import on_devices  # noqa: E402

ONNX = on_devices.ROOT / "frameworks/onnx"
STEP, LONG_STEP = 6, 5  # Of the tests, without --full.
REFUSED = {
    "Bernoulli": "its results are random", "RandomUniformLike": "its results are random", "Dropout": "in training its results are random",
    "ImageDecoder": "it decodes images", "TreeEnsemble": "it is not lowered yet",
    "Scan": "version 8 has other inputs",
}

# In the environment with onnx: writes a folder for each test.
EXPORT = r'''
import pathlib, sys, warnings
warnings.filterwarnings("ignore")
import numpy as np, onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases
out, step = pathlib.Path(sys.argv[1]), int(sys.argv[2])
def is_tensor(value):
    return value.type.WhichOneof("value") == "tensor_type" and value.type.tensor_type.elem_type != onnx.TensorProto.STRING
tests = [each for each in collect_testcases(None) if all(map(is_tensor, [*each.model.graph.input, *each.model.graph.output]))]
for test in sorted(tests, key=lambda each: each.name)[::step]:
    folder = out / test.name
    folder.mkdir()
    (folder / "model.onnx").write_bytes(test.model.SerializeToString())
    for kind, infos, values in zip(("input", "output"), (test.model.graph.input, test.model.graph.output), test.data_sets[0]):
        for number, (info, value) in enumerate(zip(infos, values)):
            tensor = value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(np.asarray(value), info.name)
            (folder / f"{kind}_{number}.pb").write_bytes(tensor.SerializeToString())
    (folder / "tolerance").write_text(f"{test.rtol} {test.atol}")
# Whole networks, with weights that are constants and one expected result each.
light = pathlib.Path(onnx.__file__).parent / "backend/test/data/light"
for path in sorted(light.glob("*.onnx"))[::step]:
    model = onnx.load(path)
    names = {each.name for each in model.graph.initializer}
    [image] = [each for each in model.graph.input if each.name not in names]
    dims = [each.dim_value for each in image.type.tensor_type.shape.dim]
    values = (np.arange(np.prod(dims)) / np.prod(dims)).astype(np.float32).reshape(dims)
    folder = out / path.stem
    folder.mkdir()
    (folder / "model.onnx").write_bytes(path.read_bytes())
    (folder / "input_0.pb").write_bytes(numpy_helper.from_array(values).SerializeToString())
    (folder / "output_0.pb").write_bytes(path.with_name(f"{path.stem}_output_0.pb").read_bytes())
'''


def outcomes(build: pathlib.Path, folder: pathlib.Path) -> tuple[dict[str, tuple[str, str]], int]:
    """Of each test the word and why, and how many steps ran on the device. A test in which the process ends fails."""
    names, found, steps = sorted(each.name for each in folder.iterdir()), {}, 0
    while left := [name for name in names if name not in found]:
        done = subprocess.run([build / "tests/onnx_cases", "cpu", folder, *left], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              errors="replace")
        begun = None
        for word, rest in re.findall(r"^(\w+) (.*)$", done.stdout, re.MULTILINE):
            if word == "case":
                begun = rest
            elif word == "steps":
                steps += int(rest)
            else:
                name, _, why = rest.partition(": ")
                found[name] = (word, why)
        if all(name in found for name in left):
            break
        if begun is None or begun in found:
            raise SystemExit(f"FAIL onnx: {done.stderr.strip()[-300:]}")
        found[begun] = ("wrong", f"the process ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return found, steps


def main() -> int:
    build = pathlib.Path(sys.argv[1]).resolve()
    status = on_devices.has_environment(ONNX, build)
    if status is not None:
        return status
    good = True
    with tempfile.TemporaryDirectory() as folder:
        step, long_step = ("1", "1") if "--full" in sys.argv else (str(STEP), str(LONG_STEP))
        for words in (["-c", EXPORT, folder, step], [pathlib.Path(__file__).with_name("onnx_long_cases.py"), folder, long_step]):
            exported = subprocess.run([ONNX / ".venv/bin/python", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if exported.returncode != 0:
                print(f"FAIL onnx: {exported.stderr.strip()[-300:]}")
                return 1
        found, steps = outcomes(build, pathlib.Path(folder))
    for name, (word, why) in found.items():
        if word == "refused":
            op = re.search(r", (?:[\w.]*\.)?(\w+) of opset", why)
            expected = op is not None and op.group(1) in REFUSED
            print(f"{'SKIP' if expected else 'FAIL'} {name}: {why}")
            good &= expected
        else:
            print(f"PASS {name}" if word == "pass" else f"FAIL {name}: {why}")
            good &= word == "pass"
    took_part = steps > len(found) // 2
    print(f"{'PASS' if took_part else 'FAIL'} onnx: {steps} steps ran on the device in {len(found)} tests")
    return 0 if good and took_part else 1


if __name__ == "__main__":
    sys.exit(main())
