"""Operands that target likely errors of arithmetic: for recipes, instructions and rows of operations.

They depend only on the state of a NumPy generator. `warpmma.testing.strategies` draws them with hypothesis, which
shrinks failing examples.
"""

from .adversarial_codes import STYLES, operands, styles
from .codes import mixed, random_codes, with_exponents
from .lane_values import operation_inputs, signature
from .outer_products import drawn_nibbles, outer_codes
from .warp_inputs import MmaJob, instruction_inputs, metadata_words, mma_jobs

__all__ = [
    "STYLES", "MmaJob", "drawn_nibbles", "instruction_inputs", "metadata_words", "mixed", "mma_jobs", "operands",
    "operation_inputs", "outer_codes", "random_codes", "signature", "styles", "with_exponents",
]  # fmt: skip
