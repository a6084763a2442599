"""Partial sums of whole products: slices of k, promotion, and the order of additions."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any, cast

import numpy as np
import pytest
from arrays import Array, same
from product_cases import ENGINES, F16, FP8, MX, NVF4, SP, Call, added, check, drawn, in_parts, some_scales, typed

import warpmma as wm
from warpmma.isa import Instruction, parse, parse_any

pytestmark = pytest.mark.quick

CUTS: list[tuple[int | list[int], int | None]] = [
    (1, None), (2, None), (3, None), (5, None), (100, None), (1, 16), (1, 32), (1, 48), (1, 1600), (2, 32), (3, 32),
    (4, 16), (100, 16), ([64, 23], None), ([16, 16, 55], None), ([80, 7], 32), ([87], None),
    ([32, 16, 39], 32), ([16, 71], 64),
]  # fmt: skip


@pytest.mark.parametrize(("split_k", "promote"), CUTS, ids=str)
def test_partial_sums(split_k: int | list[int], promote: int | None) -> None:
    i, rng = parse(F16), np.random.default_rng(9)
    a, b, c = drawn(i, 18, 9, 87, rng, rare=0.001)
    expected = in_parts(i, "sm_90", a, b, c, split_k, promote)
    check(i, "sm_90", expected, *typed(i, a, b, c), split_k=split_k, promote_every=promote)
    if isinstance(split_k, list):
        more: dict[str, Any] = {"split_k": np.array(split_k, np.uint8).tolist(), "promote_every": promote}
        same(wm.matmul(*typed(i, a, b, c), target="sm_90", **more).view(np.uint32), expected)
        more["split_k"] = tuple(np.array(split_k, np.uint8))
        same(wm.matmul(*typed(i, a, b, c), target="sm_90", **more).view(np.uint32), expected)


def test_narrow_lengths_do_not_overflow() -> None:
    a = np.ones((1, 480), np.float16)
    lengths = list(np.array([240, 240], np.uint8))
    assert wm.matmul(a, a.T, target="sm_80", split_k=lengths).item() == 480
    more: dict[str, Any] = {"split_k": np.int8(2), "promote_every": np.uint8(240)}
    assert wm.matmul(a, a.T, target="sm_80", **more).item() == 480


def test_every_cut_is_seen() -> None:
    """Each way to cut one product has another result, so none is taken for another."""
    rng = np.random.default_rng(10)
    a, b, c = (rng.standard_normal(shape).astype(np.float32) for shape in ((40, 87), (87, 40), (40, 40)))
    call: Call = partial(wm.matmul, a.astype(np.float16), b.astype(np.float16), c, target="sm_90")
    ways = [(1, None), (2, None), (3, None), (1, 16), (1, 32), (1, 96), (2, 16), ([16, 71], None), ([32, 55], None)]
    found = {call(split_k=cast(Any, x), promote_every=y).tobytes() for x, y in ways}
    assert len(found) == len(ways)


def test_the_order_of_additions() -> None:
    """Slices to C one after the other; partial sums of a slice together first."""
    big = 2.0**24
    a, b = np.ones((1, 64), np.float16), np.zeros((64, 1), np.float16)
    b[[0, 16, 32, 48], 0] = 1, 1, 1, 1
    c = np.full((1, 1), big, np.float32)
    for engine in ENGINES:
        call: Call = partial(wm.matmul, a, b, c, target="sm_90", engine=engine)
        assert call(split_k=4).item() == big  # four times a tie to even
        assert call(split_k=2).item() == big + 4
        assert call(promote_every=16).item() == big + 4
        assert call(split_k=2, promote_every=16).item() == big + 4
        assert call(split_k=[16, 48]).item() == big + 4 and call(split_k=[48, 16]).item() == big + 4
        assert call(split_k=[16, 16, 32]).item() == big + 2


def test_the_order_of_additions_of_what_cancels() -> None:
    """2^25, -2^25 and 1 to a C of 1."""
    a, b, c = np.ones((1, 64), np.float16), np.zeros((64, 1), np.float16), np.ones((1, 1), np.float32)
    a[0, [0, 16]] = 8192
    b[[0, 16, 32], 0] = 4096, -4096, 1
    for engine in ENGINES:
        call: Call = partial(wm.matmul, a, b, c, target="sm_90", engine=engine)
        assert call(split_k=4).item() == 1  # C is lost beside 2^25
        assert call(promote_every=16).item() == 2


def test_infinities_that_meet_in_a_sum() -> None:
    a, b = np.ones((1, 32), np.float16), np.zeros((32, 1), np.float16)
    b[0], b[16] = np.inf, -np.inf
    for engine, more in product(ENGINES, ({"split_k": 2}, {"promote_every": 16})):
        d = wm.matmul(a, b, target="sm_90", engine=engine, threads=2, **more)  # type: ignore[call-overload]
        assert d.view(np.uint32).item() == 0x7FFFFFFF
    payload = np.array([[0xFFC12345]], np.uint32).view(np.float32)
    assert wm.matmul(a[:, :16], b[:16], payload, target="sm_90", promote_every=16).view(np.uint32).item() == 0x7FFFFFFF


@pytest.mark.parametrize("mnemonic", [FP8, MX, NVF4, SP])
def test_partial_sums_of_other_kinds(mnemonic: str) -> None:
    """Chains of parts, added by hand."""
    i, rng = parse_any(mnemonic), np.random.default_rng(11)
    target = {FP8: "sm_90a", SP: "sm_80"}.get(mnemonic, "sm_120a")
    k = 5 * i.k + i.k // 2
    a, b, c = drawn(i, 20, 12, k, rng, rare=0)
    if mnemonic == SP:
        a = a * (np.arange(k) % 2).astype(a.dtype)
    each = i.k // i.scales_per_row if isinstance(i, Instruction) and i.block_scale else 0
    scales = some_scales(i, 20, 12, k, rng) if isinstance(i, Instruction) and each else {}

    def part(start: int, stop: int) -> Array:
        own = {"scale_a": scales["scale_a"][:, start // each : -(-stop // each)],
               "scale_b": scales["scale_b"][start // each : -(-stop // each)]} if each else {}  # fmt: skip
        d: Array = wm.matmul(a[:, start:stop], b[start:stop], instruction=i, target=target, **own)
        return d.view(np.uint32)

    for engine in ENGINES:
        call: Call = partial(wm.matmul, *typed(i, a, b, c), instruction=i, target=target, engine=engine, **scales)
        halves = added(added(c, part(0, 3 * i.k)), part(3 * i.k, k))
        same(call(split_k=2).view(np.uint32), halves)
        promoted = added(added(part(0, 2 * i.k), part(2 * i.k, 4 * i.k)), part(4 * i.k, k))
        same(call(promote_every=2 * i.k).view(np.uint32), added(c, promoted))
        first = added(part(0, 2 * i.k), part(2 * i.k, 3 * i.k))
        last = added(part(3 * i.k, 5 * i.k), part(5 * i.k, k))
        same(call(split_k=2, promote_every=2 * i.k).view(np.uint32), added(added(c, first), last))
