"""Warpgroup instructions: every `wgmma.mma_async` that ptxas accepts for sm_90a, dense and sparse.

B is in shared memory, A there or in registers, D, which it accumulates into, in registers of the four warps. The
mnemonic does not say where A is: `signatures` has the operands of both forms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from ..._records import Shown
from ...errors import OperandError
from ...layouts import Layout, Operand, warpgroup
from ...registers import Packing
from ..grammar import Choices, Grammar, MnemonicSlot, OperandSpec, Signature, Version, numbered, packed, value
from .matrix_instructions import MatrixInstruction, Table


@dataclass(frozen=True, kw_only=True)
class WarpgroupFamily(Shown):
    """A row of the table: all its combinations are instructions.

    Attributes
    ----------
    d_types : tuple of str
    satfinite, bit_ops : tuple
        Choices of each qualifier.
    """

    n: tuple[int, ...]
    k: int  # of the dense instructions; sparse ones have twice as much
    d_types: tuple[str, ...]
    multiplicands: tuple[tuple[str, str], ...]  # types of (A, B)
    satfinite: tuple[bool, ...] = (False,)
    bit_ops: tuple[str | None, ...] = (None,)
    targets: tuple[str, ...] = ("sm_90a",)  # later targets do not have what sm_90a introduced
    sparsity: str | None = None
    ptx: Version = (8, 0)  # first PTX version
    documented: bool = True  # whether PTX's grammar has these spellings

    @property
    def choices(self) -> Choices:
        """The values of the fields: the table has all combinations, the last choice fastest."""
        k = self.k * (2 if self.sparsity else 1)
        return (
            (("sparsity",), ((self.sparsity,),)),
            (("d_type",), tuple((choice,) for choice in self.d_types)),
            (("a_type", "b_type"), self.multiplicands),
            (("satfinite",), tuple((choice,) for choice in self.satfinite)),
            (("bit_op",), tuple((choice,) for choice in self.bit_ops)),
            (("m", "n", "k"), tuple((64, n, k) for n in self.n)),
        )


_BY_8 = tuple(range(8, 257, 8))
# One of the manual's lists stops at 224; another one, and ptxas, do not.
_BY_16 = (8, 16, 24, 32, *range(48, 257, 16))
_FP8 = tuple((a, b) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2"))
_EITHER = (False, True)

_DENSE = (
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
_FAMILIES = (
    *_DENSE,
    *(replace(row, sparsity="sp", ptx=max(row.ptx, (8, 2))) for row in _DENSE if row.bit_ops == (None,)),
)
"""The whole table: all but single bits are there with a sparse A."""

WGMMA: Grammar[WarpgroupFamily] = Grammar(
    opcode="wgmma.mma_async",
    slots=(
        MnemonicSlot(part="sparsity"),
        MnemonicSlot(part="sync", holds=None),
        MnemonicSlot(part="aligned", holds=None),
        MnemonicSlot(part="shape", holds=int, fields=("m", "n", "k"), spelling="m{}n{}k{}", any_number=True,
                     needs="one shape, such as .m64n128k16"),
        MnemonicSlot(part="satfinite", holds=bool),
        MnemonicSlot(part="type", fields=("d_type", "a_type", "b_type"),
                     needs="the types of D, A and B, as .f32.f16.f16"),
        MnemonicSlot(part="bit_op", readable=("xor",)),
        MnemonicSlot(part="popc", holds=None, partner="bit_op", follows=True),
    ),
    rows=_FAMILIES,
    # Users care most for the types of A and B, then for that of D.
    weights={"a_type": 4, "b_type": 4, "sparsity": 3, "d_type": 2},
)  # fmt: skip
"""Of `wgmma.mma_async`."""


@dataclass(frozen=True, kw_only=True)
class WarpgroupInstruction(MatrixInstruction):
    """One `wgmma.mma_async`: the parts of its mnemonic, and properties derived from them.

    It has the attributes of an `Instruction` except `a_layout` and `b_layout`. C is D: PTX has one operand for both.
    Fragments with layouts are A, if it is in registers, C and D.

    Attributes
    ----------
    m, n, k : int
        Shape; m is always 64, and of a sparse instruction k is logical, twice what A stores.
    sparsity : {None, "sp"}
    satfinite : bool
    d_type, a_type, b_type : str
    bit_op : {None, "and"}
        For b1 only; printed with `.popc`.
    block_scale : bool
        Always False.
    kind, scale_vec, stype, rounding : None
    scales_per_row : int
        Always 0.
    targets : tuple of str
        Always sm_90a only.
    documented : bool
        Always True: PTX's grammar has every one of them.

    Examples
    --------
    >>> from warpmma.isa import parse_warpgroup
    >>> i = parse_warpgroup("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16")
    >>> i.n, i.c_type, i.targets, i.ptx
    (128, 'f32', ('sm_90a',), (8, 0))
    >>> i.layout("D").shape, i.layout("D").registers, i.layout("D").locate(35, 101)
    ((64, 128), 64, (78, 49, 0))
    """

    _grammar = WGMMA
    convergence = "warpgroup"

    sparsity: str | None = None
    m: int = 64
    n: int
    k: int
    satfinite: bool = False
    d_type: str
    a_type: str
    b_type: str
    bit_op: str | None = None

    kind = None
    scale_vec = None
    stype = None
    rounding = None

    @cached_property
    def c_type(self) -> str:  # type: ignore[override]
        """Type of C, which is D's."""
        return self.d_type

    @cached_property
    def family(self) -> WarpgroupFamily:
        """The table's row that this instruction comes from.

        Raises
        ------
        MnemonicError
            When no row yields it.
        """
        return WGMMA_TABLE.row(self)

    @cached_property
    def signature(self) -> Signature:
        """Its operands with A in shared memory; `signatures` has both forms."""
        return self.signatures[0]

    @cached_property
    def signatures(self) -> tuple[Signature, Signature]:
        """Its operands with A in shared memory and with A in registers.

        They are D, which it accumulates into, A, the descriptor of B, metadata and selector of a sparse A, the
        predicate `scale-d`, and immediates: the signs of A and B, and for 16-bit types whether an operand in shared
        memory is transposed.
        """
        layout, floating, turned = self.layout("D"), self.d_type != "s32", self.a_type in ("f16", "bf16")
        d = numbered(
            "d", layout.registers, packed(self.d_type, layout.packing), kind=f"b{layout.packing.width}",
            braces="always", role="result", updated=True,
        )  # fmt: skip
        sparse = (
            value("metadata", "u32", number=False),
            value("selector", "imm", values=(0, 1) if self.format("A").bits > 8 else (0,)),
        )
        signs = ("imm-scale-a", "imm-scale-b") if floating else ()

        def form(a: OperandSpec, turns: tuple[str, ...]) -> Signature:
            return (
                d, a, value("b-desc", "b64"), *(sparse if self.sparse else ()), value("scale-d", "pred", literal=True),
                *(value(x, "imm", values=(-1, 1)) for x in signs),
                *(value(x, "imm", values=(0, 1)) for x in (turns if turned else ())),
            )  # fmt: skip

        registers = numbered("a", 4, packed(self.a_type, self.packing("A")), kind="b32", braces="always")
        shared = value("a-desc", "b64")
        return form(shared, ("imm-trans-a", "imm-trans-b")), form(registers, ("imm-trans-b",))

    def packing(self, operand: Operand) -> Packing:
        """How an operand's elements share registers; `OperandError` for B, which lies in shared memory."""
        bits = self.format(operand).bits
        if operand == "B":
            raise OperandError(f"{self}: B lies in shared memory, in no registers; expected 'A', 'C' or 'D'")
        return Packing(slot=bits, bits=bits)

    def _layout(self, operand: Operand) -> Layout:
        packing = self.packing(operand)
        k = self.k // 2 if self.sparse else self.k
        return warpgroup(operand, k if operand == "A" else self.n, packing)


WGMMA_TABLE = Table(record=WarpgroupInstruction, grammar=WGMMA)


def warpgroup_instructions(target: str | None = None) -> tuple[WarpgroupInstruction, ...]:
    """List the `wgmma` instructions of a target, or all of them.

    Parameters
    ----------
    target : str, optional
        Such as "sm_90a", the only one that has any.

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
    (1074, 1074, 0)
    """
    return WGMMA_TABLE.listed(target)
