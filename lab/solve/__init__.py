"""The tables of the special-function unit, from a GPU's results."""
