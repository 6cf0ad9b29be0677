"""Counts of what was compiled and ran, and of what went between TensorFlow and the device."""

import dataclasses
import threading


@dataclasses.dataclass
class Counters:
    """Counts since the start of the process, or since `reset`.

    Attributes:
        programs: programs that were compiled: one for each signature of a function.
        calls: executions of programs.
        evicted: programs that were dropped for newer signatures.
        variables_read: values of variables that went to a device.
        variables_written: values that went back from a device into variables of TensorFlow.
    """

    programs: int = 0
    calls: int = 0
    evicted: int = 0
    variables_read: int = 0
    variables_written: int = 0

    def reset(self) -> None:
        with lock:
            self.__init__()

    def __str__(self) -> str:
        return (f"{self.programs} programs ({self.evicted} dropped), {self.calls} calls; variables: {self.variables_read} to a device, "
                f"{self.variables_written} back")


lock = threading.Lock()
counters = Counters()
