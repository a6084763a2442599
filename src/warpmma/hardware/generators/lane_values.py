"""Inputs that are hard for the operations around `mma`.

A register consists of elements of a type that the mnemonic names: floating-point numbers of all kinds, integers. A
quarter of the lanes is uniformly random whatever the type. To try harder, add a style to `float_codes`,
`integer_codes`, `_converted` (operands of conversions), `_related` (operands that belong together) or `hard_quotients`.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ..._arguments import is_integer
from ...errors import OperandError, shown
from ...formats import FORMATS, FloatFormat
from ...operations import Operation, operation
from ...registers import LANES
from .hard_quotients import hard_dividends, hard_divisors, hard_radicands

__all__ = ["operation_inputs", "signature"]

Array = npt.NDArray[Any]
Rng = np.random.Generator

_BITS = {"b16": 16, "b32": 32, "b64": 64}
_DTYPES: dict[str, Any] = {"b16": np.uint16, "b32": np.uint32, "b64": np.uint64, "pred": np.bool_}
_U = np.uint64
_DIVISIONS = ("div", "rcp", "sqrt")


def short(width: int, count: int, rng: Rng) -> Array:
    """Integers whose low bits, from a random position, are 10...0, 01...1, 10...01 or 0...0: ties and neighbours."""
    one = _U(1) << rng.integers(0, width, count, endpoint=width < 64).astype(_U)
    half = one >> _U(1)
    below = np.where(half > 0, half - _U(1), _U(0))
    ends = [half, half, below, half | (one > 1), np.zeros(count, _U), below]
    above = rng.integers(0, (1 << width) - 1, count, _U, endpoint=True) & ~(one - _U(1))
    return cast(Array, above | np.choose(rng.integers(0, 6, count), ends))


def float_codes(fmt: FloatFormat, count: int, rng: Rng) -> Array:
    """Codes of a format: special ones; short and random fractions with small, middle, large and any exponents."""
    field = fmt.fraction_bits + fmt.padding
    low, highest = (1 << field) - 1, (1 << fmt.exponent_bits) - 1
    top = fmt.max_code | low  # below it numbers, above it infinity and NaN
    special = [0, 1, 2, low >> 1, low, low + 1, low + 2, fmt.max_code, fmt.max_code - 1, top, top + 1, top + 2]
    special += [top + 1 + x for x in (low >> 1, (low + 1) // 2, (low + 1) // 2 | 5, low, low - 1)]
    special += [(fmt.bias << field) + x for x in (-1, 0, 1)] + [(fmt.bias - 1) << field]
    chosen = rng.choice(np.array([x for x in special if x >= 0], _U), count)
    fraction = np.where(
        rng.random(count) < 0.75, short(field, count, rng), rng.integers(0, low, count, _U, endpoint=True)
    )
    spread = rng.choice(np.array([1, 3, 12, 30, 160, highest]), count)
    near = np.clip(fmt.bias + rng.integers(-spread, spread, endpoint=True), 0, highest)
    ends = rng.choice(np.array([0, 0, 1, 2, 3, fmt.fraction_bits, highest - 1]), count)
    exponent = np.where(rng.random(count) < 0.75, near, ends).astype(_U)
    codes = np.where(rng.random(count) < 0.25, chosen, (exponent << _U(field)) | (fraction & _U(low)))
    return (codes ^ (rng.integers(0, 2, count, _U) * _U(fmt.sign_bit))) & _U(fmt.mask)


def integer_codes(bits: int, count: int, rng: Rng) -> Array:
    """Integers: powers of two and their neighbours, small ones, any magnitude, ties."""
    mask = (1 << bits) - 1
    power = (_U(1) << rng.integers(0, bits, count).astype(_U)) + rng.choice(np.array([0, 0, 1, mask], _U), count)
    any_size = rng.integers(0, mask, count, _U, endpoint=True) >> rng.integers(0, bits, count).astype(_U)
    tie = short(bits, count, rng) >> rng.integers(0, bits, count).astype(_U)
    codes = np.choose(rng.integers(0, 4, count), [power, any_size, rng.integers(0, 40, count).astype(_U), tie])
    return np.where(rng.random(count) < 0.5, codes, ~codes + _U(1)) & _U(mask)


@dataclass(frozen=True)
class Elements:
    """What a register holds: `number` elements of `bits`; of a floating-point format, or integers."""

    name: str
    number: int
    bits: int
    fmt: FloatFormat | None

    def codes(self, lanes: int, rng: Rng) -> Array:
        """Return `[number, lanes]`."""
        count = lanes * self.number
        codes = integer_codes(self.bits, count, rng) if self.fmt is None else float_codes(self.fmt, count, rng)
        return codes.reshape(self.number, lanes)


def named(row: Operation) -> list[Elements]:
    """List the types that a mnemonic names."""
    found = []
    for word in row.mnemonic.split("."):
        match = re.fullmatch(r"([a-z]+[0-9]+(?:m[0-9])?)(?:x([248]))?", word)
        if match is None:
            continue
        fmt = FORMATS.get(match[1])
        integer = re.fullmatch(r"[sub]([0-9]+)", match[1])
        bits = 8 if match[1] in _SIX else int(integer[1]) if integer else fmt.bits if fmt else 0
        if bits:
            found.append(Elements(match[1], int(match[2] or 1), bits, fmt if isinstance(fmt, FloatFormat) else None))
    return found


_SIX = ("e2m3", "e3m2")  # with two zeros above, in a byte


def elements(row: Operation, operand: int) -> Elements:
    """Return what an input register holds: the largest of the named types that fit, the last of several."""
    width = _BITS[row.inputs[operand]]
    fits = [e for e in named(row) if e.bits * e.number <= width]
    best = max((e.bits * e.number for e in fits), default=0)
    return next((e for e in reversed(fits) if e.bits * e.number == best), Elements(f"b{width}", 1, width, None))


def signature(row: Operation) -> str:
    """Return the key from which inputs are made: rows with the same key get the same inputs.

    Parameters
    ----------
    row : Operation

    Returns
    -------
    str

    Examples
    --------
    >>> signature(operation("add.f32")) == signature(operation("mul.f32"))
    True
    """
    kinds = [elements(row, i) if kind in _BITS else None for i, kind in enumerate(row.inputs)]
    parts = [f"{k}:{e.name}x{e.number}" if e else k for k, e in zip(row.inputs, kinds, strict=True)]
    opcode = row.mnemonic.partition(".")[0]
    own = [opcode] if row.lanes or opcode in (*_DIVISIONS, "fns") else []
    return " ".join([*parts, *own, *(f"to {e.name}" for e in _others(row))])


def operation_inputs(mnemonic: str, lanes: int, seed: int) -> tuple[Array, ...]:
    """Make input registers of an operation, immediates left out.

    Parameters
    ----------
    mnemonic : str
    lanes : int
        How many, a multiple of 32.
    seed : int

    Returns
    -------
    tuple of ndarray
        Of each input `[warps, 32]`, unsigned integers of its width, or bool of a predicate. A membermask is one for a
        warp, in half of them a partial one.

    Raises
    ------
    MnemonicError, OperandError
        No such operation; a number of lanes that is not a multiple of 32.
    """
    if not is_integer(lanes) or lanes < LANES or lanes % LANES:
        raise OperandError(f"lanes is {shown(lanes)}; expected a multiple of {LANES}")
    return _inputs(signature(operation(mnemonic)), mnemonic, lanes, seed)


@lru_cache(maxsize=2)
def _inputs(signed: str, mnemonic: str, lanes: int, seed: int) -> tuple[Array, ...]:
    row = operation(mnemonic)
    rng = np.random.default_rng([seed, zlib.crc32(signed.encode())])
    kinds = {i: elements(row, i) for i, kind in enumerate(row.inputs) if kind in _BITS}
    codes = {i: e.codes(lanes, rng) for i, e in kinds.items()}
    if mnemonic.startswith("cvt."):
        codes = {i: _converted(e, _others(row), codes[i], rng) for i, e in kinds.items()}
    elif len(kinds) > 1 and len(set(kinds.values())) == 1 and (fmt := kinds[0].fmt) is not None:
        codes = dict(zip(kinds, _related(fmt, list(codes.values()), rng), strict=True))
    elif len(kinds) > 1 and not row.lanes and kinds[0].fmt is None and kinds[0] == kinds.get(1):
        own = np.random.default_rng([seed, zlib.crc32(signed.encode()), 1])
        codes[1] = _near_integers(kinds[0], codes[0], codes[1], own)
    if mnemonic.startswith("fns."):
        codes[1] = codes[1] & _U(LANES - 1)
    if (opcode := mnemonic.partition(".")[0]) in _DIVISIONS and (fmt := kinds[0].fmt) is not None:
        codes = dict(zip(kinds, _divided(opcode, fmt, list(codes.values()), rng), strict=True))
    uniform = rng.random(lanes) < 0.25
    made = []
    for i, kind in enumerate(row.inputs):
        if kind == "pred":
            density = np.repeat(rng.choice([0.0, 1.0, 0.5, 0.5, 1 / 32, 31 / 32], lanes // LANES), LANES)
            made.append(rng.random(lanes) < density)
        elif kind != "imm":
            words = _packed(kinds[i], codes[i], _BITS[kind], uniform, rng)
            made.append((_alike(words, rng) if row.lanes else words).astype(_DTYPES[kind]))
    if row.membermask and row.inputs[-1] == "b32":
        some = rng.integers(1, 1 << 32, lanes // LANES, _U).astype(np.uint32)
        made[-1] = np.repeat(np.where(rng.random(len(some)) < 0.5, some, np.uint32(0xFFFFFFFF)), LANES)
    return tuple(np.ascontiguousarray(x.reshape(-1, LANES)) for x in made)


def _packed(e: Elements, codes: Array, width: int, uniform: Array, rng: Rng) -> Array:
    """Put elements into registers, with random bits above; some lanes get random bits only."""
    random = rng.integers(0, (1 << width) - 1, len(uniform), _U, endpoint=True)
    used = e.bits * e.number
    words = random >> _U(used) << _U(used) if used < width else np.zeros(len(uniform), _U)
    for position in range(e.number):
        words |= codes[position] << _U(position * e.bits)
    words = np.where(uniform, random, words)
    return words & _U(0x3F3F) if e.name in _SIX else words


def _alike(words: Array, rng: Rng) -> Array:
    """Make warps of one word, and warps with one word in half of their lanes."""
    first = np.repeat(words[::LANES], LANES)
    style = np.repeat(rng.integers(0, 4, len(words) // LANES), LANES)
    return np.where((style == 0) | ((style == 1) & (rng.random(len(words)) < 0.5)), first, words)


def _others(row: Operation) -> list[Elements]:
    """Return the result types of a conversion: those that it names and does not take."""
    taken = {elements(row, i).name for i, kind in enumerate(row.inputs) if kind in _BITS}
    return [e for e in named(row) if e.name not in taken] if row.mnemonic.startswith("cvt.") else []


def _decoded(fmt: FloatFormat, codes: Array) -> Array:
    return fmt.decode(codes.astype(fmt.code_dtype))


def _nudged(fmt: FloatFormat, codes: Array, by: int, rng: Rng) -> Array:
    """Add up to so many units to codes and choose their signs."""
    codes = codes + rng.integers(-by, by, codes.shape, endpoint=True).astype(_U)
    return cast(Array, (codes ^ (rng.integers(0, 2, codes.shape, _U) * _U(fmt.sign_bit))) & _U(fmt.mask))


def _converted(e: Elements, others: Sequence[Elements], codes: Array, rng: Rng) -> Array:
    """Operands of a conversion: values of the result's type, midpoints between them, and their neighbours."""
    fmt = e.fmt
    if fmt is None:
        return codes
    for other in others:
        with np.errstate(all="ignore"):
            if other.fmt is None:
                values = integer_codes(other.bits, codes.size, rng).astype(np.float64) + rng.choice(
                    [0, 0.5], codes.size
                )
            else:
                near = float_codes(other.fmt, codes.size, rng)
                above = np.minimum(near + _U(1), _U(other.fmt.mask))
                values = _decoded(other.fmt, near)
                values = np.where(rng.random(codes.size) < 0.5, values, values / 2 + _decoded(other.fmt, above) / 2)
            hit = _nudged(fmt, fmt.encode(values).astype(_U).reshape(codes.shape), 1, rng)
        codes = np.where(rng.random(codes.shape) < 0.375, hit, codes)
    return codes


def _related(fmt: FloatFormat, codes: list[Array], rng: Rng) -> list[Array]:
    """Operands of one format: equal ones, sums and products near special values, addends at every distance."""
    shape, x = codes[0].shape, [_decoded(fmt, c) for c in codes]

    def near(values: Array, by: int = 1) -> Array:
        return _nudged(fmt, fmt.encode(values).astype(_U), by, rng)

    with np.errstate(all="ignore"):
        wanted = _decoded(fmt, float_codes(fmt, codes[0].size, rng).reshape(shape))
        least = np.ldexp(1 + rng.integers(-4, 5, shape) * 2.0 ** -(fmt.fraction_bits + 2), fmt.emin)
        shift = rng.integers(-fmt.fraction_bits - 3, fmt.fraction_bits + 3, shape)
        scaled = x[0] * np.ldexp(x[1] / 2.0 ** np.floor(np.log2(np.abs(x[1]))), shift)
        styles = [
            _nudged(fmt, codes[0], 2, rng),
            near(wanted / x[0]),
            near(wanted - x[0]),
            near(scaled, 0),
            near(least / x[0]),
        ]
        codes[1] = np.choose(rng.integers(0, 10, shape), [*styles, *[codes[1]] * 5])
        if len(codes) > 2:
            product = x[0] * _decoded(fmt, codes[1])
            power = np.ldexp(2.0 ** np.round(np.log2(np.abs(product))), shift)
            styles = [
                near(product, 2),
                near(wanted - product),
                near(np.ldexp(product, shift)),
                near(power, 0),
                near(least - product),
            ]
            codes[2] = np.choose(rng.integers(0, 10, shape), [*styles, *[codes[2]] * 5])
    return codes


def _near_integers(e: Elements, first: Array, second: Array, rng: Rng) -> Array:
    """Make some second operands the first one, its negative or its inverse, or a neighbour of these."""
    mask = _U((1 << e.bits) - 1)
    near = np.choose(rng.integers(0, 3, first.shape), [first, ~first + _U(1), ~first])
    near = near + rng.choice(np.array([0, 0, 0, 1, int(mask)], _U), first.shape)
    return cast(Array, np.where(rng.random(first.shape) < 0.25, near, second) & mask)


def _divided(opcode: str, fmt: FloatFormat, codes: list[Array], rng: Rng) -> list[Array]:
    """Operands of a division or a root: in half of the lanes hard ones."""
    count = codes[0].size
    match opcode:
        case "div":
            hard: tuple[Array, ...] = hard_dividends(fmt, count, rng)
        case "rcp":
            hard = (hard_divisors(fmt, count, rng),)
        case _:
            hard = (hard_radicands(fmt, count, rng),)
    taken = rng.random(codes[0].shape) < 0.5
    negative = (rng.random(codes[0].shape) < (0.125 if opcode == "sqrt" else 0.5)) * _U(fmt.sign_bit)
    return [
        np.where(taken, h.reshape(c.shape) ^ (negative if i == 0 else _U(0)), c)
        for i, (h, c) in enumerate(zip(hard, codes, strict=True))
    ]
