"""Fragments of `wmma`, and the `mma` that a `wmma.mma` becomes.

PTX calls these fragments opaque. ptxas compiles every `wmma.mma` to the machine instructions of some `mma`, and the
loads fill registers as these require. The rules, read from the machine code of ptxas 12.9 for sm_70 to sm_90:

1. Each generation has one `mma` per type as the tile: `TILES`.
2. A fragment consists of the tile's fragments for the blocks of the matrix, in consecutive registers: blocks of k
   first, then of rows (or columns).
3. If the tile has more rows than the matrix, as for m8n32k16, it computes the transpose: B is its A, and A its B.
4. The tile of Volta is `mma.m8n8k4`, which multiplies four matrices, selected by lane bits 2 and 3: these select blocks
   of 8 rows first, then blocks of 8 columns. A and B are repeated for every block that they do not depend on. Only
   there does the fragment depend on the layout that is loaded.
5. Fragments of f16 A and B have 8 registers. Those that the blocks do not fill repeat the others and are not read.
6. The tiles along k are a chain: D of one is C of the next. So m16n16k8 of tf32 is rounded after 4.
7. An f16 C with an f32 D is converted to f32 first; on Volta the first tile of the chain takes it unconverted. An f16 D
   with an f32 C is computed in f32 and then converted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from ...errors import TableError
from ...layouts import Layout, Operand
from ..targets import TARGETS
from .mma import MMA_TABLE, Instruction

_QUADS = ("l2", "l3")
_HALF_ELEMENTS = 16  # rule 5


@dataclass(frozen=True, kw_only=True)
class Tile:
    """The `mma` that `wmma` of some types consists of."""

    types: tuple[str, ...]  # of A and B
    before: str = ""  # first generation that has a different tile; "" if none
    shape: str


TILES: tuple[Tile, ...] = (
    Tile(types=("f16",), before="Turing", shape="m8n8k4"),
    Tile(types=("f16",), before="Ampere", shape="m16n8k8"),
    Tile(types=("f16", "bf16"), shape="m16n8k16"),
    Tile(types=("tf32",), shape="m16n8k4"),
    Tile(types=("f64",), shape="m8n8k4"),
    Tile(types=("s8", "u8"), before="Ampere", shape="m8n8k16"),
    Tile(types=("s8", "u8"), shape="m16n8k16"),
    Tile(types=("s4", "u4"), shape="m8n8k32"),
    Tile(types=("b1",), shape="m8n8k128"),
)
"""Rule 1. A generation uses the first tile of a type that it is not too late for."""

_ACCUMULATORS: Mapping[str, str] = MappingProxyType(
    {"f16": "f32", "bf16": "f32", "tf32": "f32", "f64": "f64", **dict.fromkeys(("s8", "u8", "s4", "u4", "b1"), "s32")}
)
_OF_K: Mapping[int, tuple[str, ...]] = MappingProxyType(
    {4: ("f64",), 8: ("tf32",), 16: ("f16", "bf16", "s8"), 32: ("s4",), 128: ("b1",)}
)
_TRANSPOSED: Mapping[Operand, Operand] = MappingProxyType({"A": "B", "B": "A", "C": "C", "D": "D"})
_ORDER = tuple(dict.fromkeys(target.generation for target in TARGETS.values()))


def element_type(word: str) -> bool:
    """Whether a word of a mnemonic is a type of elements."""
    return word in _ACCUMULATORS or word in _ACCUMULATORS.values()


def tile_of(type_: str, target: str) -> tuple[int, int, int]:
    """Shape m, n, k of the tile of a type of A and B on a target."""
    generation = _ORDER.index(TARGETS[target].generation)
    for tile in TILES:
        if type_ in tile.types and (not tile.before or generation < _ORDER.index(tile.before)):
            m, n, k = map(int, re.findall(r"\d+", tile.shape))
            return m, n, k
    raise TableError(f"wmma of {type_} has no tile on {target}")


def _multiplicands(type_: str, k: int) -> str:
    """Return the type of A and B that determines the fragment of an accumulator."""
    candidates = _OF_K[k]
    return next(x for x in candidates if x == type_ or _ACCUMULATORS[x] == type_ or (x, type_) == ("f16", "f16"))


@cache
def fragment(
    operand: Operand, shape: tuple[int, int, int], type_: str, order: str, target: str, multiplicands: str = ""
) -> Layout:
    """Return the fragment of an operand on a target.

    Parameters
    ----------
    operand : {"A", "B", "C", "D"}
    shape : (int, int, int)
    type_ : str
        Of its elements.
    order : {"row", "col"}
    target : str
    multiplicands : str
        Type of A and B. Optional for A and B themselves, and if the shape determines it.
    """
    of = type_ if operand in "AB" else multiplicands or _multiplicands(type_, shape[2])
    tile = tile_of(of, target)
    swapped = tile[0] > shape[0]  # rule 3
    m, n, k = (shape[1], shape[0], shape[2]) if swapped else shape
    name: Operand = _TRANSPOSED[operand] if swapped else operand
    base = _tile(of, tile, type_ if operand in "CD" else "", order).layout(name)
    rows, columns = {"A": (m, k), "B": (k, n)}.get(name, (m, n))
    row, column, copies = _blocks(base, rows, columns, name)
    if swapped:
        row, column = column, row
    if type_ == "f16" and operand in "AB":
        held = len(row + column + copies) - 5
        copies += tuple(f"e{i}" for i in range(held, _HALF_ELEMENTS.bit_length() - 1))
    return Layout(row=row, column=column, matrix=copies, packing=base.packing)


def _blocks(base: Layout, rows: int, columns: int, name: str) -> tuple[tuple[str, ...], ...]:
    """Rules 2 and 4: bits of the rows, columns and copies of a matrix of blocks."""
    row, column = base.row, base.column
    copies: tuple[str, ...] = ()
    if base.matrix:
        of_m = _QUADS[: (rows >> 4).bit_length()] if name in "ACD" else ()
        of_n = _QUADS[len(_QUADS) - (columns >> 4).bit_length() :] if name in "BCD" else ()
        row, column = row + of_m, column + of_n
        copies = tuple(x for x in _QUADS if x not in of_m + of_n)
    following = iter(f"e{i}" for i in range(base.elements.bit_length() - 1, 8))
    missing = {"row": rows.bit_length() - 1 - len(row), "column": columns.bit_length() - 1 - len(column)}
    for axis in ("row", "column") if name != "A" else ("column", "row"):  # for A and B, k is first
        more = tuple(next(following) for _ in range(missing[axis]))
        row, column = (row + more, column) if axis == "row" else (row, column + more)
    return row, column, copies


@cache
def _tile(of: str, shape: tuple[int, int, int], accumulator: str, order: str) -> Instruction:
    """Return a tile as an `mma` with accumulators of a type; its layouts are `order` if possible."""
    m, n, k = shape
    sums = accumulator or _ACCUMULATORS[of]
    layouts = f"{order}.{order}" if (of, k) == ("f16", 4) else "row.col"
    end = ".xor.popc" if of == "b1" else ""
    return MMA_TABLE.parse(f"mma.sync.aligned.m{m}n{n}k{k}.{layouts}.{sums}.{of}.{of}.{sums}{end}")


@cache
def chain(k: int, types: tuple[str, str, str, str], qualifiers: str, target: str) -> tuple[Instruction, ...]:
    """Return the chain of `mma` along k that a product is on a target: rules 6 and 7.

    Parameters
    ----------
    k : int
        Of the product.
    types : tuple of str
        Of D, A, B and C.
    qualifiers : str
        Further qualifiers of the `mma`, such as ".satfinite".

    Returns
    -------
    tuple of Instruction
        D and C have the same format; only the first may take an f16 C for an f32 D.
    """
    d_type, a_type, b_type, c_type = types
    m, n, step = tile_of(a_type, target)
    wide = d_type if d_type == c_type else "f32"
    first = "f16" if (d_type, c_type, step) == ("f32", "f16", 4) else wide
    start = f"mma.sync.aligned.m{m}n{n}k{step}.row.col{qualifiers}.{wide}.{a_type}.{b_type}"
    return tuple(MMA_TABLE.parse(f"{start}.{wide if i else first}") for i in range(k // step))
