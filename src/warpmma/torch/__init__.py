"""PyTorch's products on CPU tensors, with the bits of a target's matrix instructions: an override, and `matmul`.

`with arithmetic(target="sm_90a") as report:` replaces what PyTorch calls to multiply matrices, forward and backward;
`report` has the instruction of each product. PyTorch is optional and imported when one of these is called.
"""

from .differentiable import matmul
from .overriding import Arithmetic, arithmetic
from .report import ProductReport, ReplacedProduct

__all__ = ["Arithmetic", "ProductReport", "ReplacedProduct", "arithmetic", "matmul"]
