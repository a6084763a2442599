"""Products of whole matrices: choice of the instruction, chains along k, tiles in memory and in Dask."""

from .chain import Chain, Operands, ProductEngine, ProductOptions, boundaries
from .choice import Choice, Lazy, Options, choice_of, choose, default_instruction, is_dask
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
from .grouped_products import grouped_product_on_gpu
from .operands import Given, Multiplicand
from .results import finish
from .tiling import Product, computed, matmul, multiply, prepare, prepared

__all__ = [
    "FLOAT32", "FMA", "Chain", "ChainInstruction", "Choice", "Float32", "Float32Way", "FloatFma", "Given", "Lazy",
    "Multiplicand", "Operands", "Options", "Product", "ProductEngine", "ProductOptions", "boundaries",
    "checked_float32", "choice_of", "choose", "computed", "default_instruction", "evidence_on", "finish",
    "grouped_product_on_gpu", "is_dask",
    "matmul", "multiply", "prepare", "prepared", "recipe_on",
]  # fmt: skip
