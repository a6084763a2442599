"""Fragment layouts: which element sits in which lane and register, and back.

Every layout of the ISA renames bits. An element's place is a lane (bits l0 to l4) and an index i in the lane's
fragment (bits e0, e1, ...; PTX's `ai`, `bi`, `ci`), low registers and low bits first; its coordinates are a row and a
column. A `Layout` lists, for each coordinate and from the lowest bit up, the place bit at that position.

The law (PTX ISA 9.1, 9.7.14.5; docs/specification/ptx.md 2.1): with P elements to a register,

* A: the column's bits are the bits inside the register, then l0 l1, then the register pairs; the row's are l2 l3 l4,
  then, for m16, the low register bit. B is the same with k in the column's place, and n is l2 l3 l4.
* C and D: the column is (e0, l0, l1), the row (l2, l3, l4, e1).
* A sparse A is the A of the stored elements, k/2 of them; B, C and D are unchanged.
* The four warps of a warpgroup have 16 rows each: its threads 0 to 127 have two bits more, l5 l6, and these are bits
  4 and 5 of the row. A in registers is else the A of m16. C and D are those of m16 n8, once for every 8 columns: what
  comes first in the fragment repeats, n/8 times, and n need be no power of two (PTX ISA 9.1, 9.7.15.5.1.1).

The exceptions are `mma.m8n8k4` with f16 operands, where l2 l3 name one of four matrices, and its f32 accumulator.
"""

from .bit_layout import ORDERS, Cell, Layout
from .fragment_tables import TABLE_FORMATS, FragmentTable, TableGrid
from .laws import OPERANDS, Operand, accumulator, multiplicand, quad_pair, warpgroup
from .matrix_descriptors import MAJORS, SWIZZLES, Major, MatrixDescriptor, SharedCell, swizzled
from .shared_tiles import SharedTile
from .tensor_maps import MAP_BYTES, MAP_TYPES, REPLACED, BoxCopy, Im2colBox, TensorMap, replace_field

__all__ = [
    "MAJORS", "MAP_BYTES", "MAP_TYPES", "OPERANDS", "ORDERS", "REPLACED", "SWIZZLES", "TABLE_FORMATS", "BoxCopy",
    "Cell", "FragmentTable", "Im2colBox", "Layout", "Major", "MatrixDescriptor", "Operand", "SharedCell", "SharedTile",
    "TableGrid", "TensorMap", "accumulator", "multiplicand", "quad_pair", "replace_field", "swizzled", "warpgroup",
]  # fmt: skip
