"""The backend of torch.compile: TorchDynamo gives a graph, AOTAutograd makes forward and backward graphs of ATen ops of it, and each
becomes programs of Tenon (`program.Graph`)."""

import itertools
import warnings

import torch
from functorch.compile import min_cut_rematerialization_partition
from torch._dynamo.backends.common import aot_autograd

from .counting import counters, lock
from .decompositions import decompositions
from .interpolation import with_own_functions
from .ops.random import name_states
from .options import Options
from .program import Graph
from .recurrent import loops

_numbers = itertools.count()


def compiler(kind: str, number: int, options: Options):
    def compile_graph(module: torch.fx.GraphModule, example_inputs):
        with lock:
            counters.graphs += 1
        if options.random == "device":
            name_states(module)
        return Graph(module, options, f"torch_{number}_{kind}").run

    return compile_graph


def backend(module: torch.fx.GraphModule, example_inputs, *, options: dict | None = None, mode: str | None = None):
    """`torch.compile(model, backend="tenon", options={"device": "cpu", …})`. `Options` says what there is.

    Raises: ValueError for an option that is unknown.
    """
    chosen, number = Options.of(options), next(_numbers)
    compile_with = aot_autograd(
        fw_compiler=compiler("forward", number, chosen), bw_compiler=compiler("backward", number, chosen),
        inference_compiler=compiler("inference", number, chosen), decompositions=decompositions(),
        partition_fn=min_cut_rematerialization_partition, keep_inference_input_mutations=True)
    # With oneDNN, layers such as LSTM would be ops of its own; without, they are traced as plain ones.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="TF32 acceleration")
        with torch.backends.mkldnn.flags(enabled=False), loops():
            return compile_with(with_own_functions(module), example_inputs)
