"""Operands of whole products: batches, broadcasting, nothing at all, and how they lie in memory."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from arrays import VIEWS, Array, Rng, same
from hypothesis import given, settings
from hypothesis import strategies as st
from product_cases import B1, F16, F64, FP8, MX, S8, SP, Call, drawn, each_engine, small_tiles, some_scales, typed

import warpmma as wm
from lab.generators import mixed
from warpmma import sparsity as sp
from warpmma.isa import Instruction, parse, parse_any

# Batches and empty products.


@each_engine
def test_leading_dimensions_broadcast(engine: Any) -> None:
    i, rng = parse(F16), np.random.default_rng(12)
    for of_a, of_b, of_c in [
        ((), (), ()),
        ((3,), (), ()),
        ((), (2,), (1,)),
        ((3, 1), (4,), (4,)),
        ((1,), (1, 1), (1,)),
        ((2, 1, 3), (2, 1), ()),
    ]:
        batch = np.broadcast_shapes(of_a, of_b, of_c)
        a, b, c = (mixed(i.format("C" if x == 2 else "A"), shape, rng) for x, shape in
                   enumerate(((*of_a, 17, 19), (*of_b, 19, 9), (*of_c, 17, 9))))  # fmt: skip
        d = wm.matmul(*typed(i, a, b, c), target="sm_80", engine=engine, threads=2)
        assert d.shape == (*batch, 17, 9)
        whole = [np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b, c)]
        for one in np.ndindex(batch):
            same(
                d[one].view(np.uint32),
                wm.matmul(*(x[one] for x in whole), instruction=i, target="sm_80").view(np.uint32),
            )


@each_engine
def test_batches_of_scales_and_indices(engine: Any) -> None:
    rng = np.random.default_rng(13)
    call: Call = partial(wm.matmul, target="sm_120a", engine=engine)
    i = parse(MX)
    a, b, _ = drawn(i, 5, 6, 40, rng)
    scale_a, scale_b = rng.integers(120, 130, (3, 1, 5, 2), np.uint8), rng.integers(120, 130, (2, 2, 6), np.uint8)
    d = call(a, b, instruction=i, scale_a=scale_a, scale_b=scale_b)
    assert d.shape == (3, 2, 5, 6)
    for x, y in np.ndindex(3, 2):
        same(d[x, y], call(a, b, instruction=i, scale_a=scale_a[x, 0], scale_b=scale_b[y]))
    i = parse(SP)
    stored, b, _ = drawn(i, 5, 6, 40, rng, rare=0)
    nibbles = rng.choice(np.array(sorted(sp.legal_codes(i))), (2, 5, 10))
    indices = np.stack([nibbles & 3, nibbles >> 2], axis=-1)
    d = call(stored[:, :20], b, instruction=i, indices=indices)
    assert d.shape == (2, 5, 6) and (d[0] != d[1]).any()
    for x in range(2):
        same(d[x], call(stored[:, :20], b, instruction=i, indices=indices[x]))


@each_engine
@pytest.mark.parametrize("shape", [(), (9,), (1,), (1, 9), (17, 1), (17, 9), (2, 1, 9), (1, 17, 9)])
def test_c_broadcasts(shape: tuple[int, ...], engine: Any) -> None:
    rng = np.random.default_rng(14)
    a, b = rng.standard_normal((2, 17, 20)).astype(np.float16), rng.standard_normal((20, 9)).astype(np.float16)
    c = np.asarray(rng.standard_normal(shape).astype(np.float32))
    more: dict[str, Any]
    for more in ({}, {"split_k": 2}, {"promote_every": 16, "epilogue": "f16"}):
        call: Call = partial(wm.matmul, a, b, target="sm_90", engine=engine, **more)
        same(call(c), call(np.broadcast_to(c, (2, 17, 9)).copy()))
    assert (call(c) != call()).any()


@each_engine
@pytest.mark.parametrize("mnemonic", [F16, F64, S8, B1, SP, MX, FP8])
def test_nothing_gives_nothing(mnemonic: str, engine: Any) -> None:
    """And k = 0 gives C, or zeros, to every way of summing."""
    i = parse_any(mnemonic)
    target = {MX: "sm_120a", FP8: "sm_90a"}.get(mnemonic, "sm_90")
    for batch, m, n, k in [((), 0, 5, 8), ((), 5, 0, 8), ((), 0, 0, 0), ((0,), 5, 6, 8), ((2, 0), 5, 6, 8),
                           ((3,), 0, 6, 8), ((0,), 0, 6, 0), ((), 5, 6, 0), ((2,), 5, 6, 0)]:  # fmt: skip
        a, b = np.zeros((*batch, m, k), i.format("A").dtype), np.zeros((k, n), i.format("B").dtype)
        c = np.full((*batch, m, n), 3, i.format("C").dtype)
        blocks = -(-k // 32)
        scales: dict[str, Any] = (
            {"scale_a": np.zeros((m, blocks), "u1"), "scale_b": np.zeros((blocks, n), "u1")} if mnemonic == MX else {}
        )
        ways: list[dict[str, Any]] = [{}, {"threads": 2}]
        if i.d_type == "f32":
            ways += [{"split_k": 3}, {"promote_every": i.k}, {"split_k": 2, "promote_every": i.k}, {"epilogue": "f32"}]
        for more in ways:
            call: Call = partial(wm.matmul, instruction=i, target=target, engine=engine, **scales, **more)
            out = np.empty_like(c)
            assert call(a, b, c, out=out) is out
            same(out, call(a, b, c))
            assert out.shape == (*batch, m, n) and call(a, b).shape == out.shape
            if k == 0:
                same(out, c)
                same(call(a, b), np.zeros_like(c))


# Nothing else is seen in the result.


KINDS = [(F16, "sm_80"), (F64, "sm_90"), (S8, "sm_90"), (B1, "sm_80"), (SP, "sm_90"), (MX, "sm_120a"), (FP8, "sm_90a")]


def operands_of(mnemonic: str, m: int, n: int, k: int, rng: Rng) -> tuple[list[Array], dict[str, Any]]:
    """A, B, C as arrays of their types, and scales."""
    i = parse_any(mnemonic)
    a, b, c = drawn(i, m, n, k, rng)
    if i.sparse:
        a = a * (np.arange(k) % 2).astype(a.dtype)
    more = some_scales(i, m, n, k, rng) if isinstance(i, Instruction) and i.block_scale else {}
    return typed(i, a, b, c), more


@each_engine
@pytest.mark.parametrize(("mnemonic", "target"), KINDS)
def test_how_operands_lie_in_memory_does_not_matter(mnemonic: str, target: str, engine: Any) -> None:
    given, more = operands_of(mnemonic, 17, 13, 40, np.random.default_rng(19))
    codes = parse_any(mnemonic).format("D").code_dtype
    call: Call = partial(wm.matmul, instruction=mnemonic, target=target, engine=engine, threads=2)
    d = call(*given, **more).view(codes)
    for view in VIEWS.values():
        copies = [x.copy() for x in given]
        viewed = [view(x) for x in copies]
        same(call(*viewed, **{x: view(y) for x, y in more.items()}).view(codes), d)
        for x, y in zip(copies, given, strict=True):
            same(x.view("u1"), y.view("u1"))  # nothing was written


PLACES = st.integers(0, 40)


@given(
    seed=st.integers(0, 2**32),
    size=st.integers(1, 40),
    threads=st.integers(1, 4),
    kind=st.sampled_from(KINDS),
    m=PLACES,
    n=PLACES,
    k=PLACES,
)
@settings(deadline=None, max_examples=60)
def test_rows_and_columns_are_on_their_own(
    seed: int, size: int, threads: int, kind: tuple[str, str], m: int, n: int, k: int
) -> None:  # fmt: skip
    """Whatever tile, batch, engine or thread an element of D falls to, and wherever its row and column stand."""
    mnemonic, target = kind
    rng, k = np.random.default_rng(seed), 4 * k if mnemonic == SP else k
    given, more = operands_of(mnemonic, m, n, k, rng)
    codes = parse_any(mnemonic).format("D").code_dtype
    call: Call = partial(wm.matmul, instruction=mnemonic, target=target)
    d = call(*given, **more).view(codes)
    rows, columns = rng.permutation(m), rng.permutation(n)
    a, b, c = given
    moved = {x: y[rows] if x == "scale_a" else y[:, columns] for x, y in more.items()}
    with small_tiles(size):
        p = call(a[rows], b[:, columns], c[rows][:, columns], engine="numpy", threads=threads, **moved)
    same(p.view(codes), d[rows][:, columns])
    batch = call(np.stack([a, a[::-1]]), b, np.stack([c, c[::-1]]),
                 **{x: np.stack([y, y[::-1]]) if x == "scale_a" else y for x, y in more.items()})  # fmt: skip
    same(batch.view(codes), np.stack([d, d[::-1]]))
    few = {x: y[m // 3 :] if x == "scale_a" else y[:, : n // 2] for x, y in more.items()}
    same(call(a[m // 3 :], b[:, : n // 2], c[m // 3 :, : n // 2], **few).view(codes), d[m // 3 :, : n // 2])
