"""Warpgroup instructions: every dense `wgmma.mma_async` that ptxas takes, for products of whole matrices.

They have the arithmetic of an instruction and no fragments: B lies in shared memory, A there or in registers, and how
they lie there changes no bit of the result.

Sources: PTX ISA 9.1, 9.7.15; which N go with which types, from which PTX version and on which targets, was asked of
ptxas 13.0 (`tests/isa/test_warpgroup.py` has its answers; docs/specification/ptx.md 6).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import product
from typing import ClassVar

from ..errors import MnemonicError, UnsupportedError
from .families import Version
from .grammar import Grammar, bare, difference
from .mma import Instruction, MatrixInstruction, check_known, parse
from .names import explained

__all__ = [
    "AnyInstruction",
    "WarpgroupFamily",
    "WarpgroupInstruction",
    "parse_any",
    "parse_warpgroup",
    "warpgroup_instructions",
]


@dataclass(frozen=True, kw_only=True)
class WarpgroupFamily:
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
    ptx : (int, int)
        First PTX version.
    """

    n: tuple[int, ...]
    k: int
    d_types: tuple[str, ...]
    multiplicands: tuple[tuple[str, str], ...]
    satfinite: tuple[bool, ...] = (False,)
    bit_ops: tuple[str | None, ...] = (None,)
    ptx: Version = (8, 0)


_BY_8 = tuple(range(8, 257, 8))
# One of the manual's lists stops at 224; ptxas, and another of its lists, do not.
_BY_16 = (8, 16, 24, 32, *range(48, 257, 16))
_FP8 = tuple((a, b) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2"))
_EITHER = (False, True)

_FAMILIES = (
    WarpgroupFamily(n=_BY_8, k=16, d_types=("f16", "f32"), multiplicands=(("f16", "f16"),)),
    WarpgroupFamily(n=_BY_8, k=16, d_types=("f32",), multiplicands=(("bf16", "bf16"),)),
    WarpgroupFamily(n=_BY_8, k=8, d_types=("f32",), multiplicands=(("tf32", "tf32"),)),
    WarpgroupFamily(n=_BY_8, k=32, d_types=("f16", "f32"), multiplicands=_FP8),
    WarpgroupFamily(
        n=_BY_16, k=32, d_types=("s32",), multiplicands=(("s8", "s8"), ("u8", "u8")), satfinite=_EITHER,
    ),
    WarpgroupFamily(
        n=_BY_16, k=32, d_types=("s32",), multiplicands=(("s8", "u8"), ("u8", "s8")), satfinite=_EITHER, ptx=(8, 4),
    ),
    WarpgroupFamily(n=_BY_16, k=256, d_types=("s32",), multiplicands=(("b1", "b1"),), bit_ops=("and",)),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class WarpgroupInstruction(MatrixInstruction):
    """One dense `wgmma.mma_async`: the parts of its mnemonic, and what follows from them.

    It has the names of a dense `Instruction` but for `layout` and `packing`, for its fragments are not modelled. C is
    D: PTX has one operand for both.

    Attributes
    ----------
    m, n, k : int
        Shape; m is always 64.
    satfinite : bool
    d_type, a_type, b_type : str
    bit_op : {None, "and"}
        Of b1 only; printed with `.popc`.
    sparse, block_scale : bool
        Always False.
    sparsity, kind, scale_vec, stype, rounding : None
    scales_per_row : int
        Always 0.
    targets : tuple of str
        Always sm_90a alone.
    documented : bool
        Always True: PTX's grammar has every one of them.

    Examples
    --------
    >>> i = parse_warpgroup("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16")
    >>> i.n, i.c_type, i.targets, i.ptx
    (128, 'f32', ('sm_90a',), (8, 0))
    """

    m: int = 64
    n: int
    k: int
    satfinite: bool = False
    d_type: str
    a_type: str
    b_type: str
    bit_op: str | None = None

    sparse: ClassVar[bool] = False
    sparsity: ClassVar[None] = None
    block_scale: ClassVar[bool] = False
    scales_per_row: ClassVar[int] = 0
    kind: ClassVar[None] = None
    scale_vec: ClassVar[None] = None
    stype: ClassVar[None] = None
    rounding: ClassVar[None] = None
    targets: ClassVar[tuple[str, ...]] = ("sm_90a",)
    documented: ClassVar[bool] = True

    def __str__(self) -> str:
        parts = [
            "wgmma.mma_async.sync.aligned", self.shape, "satfinite" if self.satfinite else None,
            self.d_type, self.a_type, self.b_type, self.bit_op and f"{self.bit_op}.popc",
        ]  # fmt: skip
        return ".".join(part for part in parts if part)

    @property
    def c_type(self) -> str:
        """Type of C, which is D's."""
        return self.d_type

    @property
    def canonical(self) -> WarpgroupInstruction:
        """The same instruction: no qualifier has a default that could be spelled out."""
        return self

    @cached_property
    def family(self) -> WarpgroupFamily:
        """The table's row that this instruction comes from.

        Raises
        ------
        MnemonicError
            When no row yields it.
        """
        row = _table().get(self)
        if row is None:
            # The types of A and B are what a user cares for most, then that of D.
            raise MnemonicError(difference(self, _table(), {"a_type": 4, "b_type": 4, "d_type": 2}))
        return row

    @property
    def ptx(self) -> Version:
        """First PTX version that has the instruction."""
        return self.family.ptx


AnyInstruction = Instruction | WarpgroupInstruction


@cache
def _table() -> dict[WarpgroupInstruction, WarpgroupFamily]:
    return {
        WarpgroupInstruction(n=n, k=row.k, satfinite=sat, d_type=d, a_type=a, b_type=b, bit_op=bit_op): row
        for row in _FAMILIES
        for d, (a, b), sat, bit_op, n in product(row.d_types, row.multiplicands, row.satfinite, row.bit_ops, row.n)
    }


def warpgroup_instructions(target: str | None = None) -> tuple[WarpgroupInstruction, ...]:
    """List the dense `wgmma` instructions of a target, or all of them.

    Parameters
    ----------
    target : str, optional
        Such as "sm_90a", which alone has any.

    Returns
    -------
    tuple of WarpgroupInstruction
        In the order of the table.

    Raises
    ------
    TargetError
        For an unknown target.

    Examples
    --------
    >>> len(warpgroup_instructions()), len(warpgroup_instructions("sm_90a")), len(warpgroup_instructions("sm_90"))
    (546, 546, 0)
    """
    if target is None:
        return tuple(_table())
    check_known(target)
    return tuple(i for i in _table() if target in i.targets)


def _words() -> dict[str, str]:
    types = {t for row in _FAMILIES for t in (*row.d_types, *sum(row.multiplicands, ()))}
    shapes = {f"m64n{n}k{row.k}" for row in _FAMILIES for n in row.n}
    return {
        **dict.fromkeys(sorted(types), "type"),
        **dict.fromkeys(sorted(shapes), "shape"),
        "and": "bit_op",
        "xor": "bit_op",  # readable, so that the answer names .and
        "popc": "popc",
        "mma_async": "name",
        "sync": "sync",
        "aligned": "aligned",
        "satfinite": "satfinite",
    }


_GRAMMAR = Grammar(
    words=_words(),
    how_many={"sync": (1,), "aligned": (1,), "shape": (1,), "type": (3,)},
    needs={
        "sync": ".sync", "aligned": ".aligned", "shape": "one shape, such as .m64n128k16",
        "type": "the types of D, A and B, as .f32.f16.f16",
    },
    legal=_table, shape=re.compile(r"m([1-9]\d{0,3})n([1-9]\d{0,3})k([1-9]\d{0,3})"),
)  # fmt: skip


def parse_warpgroup(mnemonic: str | WarpgroupInstruction) -> WarpgroupInstruction:
    """Read the mnemonic of a dense `wgmma`.

    Parameters
    ----------
    mnemonic : str or WarpgroupInstruction
        Qualifiers in any order after `wgmma.mma_async`, but that D, A and B name their types in this order, and `.and`
        comes before `.popc`. ptxas reads them so too; that it overlooks a missing `.aligned` and a repeated `.sync` is
        not followed.

    Returns
    -------
    WarpgroupInstruction

    Raises
    ------
    MnemonicError
        Says which part is unknown, missing or does not go with the rest, and names the nearest legal mnemonic.
    UnsupportedError
        For sparse instructions, `wgmma.mma_async.sp`: nobody measured them.

    Examples
    --------
    >>> str(parse_warpgroup("wgmma.mma_async.sync.aligned.m64n32k32.s32.s8.u8.satfinite"))
    'wgmma.mma_async.sync.aligned.m64n32k32.satfinite.s32.s8.u8'
    >>> parse_warpgroup("wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8")
    Traceback (most recent call last):
        ...
    warpmma.errors.MnemonicError: wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8 is no instruction:
    n is 40 where 32 is legal. Nearest legal: wgmma.mma_async.sync.aligned.m64n32k32.s32.s8.s8
    """
    if isinstance(mnemonic, WarpgroupInstruction):
        return _checked(mnemonic)
    return _parse(bare(mnemonic), str(mnemonic))


@lru_cache(maxsize=4096)
def _parse(text: str, mnemonic: str) -> WarpgroupInstruction:
    """Read the text of a mnemonic; errors quote it as it came."""
    head, *words = text.split(".")
    if head != "wgmma" or words[:1] != ["mma_async"]:
        start = ".".join([head, *words[:1]])
        known = explained(text, "wgmma")
        raise MnemonicError(
            f"{mnemonic}: starts with {start!r}; expected 'wgmma.mma_async'"
            + (f" ({known})" if known else _GRAMMAR.hint(mnemonic))
        )
    if "sp" in words:
        raise UnsupportedError(f"{mnemonic}: the arithmetic of sparse wgmma was not measured; only dense is simulated")
    found = _GRAMMAR.sort(mnemonic, words)
    operation = [part for part in map(_GRAMMAR.part, words) if part in ("bit_op", "popc")]
    if operation not in ([], ["bit_op", "popc"]):
        raise MnemonicError(f"{mnemonic}: .popc goes with .and, which comes first{_GRAMMAR.hint(mnemonic)}")
    d_type, a_type, b_type = found["type"]
    m, n, k = map(int, re.findall(r"\d+", found["shape"][0]))
    return _checked(
        WarpgroupInstruction(
            m=m, n=n, k=k, satfinite="satfinite" in found, d_type=d_type, a_type=a_type, b_type=b_type,
            bit_op=found["bit_op"][0] if "bit_op" in found else None,
        )
    )  # fmt: skip


def _checked(instruction: WarpgroupInstruction) -> WarpgroupInstruction:
    """Return an instruction that the table has; raise for any other."""
    _ = instruction.family
    return instruction


def parse_any(mnemonic: str | AnyInstruction) -> AnyInstruction:
    """Read a mnemonic of either kind, `mma` or `wgmma`.

    Parameters
    ----------
    mnemonic : str, Instruction or WarpgroupInstruction

    Returns
    -------
    Instruction or WarpgroupInstruction

    Raises
    ------
    MnemonicError, UnsupportedError
        As `parse` and `parse_warpgroup` do.

    Examples
    --------
    >>> [parse_any(s).m for s in ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    ...                           "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16")]
    [16, 64]
    """
    if isinstance(mnemonic, Instruction):
        return parse(mnemonic)
    if isinstance(mnemonic, WarpgroupInstruction) or bare(mnemonic).startswith("wgmma"):
        return parse_warpgroup(mnemonic)
    return parse(mnemonic)
