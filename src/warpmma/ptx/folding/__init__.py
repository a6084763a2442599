"""Approximate functions of constants, which ptxas computes itself, and a body in which they are computed."""

from .folding import FOLDED, compared, folded
