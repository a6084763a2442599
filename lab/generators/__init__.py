"""Operands that target likely errors of arithmetic: for recipes, instructions and rows of operations.

They depend only on the state of a NumPy generator. `warpmma.testing.strategies` draws them with hypothesis, which
shrinks failing examples.
"""

from .adversarial_codes import STYLES, operands, styles
from .codes import mixed, random_codes, with_exponents
from .every_recipe import RecipeCase, by_reference, recipe_cases
from .lane_values import operation_inputs, signature
from .power import styles_in_turn, styles_of_round
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
    "styles_in_turn",
    "styles_of_round",
    "with_exponents",
]
