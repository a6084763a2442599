"""A product of a launch of Triton is watched and explained by the line of the kernel."""

# mypy: disable-error-code="untyped-decorator, no-untyped-def"

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.kernel import Watch
from warpmma.testing import guess_launch

tl: Any = pytest.importorskip("triton.language")
triton: Any = pytest.importorskip("triton")
K = 128


@triton.jit
def product(a, b, c, length, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    total = tl.zeros((M, N), tl.float32)
    for at in range(0, length, BK):
        x = tl.load(a + i[:, None] * length + at + k[None, :])
        y = tl.load(b + (at + k)[:, None] * N + j[None, :])
        total = tl.dot(x, y, total)  # watched
    tl.store(c + i[:, None] * N + j[None, :], total)


LINE = inspect.getsourcelines(product.fn)
WATCHED = LINE[1] + next(n for n, text in enumerate(LINE[0]) if "# watched" in text)


@pytest.mark.parametrize(
    ("ptx_target", "row", "column"), [(None, 3, 5), (None, 63, 63), ("sm_80", 3, 5), ("sm_80", 12, 7)]
)
def test_by_the_line_of_the_kernel(ptx_target: str | None, row: int, column: int) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((64, K)).astype(np.float16), rng.standard_normal((K, 64)).astype(np.float16)
    c = np.zeros((64, 64), np.float32)
    with wm.triton.device("sm_90", ptx_target=ptx_target, watch=Watch(line=WATCHED, warp=0)) as gpu:
        product[(1,)](a, b, c, K, M=64, N=64, BK=32)
    report = gpu.launches[0].report
    turns = {x.occurrence for x in report.watched}
    told = [wm.explain_launch(report, row=row, column=column, occurrence=n, chain=True) for n in sorted(turns)[-8:]]
    whole = told[-1] if ptx_target is None else next(x for x in told if np.float32(x.value) == c[row, column])
    assert len(whole.a) == K and whole.result == c[row, column].view(np.uint32)
    assert f"test_explained_launches.py:{WATCHED}, block 0, warp" in whole.site


def test_what_is_wrong_with_a_product_is_guessed() -> None:
    """Compared with what the kernel should have multiplied; two lines of the text have one line of the source."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((64, K)).astype(np.float16), rng.standard_normal((K, 64)).astype(np.float16)
    c = np.zeros((64, 64), np.float32)
    with wm.triton.device("sm_90", watch=Watch(line=WATCHED, shared=True)) as gpu:
        product[(1,)](a, b, c, K, M=64, N=64, BK=32)
    report = gpu.launches[0].report
    assert guess_launch(report, a, b).mistakes == {}
    late = np.concatenate([b[:32], b[64:96], b[32:64], b[96:]])
    found = guess_launch(report, a, late)
    assert found.place.endswith("warps 0-3, occurrence 2") and found.mistakes["B"][0].startswith("B were k 64-79")
