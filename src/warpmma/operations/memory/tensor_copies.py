"""Copies of boxes of tensors, and changes of the maps that describe them: the forms.

The rules (PTX ISA 9.1, 9.7.9.27, `cp.async.bulk.tensor`, `cp.reduce.async.bulk.tensor`,
`cp.async.bulk.prefetch.tensor`, `tensormap.replace`; 9.7.13.16, `tensormap.cp_fenceproxy`):

1.  One thread copies a box of a tensor of 1 to 5 dimensions between global and shared memory. `[p, {c0, c1}]` are the
    address of the 128 bytes of a tensor map and the coordinates of the box, the innermost dimension first.
2.  `.tile`, which may be left out, copies a box with sides along the dimensions. `.im2col`, of 3 to 5 dimensions,
    copies the channels of a column of pixels; a load has an offset for each spatial dimension, and a store is
    `.im2col_no_offs`.
3.  A load is counted by an mbarrier, a store or a reduction joins a bulk group of its thread, as `cp.async.bulk` does
    (`bulk`). The type of a reduction is that of the map.
4.  `tensormap.replace` changes one field of a map in memory. Its values are immediates where PTX numbers them, and so
    is the dimension of a field that has one for each. A stride is in bytes, in texts of every version: ptxas 13.0 emits
    one code for them.
5.  `tensormap.cp_fenceproxy` copies a map of a block from shared to global memory, by a whole warp, and releases it.
6.  Forms of sm_100 alone (`.tile::gather4`, `.tile::scatter4`, `.im2col::w`, `.cta_group`, `.swizzle_atomicity`) are
    absent.
7.  Copies that ran on an H200 are measured: loads to `.shared::cluster` and stores of every rank and mode, and the
    reductions of `_RAN`. No form with `.multicast::cluster`, `.L2::cache_hint` or a load to `.shared::cta` ran: these
    are published, and so are the other reductions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, Literal

from ...isa import POLICY, OperandSpec, Signature, address, numbered, value
from ..control import Hint
from ..forms import Form
from ..measurements import COPIES, measured, published
from ..records import InstructionRow, MemoryScope
from ..windows import Space, space_of

_RANKS = "1d 2d 3d 4d 5d"
_IMAGES = "3d 4d 5d"  # im2col
_OPERATIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
MAP_SIZE = 128
"""Bytes of a tensor map."""

_INTEGERS = ("u32", "s32", "u64", "s64")
_BITS = ("u32", "s32", "u64")  # not s64: an H200 traps
_EXTREMES = (*_INTEGERS, "f16", "bf16")
REDUCED: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "add": ("u32", "s32", "u64", "f32", "f32.ftz", "f64", "tf32", "tf32.ftz", "f16", "bf16"),
    "min": _EXTREMES, "max": _EXTREMES,
    "inc": ("u32",), "dec": ("u32",), "and": _BITS, "or": _BITS, "xor": _BITS,
})  # fmt: skip
"""Element types of a map that each reduction takes; on others the instruction traps."""


@dataclass(frozen=True, kw_only=True)
class TensorCopy(InstructionRow):
    """One `cp.async.bulk.tensor` or `cp.reduce.async.bulk.tensor`.

    Attributes
    ----------
    rank : int
        Dimensions of the tensor.
    direction : {"load", "store"}
        From global to shared memory, or back.
    space : {"shared", "shared::cluster"}
        Where the box is: in the block of the thread, or in any of its cluster.
    im2col : bool
    operation : str
        Of a reduction, "add", "min", ...; "" for a copy.
    multicast, hint : bool
        Whether a mask of blocks, and a cache policy, are the last operands.
    """

    rank: int
    direction: Literal["load", "store"]
    space: Space
    im2col: bool = False
    operation: str = ""
    multicast: bool = False
    hint: bool = False

    @property
    def offsets(self) -> int:
        """Offsets of an im2col load."""
        return self.rank - 2 if self.im2col and self.direction == "load" else 0

    @cached_property
    def reds(self) -> Mapping[str, str]:
        """Mnemonics of the `red` that combines elements as a reduction does, by the element types that it takes.

        Sums of f32 keep subnormals, as `red` of shared memory does; those of f32.ftz are `red` of global memory.
        """
        return MappingProxyType(
            {
                x: _red(self.operation, x.removesuffix(".ftz").replace("tf32", "f32"))
                for x in REDUCED.get(self.operation, ())
            }
        )

    @cached_property
    def signature(self) -> Signature:
        """Its operands: `p` is the box in shared memory, `q` the tensor map, `m` the mbarrier."""
        box, hint = address("p", self.space), (POLICY,) * self.hint
        if self.direction == "store":
            return (*_place(self.rank), box, *hint)
        mask = (value("mask", "b16"),) if self.multicast else ()
        return (box, *_place(self.rank), address("m", self.space), *_moved(self.offsets), *mask, *hint)


@dataclass(frozen=True, kw_only=True)
class MapReplacement(InstructionRow):
    """One `tensormap.replace`.

    Attributes
    ----------
    field : str
        "global_address", "box_dim" and so on, as PTX names it.
    space : {"generic", "global", "shared"}
        Where the map is.
    """

    field: str
    space: Space

    @cached_property
    def signature(self) -> Signature:
        """Its operands: the map, the dimension of fields that have one, the new value."""
        ordinal = (value("ordinal", "imm", values=_ORDINALS[self.field]),) if self.field in _ORDINALS else ()
        if self.field in _NUMBERED:
            return (address("p", self.space), value("a1", "imm", values=_NUMBERED[self.field]))
        return (address("p", self.space), *ordinal, value("a1", "b64" if self.field in _LONG else "b32"))


@dataclass(frozen=True, kw_only=True)
class MapPublication(InstructionRow):
    """One `tensormap.cp_fenceproxy`.

    Attributes
    ----------
    scope : str
        The threads to which it releases the map.
    """

    scope: MemoryScope

    @cached_property
    def signature(self) -> Signature:
        """Its operands: where the map goes, where it is, and its size."""
        return (address("p", "global"), address("q", "shared"), value("size", "imm", values=(MAP_SIZE,)))


_ORDINALS = {name: range(5) for name in ("box_dim", "global_dim", "global_stride", "element_stride")}
_NUMBERED = {"elemtype": range(13), "interleave_layout": range(3), "swizzle_mode": range(4), "fill_mode": range(2)}
_LONG = ("global_address", "global_stride")


def _place(rank: int) -> tuple[OperandSpec, ...]:
    """Rule 1."""
    return (address("q", "generic", other="b32"), numbered("c", rank, "s32", braces="always", within=True))


def _red(operation: str, type_: str) -> str:
    """Return the mnemonic of the `red` that combines elements of a type as a reduction does."""
    small = type_ in ("f16", "bf16")
    vector = ".v2" * (small and operation != "add")  # `red` has these for vectors only
    word = f"b{type_[1:]}" if operation in ("and", "or", "xor") else type_
    return f"red.relaxed.gpu.global.{operation}{'.noftz' * small}{vector}.{word}"


def _moved(count: int) -> tuple[OperandSpec, ...]:
    """Rule 2."""
    return (numbered("offset", count, "u16", braces="always"),) if count else ()


def _copy(words: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a row that the words of a copy determine."""
    return {
        "rank": _rank(words), "direction": "store" if "bulk_group" in words else "load",
        "space": "shared::cluster" if "shared::cluster" in words else "shared",
        "im2col": "im2col" in words or "im2col_no_offs" in words,
        "operation": next((x for x in words if x in _OPERATIONS), ""),
        "multicast": "multicast::cluster" in words, "hint": "L2::cache_hint" in words,
    }  # fmt: skip


def _rank(words: tuple[str, ...]) -> int:
    return next(int(x[0]) for x in words if x in ("1d", "2d", "3d", "4d", "5d"))


def _prefetch(words: tuple[str, ...]) -> dict[str, Any]:
    rank, hint = _rank(words), (POLICY,) * ("L2::cache_hint" in words)
    return {"signature": (*_place(rank), *_moved(rank - 2 if "im2col" in words else 0), *hint)}


def _replacement(words: tuple[str, ...]) -> dict[str, Any]:
    return {"field": words[3], "space": space_of(words)}


_RAN: Mapping[str, tuple[str, str]] = MappingProxyType({
    "add": (_RANKS, _IMAGES), "min": (_RANKS, _IMAGES), "max": (_RANKS, "3d 4d"),
    "inc": ("2d 3d", "3d"), "dec": ("2d 4d", ""),
    "and": ("1d 2d 3d", "3d 4d"), "or": ("1d 2d 3d", _IMAGES), "xor": (_RANKS, "3d 4d"),
})  # fmt: skip
"""Ranks of the reductions that ran on an H200, without a cache hint: tiled, and im2col (rule 7)."""

_copies = partial(Form, kind=TensorCopy, fields=_copy, since="sm_90", ptx=(8, 0))
_ran = partial(_copies, evidence=measured("cp.async.bulk.tensor", COPIES))
_unrun = partial(_copies, evidence=published("cp.async.bulk.tensor"))
_prefetches = partial(
    Form, kind=Hint, fields=_prefetch, since="sm_90", ptx=(8, 0), evidence=published("cp.async.bulk.prefetch.tensor")
)
_replacements = partial(
    Form, kind=MapReplacement, fields=_replacement, since="sm_90a", ptx=(8, 3), evidence=published("tensormap.replace")
)
_HINT, _MULTICAST, _COUNTED = ".L2::cache_hint", ".multicast::cluster", ".mbarrier::complete_tx::bytes"


def _reductions() -> Iterator[Form]:
    """Rule 7."""
    section, head, tail = "cp.reduce.async.bulk.tensor", "cp.reduce.async.bulk.tensor .<", ">.global.shared::cta."
    for mode, (place, every) in {"[.tile]": (0, _RANKS), ".im2col_no_offs": (1, _IMAGES)}.items():
        for operation, modes in _RAN.items():
            ran = modes[place]
            others = " ".join(x for x in every.split() if x not in ran.split())
            for ranks, evidence in ((ran, measured(section, COPIES)), (others, published(section))):
                if ranks:
                    yield _copies(spelling=f"{head}{ranks}{tail}{operation}{mode}.bulk_group", evidence=evidence)
        hinted = f"{head}{every}{tail}<{' '.join(_RAN)}>{mode}.bulk_group{_HINT}"
        yield _copies(spelling=hinted, evidence=published(section))


FORMS = (
    *(
        form
        for ranks, mode in ((_RANKS, "[.tile]"), (_IMAGES, ".im2col"))
        for load in (f"cp.async.bulk.tensor .<{ranks}>.shared::cluster.global{mode}{_COUNTED}",)
        for form in (
            _ran(spelling=load),
            _unrun(spelling=f"{load}{_MULTICAST}{{{_HINT}}}"),
            _unrun(spelling=f"{load}{_HINT}"),
            _unrun(spelling=f"{load.replace('::cluster', '::cta')}{{{_HINT}}}", ptx=(8, 6)),
            _prefetches(spelling=f"cp.async.bulk.prefetch.tensor .<{ranks}>.L2.global{mode}{{{_HINT}}}"),
        )
    ),
    *(
        form
        for ranks, mode in ((_RANKS, "[.tile]"), (_IMAGES, ".im2col_no_offs"))
        for store in (f"cp.async.bulk.tensor .<{ranks}>.global.shared::cta{mode}.bulk_group",)
        for form in (_ran(spelling=store), _unrun(spelling=f"{store}{_HINT}"))
    ),
    *_reductions(),
    _replacements(
        spelling="tensormap.replace.tile.<global_address global_stride> {.<global shared::cta>}.b1024.b64"
    ),
    _replacements(
        spelling="tensormap.replace.tile.<rank box_dim global_dim element_stride elemtype interleave_layout "
        "swizzle_mode fill_mode> {.<global shared::cta>}.b1024.b32"
    ),
    Form(
        spelling="tensormap.cp_fenceproxy .global.shared::cta.tensormap::generic.release.<cta cluster gpu sys>"
        ".sync.aligned",
        kind=MapPublication, since="sm_90", ptx=(8, 3), evidence=published("tensormap.cp_fenceproxy"),
        fields=lambda words: {"scope": next(x for x in words if x in ("cta", "cluster", "gpu", "sys"))},
    ),
)  # fmt: skip
"""Every form of this module."""
