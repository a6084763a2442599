"""Registers of kernels and their operators, masks and loops."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from arrays import same
from hypothesis import example, given, settings
from hypothesis import strategies as st
from kernels import BINARY, COMPARE, outcome, run

from warpmma.errors import OperandError
from warpmma.kernel.launching import Output
from warpmma.kernel.values import Register

integers = st.one_of(
    st.integers(0, 70), st.sampled_from([2**n + d for n in (15, 16, 31, 32, 63) for d in (-1, 0, 1)]),
    st.integers(0, 2**64 - 1),
)  # fmt: skip


def of_lanes(t: Any, values: list[int], width: int) -> Register:
    return t.register(np.array(values, np.uint64), f"u{width // 8}")  # type: ignore[no-any-return]


@settings(deadline=None)
@given(st.lists(st.tuples(integers, integers), min_size=32, max_size=32), *[st.sampled_from([16, 32, 64])] * 2)
@example([(1, 64), (5, 0), (1, 32), (2**64 - 1, 2**64 - 1)] * 8, 64, 64)
@example([(1, 2**32), (5, 0), (1, 31), (2**32 - 1, 2**32 - 1)] * 8, 32, 64)
def test_operators(pairs: list[tuple[int, int]], left: int, right: int) -> None:
    """As Python's integers, modulo 2 to the width; all ones where Python refuses to divide."""
    xs, ys = [x % 2**left for x, _ in pairs], [y % 2**right for _, y in pairs]
    width = max(left, right)

    def kernel(t: Any) -> None:
        x, y = of_lanes(t, xs, left), of_lanes(t, ys, right)
        for name, function in BINARY.items():
            got = getattr(operator, name)(x, y)
            assert got.kind == f"b{width}"
            assert got.bits[0, 0].tolist() == [function(a, b, width) % 2**width for a, b in zip(xs, ys, strict=True)], (
                name
            )
        for name in COMPARE:
            got, function = getattr(operator, name)(x, y), getattr(operator, name)
            assert got.kind == "pred" and got.bits[0, 0].tolist() == [
                function(a, b) for a, b in zip(xs, ys, strict=True)
            ]
        assert (~x).bits[0, 0].tolist() == [2**left - 1 - a for a in xs]

    run(kernel)


@settings(deadline=None)
@given(st.lists(integers, min_size=32, max_size=32), st.integers(-(2**63), 2**64 - 1), st.sampled_from([16, 32, 64]))
def test_operators_with_numbers(values: list[int], number: int, width: int) -> None:
    """A Python integer on either side, signed or not; one that does not fit is refused."""
    values = [x % 2**width for x in values]
    fits = -(2 ** (width - 1)) <= number < 2**width

    def kernel(t: Any) -> None:
        x = of_lanes(t, values, width)
        for name, function in BINARY.items():
            for swap in (False, True):
                if not fits:
                    with pytest.raises(OperandError, match=f"is not a value of b{width}"):
                        getattr(operator, name)(*((number, x) if swap else (x, number)))
                    continue
                got = getattr(operator, name)(*((number, x) if swap else (x, number)))
                wrapped = number % 2**width
                pairs = [(wrapped, v) if swap else (v, wrapped) for v in values]
                assert got.bits[0, 0].tolist() == [function(a, b, width) % 2**width for a, b in pairs]

    run(kernel)


def test_numpy_numbers_on_the_left() -> None:
    assert outcome(lambda t: np.uint32(5) - t.laneid)[:6].tolist() == [5, 4, 3, 2, 1, 0]
    assert outcome(lambda t: np.int64(1) << t.laneid).tolist() == [1 << i for i in range(32)]


def test_predicates() -> None:
    def p(t: Any) -> tuple[Register, Register]:
        return t.laneid < 16, t.laneid % 2 == 0

    first, second = np.arange(32) < 16, np.arange(32) % 2 == 0
    same(outcome(lambda t: p(t)[0] & p(t)[1]), first & second)
    same(outcome(lambda t: p(t)[0] | p(t)[1]), first | second)
    same(outcome(lambda t: p(t)[0] ^ p(t)[1]), first ^ second)
    same(outcome(lambda t: ~p(t)[0]), ~first)
    for wrong in (lambda t: p(t)[0] + p(t)[1], lambda t: p(t)[0] & 1, lambda t: p(t)[0] < p(t)[1],
                  lambda t: p(t)[0] & t.laneid, lambda t: t.laneid + p(t)[0]):  # fmt: skip
        with pytest.raises(OperandError):
            outcome(wrong)


def test_constants() -> None:
    def bits(value: Any, kind: str = "b32") -> tuple[Any, str]:
        x = outcome(lambda t: t.constant(value, kind))
        assert (x == x[0]).all()
        return x[0], str(x.dtype)

    assert bits(-1) == (0xFFFFFFFF, "uint32") and bits(-1, "b16") == (0xFFFF, "uint16")
    assert bits(2**64 - 1, "b64") == (2**64 - 1, "uint64") and bits(-(2**31)) == (2**31, "uint32")
    assert bits(1.5) == (0x3FC00000, "uint32") and bits(np.float64(1.5), "b64") == (0x3FF8 << 48, "uint64")
    assert bits(1e300) == (0x7F800000, "uint32") and bits(1e-300) == (0, "uint32")
    assert bits(True, "pred") == (True, "bool")
    for value, kind in ((2**32, "b32"), (-(2**31) - 1, "b32"), (2**16, "b16"), (1.5, "b16"), (1, "pred"), (True, "b32"),
                        (1, "f32"), ("1", "b32"), (None, "b64")):  # fmt: skip
        with pytest.raises(OperandError):
            bits(value, kind)


def test_masks() -> None:
    """Masks nest; `update` merges; leaving one by an exception restores the one outside."""

    def kernel(t: Any) -> None:
        x = t.laneid * 0
        with t.where(t.laneid < 16):
            with t.where(t.laneid % 2 == 0):
                x = t.update(x, t.constant(1))
                assert t.any(t.laneid == 4) and not t.any(t.laneid == 5) and not t.any(t.laneid == 20)
            x = t.update(x, x + 1)
        with pytest.raises(KeyError), t.where(t.laneid < 3):
            raise KeyError
        x = t.update(x, x + 10)
        t("st.shared.b32", t.laneid * 4, x)
        expected = [10 + (i < 16) + (i < 16 and i % 2 == 0) for i in range(32)]
        assert t("ld.shared.b32", t.laneid * 4).bits[0, 0].tolist() == expected

    run(kernel)


def test_loops_with_masks() -> None:
    """Collatz: lanes leave the loop when they are done, whatever other blocks do."""

    def kernel(t: Any, out: Any) -> None:
        thread = t.ctaid[0] * 32 + t.laneid
        n, steps = thread + 1, t.constant(0)
        while t.any(n != 1):
            with t.where(n != 1):
                odd = (n & 1) == 1
                with t.where(~odd):
                    n = t.update(n, n >> 1)
                with t.where(odd):
                    n = t.update(n, n * 3 + 1)
                steps = t.update(steps, steps + 1)
        t("st.global.b32", out + thread * 4, steps)

    out = np.zeros(128, np.uint32)
    run(kernel, Output(out), grid=4)

    def length(n: int) -> int:
        return 0 if n == 1 else 1 + length(n // 2 if n % 2 == 0 else 3 * n + 1)

    assert out.tolist() == [length(n + 1) for n in range(128)]
