"""Products of whole matrices: choice of the instruction, chains along k, tiles in memory and in Dask."""

from .chain import Chain, Operands, boundaries
from .choice import Choice, Lazy, Multiplicand, Options, choose, default_instruction, is_dask
from .float32 import (
    FLOAT32,
    FMA,
    ChainInstruction,
    Float32,
    Float32Way,
    FloatFma,
    checked_float32,
    evidence_on,
    recipe_on,
)
from .preparation import Product, prepare
from .results import finish
from .tiling import matmul, multiply

__all__ = [
    "FLOAT32", "FMA", "Chain", "ChainInstruction", "Choice", "Float32", "Float32Way", "FloatFma", "Lazy",
    "Multiplicand", "Operands", "Options", "Product", "boundaries", "checked_float32", "choose", "default_instruction",
    "evidence_on", "finish", "is_dask", "matmul", "multiply", "prepare", "recipe_on",
]  # fmt: skip
