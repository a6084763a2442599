"""The rows of the table of `mma`.

Each `Family` stands for all combinations of its choices; `instructions` makes their records. Tests compare the rows
with what ptxas accepts, by target and PTX version: against a catalogue and against ptxas itself.

Sources: PTX ISA 9.1, 9.7.14.5.14 and 9.7.14.6.3 (docs/specification/ptx.md 1); the sets of mnemonics that ptxas 12.9 to
13.5 accept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..._records import Shown
from ..gpus import since
from ..grammar import Choices, Version

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Family(Shown):
    """A row of the table: all its combinations are instructions, on the same targets and from the same PTX version.

    Attributes
    ----------
    accumulators, multiplicands : tuple of (str, str)
        Types of (D, C) and of (A, B).
    sparsity, kind : str, optional
    scales : tuple of (scale_vec or None, stype or None)
    satfinite, roundings, bit_ops : tuple
        Choices of each qualifier; None means omitted.
    since : str
        First target. Without a suffix it includes all later targets; with "f" the later ones with "f" or "a"; with "a"
        the later ones with "a".
    """

    shapes: str  # PTX shapes, separated by blanks
    accumulators: Pairs
    multiplicands: Pairs
    layouts: Pairs = (("row", "col"),)  # of A and B
    sparsity: str | None = None
    kind: str | None = None
    scales: tuple[tuple[str | None, str | None], ...] = ((None, None),)
    satfinite: tuple[bool, ...] = (False,)
    roundings: tuple[str | None, ...] = (None,)
    bit_ops: tuple[str | None, ...] = (None,)
    since: str
    ptx: Version  # first PTX version
    documented: bool = True  # whether PTX's grammar has these spellings

    @property
    def targets(self) -> tuple[str, ...]:
        """Targets that have the instructions, oldest first."""
        return since(self.since)

    @property
    def choices(self) -> Choices:
        """The values of the fields: the table has all combinations, the last choice fastest."""
        return (
            (("sparsity", "kind"), ((self.sparsity, self.kind),)),
            (("m", "n", "k"), tuple(tuple(map(int, re.findall(r"\d+", shape))) for shape in self.shapes.split())),
            (("a_layout", "b_layout"), self.layouts),
            (("scale_vec", "stype"), self.scales),
            (("satfinite",), tuple((choice,) for choice in self.satfinite)),
            (("d_type", "c_type"), self.accumulators),
            (("a_type", "b_type"), self.multiplicands),
            (("rounding",), tuple((choice,) for choice in self.roundings)),
            (("bit_op",), tuple((choice,) for choice in self.bit_ops)),
        )


def _pairs(*types: str) -> Pairs:
    """Every pair of these types."""
    return tuple((a, b) for a in types for b in types)


def _same(*types: str) -> Pairs:
    return tuple((t, t) for t in types)


_F, _S, _I, _D = ("f16", "f16"), ("f32", "f32"), ("s32", "s32"), ("f64", "f64")
_FP8 = _pairs("e4m3", "e5m2")
_F8F6F4 = _pairs("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
_NARROW: Pairs = tuple(pair for pair in _F8F6F4 if pair not in _FP8)
_INT8 = _pairs("s8", "u8")
_INT4 = _pairs("s4", "u4")
_EITHER = (False, True)
_ROUNDINGS = (None, "rn", "rz", "rm", "rp")
_FP4: Pairs = (("e2m1", "e2m1"),)
_ORDERED = "sp::ordered_metadata"


_DENSE = (
    Family(
        shapes="m8n8k4", layouts=_pairs("row", "col"), multiplicands=_same("f16"),
        accumulators=(_F, ("f32", "f16"), _S), since="sm_70", ptx=(6, 4),
    ),
    Family(shapes="m16n8k8", accumulators=(_F, _S), multiplicands=_same("f16"), since="sm_75", ptx=(6, 5)),
    Family(shapes="m16n8k16", accumulators=(_F, _S), multiplicands=_same("f16"), since="sm_80", ptx=(7, 0)),
    Family(shapes="m16n8k8 m16n8k16", accumulators=(_S,), multiplicands=_same("bf16"), since="sm_80", ptx=(7, 0)),
    Family(shapes="m16n8k4 m16n8k8", accumulators=(_S,), multiplicands=_same("tf32"), since="sm_80", ptx=(7, 0)),
    Family(
        shapes="m8n8k4", accumulators=(_D,), multiplicands=_same("f64"), roundings=_ROUNDINGS,
        since="sm_80", ptx=(7, 0),
    ),
    Family(
        shapes="m16n8k4 m16n8k8 m16n8k16", accumulators=(_D,), multiplicands=_same("f64"), roundings=_ROUNDINGS,
        since="sm_90", ptx=(7, 8),
    ),
    Family(shapes="m16n8k32", accumulators=(_S,), multiplicands=_FP8, since="sm_89", ptx=(8, 4)),
    Family(shapes="m16n8k32", accumulators=(_F,), multiplicands=_FP8, since="sm_89", ptx=(8, 7)),
    Family(shapes="m16n8k16", accumulators=(_F, _S), multiplicands=_FP8, since="sm_89", ptx=(8, 7)),
    Family(
        shapes="m16n8k16", accumulators=(_F, _S), multiplicands=_FP8, kind="f8f6f4", since="sm_100f", ptx=(8, 7),
        documented=False,
    ),
    Family(shapes="m16n8k32", accumulators=(_S,), multiplicands=_FP8, kind="f8f6f4", since="sm_100f", ptx=(8, 6)),
    Family(shapes="m16n8k32", accumulators=(_F,), multiplicands=_FP8, kind="f8f6f4", since="sm_100f", ptx=(8, 7)),
    Family(
        shapes="m16n8k32", accumulators=(_F, _S), multiplicands=_NARROW, kind="f8f6f4", since="sm_120f", ptx=(8, 7),
    ),
    Family(
        shapes="m16n8k32", accumulators=(_S,), multiplicands=_F8F6F4, kind="mxf8f6f4",
        scales=((None, "ue8m0"), ("1X", "ue8m0")), since="sm_120f", ptx=(8, 7),
    ),
    Family(
        shapes="m16n8k64", accumulators=(_S,), multiplicands=_FP4, kind="mxf4",
        scales=((None, "ue8m0"), ("2X", "ue8m0")), since="sm_120f", ptx=(8, 7),
    ),
    Family(
        shapes="m16n8k64", accumulators=(_S,), multiplicands=_FP4, kind="mxf4nvf4",
        scales=(("2X", "ue8m0"), ("4X", "ue4m3")), since="sm_120f", ptx=(8, 7),
    ),
    Family(
        shapes="m16n8k64", accumulators=(_S,), multiplicands=_FP4, kind="mxf4nvf4",
        scales=(("4X", "ue8m0"),), since="sm_120f", ptx=(9, 1),
    ),
    Family(
        shapes="m8n8k16", accumulators=(_I,), multiplicands=_INT8, satfinite=_EITHER, since="sm_75", ptx=(6, 5),
    ),
    Family(
        shapes="m16n8k16 m16n8k32", accumulators=(_I,), multiplicands=_INT8, satfinite=_EITHER,
        since="sm_80", ptx=(7, 0),
    ),
    Family(
        shapes="m8n8k32", accumulators=(_I,), multiplicands=_INT4, satfinite=_EITHER, since="sm_75", ptx=(6, 5),
    ),
    Family(
        shapes="m16n8k32 m16n8k64", accumulators=(_I,), multiplicands=_INT4, satfinite=_EITHER,
        since="sm_80", ptx=(7, 0),
    ),
    Family(
        shapes="m8n8k128", accumulators=(_I,), multiplicands=_same("b1"), bit_ops=("xor",),
        since="sm_75", ptx=(7, 0),
    ),
    Family(
        shapes="m16n8k128 m16n8k256", accumulators=(_I,), multiplicands=_same("b1"), bit_ops=("xor",),
        since="sm_80", ptx=(7, 0),
    ),
    Family(
        shapes="m8n8k128 m16n8k128 m16n8k256", accumulators=(_I,), multiplicands=_same("b1"), bit_ops=("and",),
        since="sm_80", ptx=(7, 1),
    ),
)  # fmt: skip


def _sparse() -> tuple[Family, ...]:
    both = (("sp", (7, 1)), (_ORDERED, (8, 5)))
    common = tuple(
        Family(
            sparsity=sparsity, shapes=shapes, accumulators=accumulators, multiplicands=pairs, satfinite=satfinite,
            since="sm_80", ptx=ptx,
        )
        for sparsity, ptx in both
        for shapes, accumulators, pairs, satfinite in (
            ("m16n8k16 m16n8k32", (_F, _S), _same("f16"), (False,)),
            ("m16n8k16 m16n8k32", (_S,), _same("bf16"), (False,)),
            ("m16n8k8 m16n8k16", (_S,), _same("tf32"), (False,)),
            ("m16n8k32 m16n8k64", (_I,), _INT8, _EITHER),
            ("m16n8k64 m16n8k128", (_I,), _INT4, _EITHER),
        )
    )  # fmt: skip

    def ordered(
        shapes: str, pairs: Pairs, since: str, ptx: Version = (8, 7), *, accumulators: Pairs = (_S,),
        kind: str | None = None, scales: tuple[tuple[str | None, str | None], ...] = ((None, None),),
        documented: bool = True,
    ) -> Family:  # fmt: skip
        return Family(
            sparsity=_ORDERED, shapes=shapes, accumulators=accumulators, multiplicands=pairs, kind=kind,
            scales=scales, since=since, ptx=ptx, documented=documented,
        )  # fmt: skip

    return (
        *common,
        Family(sparsity="sp", shapes="m16n8k64", accumulators=(_S,), multiplicands=_FP8, since="sm_89", ptx=(8, 4)),
        ordered("m16n8k64", _FP8, "sm_89", (8, 5)),
        ordered("m16n8k64", _FP8, "sm_120f", accumulators=(_F,), documented=False),
        ordered("m16n8k64", _FP8, "sm_100f", (8, 6), kind="f8f6f4"),
        ordered("m16n8k64", _FP8, "sm_120f", accumulators=(_F,), kind="f8f6f4"),
        ordered("m16n8k64", _NARROW, "sm_120f", accumulators=(_F, _S), kind="f8f6f4"),
        ordered("m16n8k64", _F8F6F4, "sm_120f", kind="mxf8f6f4", scales=((None, "ue8m0"), ("1X", "ue8m0"))),
        ordered("m16n8k128", _FP4, "sm_120a", kind="mxf4", scales=((None, "ue8m0"), ("2X", "ue8m0"))),
        ordered("m16n8k128", _FP4, "sm_120a", kind="mxf4nvf4", scales=(("2X", "ue8m0"), ("4X", "ue4m3"))),
        ordered("m16n8k128", _FP4, "sm_120a", (9, 1), kind="mxf4nvf4", scales=(("4X", "ue8m0"),)),
    )


FAMILIES: tuple[Family, ...] = _DENSE + _sparse()
"""The whole table."""
