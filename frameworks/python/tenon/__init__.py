"""Tenon: compiles StableHLO programs and runs them on any device that has a backend.

    import numpy as np, tenon

    f = tenon.compile(\"\"\"
        func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
          %y = stablehlo.exponential %x : tensor<4xf32>
          return %y : tensor<4xf32>
        }\"\"\", device="cpu")
    y = f(np.ones(4, np.float32))          # a tenon.Array, on the device
    np.asarray(y)                          # in place, where the host sees the device's memory

`compile` and `array` use the client of a device, which is made when it is first used and kept. `Client` makes one with
options. Errors of programs and devices are `tenon.Error`. Functions and objects may be used from any thread.
"""

from ._client import Client, Executable, array, client, compile
from ._errors import Error
from ._native import Array, Device

__all__ = ["Array", "Client", "Device", "Error", "Executable", "array", "client", "compile"]
__version__ = "0.1.0"
