"""Bounds."""

from __future__ import annotations

from fractions import Fraction

from .chain_of_element import Element

__all__ = ["element_bound"]


def element_bound(element: Element) -> Fraction | None:
    """Bound."""
    return None
