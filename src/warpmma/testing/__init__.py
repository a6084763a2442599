"""Tests of kernels: comparison bit for bit, reports of differing bits, a pytest plugin, hypothesis strategies."""

from .assertions import Gpu, array_with, assert_same_bits, ulps

__all__ = ["Gpu", "array_with", "assert_same_bits", "ulps"]
