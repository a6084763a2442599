"""Mutants of kernels: what is changed in them, which kernels there are, and what became of each mutant."""
