"""Triton kernels on a simulated GPU, unchanged.

`with warpmma.triton.device("sm_90"): kernel[grid](x, y, n, BLOCK=128)` compiles the kernel with Triton's own compiler,
which needs no GPU, and runs its PTX here: on CPU tensors of PyTorch, on NumPy's arrays and on those of a `Device`.
`install` does the same until `uninstall`. Without a change to a script: `python -m warpmma.triton script.py`, or, with
Triton 3.4 or newer, `WARPMMA_TRITON=sm_90 python script.py`.

Triton is imported when a device is made; it is the extra `warpmma[triton]`.
"""

from typing import TYPE_CHECKING

from .._lazy import on_demand as _on_demand

if TYPE_CHECKING:  # what `_ORIGINS` says
    from .active_device import ActiveDevice, KernelLaunch, current
    from .session import TritonDevice, device, install, install_described, uninstall

__all__ = [
    "ActiveDevice",
    "KernelLaunch",
    "TritonDevice",
    "current",
    "device",
    "install",
    "install_described",
    "uninstall",
]

_ORIGINS = {
    ".session": ("TritonDevice", "device", "install", "install_described", "uninstall"),
    ".active_device": ("ActiveDevice", "KernelLaunch", "current"),
}

if not TYPE_CHECKING:  # to which every name would be one; Triton loads this, too, to find its backends
    __getattr__, __dir__ = _on_demand(__name__, _ORIGINS)
