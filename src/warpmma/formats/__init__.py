"""Number formats: one record each, and everything else derived from it.

A *code* is the unsigned integer that a register holds for one element. A `FloatFormat` or an `IntegerFormat` defines
the value of a code, the code of a value, and the NumPy or ml_dtypes type of such elements in a matrix.

Sources: PTX ISA 9.1, section 5.2.3 "Alternate Floating-Point Data Formats" and 9.7.14 (field widths, special values);
IEEE 754-2019 (binary16, 32, 64); OCP 8-bit Floating Point Specification 1.0 and OCP Microscaling Formats 1.0 (biases,
largest values); the `cvt` page of PTX for what overflow does.
"""

from .catalogue import FORMATS, FloatFormat, Format, IntegerFormat, floating, integer
from .facts import Number

__all__ = ["FORMATS", "FloatFormat", "Format", "IntegerFormat", "Number", "floating", "integer"]
