"""Which lane holds an element, and which element a lane holds: of fragments, metadata, scales and accumulators."""

from .found import Cell

__all__ = ["Cell"]
