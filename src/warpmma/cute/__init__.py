"""Kernels of NVIDIA's CuTe DSL on a simulated GPU, unchanged.

`with warpmma.cute.device("sm_90"):` around `cute.compile` and calls: the DSL compiles the kernel, and its PTX runs
here, on NumPy's arrays and CPU tensors that the DSL takes through DLPack.

The DSL is imported when a device is made; it is the extra `warpmma[cute]`.
"""

from typing import TYPE_CHECKING

from .._lazy import on_demand as _on_demand

if TYPE_CHECKING:  # what `_ORIGINS` says
    from .active_gpu import CuteLaunch
    from .cute_device import CuteDevice, device

__all__ = ["CuteDevice", "CuteLaunch", "device"]

_ORIGINS = {".active_gpu": ("CuteLaunch",), ".cute_device": ("CuteDevice", "device")}

if not TYPE_CHECKING:  # to which every name would be one
    __getattr__, __dir__ = _on_demand(__name__, _ORIGINS)
