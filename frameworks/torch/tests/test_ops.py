"""PyTorch's own database of ops, compiled and on torch.device("tenon"): a part of it here, all of it by frameworks/torch/opinfo."""

import os

import pytest
import torch

import opinfo
import opinfo_device
import tenon_torch

opinfo.quiet()
# Every N-th op; TENON_OPINFO=1 takes all.
EVERY = int(os.environ.get("TENON_OPINFO", "12"))
TYPES = {"float32": 1, "bfloat16": 2, "int64": 3, "bool": 5, "complex64": 6}  # And the place at which each begins.


def chosen(every: int):
    return [pytest.param(op, getattr(torch, name), id=f"{opinfo.name_of(op)}-{name}")
            for name, start in TYPES.items() for op in opinfo.ops(getattr(torch, name))[start % every::every]]


OUTCOMES: dict[str, opinfo.Outcome] = {}
ON_THE_DEVICE: dict[str, opinfo.Outcome] = {}


@pytest.mark.parametrize("op, dtype", chosen(EVERY))
def test_op(op, dtype):
    found = opinfo.outcome(op, dtype, 2, opinfo.options_of_environment())
    OUTCOMES[f"{opinfo.name_of(op)}-{dtype}"] = found
    if found.word in ("refused", "dynamic"):
        # These are faults of a lowering.
        assert "arguments that its lowering does not know" not in found.why and "the lowering gives" not in found.why
        pytest.skip(f"{found.word}: {found.why}")
    assert found.word == "pass", found.why
    assert found.samples > 0


@pytest.mark.parametrize("op, dtype", chosen(1 if EVERY == 1 else 4 * EVERY))
def test_op_on_the_device(op, dtype):
    """In eager mode, also in place, into given tensors, and from tensors with gaps; what has no lowering runs on the CPU."""
    found = opinfo_device.outcome(op, dtype, 2)
    ON_THE_DEVICE[f"{opinfo.name_of(op)}-{dtype}"] = found
    if found.word in ("refused", "none"):
        pytest.skip(f"{found.word}: {found.why}")
    assert found.word in ("pass", "cpu", "random"), found.why


def test_most_ops_ran_on_the_device():
    if not ON_THE_DEVICE:
        pytest.skip("no ops were run in this process")
    assert sum(each.word == "pass" for each in ON_THE_DEVICE.values()) > 0.6 * len(ON_THE_DEVICE)


def test_most_ops_took_part():
    """Refusals are told by name above; most ops are not among them, and their programs ran."""
    if not OUTCOMES:
        pytest.skip("no ops were run in this process")
    passed = sum(each.word == "pass" for each in OUTCOMES.values())
    assert passed > 0.6 * len(OUTCOMES)
    assert tenon_torch.TABLE


# The ops of PyTorch's core set that StableHLO cannot state: sizes that depend on data, sparse arrays, in-place changes of memory.
NOT_FUNCTIONAL = {"aten._local_scalar_dense.default", "aten.nonzero.default", "aten.resize_.default", "aten.atan2.out",
                  "aten.sym_numel.default", "aten.sym_storage_offset.default", "aten.sym_size.int", "aten.sym_stride.int",
                  "aten.sym_is_contiguous.default"}


def test_every_core_op_is_lowered_or_decomposed():
    from tenon_torch.decompositions import decompositions

    missing = []
    for name in torch._C._dispatch_get_all_op_names():
        space, _, rest = name.partition("::")
        base, _, overload = rest.partition(".")
        if space != "aten" or not hasattr(torch.ops.aten, base):
            continue
        op = getattr(getattr(torch.ops.aten, base), overload or "default", None)
        if op is None or torch.Tag.core not in op.tags or str(op) in NOT_FUNCTIONAL:
            continue
        if op not in tenon_torch.TABLE and op not in decompositions():
            missing.append(str(op))
    assert not missing
