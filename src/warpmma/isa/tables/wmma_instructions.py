"""`wmma`: its loads, stores and multiplications, as records. `wmma_fragments` defines their fragments.

Source: PTX ISA 9.1, 9.7.14.4; ptxas 12.9 confirms that these are all documented spellings, with their targets. Two
things are omitted: f64 in shapes other than m8n8k4, which ptxas accepts and PTX does not document, and the `.satfinite`
of f16 that PTX 6.5 removed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal, cast

from ...layouts import Layout, Operand
from ..grammar import Signature, Version, Words, address, fragments, numbered, packed, value
from .fragment_record import FragmentForm, FragmentInstruction, Variant, form_of
from .mma import Instruction
from .wmma_fragments import chain, element_type, fragment

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
WMMA = "6,093,930,496 outputs of all 594 forms of sm_90a"  # tests/data/h200_compare.json, by `warpmma compare`


@dataclass(frozen=True, kw_only=True)
class _Wmma(FragmentInstruction):
    """Common base of loads, stores and products."""

    shape: tuple[int, int, int]  # m, n, k

    @property
    def form(self) -> FragmentForm:
        """The row of the table that it comes from."""
        return form_of(WMMA_FORMS, self.mnemonic)

    @property
    def shape_name(self) -> str:
        """Shape as PTX spells it."""
        m, n, k = self.shape
        return f"m{m}n{n}k{k}"

    def variant(self, operand: str) -> Variant:
        """Describe what the layout's matrix numbers count: if several lanes hold an element, its copies."""
        return "copy"


@dataclass(frozen=True, kw_only=True)
class WmmaTransfer(_Wmma):
    """One `wmma.load` or `wmma.store`.

    Attributes
    ----------
    operand : {"A", "B", "C", "D"}
    shape : (int, int, int)
        m, n, k.

    Examples
    --------
    >>> from warpmma.isa import parse_fragments
    >>> load = parse_fragments("wmma.load.a.sync.aligned.row.m16n16k16.f16")
    >>> load.fragment("A", "sm_80").locate(3, 5)  # lane, register and lowest bit of the first copy
    (14, 0, 16)
    """

    direction: Literal["load", "store"]
    operand: Operand
    type: str  # PTX type of an element
    order: Literal["row", "col"]  # what is contiguous in memory
    space: Literal["", "global", "shared"]  # "" is a generic address

    @property
    def operands(self) -> tuple[str, ...]:
        """The operand that it moves."""
        return (self.operand,)

    def _element_type(self, operand: str) -> str:
        """PTX type of its elements."""
        return self.type

    def _fragment(self, operand: str, target: str) -> Layout:
        return self.layout(target)

    @property
    def rows_columns(self) -> tuple[int, int]:
        """Shape of the matrix."""
        m, n, k = self.shape
        return {"A": (m, k), "B": (k, n)}.get(self.operand, (m, n))

    @property
    def bits(self) -> int:
        """Bits of an element in memory."""
        return 32 if self.type == "tf32" else int(self.type.lstrip("bfsu"))

    @property
    def line(self) -> int:
        """Contiguous elements: a row or a column. This is the default stride."""
        rows, columns = self.rows_columns
        return columns if self.order == "row" else rows

    @property
    def lines(self) -> int:
        """How many rows or columns memory has."""
        rows, columns = self.rows_columns
        return rows if self.order == "row" else columns

    def layout(self, target: str) -> Layout:
        """Fragment on a target; if elements are held more than once, `matrix` numbers the copies."""
        return fragment(self.operand, self.shape, self.type, self.order, target)

    @property
    def registers(self) -> int:
        """Registers of a lane's fragment, on every target."""
        return self.layout(self.targets[-1]).registers

    @property
    def kind(self) -> Literal["b32", "b64"]:
        """Class of these registers."""
        return "b64" if self.bits == 64 else "b32"

    @cached_property
    def signature(self) -> Signature:
        """Its operands: `p` is the address, `q` the stride."""
        load, packing = self.direction == "load", self.layout(self.targets[-1]).packing
        fragment = numbered(
            "d" if load else "a", self.registers, packed(self.type, packing), kind=self.kind, braces="always",
            role="result" if load else "source", sink="element" if load else "",
        )  # fmt: skip
        where = address("p", self.space or "generic", **({} if self.space else {"other": "b32"}))
        stride = value("q", "u32", optional=True)
        return (fragment, where, stride) if load else (where, fragment, stride)


@dataclass(frozen=True, kw_only=True)
class WmmaProduct(_Wmma):
    """One `wmma.mma`.

    Attributes
    ----------
    shape : (int, int, int)
        m, n, k.
    a_layout, b_layout : {"row", "col"}
        Those that A and B were loaded with.
    d_type, a_type, b_type, c_type : str
    satfinite : bool
    rounding, bit_op : str or None
        As for `mma`.
    """

    a_layout: str
    b_layout: str
    d_type: str
    a_type: str
    b_type: str
    c_type: str
    satfinite: bool = False
    rounding: str | None = None
    bit_op: str | None = None

    def type(self, operand: Operand) -> str:
        """PTX type of an operand's elements."""
        return str(getattr(self, f"{operand.lower()}_type"))

    def layout(self, operand: Operand, target: str) -> Layout:
        """Fragment of an operand on a target."""
        order = {"A": self.a_layout, "B": self.b_layout}.get(operand, "row")
        return fragment(operand, self.shape, self.type(operand), order, target, multiplicands=self.a_type)

    def steps(self, target: str) -> tuple[Instruction, ...]:
        """Return the chain of `mma` along k that a target executes, each on all rows and columns."""
        qualifiers = ".satfinite" * self.satfinite + (f".{self.rounding}" if self.rounding else "")
        qualifiers += f".{self.bit_op}.popc" if self.bit_op else ""
        return chain(self.shape[2], (self.d_type, self.a_type, self.b_type, self.c_type), qualifiers, target)

    @property
    def operands(self) -> tuple[str, ...]:
        """A, B, C and D."""
        return "A", "B", "C", "D"

    def _element_type(self, operand: str) -> str:
        """PTX type of an operand's elements."""
        return self.type(cast(Operand, operand))

    def _fragment(self, operand: str, target: str) -> Layout:
        return self.layout(cast(Operand, operand), target)

    @cached_property
    def signature(self) -> Signature:
        """Its operands: fragments of D, A, B and C, whose numbers of registers are the same on every target."""
        last = self.targets[-1]
        return fragments(self.type, lambda operand: self.layout(operand, last))


def _moved(words: Words) -> Mapping[str, Any]:
    _, action, letter = words[:3]
    shape = next(word for word in words if _SHAPE.fullmatch(word))
    space = next((word.partition("::")[0] for word in words if word.startswith(("global", "shared"))), "")
    return {
        "direction": "load" if action == "load" else "store", "operand": letter.upper(), "type": words[-1],
        "order": "row" if "row" in words else "col", "space": space, "shape": _numbers(shape),
    }  # fmt: skip


def _numbers(shape: str) -> tuple[int, ...]:
    m, n, k = _SHAPE.fullmatch(shape).groups()  # type: ignore[union-attr]
    return int(m), int(n), int(k)


def _multiplied(multiplicands: str, words: Words) -> Mapping[str, Any]:
    shape = next(word for word in words if _SHAPE.fullmatch(word))
    a_layout, b_layout = (word for word in words if word in ("row", "col"))
    types = [word for word in words if element_type(word)]
    if len(types) == 2:  # for f16, only D and C are written
        types = [types[0], multiplicands, multiplicands, types[1]]
    return {
        "shape": _numbers(shape), "a_layout": a_layout, "b_layout": b_layout, "satfinite": "satfinite" in words,
        "rounding": next((word for word in words if word in ("rn", "rz", "rm", "rp")), None),
        "bit_op": next((word for word in words if word in ("xor", "and")), None),
    } | dict(zip(("d_type", "a_type", "b_type", "c_type"), types, strict=True))  # fmt: skip


_LARGE = ("m16n16k16", "m8n32k16", "m32n8k16")
_SPACE = "{.<global shared shared::cta>}"

# Types of A and B, shapes, layouts of A and B, types of C and D, oldest target, PTX. Only the shapes distinguish what
# PTX 6.1 added from 6.0.
_TYPES: tuple[tuple[str, tuple[str, ...], bool, tuple[str, ...], str, Version], ...] = (
    ("f16", _LARGE[:1], True, ("f16", "f32"), "sm_70", (6, 0)),
    ("f16", _LARGE[1:], True, ("f16", "f32"), "sm_70", (6, 1)),
    ("bf16", _LARGE, True, (), "sm_80", (7, 0)),
    ("s8 u8", _LARGE, True, ("s32",), "sm_72", (6, 3)),
    ("tf32", ("m16n16k8",), True, ("f32",), "sm_80", (7, 0)),
    ("f64", ("m8n8k4",), True, ("f64",), "sm_80", (7, 0)),
    ("s4 u4", ("m8n8k32",), False, ("s32",), "sm_75", (6, 3)),
    ("b1", ("m8n8k128",), False, ("s32",), "sm_75", (6, 3)),
)


def _moves() -> list[FragmentForm]:
    forms = []

    def form(operand: str, layouts: str, shapes: tuple[str, ...], types: str, since: str, ptx: Version) -> None:
        action = "store" if operand == "d" else "load"
        forms.append(
            FragmentForm(
                spelling=f"wmma.{action}.{operand} .sync.aligned.<{layouts}>.<{' '.join(shapes)}>{_SPACE}.<{types}>",
                kind=WmmaTransfer, fields=_moved, since=since, ptx=ptx, section="9.7.14.4.1", compared=WMMA,
                opaque=True,
            )
        )  # fmt: skip

    for types, shapes, free, sums, since, ptx in _TYPES:
        form("a", "row col" if free else "row", shapes, types, since, ptx)
        form("b", "row col" if free else "col", shapes, types, since, ptx)
        for operand in "cd" if sums else "":
            form(operand, "row col", shapes, " ".join(sums), since, ptx)
    return forms


def _product(spelling: str, since: str, ptx: Version, multiplicands: str = "") -> FragmentForm:
    return FragmentForm(
        spelling=spelling, kind=WmmaProduct, fields=partial(_multiplied, multiplicands), since=since, ptx=ptx,
        section="9.7.14.4.5", compared=WMMA, opaque=True,
    )  # fmt: skip


def _products() -> list[FragmentForm]:
    start = "wmma.mma .sync.aligned."
    any_, both = start + "<row col>.<row col>.", start + "row.col."
    large, other = f"<{' '.join(_LARGE)}>", " ".join(_LARGE[1:])
    half = ".<f16 f32>.<f16 f32>"
    return [
        _product(f"{any_}m16n16k16{half}", "sm_70", (6, 0), "f16"),
        _product(f"{any_}<{other}>{half}", "sm_70", (6, 1), "f16"),
        _product(f"{any_}{large}.f32.bf16.bf16.f32", "sm_80", (7, 0)),
        *(_product(f"{any_}{large}.s32.{x}.{x}.s32{{.satfinite}}", "sm_72", (6, 3)) for x in ("s8", "u8")),
        _product(f"{any_}m16n16k8.f32.tf32.tf32.f32", "sm_80", (7, 0)),
        _product(f"{any_}m8n8k4{{.<rn rz rm rp>}}.f64.f64.f64.f64", "sm_80", (7, 0)),
        *(_product(f"{both}m8n8k32.s32.{x}.{x}.s32{{.satfinite}}", "sm_75", (6, 3)) for x in ("s4", "u4")),
        _product("wmma.mma.xor.popc .sync.aligned.row.col.m8n8k128.s32.b1.b1.s32", "sm_75", (6, 3)),
        _product("wmma.mma.and.popc .sync.aligned.row.col.m8n8k128.s32.b1.b1.s32", "sm_80", (7, 1)),
    ]


WMMA_MOVES: tuple[FragmentForm, ...] = tuple(_moves())
"""Forms of `wmma.load` and `wmma.store`."""

WMMA_PRODUCTS: tuple[FragmentForm, ...] = tuple(_products())
"""Forms of `wmma.mma`."""

WMMA_FORMS = (*WMMA_MOVES, *WMMA_PRODUCTS)
"""Every form of this module."""
