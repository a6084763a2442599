"""Values that are nearly right: each way to bend one says whether it still means the same.

What means the same (an array in another byte order, an unaligned one, a NumPy integer) must give the same bits, or an
error; so `Bent.same` makes a check out of many a fuzzed call.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np

from warpmma.isa import Instruction, WarpgroupInstruction, instructions, warpgroup_instructions
from warpmma.kernel import Site
from warpmma.operations import operations

from .hostile import DTYPES, HUGE, INTEGERS, Rng, chance, hostile, pick
from .mnemonics import mutated

__all__ = ["Bent", "bend"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Bent:
    """A value that stands for another.

    Attributes
    ----------
    value : object
    same : bool
        Whether it means what the other did, so that a result must be the same.
    """

    value: Any
    same: bool = False


def bend(rng: Rng, value: Any) -> Bent:
    """Return something near a legal value."""
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return _array(rng, value)
    if isinstance(value, bool | np.bool_):
        return Bent(pick(rng, (int(value), not value, str(value), np.bool_(value), np.array(value), None)))
    if isinstance(value, int | np.integer):
        return _integer(rng, int(value))
    if isinstance(value, float | np.floating):
        changed = (str(value), np.float32(value), np.array(value), complex(value), -value, value * 1e300, [value])
        return Bent(pick(rng, changed))
    if isinstance(value, str):
        return _text(rng, value)
    if isinstance(value, Instruction | WarpgroupInstruction):
        return _record(rng, value)
    if isinstance(value, list | tuple):
        return _sequence(rng, value)
    if isinstance(value, dict):
        return _mapping(rng, value)
    if is_dataclass(value) and not isinstance(value, type | Site):  # a site is found, not made
        return Bent(_altered(rng, value))
    return Bent(hostile(rng))


# Arrays


def _swapped(x: Array) -> Array:
    return x.astype(x.dtype.newbyteorder()) if x.dtype.isbuiltin == 1 and x.dtype.itemsize > 1 else x


def _frozen(x: Array) -> Array:
    copy = x.copy()
    copy.flags.writeable = False
    return copy


def _backwards(x: Array) -> Array:
    if not x.ndim:
        return x.copy()
    every = (slice(None, None, -1),) * x.ndim
    return x[every].copy()[every]


def _spaced(x: Array) -> Array:
    wide = np.zeros(tuple(2 * n for n in x.shape), x.dtype)
    wide[(slice(None, None, 2),) * x.ndim] = x
    return wide[(slice(None, None, 2),) * x.ndim]


def _unaligned(x: Array) -> Array:
    room = np.zeros(x.nbytes + 1, np.uint8)
    moved = room[1:].view(x.dtype).reshape(x.shape) if x.size else x.copy()
    moved[...] = x
    return moved


class Plain(np.ndarray[Any, Any]):
    """A subclass of arrays that changes nothing."""


_SAME: tuple[Callable[[Array], Any], ...] = (
    _swapped, _frozen, lambda x: x.copy(order="F"), _backwards, _spaced, _unaligned, lambda x: x.view(Plain),
    lambda x: np.broadcast_to(x, x.shape),
)  # fmt: skip


def _array(rng: Rng, x: Array) -> Bent:
    if chance(rng, 0.35):
        return Bent(pick(rng, _SAME)(x), True)
    return Bent(pick(rng, _CHANGED)(rng, x))


def _one_more(rng: Rng, x: Array) -> Array:
    if not x.ndim:
        return x[None]
    axis = int(rng.integers(x.ndim))
    return np.concatenate([x, x.take([0], axis) if x.shape[axis] else np.zeros_like(x)], axis)


def _one_less(rng: Rng, x: Array) -> Array:
    if not x.ndim:
        return x
    axis = int(rng.integers(x.ndim))
    return x[(slice(None),) * axis + (slice(0, max(0, x.shape[axis] - 1)),)]


def _retyped(rng: Rng, x: Array) -> Array:
    dtype = pick(rng, DTYPES)
    try:
        with np.errstate(all="ignore"):
            return x.astype(dtype)
    except Exception:  # there is no such conversion
        return np.zeros(x.shape, dtype)


def _reviewed(rng: Rng, x: Array) -> Array:
    dtype = pick(rng, DTYPES)
    return np.zeros(x.shape, dtype) if dtype.hasobject or dtype.itemsize != x.dtype.itemsize else _bits(x).view(dtype)


def _bits(x: Array) -> Array:
    return np.ascontiguousarray(x).reshape(x.shape)


def _filled(rng: Rng, x: Array) -> Array:
    full = np.frombuffer(pick(rng, (b"\xff", b"\x80", b"\x7f", b"\x00", b"\xaa")) * x.nbytes, x.dtype).reshape(x.shape)
    return full.copy()


def _batched(rng: Rng, x: Array) -> Array:
    lead = pick(rng, ((1,), (2,), (3,), (2, 3), (0,), (1, 1), (1,) * 29, (1,) * 31, (1,) * 62, (2, 0), (5, 1)))
    return np.broadcast_to(x, (*lead, *x.shape)[-64:]) if len(lead) + x.ndim <= 64 else x


def _endless(x: Array, lead: tuple[int, ...]) -> Array:
    """Repeat an array more often than any memory holds, at the price of a view."""
    if x.ndim > 60 or not x.size:
        return x
    return np.broadcast_to(x, (*lead[:-1], max(1, HUGE // (x.size * math.prod(lead))), *x.shape))


_CHANGED: tuple[Callable[[Rng, Array], Any], ...] = (
    _one_more, _one_less, _retyped, _retyped, _reviewed, _filled, _batched, _batched,
    lambda rng, x: x.T, lambda rng, x: x.ravel(), lambda rng, x: x[..., None],
    lambda rng, x: x[0] if x.ndim and x.size else x,
    lambda rng, x: x.tolist(), lambda rng, x: x.astype(object), lambda rng, x: np.ma.masked_array(x),
    lambda rng, x: np.ma.masked_array(x, np.ones(x.shape, bool)), lambda rng, x: np.zeros(x.shape, "i4,f4"),
    lambda rng, x: np.asmatrix(x) if x.ndim <= 2 and x.dtype.kind in "iuf" else x, lambda rng, x: x.tobytes(),
    lambda rng, x: _endless(x, (1,)), lambda rng, x: _endless(x, (1 << 13, 1)),
    lambda rng, x: x[(slice(None, 0),) * x.ndim], lambda rng, x: [x, x[..., :1] if x.ndim else x],
    lambda rng, x: np.array(x.flat[0]) if x.size else x, lambda rng, x: x.flat[0] if x.size else x,
    lambda rng, x: np.array(x.tolist(), str), lambda rng, x: hostile(rng),
)  # fmt: skip


# Numbers and texts


def _integer(rng: Rng, n: int) -> Bent:
    same = [t(n) for t in (np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64) if _holds(t, n)]
    if chance(rng, 0.3) and same:
        return Bent(pick(rng, same), True)
    if chance(rng, 0.05):
        Number: Any = enum.IntEnum("Number", {"N": n})
        return Bent(Number.N, True)
    changed: tuple[Any, ...] = (
        (
            n + 1,
            n - 1,
            -n,
            ~n,
            2 * n,
            n + (1 << 32),
            n + (1 << 64),
            float(n),
            n + 0.5,
            str(n),
            bool(n),
            None,
            [n],
            (n,),
            np.array(n),
            np.array([n]),
            np.float64(n),
            np.timedelta64(n % 1000, "s"),
            complex(n % 1000),
            {n},
            pick(rng, INTEGERS),
            np.array(n, object),
            np.datetime64(n % 1000, "s"),
        )
        if abs(n) < 1 << 62
        else (n + 1, -n, str(1), None)
    )
    return Bent(pick(rng, changed))


def _holds(kind: Any, n: int) -> bool:
    return int(np.iinfo(kind).min) <= n <= int(np.iinfo(kind).max)


def _text(rng: Rng, text: str) -> Bent:
    if chance(rng, 0.1):
        return Bent(np.str_(text), True)
    if chance(rng, 0.05):
        Text: Any = enum.StrEnum("Text", {"T": text})
        return Bent(Text.T, True)
    if "." in text:
        return Bent(mutated(rng, text))
    place = int(rng.integers(len(text) + 1))
    other = pick(rng, "aAbBxX019_. \n")
    changed: tuple[Any, ...] = (
        text[:place] + text[place + 1 :],
        text[:place] + other + text[place:],
        text.upper(),
        text.lower(),
        f" {text}",
        f"{text}\n",
        text * 2,
        "",
        text.encode(),
        list(text),
        (text,),
        {text},
        np.array(text),
        None,
        text + "\0",
    )
    return Bent(pick(rng, changed))


# Records


def _record(rng: Rng, record: Any) -> Bent:
    if chance(rng, 0.3):
        return Bent(str(record), True)
    if chance(rng, 0.3):
        return Bent(_altered(rng, record))
    if chance(rng, 0.3):
        return Bent(mutated(rng, str(record)))
    tables: tuple[Callable[[], Any], ...] = (instructions, warpgroup_instructions, operations)
    return Bent(pick(rng, pick(rng, tables)()))


def _altered(rng: Rng, record: Any) -> Any:
    """Change one field of a record; where it refuses that, return what is none."""
    made = [f.name for f in fields(record) if f.init]
    name = pick(rng, made)
    value = getattr(record, name)
    changed = hostile(rng) if chance(rng, 0.5) else bend(rng, value).value
    try:
        return replace(record, **{name: changed})
    except Exception:
        return (name, value)


# Collections


def _sequence(rng: Rng, given: list[Any] | tuple[Any, ...]) -> Bent:
    kind = type(given)
    items = list(given)
    if chance(rng, 0.1):
        return Bent(tuple(items) if isinstance(given, list) else items)
    if items and chance(rng, 0.5):
        index = int(rng.integers(len(items)))
        bent = Bent(hostile(rng)) if chance(rng, 0.4) else bend(rng, items[index])
        items[index] = bent.value
        return Bent(kind(items), bent.same)
    changed: tuple[Callable[[], Any], ...] = (
        lambda: kind(items[:-1]), lambda: kind([*items, items[-1] if items else 0]), lambda: kind(items[::-1]),
        lambda: iter(items), lambda: dict.fromkeys(range(len(items))), lambda: kind(), lambda: kind([items]),
        lambda: (x for x in items), lambda: items[0] if items else None, lambda: str(len(items)),
    )  # fmt: skip
    return Bent(pick(rng, changed)())


def _mapping(rng: Rng, given: dict[Any, Any]) -> Bent:
    items = dict(given)
    if items and chance(rng, 0.6):
        name = pick(rng, list(items))
        if chance(rng, 0.3):
            del items[name]
            return Bent(items)
        bent = Bent(hostile(rng)) if chance(rng, 0.4) else bend(rng, items[name])
        items[name] = bent.value
        return Bent(items, bent.same)
    if chance(rng, 0.5):
        key = hostile(rng)
        try:
            return Bent({**items, key: 1})
        except Exception:
            return Bent(list(items))
    return Bent(pick(rng, (list(items), None, list(items.items()), "")))
