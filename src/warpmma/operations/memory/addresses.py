"""Addresses of state spaces: `cvta`, `isspacep`, `mapa` and `getctarank`.

The rules (PTX ISA 9.1, 9.7.9.20 to 9.7.9.24; `windows`):

1. `cvta` adds the base of a space's window to an address in it, `cvta.to` subtracts it. An address of global memory is
   its generic address.
2. `isspacep` tests whether a generic address is in a window. PTX puts the window of parameters into global memory.
3. An address of shared memory has the rank of its block in the cluster from bit 24 on, as on an H200. `mapa` replaces
   the rank, without looking whether the cluster has it; `getctarank` returns it.

Generic addresses of 32 bits are missing: no GPU from sm_90 on has them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..._arrays import Array
from ..forms import Form
from ..measurements import CLUSTERS, derived, measured, published
from ..records import Operation
from ..value_forms import Words, value_row
from ..windows import RANK_BIT, RANKS, WINDOWS

_SPACES = "shared shared::cta shared::cluster local const param param::entry"


def _space(words: Words) -> str:
    return next(word.partition("::")[0] for word in words[1:] if word != "to")


def _cvta(words: Words) -> Callable[[Array], Array]:
    window = WINDOWS.get(_space(words))
    if window is None:
        return lambda a: a
    step = np.uint64(-window.base % (1 << 64) if "to" in words else window.base)
    return lambda a: a + step


def _isspacep(words: Words) -> Callable[[Array], Array]:
    space = _space(words)

    def inside(a: Array, name: str) -> Array:
        return np.asarray(a - np.uint64(WINDOWS[name].base) < np.uint64(WINDOWS[name].size))

    if space != "global":
        return partial(inside, name=space)
    others = [name for name in WINDOWS if name != "param"]
    return lambda a: ~np.logical_or.reduce([inside(a, name) for name in others])


def _getctarank(words: Words) -> Callable[[Array], Array]:
    return lambda a: np.asarray(a >> a.dtype.type(RANK_BIT) & a.dtype.type(RANKS)).astype(np.uint32)


def _mapa(words: Words) -> Callable[[Array, Array], Array]:
    def mapped(a: Array, rank: Array) -> Array:
        number = a.dtype.type
        new = (rank.astype(a.dtype) & number(RANKS)) << number(RANK_BIT)
        return np.asarray(a & ~number(RANKS << RANK_BIT) | new)

    return mapped


def _form(text: str, by: Callable[[Words], Callable[..., Any]], *, symbols: bool = False, **more: Any) -> Form:
    return Form(kind=Operation, fields=lambda words: {**value_row(text, by(words), words), "symbols": symbols}, **more)


_WINDOWS = derived("cvta", "the bases of the windows of state spaces, which PTX leaves open, are not compared")
_CLUSTER = measured("mapa, getctarank", CLUSTERS)

_mapped = partial(_form, since="sm_90", ptx=(7, 8), evidence=_CLUSTER)

FORMS = (
    _form("T -> T", _cvta, symbols=True, spelling=f"cvta.<{_SPACES}>.u64", ptx=(2, 0), evidence=_WINDOWS),
    _form("T -> T", _cvta, spelling=f"cvta.to .<{_SPACES}>.u64", ptx=(2, 0), evidence=_WINDOWS),
    _form("T -> T", _cvta, symbols=True, spelling="cvta.global.u64", ptx=(2, 0), evidence=published("cvta")),
    _form("T -> T", _cvta, spelling="cvta.to .global.u64", ptx=(2, 0), evidence=published("cvta")),
    _form(
        "u64 -> pred", _isspacep, spelling=f"isspacep.<global {_SPACES}>", ptx=(2, 0), evidence=published("isspacep")
    ),
    _mapped("T u32 -> T", _mapa, symbols=True, spelling="mapa.shared::cluster.<u32 u64>"),
    _mapped("T u32 -> T", _mapa, symbols=True, spelling="mapa.u64"),
    _mapped("T -> u32", _getctarank, symbols=True, spelling="getctarank.shared::cluster.<u32 u64>"),
    _mapped("T -> u32", _getctarank, symbols=True, spelling="getctarank.u64"),
)
"""Every form of this module."""
