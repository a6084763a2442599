"""Operands that target likely errors of arithmetic: for recipes, instructions and rows of operations.

They depend only on the state of a NumPy generator. `warpmma.testing.strategies` draws them with hypothesis, which
shrinks failing examples. The package has most of them: `warpmma compare` needs them.
"""

from warpmma.hardware import (
    STYLES,
    instruction_inputs,
    metadata_words,
    mixed,
    operands,
    operation_inputs,
    random_codes,
    signature,
    styles,
    with_exponents,
)

from .every_recipe import RecipeCase, by_reference, recipe_cases
from .power import styles_in_turn, styles_of_round

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
