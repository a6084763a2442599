"""Products of whole matrices: choice of the instruction, chains along k, tiles in memory and in Dask."""

from .chain import boundaries
from .choice import Choice, Lazy, Multiplicand, Options, choose, default_instruction
from .preparation import Product, prepare
from .tiling import matmul

__all__ = [
    "Choice", "Lazy", "Multiplicand", "Options", "Product", "boundaries", "choose", "default_instruction", "matmul",
    "prepare",
]  # fmt: skip
