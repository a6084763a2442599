"""Warpgroup instructions: every dense `wgmma.mma_async` that ptxas takes, for products of whole matrices.

B lies in shared memory, A there or in registers, C and D in registers of the four warps. How they lie in memory changes
no bit of the result, and is not modelled.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from ..errors import OperandError
from ..layouts import Layout, Operand, warpgroup
from ..registers import Packing
from .record import MatrixInstruction
from .signatures import Signature, Signed, numbered, packed, value
from .spellings import WGMMA
from .tables import Table
from .warpgroups import WarpgroupFamily


@dataclass(frozen=True, kw_only=True)
class WarpgroupInstruction(Signed, MatrixInstruction):
    """One dense `wgmma.mma_async`: the parts of its mnemonic, and what follows from them.

    It has the names of a dense `Instruction` but for `a_layout` and `b_layout`. C is D: PTX has one operand for both.
    Layouts of fragments are those of A, where it is in registers, and of C and D.

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
    >>> i.layout("D").shape, i.layout("D").registers, i.layout("D").locate(35, 101)
    ((64, 128), 64, (78, 49, 0))
    """

    _grammar = WGMMA

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
        return _TABLE.row(self)

    @cached_property
    def signature(self) -> Signature:
        """Its operands with A in shared memory: D, which it adds to, descriptors, and numbers that choose."""
        layout, floating = self.layout("D"), self.d_type != "s32"
        scales = ("imm-scale-a", "imm-scale-b") if floating else ()
        turns = ("imm-trans-a", "imm-trans-b") if self.a_type in ("f16", "bf16") else ()
        return (
            numbered(
                "d", layout.registers, packed(self.d_type, layout.packing), kind=f"b{layout.packing.width}",
                braces="always", role="result", updated=True,
            ),
            value("a-desc", "b64"), value("b-desc", "b64"), value("scale-d", "pred"),
            *(value(x, "imm", values=(-1, 1)) for x in scales), *(value(x, "imm", values=(0, 1)) for x in turns),
        )  # fmt: skip

    def packing(self, operand: Operand) -> Packing:
        """How an operand's elements share registers; `OperandError` for B, which lies in shared memory."""
        bits = self.format(operand).bits
        if operand == "B":
            raise OperandError(f"{self}: B lies in shared memory, in no registers; expected 'A', 'C' or 'D'")
        return Packing(slot=bits, bits=bits)

    def _layout(self, operand: Operand) -> Layout:
        packing = self.packing(operand)
        return warpgroup(operand, self.k if operand == "A" else self.n, packing)


_TABLE = Table(record=WarpgroupInstruction, grammar=WGMMA)


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
    return _TABLE.listed(target)


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
    return _TABLE.parse(mnemonic)
