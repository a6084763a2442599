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
from .gpu_implicit import convolved_on_gpu
from .grouped_products import grouped_product_on_gpu
from .implicit import Convolution, ImplicitFactor, ImplicitProduct, Moved, TensorLayout
from .operands import Given, Multiplicand
from .results import finish
from .tiling import Product, computed, matmul, multiply, prepare, prepared

__all__ = [
    "FLOAT32", "FMA", "Chain", "ChainInstruction", "Choice", "Convolution", "Float32", "Float32Way", "FloatFma",
    "Given", "ImplicitFactor", "ImplicitProduct", "Lazy", "Moved", "Multiplicand", "Operands", "Options", "Product",
    "ProductEngine", "ProductOptions", "TensorLayout", "boundaries", "checked_float32", "choice_of", "choose",
    "computed", "convolved_on_gpu", "default_instruction", "evidence_on", "finish", "grouped_product_on_gpu",
    "is_dask", "matmul", "multiply", "prepare", "prepared", "recipe_on",
]  # fmt: skip
