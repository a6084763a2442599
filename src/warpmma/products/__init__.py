"""Products of whole matrices: choice of the instruction, chains along k, tiles in memory and in Dask."""

from .chain import Chain, Operands, boundaries
from .choice import Choice, Lazy, Multiplicand, Options, choose, default_instruction, is_dask
from .preparation import Product, prepare
from .results import finish
from .tiling import matmul, multiply

__all__ = [
    "Chain", "Choice", "Lazy", "Multiplicand", "Operands", "Options", "Product", "boundaries", "choose",
    "default_instruction", "finish", "is_dask", "matmul", "multiply", "prepare",
]  # fmt: skip
