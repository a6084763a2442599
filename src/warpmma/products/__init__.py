"""Products of whole matrices: choice of the instruction, chains along k, tiles in memory and in Dask."""

from .choice import (
    Choice,
    Lazy,
    Options,
    choose,
    decide,
    default_instruction,
    is_dask,
    outline,
    quantized,
    tensor_scales,
)
from .tiling import matmul

__all__ = [
    "Choice",
    "Lazy",
    "Options",
    "choose",
    "decide",
    "default_instruction",
    "is_dask",
    "matmul",
    "outline",
    "quantized",
    "tensor_scales",
]
