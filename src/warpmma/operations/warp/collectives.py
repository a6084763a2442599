"""Collectives: instructions in which a warp's lanes see each other's operands.

The rules (PTX ISA 9.1: `shfl.sync`, `vote.sync`, `match.sync`, `redux.sync`, `activemask`):

1. Every lane has a membermask, which names the lanes of its group, itself included; each of them executes the
   instruction with the same mask. So lanes of one warp may form several groups at once. If a group breaks this rule,
   its results are undefined: `undefined` returns these lanes. The masks must not name lanes that have exited.
2. `shfl` reads a from lane j. The five low bits of its b are a distance or a lane, the five low bits of c a clamp, and
   bits 12:8 of c a segment mask: bits of the lane that do not change. From the own lane l and

       least = l & segment,  most = least | (clamp & ~segment)

   follow  up: j = l - b, in range if j >= most;  down: j = l + b;  bfly: j = l ^ b;  idx: j = least | (b & ~segment);
   these three in range if j <= most. The predicate is "in range"; out of range a lane gets its own a. In range, j must
   be in its group, or the result is undefined; an H200 then returns lane j's a if j executes it as well, otherwise 0,
   and so does this code. An uninitialized a of lane j propagates to the lanes that read it.
3. `vote` combines the predicates of the group: all, any, uni (all or none), ballot (bit i for lane i; 0 for others).
4. `match.any`: the mask of lanes of the group with the lane's own value. `match.all`: the group's mask and true if
   all have the same value, else 0 and false.
5. `redux`: the sum (low 32 bits), minimum, maximum or bitwise combination over the group. In f32: -0 < +0; `.abs`
   clears the signs first; NaN is ignored unless all are NaN, or one with `.NaN`: then the result is the canonical NaN,
   0x7fffffff.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import numpy as np

from ..._arrays import Array, frozen
from ...arithmetic import Evidence
from ...formats import floating
from ...isa import TARGETS
from ...registers import LANES
from ..elements import magnitude, operands, signs
from ..forms import Form
from ..measurements import GROUPS, derived, measured
from ..records import Operation

Words = tuple[str, ...]

_LANE = frozen(np.arange(LANES))
_FULL = 0xFFFFFFFF
_F32 = floating("f32")
_FAMILY_10 = tuple(t.name for t in TARGETS.values() if t.capability[0] == 10 and t.features)


# Rule 1


def _group(mask: Array) -> Array:
    """Which lanes are in each lane's membermask: bool `[..., 32 or 1, 32]`, 1 where all lanes of each warp agree."""
    if (mask == mask[..., :1]).all():
        mask = mask[..., :1]
    members: Array = (mask[..., None] >> _LANE.astype(np.uint32)) & 1 != 0
    return members


def no_group(mask: Array, active: Array) -> Array:
    """Active lanes whose membermask does not name them, or names one that is not active or has another mask."""
    if active.all() and (mask == _FULL).all():
        return np.zeros_like(active)
    own = (mask >> _LANE.astype(np.uint32)) & 1 != 0
    partner = active[..., None, :] & (mask[..., :, None] == mask[..., None, :])
    bad: Array = active & ~(own & (partner | ~_group(mask)).all(axis=-1))
    return bad


def _undefined(*x: Array) -> Array:
    return no_group(x[-2], x[-1])


# Rule 2


def _once(x: Array) -> Array:
    """Return an operand that is stored once for all lanes, such as an immediate, as `[1]`."""
    return x[(slice(1),) + (0,) * (x.ndim - 1)] if x.size > 1 and not any(x.strides) else x


def _source(mode: str, b: Array, c: Array) -> tuple[Array, Array]:
    """Lane that each lane reads, itself if out of range; and whether it is in range. `[32]` if warps agree."""
    b, c = _once(b), _once(c)
    b, clamp, segment = (x.astype(np.intp) for x in (b & 31, c & 31, c >> 8 & 31))
    least = _LANE & segment
    most = least | (clamp & ~segment)
    j: Array = {"up": _LANE - b, "down": _LANE + b, "bfly": _LANE ^ b, "idx": least | (b & ~segment)}[mode]
    inside = np.asarray(j >= most if mode == "up" else j <= most)
    return np.where(inside, j, _LANE), inside


def _shfl(mode: str, a: Array, b: Array, c: Array, mask: Array, active: Array) -> tuple[Array, Array]:
    lane, inside = _source(mode, b, c)
    found = _of_lane(a, lane)
    if not active.all():
        found = np.where(_of_lane(active, lane), found, found.dtype.type(0))
    return found, np.broadcast_to(inside, found.shape)


def _of_lane(a: Array, lane: Array) -> Array:
    return np.take(a, lane, axis=-1) if lane.ndim == 1 else np.take_along_axis(a, lane, axis=-1)


def _shfl_from(mode: str, a: Array, b: Array, c: Array, mask: Array) -> Array:
    return np.broadcast_to(_source(mode, b, c)[0], a.shape)


def _shfl_undefined(mode: str, a: Array, b: Array, c: Array, mask: Array, active: Array) -> Array:
    lane, _ = _source(mode, b, c)
    mask = _once(mask)
    named = (mask >> lane.astype(np.uint32)) & 1 != 0
    bad: Array = no_group(mask, active) | (active & ~named)
    return bad


# Rules 3 and 4


def _pack(bits: Array) -> Array:
    """Masks of lanes: uint32 `[...]` of bool `[..., 32]`."""
    words: Array = np.bitwise_or.reduce(np.where(bits, np.uint32(1) << _LANE.astype(np.uint32), np.uint32(0)), axis=-1)
    return words


def _all(values: Array, group: Array) -> Array:
    held: Array = np.all(values | ~group, axis=-1)
    return held


def _vote(mode: str, a: Array, mask: Array, active: Array) -> tuple[Array]:
    group, votes = _group(mask), a[..., None, :]
    if mode == "ballot":
        result = _pack(votes & group)
    elif mode == "any":
        result = ~_all(~votes, group)
    else:
        result = _all(votes, group)
        if mode == "uni":
            result |= _all(~votes, group)
    return (np.broadcast_to(result, a.shape),)


def _match_any(a: Array, mask: Array, active: Array) -> tuple[Array]:
    return (_pack((a[..., :, None] == a[..., None, :]) & _group(mask)),)


def _match_all(a: Array, mask: Array, active: Array) -> tuple[Array, Array]:
    same = _all(a[..., :, None] == a[..., None, :], _group(mask))
    return np.where(same, mask, np.uint32(0)), same


# Rule 5


def _redux(function: np.ufunc, identity: int, dtype: str, a: Array, mask: Array, active: Array) -> tuple[Array]:
    values = np.where(_group(mask), a.view(dtype)[..., None, :], np.array(identity, dtype))
    return (np.broadcast_to(function.reduce(values, axis=-1, dtype=dtype).view(np.uint32), a.shape),)


def _redux_f32(function: np.ufunc, absolute: bool, nan: bool, a: Array, mask: Array, active: Array) -> tuple[Array]:
    sizes = magnitude(_F32, a)
    code = sizes if absolute else a
    is_nan = sizes > cast(int, _F32.inf_code)
    # As integers, positive codes are in the order of their values and negative codes in reverse, which this undoes.
    most = _F32.sign_bit - 1
    ordered = np.where(signs(_F32, code) != 0, code ^ most, code).view(np.int32)
    limits = np.iinfo(np.int32)  # these two codes are NaN
    ignored = np.int32(limits.max if function is np.minimum else limits.min)
    group = _group(mask)
    best = function.reduce(np.where(group & ~is_nan[..., None, :], ordered[..., None, :], ignored), axis=-1)
    result = np.where(best < 0, best ^ most, best).view(np.uint32)
    any_nan, none = ~_all(~is_nan[..., None, :], group), _all(is_nan[..., None, :], group)
    result = np.where(any_nan if nan else none, np.uint32(cast(int, _F32.nan_code)), result)
    return (np.broadcast_to(result, a.shape),)


def _activemask(active: Array) -> tuple[Array]:
    return (np.broadcast_to(_pack(active)[..., None], active.shape),)


# The forms

_SINKS: dict[Words, tuple[int, ...]] = {("shfl", "sync"): (1,), ("match", "all"): (0, 1)}
"""Results that may be discarded."""


def _fields(
    text: str, by: Callable[[Words], Callable[..., Any]], undefined: Callable[[Words], Any],
    passes: Callable[[Words], Any], words: Words,
) -> dict[str, Any]:  # fmt: skip
    """Return the fields of a row that the words of a mnemonic determine."""
    row = {"compute": by(words), "undefined": undefined(words), "passes": passes(words), "lanes": True}
    given = operands(text, words)
    return {**given, **row, "masked": bool(given["inputs"]), "sinks": _SINKS.get(words[:2], ())}


def _form(
    spelling: str, text: str, by: Callable[[Words], Callable[..., Any]], evidence: Evidence,
    undefined: Callable[[Words], Any] = lambda words: _undefined,
    passes: Callable[[Words], Any] = lambda words: None, **more: Any,
) -> Form:  # fmt: skip
    return Form(
        spelling=spelling, kind=Operation, fields=partial(_fields, text, by, undefined, passes), evidence=evidence,
        **more,
    )  # fmt: skip


_REDUCTIONS: dict[tuple[str, str], tuple[np.ufunc, int, str]] = {
    ("add", "s32"): (np.add, 0, "u4"),
    ("add", "u32"): (np.add, 0, "u4"),
    ("min", "s32"): (np.minimum, 2**31 - 1, "i4"),
    ("min", "u32"): (np.minimum, 2**32 - 1, "u4"),
    ("max", "s32"): (np.maximum, -(2**31), "i4"),
    ("max", "u32"): (np.maximum, 0, "u4"),
    ("and", "b32"): (np.bitwise_and, 2**32 - 1, "u4"),
    ("or", "b32"): (np.bitwise_or, 0, "u4"),
    ("xor", "b32"): (np.bitwise_xor, 0, "u4"),
}
"""Function, identity and type of values of each `redux` of integers."""


def _reduction(words: Words) -> Callable[..., Any]:
    return partial(_redux, *_REDUCTIONS[words[2], words[-1]])


def _float_reduction(words: Words) -> Callable[..., Any]:
    return partial(_redux_f32, {"min": np.minimum, "max": np.maximum}[words[2]], "abs" in words, "NaN" in words)


FORMS = (
    _form(
        "shfl.sync.<up down bfly idx>.b32", "b32 u32 u32 u32 -> b32 pred", lambda words: partial(_shfl, words[2]),
        measured("shfl.sync", GROUPS), lambda words: partial(_shfl_undefined, words[2]),
        passes=lambda words: partial(_shfl_from, words[2]),
    ),
    _form(
        "vote.sync.<all any uni>.pred", "pred u32 -> pred", lambda words: partial(_vote, words[2]),
        measured("vote.sync", GROUPS),
    ),
    _form(
        "vote.sync.ballot.b32", "pred u32 -> b32", lambda words: partial(_vote, "ballot"),
        measured("vote.sync", GROUPS),
    ),
    _form("match.any.sync.<b32 b64>", "T u32 -> b32", lambda words: _match_any, measured("match.sync", GROUPS)),
    _form("match.all.sync.<b32 b64>", "T u32 -> b32 pred", lambda words: _match_all, measured("match.sync", GROUPS)),
    _form(
        f"redux.sync.<{' '.join(map('.'.join, _REDUCTIONS))}>", "T u32 -> b32", _reduction,
        measured("redux.sync", GROUPS), since="sm_80", ptx=(7, 0),
    ),
    _form(  # ptxas 13.0: family 10 only
        "redux.sync.<min max>{.abs}{.NaN}.f32", "f32 u32 -> b32", _float_reduction,
        derived("redux.sync", "PTX's text"), since="sm_100f", only=_FAMILY_10, ptx=(8, 6),
    ),
    _form(
        "activemask.b32", "-> b32", lambda words: _activemask, measured("activemask"), lambda words: None, ptx=(6, 2)
    ),
)  # fmt: skip
"""Every form of this module."""
