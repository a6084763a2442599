"""`ld`, `ldu`, `st` and `cp.async`: the forms that move bytes between registers and memory.

The rules (PTX ISA 9.1, 9.7.9.8 to 9.7.9.12 and 9.7.9.25):

1.  Each lane moves contiguous elements to or from an address that is a multiple of their total bytes: at most four of
    16 bytes, and 32 bytes in global memory from sm_100 on. An element of 128 bits is two b64 registers. Eight elements
    of 8 or 16 bits are none: ptxas 13.0 takes them, moves the first alone (seen on an H200), or crashes.
2.  Without a state space the address is generic (`windows`). Constant memory and the parameters of an entry are only
    read; `.param` of a function is memory of its thread, and so is `.local`.
3.  Cache operators, eviction priorities, prefetch sizes and cache policies change no bit. There is at most one operator
    or L1 priority; priorities and prefetching apply to global memory, L2 priorities to accesses of 32 bytes.
4.  `.relaxed`, `.acquire` and `.release` order memory in a scope; `.volatile` is relaxed in the scope of the system,
    and so is `.mmio`. `.weak` is the default.
5.  `.nc` reads global memory through a cache that is not coherent with concurrent writes, and so does `ldu`.
6.  `cp.async.ca` copies 4, 8 or 16 bytes, `.cg` 16. Its thread waits for groups of copies, or for all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..effects import Access, Copy, CopyGroup
from ..forms import Form
from ..measurements import published
from ..windows import space_of

_LEAST = [letter + size for size in ("8", "16", "32") for letter in "bsu"] + ["f32"]
_MOST = ["b64", "s64", "u64", "f64"]
_TYPES = [*_LEAST, *_MOST]
_PLAIN = " ".join([*_TYPES, "b128"])
_ELEMENTS = " ".join([*_TYPES, "b128", *(f"v2.{x}" for x in _TYPES), *(f"v4.{x}" for x in _LEAST)])
_WIDE = " ".join([*(f"v8.{x}" for x in ("b32", "s32", "u32", "f32")), *(f"v4.{x}" for x in _MOST)])
"""Rule 1: types and vectors of at most 16 bytes, and of 32."""

_EVICT = "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate"
_EVICT2 = "[.<L2::evict_normal L2::evict_first L2::evict_last>]"
_HINT, _PREFETCH = "{.L2::cache_hint}", "[.<L2::64B L2::128B L2::256B>]"
_SHARED = ".<shared shared::cta>"  # of `cp.async`
_BLOCK = "shared shared::cta shared::cluster"
_OWN = "local const param param::entry param::func"
_SCOPES = ".<cta cluster gpu sys>"
_ORDERS = {"volatile": "relaxed", "relaxed": "relaxed", "acquire": "acquire", "release": "release"}


def _access(words: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a row that the words of `ld` and `st` determine."""
    return {
        "direction": "store" if words[0] == "st" else "load",
        "space": space_of(words),
        "count": int(words[-2][1:]) if words[-2] in ("v2", "v4", "v8") else 1,
        "type": words[-1],
        "order": next((order for word, order in _ORDERS.items() if word in words), "weak"),
        "scope": next((word for word in words if word in ("cta", "cluster", "gpu")), "sys"),
        "nc": "nc" in words or words[0] == "ldu",
        "hint": "L2::cache_hint" in words,
    }


def _copy(words: tuple[str, ...]) -> dict[str, Any]:
    return {"sizes": (16,) if "cg" in words else (4, 8, 16), "hint": "L2::cache_hint" in words}


def _group(words: tuple[str, ...]) -> dict[str, Any]:
    return {"action": words[2].replace("commit_group", "commit")}


_load, _store, _uniform = (
    partial(Form, kind=Access, fields=_access, ptx=(1, 0), evidence=published(f"{name}: moves bits"))
    for name in ("ld", "st", "ldu")
)
_cached = partial(_load, ptx=(3, 1))
_async = partial(Form, since="sm_80", ptx=(7, 0), evidence=published("cp.async"))


def _wider(make: Callable[..., Form], before: str, more: str = "") -> tuple[Form, Form]:
    """Make the forms of global and generic addresses: of 16 bytes, and of 32."""
    return (
        make(spelling=f"{before}{more}.<{_ELEMENTS}>"),
        make(spelling=f"{before}{_EVICT2}{more}.<{_WIDE}>", since="sm_100", ptx=(8, 8)),
    )


FORMS = (
    *_wider(_load, f"ld[.weak]{{.global}}[.<ca cg cs lu cv {_EVICT}>]", _HINT + _PREFETCH),
    *_wider(partial(_load, ptx=(6, 0)), f"ld.<relaxed acquire>{_SCOPES}{{.global}}[.<{_EVICT}>]", _HINT + _PREFETCH),
    _load(spelling=f"ld.volatile{{.global}}{_PREFETCH}.<{_ELEMENTS}>"),
    _load(spelling=f"ld.volatile{{.global}}{_PREFETCH}.<{_WIDE}>", since="sm_100", ptx=(8, 8)),
    _load(spelling=f"ld.mmio.relaxed.sys{{.global}}.<{_PLAIN}>", ptx=(8, 2)),
    _load(spelling=f"ld[.weak].<{_BLOCK} {_OWN}>[.<ca cg cs lu cv>].<{_ELEMENTS}>"),
    _load(spelling=f"ld.volatile.<{_BLOCK}>.<{_ELEMENTS}>"),
    _load(spelling=f"ld.<relaxed acquire>{_SCOPES}.<{_BLOCK}>.<{_ELEMENTS}>", ptx=(6, 0)),
    *(
        form
        for nc in ("[.<ca cg cs>].nc", f".nc.<{_EVICT}>")
        for form in _wider(_cached, f"ld.global{nc}", _HINT + _PREFETCH)
    ),
    _uniform(spelling=f"ldu{{.global}}.<{_ELEMENTS}>", ptx=(2, 0)),
    *_wider(_store, f"st[.weak]{{.global}}[.<wb cg cs wt {_EVICT}>]", _HINT),
    *_wider(partial(_store, ptx=(6, 0)), f"st.<relaxed release>{_SCOPES}{{.global}}[.<{_EVICT}>]", _HINT),
    _store(spelling=f"st.volatile{{.global}}.<{_ELEMENTS}>"),
    _store(spelling=f"st.volatile{{.global}}.<{_WIDE}>", since="sm_100", ptx=(8, 8)),
    _store(spelling=f"st.mmio.relaxed.sys{{.global}}.<{_PLAIN}>", ptx=(8, 2)),
    _store(spelling=f"st[.weak].<{_BLOCK} local param param::func>[.<wb cg cs wt>].<{_ELEMENTS}>"),
    _store(spelling=f"st.volatile.<{_BLOCK}>.<{_ELEMENTS}>"),
    _store(spelling=f"st.<relaxed release>{_SCOPES}.<{_BLOCK}>.<{_ELEMENTS}>", ptx=(6, 0)),
    _async(spelling=f"cp.async .<ca cg>{_SHARED}.global{_HINT}{_PREFETCH}", kind=Copy, fields=_copy),
    _async(spelling="cp.async .<commit_group wait_group wait_all>", kind=CopyGroup, fields=_group),
)
"""Every form of this module."""
