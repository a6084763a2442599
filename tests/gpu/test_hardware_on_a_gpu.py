"""This machine's GPU by its own instructions, beside engine="cuda" and the engines on the CPU: the same bits."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hardware_products import codes, drawn

import warpmma as wm
from warpmma.errors import UnsupportedError
from warpmma.gpu import gpu, why_no_gpu
from warpmma.isa import TARGETS, MatrixInstruction, instructions, warpgroup_instructions

pytestmark = pytest.mark.skipif(bool(why_no_gpu()), reason=why_no_gpu())

SHAPES = ((83, 67), (1, 9), (130, 300))
WIDTHS = (8, 24, 56, 128, 200, 240, 256)
Case = tuple[str, MatrixInstruction]


def own() -> list[str]:
    """List the targets that the GPU is."""
    return [x.name for x in TARGETS.values() if x.capability == gpu().capability]


def wrong(case: Case) -> list[str]:
    """Compute an instruction at odd shapes by all engines; return what differs."""
    target, i = case
    found = []
    for seed, (m, n) in enumerate(SHAPES):
        given = drawn(i, target, m, n, seed)
        here, software, hardware = (codes(wm.matmul(engine=x, **given)) for x in ("auto", "cuda", "hardware"))
        for name, x in (("cuda", software), ("hardware", hardware)):
            if (x != here).any():
                place = tuple(np.argwhere(x != here)[0].tolist())
                found.append(f"{target} {i}, {m} x {n}, {place}: {name} {int(x[place]):#x}, CPU {int(here[place]):#x}")
    return found


def compared(cases: list[Case]) -> None:
    with ThreadPoolExecutor() as pool:  # which compile at the same time
        found = [x for some in pool.map(wrong, cases) for x in some]
    assert cases and not found, f"{len(found)} of {len(cases)} instructions differ: {found[:20]}"


def test_every_mma() -> None:
    compared([(target, i) for target in own() for i in instructions(target) if not i.block_scale])


def test_every_type_of_wgmma() -> None:
    cases: list[Case] = [(target, i) for target in own() for i in warpgroup_instructions(target) if i.n in WIDTHS]
    if not cases:
        pytest.skip("the GPU has no wgmma")
    compared(cases)


@pytest.mark.parametrize("instruction", [None, "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16"])
def test_large_products_in_slices(instruction: str | None) -> None:
    target = next((t for t in own() if t.endswith("a")), own()[0])
    if instruction and not warpgroup_instructions(target):
        pytest.skip("the GPU has no wgmma")
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((1111, 2345), (2345, 777)))
    options: Any = {"target": target, "instruction": instruction, "split_k": 3, "promote_every": 128}
    here, software, hardware = (codes(wm.matmul(a, b, engine=x, **options)) for x in ("auto", "cuda", "hardware"))
    assert (software == here).all() and (hardware == here).all()


@pytest.mark.parametrize("library", ["torch", "cupy"])
def test_arrays_on_the_gpu(library: str) -> None:
    module = pytest.importorskip(library)
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((3, 50, 70), (30, 70)))
    there = (module.asarray(x, **({"device": "cuda"} if library == "torch" else {})) for x in (a, b))
    x, y = there
    d = wm.matmul(x[:, 1:], y.T, target=own()[0], engine="hardware", epilogue="bf16" if library == "torch" else None)
    assert type(d).__module__.partition(".")[0] == library
    expected = wm.matmul(a[:, 1:], b.T, target=own()[0], epilogue="bf16" if library == "torch" else None)
    got = d.float().cpu().numpy() if library == "torch" else module.asnumpy(d)
    assert (got == expected.astype(np.float32)).all()


def test_float32_is_a_chain_of_fma() -> None:
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((40, 333), (333, 50)))
    for float32 in ("ieee", "tf32", "tf32-truncated"):
        options: Any = {"target": own()[0], "float32": float32}
        assert (wm.matmul(a, b, engine="hardware", **options) == wm.matmul(a, b, **options)).all()


def test_another_target() -> None:
    other = next(x for x in TARGETS if x not in own())
    a = np.zeros((4, 16), np.float16)
    with pytest.raises(UnsupportedError, match=f"the target {other}; use engine='cuda'"):
        wm.matmul(a, a.T, target=other, engine="hardware")
