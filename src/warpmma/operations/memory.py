"""`ld`, `st` and `cp.async`: the forms of what moves bytes between registers, shared and global memory.

The rules (PTX ISA 9.1, 9.7.9.8 to 9.7.9.11 and 9.7.9.25):

1.  Each lane moves its elements, one after another, to or from an address that is a multiple of their bytes: at most
    16, and in global memory 32 from sm_100 on.
2.  Cache operators, eviction priorities, prefetch sizes and cache policies change no bit: of operators and priorities
    of L1 there is one at most, priorities and prefetching are for global memory, those of L2 for 32 bytes.
3.  `.nc` reads global memory through a cache that does not see what is written meanwhile.
4.  `cp.async.ca` copies 4, 8 or 16 bytes, `.cg` 16. Its thread waits for groups of copies, or for all.

`.weak` is what stands there if nothing does. What orders memory (`.relaxed`, `.acquire`, `.release`, `.volatile`,
`.mmio`) is not here: nobody simulates it yet. Nor are the other state spaces and elements of 128 bits.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from .forms import Form
from .measurements import published
from .records import Access, Copy, CopyGroup

__all__ = ["FORMS"]

_LEAST = [letter + size for size in ("8", "16", "32") for letter in "bsu"] + ["f32"]
_MOST = ["b64", "s64", "u64", "f64"]
_TYPES = [*_LEAST, *_MOST]
_ELEMENTS = " ".join([*_TYPES, *(f"v2.{x}" for x in _TYPES), *(f"v4.{x}" for x in _LEAST)])
_WIDE = " ".join([*(f"v8.{x}" for x in ("b32", "s32", "u32", "f32")), *(f"v4.{x}" for x in _MOST)])
"""Rule 1: what fills at most 16 bytes, and what 32."""

_EVICT = "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate"
_EVICT2 = "[.<L2::evict_normal L2::evict_first L2::evict_last>]"
_HINT, _PREFETCH = "{.L2::cache_hint}", "[.<L2::64B L2::128B L2::256B>]"
_SHARED = ".<shared shared::cta>"


def _access(words: tuple[str, ...]) -> dict[str, Any]:
    """Return what the words of `ld` and `st` say of a row."""
    (space,) = (word.partition("::")[0] for word in words if word.partition("::")[0] in ("global", "shared"))
    count = int(words[-2][1:]) if words[-2] in ("v2", "v4", "v8") else 1
    return {
        "direction": "load" if words[0] == "ld" else "store", "space": space, "count": count, "type": words[-1],
        "nc": "nc" in words, "hint": "L2::cache_hint" in words,
    }  # fmt: skip


def _copy(words: tuple[str, ...]) -> dict[str, Any]:
    return {"sizes": (16,) if "cg" in words else (4, 8, 16), "hint": "L2::cache_hint" in words}


def _group(words: tuple[str, ...]) -> dict[str, Any]:
    return {"action": words[2].replace("commit_group", "commit")}


_load, _store = (
    partial(Form, kind=Access, fields=_access, ptx=(1, 0), evidence=published(f"{name}: moves bits"))
    for name in ("ld", "st")
)
_cached = partial(_load, ptx=(3, 1))
_async = partial(Form, since="sm_80", ptx=(7, 0), evidence=published("cp.async"))

FORMS = (
    _load(spelling=f"ld[.weak]{_SHARED}[.<ca cg cs lu cv>].<{_ELEMENTS}>"),
    _load(spelling=f"ld[.weak].global[.<ca cg cs lu cv {_EVICT}>]{_HINT}{_PREFETCH}.<{_ELEMENTS}>"),
    _load(
        spelling=f"ld[.weak].global[.<ca cg cs lu cv {_EVICT}>]{_EVICT2}{_HINT}{_PREFETCH}.<{_WIDE}>",
        since="sm_100", ptx=(8, 8),
    ),
    *(
        form
        for nc in ("[.<ca cg cs>].nc", f".nc.<{_EVICT}>")
        for form in (
            _cached(spelling=f"ld.global{nc}{_HINT}{_PREFETCH}.<{_ELEMENTS}>"),
            _cached(
                spelling=f"ld.global{nc}{_EVICT2}{_HINT}{_PREFETCH}.<{_WIDE}>", since="sm_100", ptx=(8, 8)
            ),
        )
    ),
    _store(spelling=f"st[.weak]{_SHARED}[.<wb cg cs wt>].<{_ELEMENTS}>"),
    _store(spelling=f"st[.weak].global[.<wb cg cs wt {_EVICT}>]{_HINT}.<{_ELEMENTS}>"),
    _store(
        spelling=f"st[.weak].global[.<wb cg cs wt {_EVICT}>]{_EVICT2}{_HINT}.<{_WIDE}>", since="sm_100", ptx=(8, 8)
    ),
    _async(spelling=f"cp.async .<ca cg>{_SHARED}.global{_HINT}{_PREFETCH}", kind=Copy, fields=_copy),
    _async(spelling="cp.async .<commit_group wait_group wait_all>", kind=CopyGroup, fields=_group),
)  # fmt: skip
"""Every form of this module."""
