"""Products on a GPU, with the bits of any target: CUDA kernels that are specialised by recipes, and their launches.

`product_kernel` makes the kernel of a recipe from the sources in `kernels`, `product_launch` the structure that it
takes; `instruction_kernel` makes the kernel of a GPU's own instruction. `cuda_driver` compiles and launches both;
`host_products` copies the host's arrays, `device_arrays` reads those of other libraries in place. A simulated device
runs the same kernels.
"""

from .comparing import TextKernel, TextLaunch, difference_kernel, difference_launch
from .cuda_driver import CudaGpu, HostCopies, gpu, why_no_gpu
from .device_arrays import GpuTensor, dtype_of, empty_like, is_on_gpu, read, stream_of
from .host_products import product_of_codes
from .instruction_kernel import HardwareForm, check_gpu, hardware_kernel
from .product_kernel import MOST_SLICES, OPTIONS, ProductForm, ProductKernel, kernel_of
from .product_launch import ARGUMENT, NOTHING, Matrices, ProductLaunch

__all__ = [
    "ARGUMENT",
    "MOST_SLICES",
    "NOTHING",
    "OPTIONS",
    "CudaGpu",
    "GpuTensor",
    "HardwareForm",
    "HostCopies",
    "Matrices",
    "ProductForm",
    "ProductKernel",
    "ProductLaunch",
    "TextKernel",
    "TextLaunch",
    "check_gpu",
    "difference_kernel",
    "difference_launch",
    "dtype_of",
    "empty_like",
    "gpu",
    "hardware_kernel",
    "is_on_gpu",
    "kernel_of",
    "product_of_codes",
    "read",
    "stream_of",
    "why_no_gpu",
]  # fmt: skip
