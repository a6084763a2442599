"""Which lane holds an element, and which element a lane holds: of fragments, metadata, scales and accumulators."""

from ..layouts import Cell

__all__ = ["Cell"]
