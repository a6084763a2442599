"""Triton kernels, their launches, and a GPU's results for Triton's PTX."""
