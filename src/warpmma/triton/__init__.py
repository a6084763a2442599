"""Door: kernels of Triton run on a simulated GPU, unchanged.

`with warpmma.triton.device("sm_90"): kernel[grid](x, y, n, BLOCK=128)` compiles the kernel with Triton's own compiler,
which needs no GPU, and runs its PTX here: on CPU tensors of PyTorch, on NumPy's arrays and on those of a `Device`.
`install` does the same until `uninstall`, and `python -m warpmma.triton script.py` for a whole script.

Nothing imports Triton before a device is made; it is the extra `warpmma[triton]`.
"""

from .session import TritonDevice, device, install, uninstall
from .simulated_launches import KernelLaunch

__all__ = ["KernelLaunch", "TritonDevice", "device", "install", "uninstall"]
