"""Errors of programs, compilers and devices."""

import re

# The codes of the PJRT C API, which are those of absl::StatusCode.
_CODES = ("OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
          "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
          "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED")
_PLACE = re.compile(r"(?:^|[\s(])([^\s:()]*):(\d+):(\d+): ")


class Error(RuntimeError):
    """An error of a program or a device.

    Attributes:
        code: its kind, such as "INVALID_ARGUMENT", "UNIMPLEMENTED" or "UNAVAILABLE".
        place: the file, line and column in a program's text that it is about, or None.
    """

    def __init__(self, message: str, code: int = 2):
        super().__init__(message)
        self.code: str = _CODES[code] if 0 <= code < len(_CODES) else "UNKNOWN"

    @property
    def place(self) -> tuple[str, int, int] | None:
        """The file, line and column, or None."""
        found = _PLACE.search(str(self))
        return (found[1], int(found[2]), int(found[3])) if found else None
