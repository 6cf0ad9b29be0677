"""Options of a compilation."""

import dataclasses
import os

_CHOICES = {"fallback": ("torch", "error"), "random": ("device", "torch")}


@dataclasses.dataclass(frozen=True)
class Options:
    """What `torch.compile(…, options={…})` may say.

    Attributes:
        device: a device of Tenon, as `tenon.Client` takes it (TENON_DEVICE, else "cpu").
        strict: an error, if the device cannot run every step, instead of steps on the host.
        native_math: the device's own exp, log and the like, which may be less accurate.
        fallback: "torch": PyTorch runs ops without a lowering; "error": they are an error (TENON_TORCH_FALLBACK).
        random: "device": the device draws random numbers from a seed that PyTorch's generator gives; "torch": PyTorch draws them, so that
            they are those of eager mode (TENON_TORCH_RANDOM).
        programs: how many programs a graph of changing shapes may have before the oldest is dropped (TENON_TORCH_PROGRAMS).
    """

    device: str | None = None
    strict: bool = False
    native_math: bool = False
    fallback: str = dataclasses.field(default_factory=lambda: os.environ.get("TENON_TORCH_FALLBACK", "torch"))
    random: str = dataclasses.field(default_factory=lambda: os.environ.get("TENON_TORCH_RANDOM", "device"))
    programs: int = dataclasses.field(default_factory=lambda: int(os.environ.get("TENON_TORCH_PROGRAMS", "16")))

    def __post_init__(self):
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"tenon: {name} is {getattr(self, name)!r}; it must be one of {', '.join(map(repr, choices))}")
        if self.programs < 1:
            raise ValueError(f"tenon: programs is {self.programs}; it must be at least 1")

    @classmethod
    def of(cls, given: dict | None) -> "Options":
        """Raises ValueError, which names what there is, for an option that is unknown."""
        names = [field.name for field in dataclasses.fields(cls)]
        for name in given or {}:
            if name not in names:
                raise ValueError(f"tenon: there is no option {name!r}; there are {', '.join(names)}")
        return cls(**(given or {}))
