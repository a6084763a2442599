"""Products on a GPU, with the bits of any target: CUDA kernels that are specialised by recipes, and their launches.

`product_kernel` makes the kernel of a recipe from the sources in `kernels`, `product_launch` the structure that it
takes; `driver` compiles and launches it; `device_arrays` reads arrays of other libraries in place. A simulated device
runs the same kernels.
"""

from .device_arrays import DeviceArray, dtype_of, empty_like, is_on_gpu, read, stream_of
from .driver import HostCopies, capability, gpu_name, launch, why_no_gpu
from .product_kernel import MOST_SLICES, OPTIONS, ProductForm, ProductKernel, kernel_of
from .product_launch import ARGUMENT, Matrices, ProductLaunch

__all__ = [
    "ARGUMENT", "MOST_SLICES", "OPTIONS", "DeviceArray", "HostCopies", "Matrices", "ProductForm", "ProductKernel",
    "ProductLaunch", "capability", "dtype_of", "empty_like", "gpu_name", "is_on_gpu", "kernel_of", "launch", "read",
    "stream_of", "why_no_gpu",
]  # fmt: skip
