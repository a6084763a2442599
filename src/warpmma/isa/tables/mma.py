"""Instructions of `mma`: a record for every mnemonic that ptxas accepts, derived from a few dozen family rows.

`parse` reads a mnemonic with its qualifiers in any order, like ptxas; `str` prints it in the order of PTX's grammar and
keeps explicit defaults (`.scale_vec`, `.rn`). `instructions` lists the instructions of a target.

Sources: PTX ISA 9.1, 9.7.14.5.14 and 9.7.14.6.3; the sets of mnemonics that ptxas 12.9 to 13.5 accept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from ...layouts import Layout, Operand, accumulator, multiplicand, quad_pair
from ...registers import Packing
from ..grammar import Grammar, MnemonicSlot, Refusal, Signature, fragments, value
from .families import FAMILIES, Family
from .matrix_instructions import MatrixInstruction, Table

MMA: Grammar[Family] = Grammar(
    opcode="mma",
    slots=(
        MnemonicSlot(part="sparsity"),
        MnemonicSlot(part="sync", holds=None),
        MnemonicSlot(part="aligned", holds=None),
        MnemonicSlot(part="shape", holds=int, fields=("m", "n", "k"), spelling="m{}n{}k{}",
                     needs="one shape, such as .m16n8k16"),
        MnemonicSlot(part="layout", fields=("a_layout", "b_layout"), needs="the layouts of A and B, as .row.col"),
        MnemonicSlot(part="kind", spelling="kind::{}"),
        MnemonicSlot(part="block_scale", holds=None, partner="stype"),
        MnemonicSlot(part="scale_vec", spelling="scale_vec::{}"),
        MnemonicSlot(part="satfinite", holds=bool),
        MnemonicSlot(part="type", fields=("d_type", "a_type", "b_type", "c_type"),
                     needs="the types of D, A, B and C, as .f32.f16.f16.f32"),
        MnemonicSlot(part="stype"),
        MnemonicSlot(part="rounding"),
        MnemonicSlot(part="bit_op"),
        MnemonicSlot(part="popc", holds=None, partner="bit_op"),
    ),
    rows=FAMILIES,
    # Users care most for the types of A and B, then for the shape.
    weights={"a_type": 4, "b_type": 4, "sparsity": 3, "m": 2, "n": 2, "d_type": 2, "kind": 2},
    refusals=(
        Refusal(
            fields={"m": 8, "n": 8, "k": 4, "a_type": "bf16", "b_type": "bf16"},
            why="ptxas assembles the bf16 forms of m8n8k4 to no instruction at all and leaves D as it was, so they "
            "compute nothing",
            nearest="mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32",
        ),
    ),
)  # fmt: skip
"""Of `mma`."""


@dataclass(frozen=True, kw_only=True)
class Instruction(MatrixInstruction):
    """One `mma` instruction: the parts of its mnemonic, and properties derived from them.

    Attributes
    ----------
    sparsity : {None, "sp", "sp::ordered_metadata"}
    m, n, k : int
        Shape; of a sparse instruction k is logical, twice what A stores.
    a_layout, b_layout : {"row", "col"}
    kind, scale_vec, stype : str, optional
        As spelled; `scale_vec` is None if its default was omitted. `block_scale` follows from `stype`.
    satfinite : bool
    d_type, a_type, b_type, c_type : str
    rounding : {None, "rn", "rz", "rm", "rp"}
        As spelled; for f64 only.
    bit_op : {None, "xor", "and"}
        For b1 only; printed with `.popc`.

    Examples
    --------
    >>> from warpmma.isa import parse
    >>> i = parse("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
    >>> i.a_type, i.k, i.layout("A").registers
    ('bf16', 16, 4)
    >>> i.targets[0], i.ptx
    ('sm_80', (7, 0))
    """

    _grammar = MMA
    convergence = "warp"

    sparsity: str | None = None
    m: int
    n: int
    k: int
    a_layout: str = "row"
    b_layout: str = "col"
    kind: str | None = None
    scale_vec: str | None = None
    satfinite: bool = False
    d_type: str
    a_type: str
    b_type: str
    c_type: str
    stype: str | None = None
    rounding: str | None = None
    bit_op: str | None = None

    @property
    def scales_per_row(self) -> int:
        """Scales in a row of A or a column of B: PTX's 1X, 2X or 4X; 0 without block scaling."""
        if not self.block_scale:
            return 0
        return int((self.scale_vec or _DEFAULT_SCALE_VEC[self.kind or ""])[0])

    @property
    def canonical(self) -> Instruction:
        """The same instruction with defaults omitted: spellings of one operation compare equal here."""
        default = _DEFAULT_SCALE_VEC.get(self.kind or "")
        return replace(
            self,
            scale_vec=None if self.scale_vec == default else self.scale_vec,
            rounding=None if self.rounding == "rn" else self.rounding,
        )

    @cached_property
    def family(self) -> Family:
        """The table's row that this instruction comes from.

        Raises
        ------
        MnemonicError
            When no row yields it.
        """
        return MMA_TABLE.row(self)

    @cached_property
    def signature(self) -> Signature:
        """Its operands: fragments of D, A, B and C, then metadata or scales and their selectors."""
        found = [*fragments(self.type, self.layout)]
        if self.sparse:
            found += [value("metadata", "u32", braces="optional", number=False), value("selector", "imm")]
        for x in "ab" if self.block_scale else "":
            ids = value((f"byte_id_{x}", f"thread_id_{x}"), "u16", braces="always", literal=True)
            found += [value(f"scale_{x}", "u32", braces="optional", number=False), ids]
        return tuple(found)

    def packing(self, operand: Operand) -> Packing:
        """How an operand's elements share registers."""
        fmt = self.format(operand)
        if operand in "AB" and self.kind in _CONTAINER_KINDS:
            return Packing(slot=8, bits=fmt.bits, shift=_CONTAINER_SHIFT.get(fmt.name, 0))
        return Packing(slot=fmt.bits, bits=fmt.bits)

    def _layout(self, operand: Operand) -> Layout:
        packing = self.packing(operand)
        if self.shape == "m8n8k4" and self.a_type == "f16":
            return quad_pair(operand, self.a_layout if operand == "A" else self.b_layout, packing)
        if operand in "CD":
            return accumulator(self.m, packing)
        k = self.k // 2 if self.sparse and operand == "A" else self.k
        return multiplicand(operand, self.m if operand == "A" else self.n, k, packing)


_DEFAULT_SCALE_VEC = {"mxf8f6f4": "1X", "mxf4": "2X"}
_CONTAINER_KINDS = ("f8f6f4", "mxf8f6f4")  # each element takes a byte
_CONTAINER_SHIFT = {"e2m1": 2}


MMA_TABLE = Table(record=Instruction, grammar=MMA)


def instructions(target: str | None = None) -> tuple[Instruction, ...]:
    """List the instructions of a target, or all of them.

    Parameters
    ----------
    target : str, optional
        Such as "sm_90a".

    Returns
    -------
    tuple of Instruction
        In the order of the table. Spellings that differ only in a default are listed separately.

    Raises
    ------
    TargetError
        For an unknown target.

    Examples
    --------
    >>> len(instructions()), len(instructions("sm_70")), len(instructions("sm_90a"))
    (420, 12, 198)
    """
    return MMA_TABLE.listed(target)
