"""CUDA C++: kernels of a `.cu` file, through NVRTC or nvcc, on simulated blocks.

`load("kernel.cu")` compiles, and returns a module of PTX: `module["scale"].launch(device, grid, block, args)`.
"""

from .cuda_modules import CudaModule, load
from .cuda_modules import arch_for as arch_for
from .host_headers import LeftOutWarning

__all__ = ["CudaModule", "LeftOutWarning", "load"]
