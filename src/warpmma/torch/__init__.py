"""PyTorch with the bits of a GPU, on the CPU or on the user's GPU.

`with arithmetic(target="sm_90a") as report:` replaces what PyTorch calls to multiply matrices, forward and backward;
`report` has the instruction of each product. `compile(model, target="sm_90")` is `torch.compile` for a simulated GPU.
`operators()` defines products for functions that PyTorch's own `torch.compile` compiles.
PyTorch is optional and imported when one of these is called.
"""

from .compile_report import CompiledKernel, CompileReport
from .compiled_models import CompiledModel, compile
from .custom_operators import operators
from .overriding import Arithmetic, arithmetic
from .product_function import matmul
from .report import ProductReport, ReplacedProduct

__all__ = [
    "Arithmetic",
    "CompileReport",
    "CompiledKernel",
    "CompiledModel",
    "ProductReport",
    "ReplacedProduct",
    "arithmetic",
    "compile",
    "matmul",
    "operators",
]
