"""What was compiled, what ran, and what was left to PyTorch."""

import collections
import dataclasses
import threading


@dataclasses.dataclass
class Counters:
    """Counts since the start of the process, or since `reset`.

    Attributes:
        graphs: graphs that TorchDynamo gave, forward and backward counted apart.
        programs: programs that were compiled: one a graph, one more for each further shape.
        calls: executions of programs.
        fallbacks: ops that PyTorch runs, by name, counted once a graph in which they are.
        fallback_calls: executions of such ops, by name.
        reasons: why an op is left to PyTorch, by name.
        evicted: programs that were dropped for newer shapes.
    """

    graphs: int = 0
    programs: int = 0
    calls: int = 0
    evicted: int = 0
    fallbacks: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    fallback_calls: collections.Counter = dataclasses.field(default_factory=collections.Counter)
    reasons: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def graph_breaks(self) -> dict[str, int]:
        """Where TorchDynamo went back to Python, by reason."""
        from torch._dynamo.utils import counters

        return dict(counters["graph_break"])

    def reset(self) -> None:
        with lock:
            self.__init__()

    def __str__(self) -> str:
        lines = [f"{self.graphs} graphs, {self.programs} programs ({self.evicted} dropped), {self.calls} calls"]
        for name, count in self.fallbacks.most_common():
            lines.append(f"  PyTorch runs {name} in {count} graphs, {self.fallback_calls[name]} calls: {self.reasons.get(name, '')}")
        for reason, count in self.graph_breaks.items():
            lines.append(f"  graph break, {count} times: {reason.splitlines()[0]}")
        return "\n".join(lines)


lock = threading.Lock()
counters = Counters()
