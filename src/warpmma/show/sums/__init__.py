"""Explanations of sums, as text, JSON, SVG and HTML."""
