"""Options of a compiled function."""

import dataclasses
import os

_WRITE_BACK = ("when_read", "each_call")


@dataclasses.dataclass(frozen=True)
class Options:
    """Options that `tenon_tf.function(…)` takes beside the function.

    Attributes:
        device: a device of Tenon, as `tenon.Client` takes it (TENON_DEVICE, else "cpu").
        donate: whether a program may write a variable's new value where the old one lies.
        strict: an error, if the device cannot run every step, instead of steps on the host.
        native_math: the device's own exp, log and the like, which may be less accurate.
        write_back: "when_read": a variable's value stays on the device until TensorFlow looks at the variable; "each_call": it is written
            back after each call (TENON_TF_WRITE_BACK).
        arrays: results are `tenon.Array`s on the device, for which the call does not wait, instead of tensors.
        programs: how many signatures a function may have before the oldest program is dropped (TENON_TF_PROGRAMS).
    """

    device: str | None = None
    donate: bool = True
    strict: bool = False
    native_math: bool = False
    write_back: str = dataclasses.field(default_factory=lambda: os.environ.get("TENON_TF_WRITE_BACK", "when_read"))
    arrays: bool = False
    programs: int = dataclasses.field(default_factory=lambda: int(os.environ.get("TENON_TF_PROGRAMS", "16")))

    def __post_init__(self):
        if self.write_back not in _WRITE_BACK:
            raise ValueError(f"tenon: write_back is {self.write_back!r}; it must be one of {', '.join(map(repr, _WRITE_BACK))}")
        if self.programs < 1:
            raise ValueError(f"tenon: programs is {self.programs}; it must be at least 1")

    @classmethod
    def of(cls, given: dict) -> "Options":
        """Raises TypeError, which names what there is, for an option that is unknown."""
        names = [field.name for field in dataclasses.fields(cls)]
        for name in given:
            if name not in names:
                raise TypeError(f"tenon: there is no option {name!r}; there are {', '.join(names)}")
        return cls(**given)
