"""Approximate functions of constants, which ptxas computes itself, and a body in which they are numbers."""

from .replacing import FOLDED, compared, folded
