"""Primitives of pictures: SVG, colours, cards, legends."""
