"""Caches: instructions that affect where data is cached but no bits, and the cache policies of accesses.

The rules (PTX ISA 9.1, 9.7.9.13 to 9.7.9.18):

1. `prefetch` and `prefetchu` bring a line closer, `applypriority` sets its eviction priority: no bit changes. An
   invalid address causes no error in `prefetch`.
2. `discard` drops 128 bytes that start at a multiple of 128: they are undefined until they are written again.
3. A policy is 64 bits that PTX calls opaque. Policies of fractions are ptxas's own constants: the fraction in
   sixteenths, rounded up, minus one; the priority of that fraction; that of the rest. Policies of ranges have no
   meaning here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal

from ...isa import OperandSpec, Signature, address, value
from ..forms import Form
from ..measurements import derived, published
from ..records import InstructionRow
from ..windows import Space, space_of

_LINE = 128
_PRIMARY = {"evict_unchanged": 0, "evict_first": 1, "evict_last": 2, "evict_normal": 3}


@dataclass(frozen=True, kw_only=True)
class CacheControl(InstructionRow):
    """One `prefetch`, `prefetchu`, `applypriority` or `discard`.

    Attributes
    ----------
    action : {"prefetch", "applypriority", "discard"}
    space : {"generic", "global", "local", "const", "param"}
    uniform : bool
        Whether it is `prefetchu`: its address is generic, and a variable in its brackets is in global memory.
    """

    action: Literal["prefetch", "applypriority", "discard"]
    space: Space
    uniform: bool = False

    @property
    def size(self) -> int:
        """Bytes, the immediate second operand; 0 if there is none."""
        return 0 if self.action == "prefetch" else _LINE

    @cached_property
    def signature(self) -> Signature:
        """Its operands."""
        size = (value(str(self.size), "imm", values=(self.size,)),) if self.size else ()
        return (address("p", "global" if self.uniform else self.space), *size)


@dataclass(frozen=True, kw_only=True)
class CachePolicy(InstructionRow):
    """One `createpolicy`, which makes a cache policy.

    Attributes
    ----------
    by : {"fractional", "range", "cvt"}
        From a fraction of all accesses, a range of addresses, or a policy that the host has made.
    primary, secondary : str
        Priorities, such as "evict_last"; "" for a policy of the host.
    """

    by: Literal["fractional", "range", "cvt"]
    primary: str = ""
    secondary: str = ""

    @property
    def bits(self) -> int:
        """The bits of its policy other than the fraction (rule 3)."""
        return (1 << 60) | _PRIMARY.get(self.primary, 0) << 57 | (self.secondary == "evict_first") << 56

    @cached_property
    def signature(self) -> Signature:
        """Its operands."""
        given: tuple[OperandSpec, ...] = (value("a0", "b64"),)
        if self.by == "fractional":
            given = (value("fraction", "f32", optional=True),)
        elif self.by == "range":
            given = (address("p", "generic"), value("primary-size", "u32"), value("total-size", "u32"))
        return (value("d0", "b64", role="result"), *given)


def _control(words: tuple[str, ...]) -> dict[str, Any]:
    uniform = words[0] == "prefetchu"
    return {"action": "prefetch" if uniform else words[0], "space": space_of(words), "uniform": uniform}


def _policy(words: tuple[str, ...]) -> dict[str, Any]:
    priorities = [word.partition("::")[2] for word in words if word.startswith("L2::")]
    return {"by": words[1], **dict(zip(("primary", "secondary"), priorities, strict=False))}


_form = partial(Form, kind=CacheControl, fields=_control)
_prefetch = partial(_form, ptx=(2, 0), evidence=published("prefetch, prefetchu"))
_PRIORITIES = ".<L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged>"
_REST = "{.<L2::evict_first L2::evict_unchanged>}"
_made = partial(
    Form, kind=CachePolicy, fields=_policy, since="sm_80", ptx=(7, 4),
    evidence=derived("createpolicy", "the bits of a cache policy, which PTX leaves open, are read by no kernel"),
)  # fmt: skip

FORMS = (
    _prefetch(spelling="prefetch{.<global local>}.<L1 L2>"),
    _prefetch(spelling="prefetch{.global}.<L2::evict_last L2::evict_normal>", since="sm_80", ptx=(7, 4)),
    _prefetch(spelling="prefetch{.<const param>}.tensormap", since="sm_90"),
    _prefetch(spelling="prefetchu.L1"),
    _form(
        spelling="applypriority{.global}.L2::evict_normal", since="sm_80", ptx=(7, 4),
        evidence=published("applypriority"),
    ),
    _form(spelling="discard{.global}.L2", since="sm_80", ptx=(7, 4), evidence=published("discard")),
    _made(spelling=f"createpolicy.fractional {_PRIORITIES}{_REST}.b64"),
    _made(spelling=f"createpolicy.range {{.global}}{_PRIORITIES}{_REST}.b64"),
    _made(spelling="createpolicy.cvt .L2.b64"),
)  # fmt: skip
"""Every form of this module."""
