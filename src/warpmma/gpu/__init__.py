"""Products on a GPU, with the bits of any target: CUDA kernels that are specialised by recipes, and their launches.

`product_kernel` makes the kernel of a recipe from the sources in `kernels`, `product_launch` the structure that it
takes; `instruction_kernel` makes the kernel of a GPU's own instruction. `cuda_driver` compiles and launches both;
`host_products` copies the host's arrays, `device_arrays` reads those of other libraries, `in_place` multiplies them
where they lie, and `sparse_check` checks a sparse A there. `grouped_launch` is for groups that end where the GPU says;
`quantize_launch` and `scaled_sums` are kernels around products. A simulated device runs the same kernels.
"""

from .comparing import difference_kernel, difference_launch
from .cuda_driver import CudaGpu, HostCopies, alike, gpu, why_no_gpu
from .device_arrays import GpuTensor, check_one_gpu, dtype_of, empty_like, is_on_gpu, read, read_operand, stream_of
from .gathered import Coordinate, Digit, GatheredFactor, GatheredProduct
from .grouped_launch import GroupedLaunch, grouped_kernel
from .host_products import product_of_codes
from .in_place import InPlace, product_in_place
from .instruction_kernel import check_gpu, hardware_kernel
from .kernel_text import SparseAs
from .product_kernel import MOST_SLICES, OPTIONS, ProductForm, ProductKernel, kernel_of
from .product_launch import ARGUMENT, NOTHING, Matrices, ProductLaunch
from .quantize_launch import quantize_on_gpu
from .scaled_sums import scale_and_add
from .sparse_check import check_dense_a, check_indices
from .text_kernel import TextKernel, TextLaunch

__all__ = [
    "ARGUMENT",
    "MOST_SLICES",
    "NOTHING",
    "OPTIONS",
    "Coordinate",
    "CudaGpu",
    "Digit",
    "GatheredFactor",
    "GatheredProduct",
    "GpuTensor",
    "GroupedLaunch",
    "HostCopies",
    "InPlace",
    "Matrices",
    "ProductForm",
    "ProductKernel",
    "ProductLaunch",
    "SparseAs",
    "TextKernel",
    "TextLaunch",
    "alike",
    "check_dense_a",
    "check_gpu",
    "check_indices",
    "check_one_gpu",
    "difference_kernel",
    "difference_launch",
    "dtype_of",
    "empty_like",
    "gpu",
    "grouped_kernel",
    "hardware_kernel",
    "is_on_gpu",
    "kernel_of",
    "product_in_place",
    "product_of_codes",
    "quantize_on_gpu",
    "read",
    "read_operand",
    "scale_and_add",
    "stream_of",
    "why_no_gpu",
]  # fmt: skip
