"""The rows of the table of dense `wgmma.mma_async`.

Sources: PTX ISA 9.1, 9.7.15; which N go with which types, from which PTX version and on which targets, was asked of
ptxas 13.0 (`tests/isa/test_warpgroup.py` has its answers; docs/specification/ptx.md 6).
"""

from __future__ import annotations

from dataclasses import dataclass

from .._records import Shown
from .grammar import Choices, Version

_M = 64


@dataclass(frozen=True, kw_only=True)
class WarpgroupFamily(Shown):
    """A row of the table: all its combinations are instructions.

    Attributes
    ----------
    n : tuple of int
    k : int
    d_types : tuple of str
    multiplicands : tuple of (str, str)
        Types of (A, B).
    satfinite, bit_ops : tuple
        Choices of each qualifier.
    targets : tuple of str
        One: no later target has what came with sm_90a.
    ptx : (int, int)
        First PTX version.
    documented : bool
        Whether PTX's grammar has these spellings.
    """

    n: tuple[int, ...]
    k: int
    d_types: tuple[str, ...]
    multiplicands: tuple[tuple[str, str], ...]
    satfinite: tuple[bool, ...] = (False,)
    bit_ops: tuple[str | None, ...] = (None,)
    targets: tuple[str, ...] = ("sm_90a",)
    ptx: Version = (8, 0)
    documented: bool = True

    @property
    def choices(self) -> Choices:
        """What the fields of an instruction hold: the table has the combinations, the last choice fastest."""
        return (
            (("d_type",), tuple((choice,) for choice in self.d_types)),
            (("a_type", "b_type"), self.multiplicands),
            (("satfinite",), tuple((choice,) for choice in self.satfinite)),
            (("bit_op",), tuple((choice,) for choice in self.bit_ops)),
            (("m", "n", "k"), tuple((_M, n, self.k) for n in self.n)),
        )


_BY_8 = tuple(range(8, 257, 8))
# One of the manual's lists stops at 224; ptxas, and another of its lists, do not.
_BY_16 = (8, 16, 24, 32, *range(48, 257, 16))
_FP8 = tuple((a, b) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2"))
_EITHER = (False, True)

WARPGROUP_FAMILIES = (
    WarpgroupFamily(n=_BY_8, k=16, d_types=("f16", "f32"), multiplicands=(("f16", "f16"),)),
    WarpgroupFamily(n=_BY_8, k=16, d_types=("f32",), multiplicands=(("bf16", "bf16"),)),
    WarpgroupFamily(n=_BY_8, k=8, d_types=("f32",), multiplicands=(("tf32", "tf32"),)),
    WarpgroupFamily(n=_BY_8, k=32, d_types=("f16", "f32"), multiplicands=_FP8),
    WarpgroupFamily(n=_BY_16, k=32, d_types=("s32",), multiplicands=(("s8", "s8"), ("u8", "u8")), satfinite=_EITHER),
    WarpgroupFamily(
        n=_BY_16, k=32, d_types=("s32",), multiplicands=(("s8", "u8"), ("u8", "s8")), satfinite=_EITHER, ptx=(8, 4)
    ),
    WarpgroupFamily(n=_BY_16, k=256, d_types=("s32",), multiplicands=(("b1", "b1"),), bit_ops=("and",)),
)
"""The whole table."""
