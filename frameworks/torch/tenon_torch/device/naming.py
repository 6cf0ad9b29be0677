"""The name of the device in PyTorch: "tenon", or that of a package for one device.

Such a package has an entry point of the group `tenon_torch.devices`: the device's name, and where the path of its plug-in is.
`tenon new-backend` writes one. PyTorch has one name for devices of others in a process: TENON_TORCH_NAME chooses where several packages
are installed.
"""

import dataclasses
import functools
import importlib.metadata
import os


@dataclasses.dataclass(frozen=True)
class Name:
    """Attributes:
        name: of torch.device.
        plugin: the path of the device's plug-in; None for a device that TENON_DEVICE names.
    """

    name: str = "tenon"
    plugin: str | None = None


@functools.cache
def chosen() -> Name:
    """Raises ImportError if TENON_TORCH_NAME names a package that is not installed."""
    found = {each.name: each for each in importlib.metadata.entry_points(group="tenon_torch.devices")}
    wanted = os.environ.get("TENON_TORCH_NAME")
    if wanted is None and len(found) == 1:
        wanted = next(iter(found))
    if wanted is None or wanted == "tenon":
        return Name()
    if wanted not in found:
        raise ImportError(f"TENON_TORCH_NAME is {wanted!r}; installed are {', '.join(['tenon', *sorted(found)])}")
    return Name(wanted, str(found[wanted].load()))
