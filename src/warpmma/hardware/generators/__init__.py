"""Operands that target likely errors of arithmetic: for recipes, instructions and rows of operations.

They depend only on the state of a NumPy generator. `warpmma.testing.strategies` draws them with hypothesis, which
shrinks failing examples.
"""

from .adversarial_codes import STYLES, operands, styles
from .codes import mixed, random_codes, with_exponents
from .drawn_tensors import (
    ITEM_BYTES,
    TENSOR_BYTES,
    copy_case,
    im2col_case,
    map_modes,
    map_of,
    map_row,
    map_strides,
    picked,
    tensor_bytes,
)
from .lane_values import operation_inputs, signature
from .outer_products import drawn_nibbles, outer_codes
from .warp_inputs import MmaJob, instruction_inputs, metadata_words, mma_jobs

__all__ = [
    "ITEM_BYTES", "STYLES", "TENSOR_BYTES", "MmaJob", "copy_case", "drawn_nibbles", "im2col_case", "instruction_inputs",
    "map_modes", "map_of", "map_row", "map_strides", "metadata_words", "mixed", "mma_jobs", "operands",
    "operation_inputs", "outer_codes", "picked", "random_codes", "signature", "styles", "tensor_bytes",
    "with_exponents",
]  # fmt: skip
