"""Products of whole matrices: choice of the instruction, chains along k, tiles in memory and in Dask."""

from .choice import Choice, choose, default_instruction
from .tiling import matmul

__all__ = ["Choice", "choose", "default_instruction", "matmul"]
