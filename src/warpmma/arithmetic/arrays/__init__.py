"""The NumPy engine: units on arrays of codes."""

from .code_arrays import check_computed, check_operands, check_sums
from .fma import f32_chains, fma64, fma_chain, sum_to_odd
from .function_arrays import function_on_arrays, function_rows
from .fused import fused_dot_add, grouped_dot_add, ieee_add, nominal_exponents, take_rows
from .integer import integer_sum, popcount
