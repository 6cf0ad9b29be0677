"""DLPack: arrays in memory that the host sees are lent to numpy, torch and others where they lie.

jaxlib knows the DLPack device of its own platforms only, so an array of the platform is lent as an array of JAX's CPU
platform in the same memory.
"""

from . import ffi


def install() -> None:
    """Lends arrays of the platform by their methods __dlpack__ and __dlpack_device__."""
    from jax._src import array

    of_jax = array.ArrayImpl.__dlpack__
    device_of_jax = array.ArrayImpl.__dlpack_device__

    def dlpack(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        if not _is_of_platform(self):
            return of_jax(self, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)
        return of_jax(_on_cpu(self, may_copy=copy is not False), max_version=max_version, dl_device=dl_device, copy=copy)

    def dlpack_device(self):
        if not _is_of_platform(self):
            return device_of_jax(self)
        _check_memory(self)
        from jax._src.dlpack import DLDeviceType

        return DLDeviceType.kDLCPU, 0

    array.ArrayImpl.__dlpack__ = dlpack
    array.ArrayImpl.__dlpack_device__ = dlpack_device


def _is_of_platform(x) -> bool:
    devices = x.sharding.device_set
    return len(devices) == 1 and all(device.platform in ffi.PLATFORMS for device in devices)


def _check_memory(x) -> None:
    [device] = x.sharding.device_set
    if getattr(device, "host_visible", "no") != "yes":
        raise BufferError(f"the memory of {device} is the device's own: no DLPack device has it; np.asarray copies")


def _on_cpu(x, may_copy: bool):
    import jax
    import numpy as np

    _check_memory(x)
    # JAX's CPU reads an aligned array of numpy's in place, which np.asarray is too.
    with jax.enable_x64(True):
        seen = np.asarray(x)
        lent = jax.device_put(seen, jax.local_devices(backend="cpu")[0])
    if not may_copy and seen.size and lent.unsafe_buffer_pointer() != seen.ctypes.data:
        raise BufferError(f"an array at {seen.ctypes.data:#x} cannot be lent where it lies: JAX's CPU wants other alignment")
    return lent
