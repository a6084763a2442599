"""Kernels of Triton, their launches, and what a GPU gave for the PTX that Triton makes of them."""
