"""The instruction table: every `mma` mnemonic that ptxas takes, as a few dozen family rows.

`parse` reads a mnemonic with its qualifiers in any order, as ptxas does; `str` prints it in the order of PTX's grammar,
with what was spelled out (a default `.scale_vec`, `.rn`) spelled out again. `instructions` lists what a target has.

Sources: PTX ISA 9.1, 9.7.14.5.14 and 9.7.14.6.3; the sets of legal mnemonics were asked of ptxas 12.9 to 13.5.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property, lru_cache
from itertools import product
from typing import Protocol

from .._arrays import check_choice, is_integer
from .._records import Record
from ..errors import MnemonicError, TargetError, shown
from ..formats import FORMATS, Format
from ..layouts import OPERANDS, Layout, Operand, accumulator, multiplicand, quad_pair
from ..registers import Packing
from .families import FAMILIES, ROUNDINGS, Family, Version
from .gpus import unknown
from .grammar import Grammar, bare, difference
from .names import explained
from .targets import TARGETS as RECORDS

__all__ = [
    "FAMILIES",
    "TARGETS",
    "Family",
    "Instruction",
    "check_known",
    "check_target",
    "instructions",
    "parse",
    "since",
]

TARGETS = tuple(RECORDS)
"""Every target that has an `mma`, oldest first; "f" marks family-specific and "a" architecture-specific features."""


class MatrixInstruction(Record):
    """What follows from shape and types, whatever the kind of instruction.

    A field that is nothing a mnemonic could hold is a `MnemonicError`.
    """

    m: int
    n: int
    k: int

    def __post_init__(self) -> None:
        plain: type[int] | type[str]
        for field in fields(self):  # type: ignore[arg-type]
            name, value = field.name, getattr(self, field.name)
            if name in ("m", "n", "k"):
                good, plain, expected = is_integer(value) and 0 < value < 10_000, int, "an integer of 1 to 9999"
            elif name == "satfinite":
                good, plain, expected = isinstance(value, bool), bool, "a bool"
            else:
                if value is None:
                    continue
                good, plain = isinstance(value, str) and len(value) <= 40 and value.isprintable(), str
                expected = "a qualifier, a string"
            if not good:
                raise MnemonicError(f"no instruction has {name} {shown(value)}; expected {expected}")
            if type(value) is not plain:  # NumPy's, or a subclass, which may act otherwise
                object.__setattr__(self, name, plain(value))

    @property
    def shape(self) -> str:
        """Shape as PTX spells it."""
        return f"m{self.m}n{self.n}k{self.k}"

    def type(self, operand: Operand) -> str:
        """PTX type of an operand: "A", "B", "C" or "D"."""
        check_choice("operand", operand, OPERANDS)
        return str(getattr(self, f"{operand.lower()}_type"))

    def format(self, operand: Operand) -> Format:
        """Return the number format of an operand."""
        return FORMATS[self.type(operand)]


@dataclass(frozen=True, kw_only=True)
class Instruction(MatrixInstruction):
    """One `mma` instruction: the parts of its mnemonic, and what follows from them.

    Attributes
    ----------
    sparsity : {None, "sp", "sp::ordered_metadata"}
    m, n, k : int
        Shape; of a sparse instruction k is logical, twice what A stores.
    a_layout, b_layout : {"row", "col"}
    kind, scale_vec, stype : str, optional
        As spelled; `scale_vec` may be left out where it has a default. `block_scale` follows from `stype`.
    satfinite : bool
    d_type, a_type, b_type, c_type : str
    rounding : {None, "rn", "rz", "rm", "rp"}
        As spelled; of f64 only.
    bit_op : {None, "xor", "and"}
        Of b1 only; printed with `.popc`.

    Examples
    --------
    >>> i = parse("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
    >>> i.a_type, i.k, i.layout("A").registers
    ('bf16', 16, 4)
    >>> i.targets[0], i.ptx
    ('sm_80', (7, 0))
    """

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

    def __str__(self) -> str:
        return self._mnemonic

    @cached_property
    def _mnemonic(self) -> str:
        parts = [
            "mma", self.sparsity, "sync.aligned", self.shape, self.a_layout, self.b_layout,
            self.kind and f"kind::{self.kind}", "block_scale" if self.block_scale else None,
            self.scale_vec and f"scale_vec::{self.scale_vec}", "satfinite" if self.satfinite else None,
            self.d_type, self.a_type, self.b_type, self.c_type, self.stype, self.rounding,
            self.bit_op and f"{self.bit_op}.popc",
        ]  # fmt: skip
        return ".".join(part for part in parts if part)

    @property
    def sparse(self) -> bool:
        """Whether A is sparse."""
        return self.sparsity is not None

    @property
    def block_scale(self) -> bool:
        """Whether A and B carry scales."""
        return self.stype is not None

    @property
    def scales_per_row(self) -> int:
        """Scales in a row of A or a column of B: PTX's 1X, 2X or 4X; 0 without block scaling."""
        if not self.block_scale:
            return 0
        return int((self.scale_vec or _DEFAULT_SCALE_VEC[self.kind or ""])[0])

    @property
    def canonical(self) -> Instruction:
        """The same instruction with defaults left out: spellings of one operation compare equal here."""
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
        row = _table().get(self)
        if row is None:
            raise MnemonicError(_explain(self))
        return row

    @property
    def targets(self) -> tuple[str, ...]:
        """Targets that have the instruction, oldest first."""
        return since(self.family.since)

    @property
    def ptx(self) -> Version:
        """First PTX version that has the instruction."""
        return self.family.ptx

    @property
    def documented(self) -> bool:
        """Whether PTX's grammar has this spelling; ptxas takes a few more."""
        return self.family.documented

    def packing(self, operand: Operand) -> Packing:
        """How an operand's elements share registers."""
        fmt = self.format(operand)
        if operand in "AB" and self.kind in _CONTAINER_KINDS:
            return Packing(slot=8, bits=fmt.bits, shift=_CONTAINER_SHIFT.get(fmt.name, 0))
        return Packing(slot=fmt.bits, bits=fmt.bits)

    def layout(self, operand: Operand) -> Layout:
        """Fragment layout of an operand; of a sparse A, that of its stored elements."""
        found = self._layouts.get(operand) if isinstance(operand, str) else None
        if found is None:
            found = self._layouts[operand] = self._layout(operand)
        return found

    @cached_property
    def _layouts(self) -> dict[str, Layout]:
        return {}

    def _layout(self, operand: Operand) -> Layout:
        packing = self.packing(operand)
        if self.shape == "m8n8k4" and self.a_type == "f16":
            return quad_pair(operand, self.a_layout if operand == "A" else self.b_layout, packing)
        if operand in "CD":
            return accumulator(self.m, packing)
        k = self.k // 2 if self.sparse and operand == "A" else self.k
        return multiplicand(operand, self.m if operand == "A" else self.n, k, packing)


_DEFAULT_SCALE_VEC = {"mxf8f6f4": "1X", "mxf4": "2X"}
_CONTAINER_KINDS = ("f8f6f4", "mxf8f6f4")  # every element in a byte of its own
_CONTAINER_SHIFT = {"e2m1": 2}


def _mnk(shape: str) -> tuple[int, int, int]:
    m, n, k = re.findall(r"\d+", shape)
    return int(m), int(n), int(k)


def _records(family: Family) -> tuple[Instruction, ...]:
    """Make every combination that a row of the table stands for."""
    return tuple(
        Instruction(
            sparsity=family.sparsity, m=m, n=n, k=k, a_layout=al, b_layout=bl, kind=family.kind, scale_vec=vec,
            satfinite=sat, d_type=d, a_type=a, b_type=b, c_type=c, stype=stype, rounding=rounding, bit_op=bit_op,
        )
        for (m, n, k), (al, bl), (vec, stype), sat, (d, c), (a, b), rounding, bit_op in product(
            map(_mnk, family.shapes.split()), family.layouts, family.scales, family.satfinite, family.accumulators,
            family.multiplicands, family.roundings, family.bit_ops,
        )
    )  # fmt: skip


@cache
def _table() -> dict[Instruction, Family]:
    return {instruction: family for family in FAMILIES for instruction in _records(family)}


def since(first: str) -> tuple[str, ...]:
    """List the targets that have what appeared with a target; "f" and "a" at its end ask for such feature sets.

    An unknown target is a `TargetError`.

    Examples
    --------
    >>> since("sm_120f")
    ('sm_120f', 'sm_120a', 'sm_121f', 'sm_121a')
    """
    check_known(first)
    return _since(first)


@cache
def _since(first: str) -> tuple[str, ...]:
    oldest = RECORDS[first]
    having = {"f": ("f", "a"), "a": ("a",)}.get(oldest.features, ("", "f", "a"))
    return tuple(t.name for t in RECORDS.values() if t.number >= oldest.number and t.features in having)


def instructions(target: str | None = None) -> tuple[Instruction, ...]:
    """List the instructions of a target, or all of them.

    Parameters
    ----------
    target : str, optional
        Such as "sm_90a".

    Returns
    -------
    tuple of Instruction
        In the order of the table. Spellings that differ in a default only are listed each.

    Raises
    ------
    TargetError
        For an unknown target.

    Examples
    --------
    >>> len(instructions()), len(instructions("sm_70")), len(instructions("sm_90a"))
    (420, 12, 198)
    """
    if target is None:
        return tuple(_table())
    check_known(target)
    return tuple(i for i, family in _table().items() if target in since(family.since))


class _Targeted(Protocol):
    """An instruction of any kind: it prints its mnemonic."""

    @property
    def targets(self) -> tuple[str, ...]: ...


def check_target(instruction: str | _Targeted, target: str) -> None:
    """Raise `TargetError` unless the target exists and has the instruction, a record of any kind or an `mma`'s name."""
    check_known(target)
    if isinstance(instruction, str) or getattr(type(instruction), "targets", None) is None:
        instruction = parse(instruction)  # type: ignore[arg-type]
    if target not in instruction.targets:
        raise TargetError(f"{instruction} is not legal on {target}; legal on {', '.join(instruction.targets)}")


def check_known(target: str) -> None:
    """Raise `TargetError` unless the target exists; it says which target a GPU's name, or another spelling, is."""
    if not isinstance(target, str) or target not in TARGETS:
        raise TargetError(unknown(target, TARGETS))


# Parsing: the vocabulary, and which part of an instruction each word speaks of.

_TYPES = tuple(sorted({t for f in FAMILIES for pair in (*f.accumulators, *f.multiplicands) for t in pair}))
_WORDS: dict[str, str] = {
    **dict.fromkeys(_TYPES, "type"),
    **{f.sparsity: "sparsity" for f in FAMILIES if f.sparsity},
    **{s: "shape" for f in FAMILIES for s in f.shapes.split()},
    **{f"kind::{f.kind}": "kind" for f in FAMILIES if f.kind},
    **{f"scale_vec::{vec}": "scale_vec" for f in FAMILIES for vec, _ in f.scales if vec},
    **{stype: "stype" for f in FAMILIES for _, stype in f.scales if stype},
    **{r: "rounding" for r in ROUNDINGS if r},
    "row": "layout",
    "col": "layout",
    "xor": "bit_op",
    "and": "bit_op",
    "popc": "popc",
    "sync": "sync",
    "aligned": "aligned",
    "block_scale": "block_scale",
    "satfinite": "satfinite",
}
_HOW_MANY = {"sync": (1,), "aligned": (1,), "shape": (1,), "layout": (2,), "type": (4,)}
_NEEDS = {
    "sync": ".sync", "aligned": ".aligned", "shape": "one shape, such as .m16n8k16",
    "layout": "the layouts of A and B, as .row.col", "type": "the types of D, A, B and C, as .f32.f16.f16.f32",
}  # fmt: skip
_GRAMMAR = Grammar(words=_WORDS, how_many=_HOW_MANY, needs=_NEEDS, legal=_table)


def parse(mnemonic: str | Instruction) -> Instruction:
    """Read a mnemonic.

    Parameters
    ----------
    mnemonic : str or Instruction
        Qualifiers in any order, but that D, A, B and C name their types in this order and A its layout before B.

    Returns
    -------
    Instruction

    Raises
    ------
    MnemonicError
        Says which part is unknown, missing or does not go with the rest, and names the nearest legal mnemonic.

    Examples
    --------
    >>> str(parse("mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.e4m3.e2m1.f32"))
    'mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e2m1.f32'
    >>> parse("mma.sync.aligned.m16n8k61.row.col.f32.f16.f16.f32")
    Traceback (most recent call last):
        ...
    warpmma.errors.MnemonicError: mma.sync.aligned.m16n8k61.row.col.f32.f16.f16.f32:
    unknown qualifier '.m16n8k61', did you mean '.m16n8k64'.
    Nearest legal: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
    """
    if isinstance(mnemonic, Instruction):
        return _checked(mnemonic)
    return _parse(bare(mnemonic), str(mnemonic))


@lru_cache(maxsize=4096)
def _parse(text: str, mnemonic: str) -> Instruction:
    """Read the text of a mnemonic; errors quote it as it came."""
    head, *words = text.split(".")
    if head != "mma":
        known = explained(text, "mma")
        raise MnemonicError(
            f"{mnemonic}: starts with {head!r}; expected 'mma'" + (f" ({known})" if known else _GRAMMAR.hint(mnemonic))
        )
    found = _GRAMMAR.sort(mnemonic, words)
    if ("bit_op" in found) != ("popc" in found):
        raise MnemonicError(f"{mnemonic}: .popc goes with .xor or .and{_GRAMMAR.hint(mnemonic)}")
    if ("block_scale" in found) != ("stype" in found):
        raise MnemonicError(f"{mnemonic}: .block_scale goes with .ue8m0 or .ue4m3{_GRAMMAR.hint(mnemonic)}")

    def one(part: str) -> str | None:
        return found[part][0].rpartition("::")[2] if part in found else None

    m, n, k = _mnk(found["shape"][0])
    d_type, a_type, b_type, c_type = found["type"]
    instruction = Instruction(
        sparsity=found["sparsity"][0] if "sparsity" in found else None, m=m, n=n, k=k,
        a_layout=found["layout"][0], b_layout=found["layout"][1], kind=one("kind"), scale_vec=one("scale_vec"),
        satfinite="satfinite" in found, d_type=d_type, a_type=a_type, b_type=b_type, c_type=c_type,
        stype=one("stype"), rounding=one("rounding"), bit_op=one("bit_op"),
    )  # fmt: skip
    return _checked(instruction)


def _checked(instruction: Instruction) -> Instruction:
    """Return an instruction that the table has; raise for any other."""
    _ = instruction.family
    return instruction


def _explain(instruction: Instruction) -> str:
    """Say why a readable mnemonic is no instruction: which parts differ from the nearest legal one."""
    if instruction.shape == "m8n8k4" and instruction.a_type == instruction.b_type == "bf16":
        return (
            f"{instruction} is refused: ptxas assembles the bf16 forms of m8n8k4 to no instruction at all and leaves D "
            "as it was, so they compute nothing. Nearest legal: "
            "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32"
        )

    # The types of A and B are what a user cares for most, then the shape.
    weights = {"a_type": 4, "b_type": 4, "sparsity": 3, "m": 2, "n": 2, "d_type": 2, "kind": 2}
    return difference(instruction, _table(), weights)
