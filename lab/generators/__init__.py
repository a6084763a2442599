"""Operands that aim at the places where arithmetic can go wrong: of recipes, of instructions, of operations' rows.

They are drawn from a NumPy generator and follow from its state alone. What draws them by hypothesis, and lets failing
examples shrink, is `warpmma.testing.strategies`.
"""

from .adversarial_codes import STYLES, operands, styles
from .codes import mixed, random_codes, with_exponents
from .every_recipe import RecipeCase, by_reference, recipe_cases
from .lane_values import operation_inputs, signature
from .warp_inputs import instruction_inputs, metadata_words

__all__ = [
    "STYLES",
    "RecipeCase",
    "by_reference",
    "instruction_inputs",
    "metadata_words",
    "mixed",
    "operands",
    "operation_inputs",
    "random_codes",
    "recipe_cases",
    "signature",
    "styles",
    "with_exponents",
]
