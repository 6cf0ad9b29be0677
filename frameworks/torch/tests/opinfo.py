"""PyTorch's own database of ops (OpInfo) on Tenon: values, and gradients where there are any, against eager mode.

An op ends as one of:
    pass      each sample agrees
    refused   an op that it is made of has no lowering; its name is told
    dynamic   the size of a result depends on data, which no program has
    wrong     a sample does not agree
    error     anything else
"""

import dataclasses
import functools
import itertools
import logging
import os

import torch
from torch._functorch.aot_autograd import aot_function
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

import tenon_torch
from tenon_torch.compiler import compiler
from tenon_torch.decompositions import decompositions

# What cannot be compared: memory that nothing was written to, other devices, layouts without strides, and elements beside a tensor, which
# its copies do not have.
SKIPPED = ("as_strided.partial_views", "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "jiterator", "to_sparse",
           "sparse", "_segment_reduce", "resize_", "resize_as_")
TOLERANCES = {torch.bfloat16: 2e-2, torch.float16: 5e-3, torch.float32: 3e-5, torch.complex64: 3e-5}
WORDS = ("pass", "refused", "dynamic", "wrong", "error")
_DYNAMIC = ("DynamicOutputShapeException", "DataDependentOutputException", "UnsupportedFakeTensorException")


class Mismatch(Exception):
    """A value or a gradient that does not agree."""


@dataclasses.dataclass
class Outcome:
    word: str
    samples: int = 0
    why: str = ""
    left: list[str] = dataclasses.field(default_factory=list)  # Ops that ran on the CPU (opinfo_device).


def name_of(op) -> str:
    return op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")


def ops(dtype: torch.dtype) -> list:
    return [op for op in op_db if dtype in op.dtypes and not name_of(op).startswith(SKIPPED)]


def leaves(out) -> list[torch.Tensor]:
    return [each for each in pytree.tree_leaves(out) if isinstance(each, torch.Tensor)]


def agree(found, expected, precise, what: str) -> None:
    """Within the tolerance of eager mode, or not twice as far from eager mode in f64 (`precise`, called if it is needed) as eager mode."""
    tolerance = TOLERANCES.get(expected.dtype)
    words = {} if tolerance is None else {"rtol": tolerance, "atol": tolerance}
    try:
        torch.testing.assert_close(found, expected, equal_nan=True, **words)
    except AssertionError as error:
        reference = precise() if tolerance is not None and found.shape == expected.shape and found.dtype == expected.dtype else None
        if reference is None or not torch.equal(found.isfinite(), expected.isfinite()):
            raise Mismatch(f"{what}: {error}") from None
        ours, eager = ((each.to(reference.dtype) - reference).abs().nan_to_num(0, 0, 0).max() for each in (found, expected))
        if not ours <= 2 * eager:
            raise Mismatch(f"{what}: {ours} from the value in f64, eager mode {eager}: {error}") from None


def _compiled(function, options):
    """By AOTAutograd alone, which is quick; by torch.compile, where the op makes tensors of its own."""

    def run(*given):
        chosen = tenon_torch.Options.of(options)
        made = aot_function(function, fw_compiler=compiler("forward", 0, chosen), bw_compiler=compiler("backward", 0, chosen),
                            inference_compiler=compiler("inference", 0, chosen), decompositions=decompositions())
        try:
            return made(*given)
        except AssertionError as error:
            if "FakeTensor" not in str(error):
                raise
        torch._dynamo.reset()
        return torch.compile(function, backend="tenon", options=options)(*given)

    return run


# Vectors are determined up to their signs, and bases of what is orthogonal to all of them not at all: what a sample says is compared.
UP_TO_SIGNS = ("linalg.eigh", "linalg.svd", "svd")


def compared(op, sample, result) -> list[torch.Tensor]:
    """What of an op's result has one value."""
    return leaves(sample.output_process_fn_grad(result) if op.name in UP_TO_SIGNS else result)


# Which of equal elements comes first is not said; in f32 there are none.
_TIES = ("sort", "argsort", "msort", "topk", "kthvalue", "median", "nanmedian", "mode")


def has_ties(op, tensors: list[torch.Tensor], what: str, i: int) -> bool:
    """Whether the i-th value or gradient depends on which of equal elements comes first: places do."""
    dtype = tensors[0].dtype if tensors else None
    return op.name in _TIES and dtype not in (torch.float32, torch.float64) and (what == "gradient" or i > 0 or op.name == "argsort")


def check(op, sample, options: dict) -> None:
    """Compares one sample: values, then gradients by every input that has one."""
    flat, spec = pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
    places = [i for i, each in enumerate(flat) if isinstance(each, torch.Tensor)]

    def function(*tensors):
        filled = list(flat)
        for place, tensor in zip(places, tensors):
            filled[place] = tensor
        arguments, words = pytree.tree_unflatten(filled, spec)
        return compared(op, sample, op(*arguments, **words))

    arguments = [flat[i] for i in places]
    found, expected = (evaluated(each, [copy.detach().clone().requires_grad_(copy.requires_grad) for copy in arguments])
                       for each in (_compiled(function, options), function))
    wider = functools.cache(lambda: evaluated(function, widened(arguments)))
    for part, what in enumerate(("value", "gradient")):
        for i, (left, right) in enumerate(zip(found[part], expected[part], strict=True)):
            if right is not None and not has_ties(op, arguments, what, i):
                agree(torch.zeros_like(right) if left is None else left, right, lambda: wider()[part][i], what)


_WIDER = {torch.bfloat16: torch.float64, torch.float16: torch.float64, torch.float32: torch.float64, torch.complex64: torch.complex128}


def widened(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    return [each.detach().to(_WIDER.get(each.dtype, each.dtype)).requires_grad_(each.requires_grad) for each in tensors]


def evaluated(function, given: list[torch.Tensor]):
    """Results, and the gradients of a weighted sum of them by each input that has one."""
    results = function(*given)
    with_gradient = [each for each in results if each.requires_grad]
    inputs = [each for each in given if each.requires_grad]
    gradients = []
    if with_gradient and inputs:
        weights = [(torch.arange(each.numel()).reshape(each.shape) % 3 * 0.25 + 0.5).to(each.device, each.dtype) for each in with_gradient]
        gradients = torch.autograd.grad(with_gradient, inputs, weights, allow_unused=True)
    return [each.detach() for each in results], gradients


def samples_of(op, dtype: torch.dtype, most: int) -> list:
    """At most `most` samples of an op, spread over all that it has."""
    with_gradient = (dtype.is_floating_point or dtype.is_complex) and op.supports_autograd
    torch.manual_seed(0)
    words = {"num_input_tensors": [3]} if op.name.startswith("_foreach") else {}  # Not up to 20.
    samples = list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=with_gradient, **words), 400))
    return samples[:: max(1, -(-len(samples) // most))]


def outcome(op, dtype: torch.dtype, most: int, options: dict) -> Outcome:
    """Checks at most `most` samples of an op."""
    try:
        samples = samples_of(op, dtype, most)
    except (RuntimeError, NotImplementedError, ImportError) as error:
        return Outcome("error", 0, f"has no samples: {error}"[:200])
    for number, sample in enumerate(samples):
        try:
            check(op, sample, options)
        except Mismatch as error:
            return Outcome("wrong", number, " ".join(str(error).split())[:300])
        except Exception as error:  # Whatever an op does: it is told.
            text = str(error)
            if "PyTorch would have to run" in text:
                return Outcome("refused", number, text[text.index("PyTorch would have to run") + 26:].split("\n")[0][:200])
            kind = type(error).__name__
            if isinstance(error, tenon_torch.Unsupported):
                return Outcome("refused", number, text[:200])
            return Outcome("dynamic" if kind in _DYNAMIC or "data-dependent" in text.lower() else "error", number, f"{kind}: {' '.join(text.split())[:200]}")
    return Outcome("pass", len(samples))


def quiet() -> None:
    """No warnings of what is left to PyTorch: it is counted."""
    logging.getLogger("tenon_torch").setLevel(logging.ERROR)


def options_of_environment() -> dict:
    return {"device": os.environ.get("TENON_DEVICE", "cpu"), "fallback": "error", "random": "torch"}

