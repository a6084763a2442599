"""Comparisons of parts of warpmma with each other, which need no GPU."""
