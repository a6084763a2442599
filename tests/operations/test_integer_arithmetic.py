"""Integer arithmetic, sums with carries and positions of bits against Python's integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arrays import Array

from warpmma.operations import Operation, operation
from warpmma.operations.arithmetic import bit_positions, carries, integer_arithmetic

DTYPES: dict[str, Any] = {"b16": np.uint16, "b32": np.uint32, "b64": np.uint64, "pred": np.bool_}
FORMS = (*integer_arithmetic.FORMS, *carries.FORMS, *bit_positions.FORMS)
ROWS = [operation(mnemonic) for form in FORMS for mnemonic in form.mnemonics]
COUNT = 1 << 11


def signed(x: int, bits: int) -> int:
    return x - (1 << bits) if x >> (bits - 1) else x


def clamped(x: int) -> int:
    return min(max(x, -(1 << 31)), (1 << 31) - 1)


def value(type_: str, x: int) -> int:
    bits = int(type_[1:])
    return signed(x & ((1 << bits) - 1), bits) if type_[0] == "s" else x & ((1 << bits) - 1)


def cut(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def inputs(kind: str, rng: np.random.Generator) -> Array:
    """A third each of random bits, of small numbers and of what is near powers of two, of both signs."""
    if kind == "pred":
        return rng.random(COUNT) < 0.5
    bits = int(kind[1:])
    some = rng.integers(0, 1 << bits, COUNT, dtype=np.uint64)
    near = (np.uint64(1) << rng.integers(0, bits, COUNT).astype(np.uint64)) + rng.integers(0, 3, COUNT).astype(
        np.uint64
    )
    x = np.choose(rng.integers(0, 3, COUNT), [some, rng.integers(0, 40, COUNT).astype(np.uint64), near])
    return np.where(rng.random(COUNT) < 0.5, x, ~x + np.uint64(1)).astype(DTYPES[kind])


def called(row: Operation, *x: Array) -> tuple[Array, ...]:
    return tuple(d.reshape(-1) for d in row(*(a.reshape(-1, 32) for a in x)))


def pieces(x: int, bits: int, sign: bool) -> list[int]:
    found = [x >> i & ((1 << bits) - 1) for i in range(0, 32, bits)]
    return [signed(p, bits) for p in found] if sign else found


def dot(words: list[str], a: int, b: int, c: int) -> int:
    sa, sb = (word[0] == "s" for word in words[-2:])
    if words[0] == "dp4a":
        return c + sum(x * y for x, y in zip(pieces(a, 8, sa), pieces(b, 8, sb), strict=True))
    half = pieces(b, 8, sb)[2:] if words[1] == "hi" else pieces(b, 8, sb)[:2]
    return c + sum(x * y for x, y in zip(pieces(a, 16, sa), half, strict=True))


def paired(words: list[str], a: int, b: int) -> int:
    one: Any = {"add": int.__add__, "min": min, "max": max}[words[0]]
    sign = words[-1][0] == "s"
    both = [one(x, y) for x, y in zip(pieces(a, 16, sign), pieces(b, 16, sign), strict=True)]
    both = [max(x, 0) for x in both] if "relu" in words else both
    return int(both[0] & 0xFFFF) | int(both[1] & 0xFFFF) << 16


def with_carry(words: list[str], x: list[Any]) -> int:
    """The exact sum of unsigned words, with its carry above them."""
    bits = int(words[-1][1:])
    mask = (1 << bits) - 1
    reads = words[0][-1] == "c"
    carry = bool(x.pop()) if reads else words[0] == "sub"
    if words[0].startswith("mad"):
        p = value(words[-1], x[0]) * value(words[-1], x[1])
        x = [(p >> bits if "hi" in words else p) & mask, x[2]]
    second = ~x[1] & mask if words[0] in ("sub", "subc") else x[1]
    return int(x[0] + second + carry)


def arithmetic(words: list[str], *x: int) -> int:
    """The exact result, before it is cut to its register."""
    op, type_ = words[0], words[-1]
    if op in ("dp4a", "dp2a"):
        return dot(words, *x)
    if "x2" in type_:
        return paired(words, *x)
    bits = int(type_[1:])
    a, b, *more = (value(type_, v) for v in (*x, 0))
    c = signed(x[2], 2 * bits) if "wide" in words and type_[0] == "s" and len(x) > 2 else x[2] if len(x) > 2 else 0
    c = more[0] if len(x) > 2 and "wide" not in words else c
    if op in ("mul24", "mad24"):
        a, b = (signed(v & 0xFFFFFF, 24) if type_[0] == "s" else v & 0xFFFFFF for v in (a, b))
        product = a * b >> (16 if "hi" in words else 0)
    else:
        product = a * b >> (bits if "hi" in words else 0)
    if "hi" not in words and op == "mad24":
        product = signed(product & 0xFFFFFFFF, 32)
    simple: dict[str, Callable[[], int]] = {
        "add": lambda: a + b, "sub": lambda: a - b, "min": lambda: min(a, b), "max": lambda: max(a, b),
        "mul": lambda: product, "mul24": lambda: product, "mad": lambda: product + c, "mad24": lambda: product + c,
        "sad": lambda: c + abs(a - b), "abs": lambda: abs(a), "neg": lambda: -a,
        "div": lambda: cut(a, b) if b else -1, "rem": lambda: a - b * cut(a, b) if b else -1,
    }  # fmt: skip
    result = simple[op]()
    if "relu" in words:
        return max(result, 0)
    return clamped(result) if "sat" in words else result


@pytest.mark.parametrize(
    "row", [operation(m) for form in integer_arithmetic.FORMS for m in form.mnemonics], ids=lambda row: row.mnemonic
)
def test_arithmetic(row: Operation) -> None:
    rng = np.random.default_rng(5)
    x = [inputs(kind, rng) for kind in row.inputs]
    (d,) = called(row, *x)
    words, mask = row.mnemonic.split("."), (1 << int(row.outputs[0][1:])) - 1
    expected = [arithmetic(words, *given) & mask for given in zip(*(v.tolist() for v in x), strict=True)]
    assert d.tolist() == expected


@pytest.mark.parametrize("row", [r for r in ROWS if r.reads_carry or r.writes_carry], ids=lambda row: row.mnemonic)
def test_carries(row: Operation) -> None:
    rng = np.random.default_rng(6)
    x = [inputs(kind, rng) for kind in row.inputs]
    results = called(row, *x)
    words, bits = row.mnemonic.split("."), int(row.mnemonic[-2:])
    exact = [with_carry(words, list(given)) for given in zip(*(v.tolist() for v in x), strict=True)]
    assert results[0].tolist() == [total & ((1 << bits) - 1) for total in exact]
    assert row.writes_carry == ("cc" in words) == (len(results) == 2) and row.reads_carry == (row.inputs[-1] == "pred")
    if row.writes_carry:
        assert results[1].tolist() == [bool(total >> bits) for total in exact]
        assert results[1].any() and not results[1].all()
    assert row.syntax == "d0, " + ", ".join(f"a{i}" for i in range(3 if words[0].startswith("mad") else 2))


def test_a_number_of_four_words() -> None:
    """Sums, differences and products of many words, chained as compilers do."""
    a, b = 0xFFFFFFFF_00000000_FFFFFFFF_80000001, 0x00000001_FFFFFFFF_00000000_80000001

    def word(x: int, i: int) -> Array:
        return np.full(32, x >> (32 * i) & 0xFFFFFFFF, np.uint32)

    for first, op, exact in (("add", "addc", a + b), ("sub", "subc", a - b)):
        low, carry = operation(f"{first}.cc.u32")(word(a, 0), word(b, 0))
        total = int(low[0])
        for i in (1, 2, 3):
            d, carry = operation(f"{op}.cc.u32")(word(a, i), word(b, i), carry)
            total |= int(d[0]) << (32 * i)
        assert total == exact % (1 << 128)


def positions(words: list[str], x: list[int], bits: int) -> int:
    match words[0]:
        case "clz":
            return bits - x[0].bit_length()
        case "bfind":
            a = value(words[-1], x[0])
            length = (~a if a < 0 else a).bit_length()
            return -1 if length == 0 else bits - length if "shiftamt" in words else length - 1
        case "cnot":
            return int(x[0] == 0)
        case "bmsk":
            at, count = (v & 31 for v in x) if "wrap" in words else x
            return (1 << min(count, 32)) - 1 << min(at, 32)
        case "szext":
            count = x[1] & 31 if "wrap" in words else min(x[1], 32)
            low = x[0] & ((1 << count) - 1)
            return signed(low, count) if words[-1] == "s32" and count else low
    mask, base, offset = x[0], x[1], signed(x[2], 32)
    ones = [i for i in range(32) if mask >> i & 1]
    if offset > 0:
        found = [i for i in ones if i >= base]
    elif offset < 0:
        found = [i for i in reversed(ones) if i <= base]
    else:
        found, offset = [i for i in ones if i == base], 1
    if offset == -(1 << 31):
        return 0
    return found[abs(offset) - 1] if abs(offset) <= len(found) else -1


@pytest.mark.parametrize(
    "row", [operation(m) for form in bit_positions.FORMS for m in form.mnemonics], ids=lambda row: row.mnemonic
)
def test_positions(row: Operation) -> None:
    rng = np.random.default_rng(7)
    x = [inputs(kind, rng) for kind in row.inputs]
    if row.mnemonic.startswith("fns"):
        x[1], x[2] = x[1] & np.uint32(31), np.where(rng.random(COUNT) < 0.9, rng.integers(-9, 10, COUNT), x[2])
        x[2] = x[2].astype(np.uint32)
    (d,) = called(row, *x)
    words, mask = row.mnemonic.split("."), (1 << int(row.outputs[0][1:])) - 1
    bits = int(row.inputs[0][1:])
    assert d.tolist() == [positions(words, list(v), bits) & mask for v in zip(*(v.tolist() for v in x), strict=True)]


@pytest.mark.parametrize(("base", "offset"), [(32, -1), (40, 2), (1 << 31, -1), (0xFFFFFFFF, 0), (33, 0)])
def test_bases_outside_of_the_word_find_none(base: int, offset: int) -> None:
    given = [np.full(32, x, np.uint32) for x in (0xFFFFFFFF, base, offset & 0xFFFFFFFF)]
    (d,) = called(operation("fns.b32"), *given)
    assert set(d.tolist()) == {0xFFFFFFFF}


def test_the_least_offset_gives_what_the_code_of_ptxas_does() -> None:
    given = [np.full(32, x, np.uint32) for x in (0xFFFFFFBF, 30, 1 << 31)]
    (d,) = called(operation("fns.b32"), *given)
    assert set(d.tolist()) == {0}


@pytest.mark.parametrize("name", ["div.s16", "rem.s16", "mul.hi.s16", "sad.u16"])
def test_bytes_exhaustively(name: str) -> None:
    """All pairs of what fits a byte and what is as far from the ends."""
    near = np.concatenate([np.arange(128), np.arange(1 << 16)[-128:], 0x7FC0 + np.arange(128)]).astype(np.uint16)
    a, b = (v.reshape(-1) for v in np.meshgrid(near, near))
    x = [a, b, a][: len(operation(name).inputs)]
    (d,) = called(operation(name), *x)
    words = name.split(".")
    assert d.tolist() == [arithmetic(words, *v) & 0xFFFF for v in zip(*(v.tolist() for v in x), strict=True)]


def test_every_row_of_a_family_is_there() -> None:
    names = {row.mnemonic for row in ROWS}
    assert len(names) == len(ROWS) == 150
    whole = {"s16", "u16", "s32", "u32", "s64", "u64"}
    assert {f"{op}.{t}" for op in ("sad", "div", "rem") for t in whole} <= names
    assert {"mad24.hi.sat.s32", "madc.hi.cc.u64", "addc.s64", "dp2a.hi.u32.s32", "min.relu.s16x2"} <= names
