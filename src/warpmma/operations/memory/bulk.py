"""Asynchronous bulk copies, and stores that an mbarrier counts: the forms.

The rules (PTX ISA 9.1, 9.7.9.25.4, `cp.async.bulk`, `cp.reduce.async.bulk`; 9.7.9.12, `st.async`; 9.7.13.7,
`red.async`):

1.  One thread copies any number of bytes, a multiple of 16, between addresses that are multiples of 16. With
    `.mbarrier::complete_tx::bytes` an mbarrier counts the bytes when they arrive; with `.bulk_group` they belong to
    a group of their thread, which `cp.async.bulk.commit_group` closes. These groups are separate from those of
    `cp.async`.
2.  `cp.async.bulk.wait_group n` waits for all groups of the thread except the last n; with `.read` only until their
    sources have been read.
3.  `cp.reduce.async.bulk` combines the destination, element by element, with the copied data, like `red` with `.gpu`
    scope. The exception: its sums of f32 keep subnormals, which `red` flushes in global memory.
4.  `st.async` and `red.async` take registers, and an mbarrier counts their bytes.
5.  `.shared::cluster` reaches the shared memory of all blocks of the cluster, `.shared::cta` the thread's own.
    `.multicast::cluster` copies to the blocks of a mask, by rank: to the address in each that the operand has in its
    own block, and so with the mbarrier.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal

from ...isa import POLICY, Signature, address, numbered, value
from ..control import Hint
from ..effects import CopyGroup
from ..forms import Form
from ..measurements import derived, published
from ..records import InstructionRow, RegisterType, register_type
from ..windows import space_of

Where = Literal["global", "shared", "shared::cluster"]

_SIZES = range(0, 1 << 20, 16)
"""Immediate numbers of bytes that ptxas accepts (rule 1)."""


@dataclass(frozen=True, kw_only=True)
class BulkCopy(InstructionRow):
    """One `cp.async.bulk` or `cp.reduce.async.bulk`.

    Attributes
    ----------
    to, origin : {"global", "shared", "shared::cluster"}
    operation, type : str
        For a reduction: "add", "min", ..., and the PTX type of an element; "" for a copy.
    grouped : bool
        Whether it belongs to a group instead of an mbarrier that counts its bytes.
    multicast, hint : bool
        Whether a mask of blocks, and a cache policy, are the last operands.
    """

    to: Where
    origin: Where
    operation: str = ""
    type: str = ""
    grouped: bool
    multicast: bool = False
    hint: bool = False

    @property
    def red(self) -> str:
        """Mnemonic of the `red` that combines elements as a reduction does."""
        return _red(self.to.partition("::")[0], self.operation, self.type)

    @cached_property
    def signature(self) -> Signature:
        """Its operands: `p` is the destination, `q` the source, `m` the mbarrier."""
        barrier = () if self.grouped else (address("m", "shared" if self.to == "shared" else "shared::cluster"),)
        mask = (value("mask", "b16"),) if self.multicast else ()
        ends = address("p", self.to), address("q", self.origin)
        return (*ends, value("size", "u32", values=_SIZES), *barrier, *mask, *[POLICY] * self.hint)


@dataclass(frozen=True, kw_only=True)
class AsyncStore(InstructionRow):
    """One `st.async` or `red.async`: registers to shared memory, counted by an mbarrier.

    Attributes
    ----------
    operation : str
        Of a reduction; "" for a store.
    type : str
    count : int
        Elements: 1, or 2, 4 for `.v2`, `.v4`.
    """

    operation: str = ""
    type: str
    count: int = 1

    @property
    def red(self) -> str:
        """Mnemonic of the `red` that combines elements as a reduction does."""
        return _red("shared", self.operation, self.type)

    @property
    def bits(self) -> int:
        """Bits of an element."""
        return int(self.type[1:])

    @property
    def size(self) -> int:
        """Bytes per lane; its address is a multiple of that."""
        return self.count * self.bits // 8

    @property
    def kind(self) -> RegisterType:
        """Class of the registers that hold an element."""
        return register_type(self.type)

    @cached_property
    def signature(self) -> Signature:
        """Its operands: `p` is the destination, `m` the mbarrier."""
        values = numbered("a", self.count, self.type, braces="never" if self.operation else "optional")
        return (address("p", "shared::cluster"), values, address("m", "shared::cluster"))


_OPERATIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")


def _copy(words: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a row that the words of a copy determine."""
    to, origin = (space_of([x]) for x in words if x.partition("::")[0] in ("global", "shared"))
    operation = next((x for x in words if x in _OPERATIONS), "")
    return {
        "to": to, "origin": origin, "operation": operation, "type": words[-1] if operation else "",
        "grouped": "bulk_group" in words, "multicast": "multicast::cluster" in words, "hint": "L2::cache_hint" in words,
    }  # fmt: skip


def _store(words: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a row that the words of `st.async` and `red.async` determine."""
    vector = next((int(x[1:]) for x in words if x in ("v2", "v4")), 1)
    return {"operation": next((x for x in words if x in _OPERATIONS), ""), "type": words[-1], "count": vector}


def _group(words: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a row that the words of a commit and a wait determine."""
    return {"action": words[3].replace("commit_group", "commit"), "bulk": True, "read": "read" in words}


def _prefetch(words: tuple[str, ...]) -> dict[str, Any]:
    size = value("a1", "u32", values=_SIZES)
    return {"signature": (address("p", "global"), size, *[POLICY] * ("L2::cache_hint" in words))}


def _red(space: str, operation: str, type_: str) -> str:
    """Return the mnemonic of the `red` that combines elements as a reduction does."""
    rounding = ".noftz" * ("f16" in type_)
    vector = ".v2" * (bool(rounding) and operation != "add")  # `red` has these for vectors only
    return f"red.relaxed.gpu.{space}.{operation}{rounding}{vector}.{type_}"


_form = partial(Form, kind=BulkCopy, fields=_copy, since="sm_90", ptx=(8, 0), evidence=published("cp.async.bulk"))
_exact = partial(_form, evidence=published("cp.reduce.async.bulk"))
_floats = partial(
    _form,
    evidence=derived(
        "cp.reduce.async.bulk",
        "sums, minima and maxima of floats in bulk are those of red, except that sums of f32 keep subnormals",
    ),
)
_HINT, _COUNTED = "{.L2::cache_hint}", ".mbarrier::complete_tx::bytes"
_FAR, _NEAR = ".global.shared::cta.bulk_group", f".shared::cluster.shared::cta{_COUNTED}"
_stored = partial(Form, kind=AsyncStore, fields=_store, since="sm_90", ptx=(8, 1))

FORMS = (
    _form(spelling=f"cp.async.bulk .shared::cluster.global{_COUNTED}{{.multicast::cluster}}{_HINT}"),
    _form(spelling=f"cp.async.bulk .shared::cta.global{_COUNTED}{_HINT}", ptx=(8, 6)),
    _form(spelling=f"cp.async.bulk {_NEAR}"),
    _form(spelling=f"cp.async.bulk {_FAR}{_HINT}"),
    _exact(spelling=f"cp.reduce.async.bulk {_FAR}{_HINT}.add.<u32 s32 u64>"),
    _exact(spelling=f"cp.reduce.async.bulk {_FAR}{_HINT}.<min max>.<u32 s32 u64 s64>"),
    _exact(spelling=f"cp.reduce.async.bulk {_FAR}{_HINT}.<inc dec>.u32"),
    _exact(spelling=f"cp.reduce.async.bulk {_FAR}{_HINT}.<and or xor>.<b32 b64>"),
    _exact(spelling=f"cp.reduce.async.bulk {_NEAR}.add.<u32 s32 u64>"),
    _exact(spelling=f"cp.reduce.async.bulk {_NEAR}.<min max>.<u32 s32>"),
    _exact(spelling=f"cp.reduce.async.bulk {_NEAR}.<inc dec>.u32"),
    _exact(spelling=f"cp.reduce.async.bulk {_NEAR}.<and or xor>.b32"),
    _floats(spelling=f"cp.reduce.async.bulk {_FAR}{_HINT}.add.<f32 f64>"),
    _floats(spelling=f"cp.reduce.async.bulk {_FAR}{_HINT}.add.noftz.<f16 bf16>"),
    _floats(spelling=f"cp.reduce.async.bulk {_FAR}{_HINT}.<min max>.<f16 bf16>"),
    Form(
        spelling="cp.async.bulk .<commit_group wait_group>", kind=CopyGroup, fields=_group, since="sm_90", ptx=(8, 0),
        evidence=published("cp.async.bulk"),
    ),
    Form(
        spelling="cp.async.bulk.wait_group .read", kind=CopyGroup, fields=_group, since="sm_90", ptx=(8, 0),
        evidence=published("cp.async.bulk"),
    ),
    Form(
        spelling=f"cp.async.bulk.prefetch .L2.global{_HINT}", kind=Hint, fields=_prefetch, since="sm_90", ptx=(8, 0),
        evidence=published("cp.async.bulk.prefetch"),
    ),
    _stored(
        spelling=f"st.async [.weak].shared::cluster{_COUNTED}{{.<v2 v4>}}.<b32 u32 s32 f32>",
        evidence=published("st.async"),
    ),
    _stored(
        spelling=f"st.async [.weak].shared::cluster{_COUNTED}{{.v2}}.<b64 u64 s64 f64>", evidence=published("st.async")
    ),
    *(
        _stored(
            spelling=f"red.async .relaxed.cluster.shared::cluster{_COUNTED}.{what}", evidence=published("red.async")
        )
        for what in ("<inc dec>.u32", "<min max>.<u32 s32>", "add.<u32 s32 u64>", "<and or xor>.b32")
    ),
)  # fmt: skip
"""Every form of this module."""
