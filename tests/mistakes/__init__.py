"""Typical mistakes of kernel authors, each with the guess that must name it."""

from . import in_fragments, in_products, in_swizzles, in_words, later
from .operands import random_operands
from .written_out import F16, MXF8, PLANTS, SPARSE, Given, Plant

__all__ = [
    "F16", "MXF8", "PLANTS", "SPARSE", "Given", "Plant", "in_fragments", "in_products", "in_swizzles", "in_words",
    "later", "random_operands",
]  # fmt: skip
