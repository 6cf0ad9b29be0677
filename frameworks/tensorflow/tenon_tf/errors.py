"""Errors of what is not supported."""


class Unsupported(RuntimeError):
    """A function has what XLA does not compile, or Tenon does not run.

    Attributes:
        op: the TensorFlow op, or the op of StableHLO; empty where it is not known.
        place: the file and line of the user's code that made it ("train.py:12"); empty where it is not known.
    """

    def __init__(self, text: str, op: str = "", place: str = ""):
        super().__init__(text)
        self.op, self.place = op, place
