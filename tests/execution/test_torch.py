"""What PyTorch's libraries computed on an H200, bit for bit: `matmul` with k cut as the library's kernel cuts it.

The name and the grid of a kernel say how often it splits k (nvjet: tiles of m and n, clusters of them, and the depth of
a tile); the partial sums are added in f32, ascending.
"""

from __future__ import annotations

import re
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import pytest
from arrays import Array

from lab.gpu.libraries import RecordedProduct, read_products, texts_of
from warpmma import matmul
from warpmma.formats import FORMATS

ARCHIVE = Path(__file__).parents[1] / "data" / "torch_h200.npz"
RECORDED = list(read_products(ARCHIVE))
_HALF = "wgmma.mma_async.sync.aligned.m64n64k16.f32.{0}.{0}"
_FP8 = "wgmma.mma_async.sync.aligned.m64n64k32.f32.{0}.{0}"


def slices(recorded: RecordedProduct) -> list[int]:
    """Lengths of the slices of k; one if it is not split."""
    case, kernel = recorded.case, recorded.kernels[0]
    each = case.k
    if nvjet := re.search(r"nvjet\w*?_(\d+)x(\d+)_(\d+)x\d+_(\d+)x(\d+)_\w*splitK", kernel):
        tile_n, tile_m, depth, cluster_n, cluster_m = map(int, nvjet.groups())
        grid = re.search(r"grid (\d+)x(\d+)x(\d+)", kernel)
        assert grid is not None
        tiles = _up(_up(case.n, tile_n) // tile_n, cluster_n) * _up(_up(case.m, tile_m) // tile_m, cluster_m)
        split, rest = divmod(int(np.prod([int(x) for x in grid.groups()])), tiles)
        assert rest == 0
        each = _up(_up(case.k, depth) // depth, split) // split * depth
    elif len(recorded.kernels) > 1:  # and a kernel that adds the slices
        grid = re.search(r"cutlass_75.* grid \d+x\d+x(\d+)", kernel)
        assert grid is not None
        each = _up(case.k // int(grid[1]), 8)
    return [min(each, case.k - start) for start in range(0, case.k, each)]


def _up(x: int, step: int) -> int:
    return -(-x // step) * step


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda r: r.case.name)
@pytest.mark.alike(3)
def test_same_bits_as_torch(recorded: RecordedProduct) -> None:
    case = recorded.case
    assert recorded.repeatable
    a, b = recorded.parts()
    promote = 128 if case.call == "scaled" else None
    cut = slices(recorded)
    if wmma := re.search(r"wmma\w*_32x32_(\d+)x", recorded.kernels[0]):
        # A step of the depth of a tile first takes what is left of k, and +0.
        depth = int(wmma[1])
        rest = case.k % depth or depth
        a, b = np.insert(a, [rest] * (depth - rest), 0, axis=1), np.insert(b, [rest] * (depth - rest), 0, axis=0)
        cut = [a.shape[1]]
    instruction = (_FP8 if case.dtype == "e4m3" else _HALF).format(case.dtype)
    step = int(instruction.partition("k")[2][:2])
    if any(end % step for end in list(accumulate(cut))[:-1]):  # slices that end within an instruction: +0 there too
        bounds = [(start, end) for start, end in pairwise(accumulate(cut, initial=0))]
        widths = [_up(end - start, step) for start, end in bounds]
        a = np.concatenate([_padded(a[:, s:e], 1, w) for (s, e), w in zip(bounds, widths, strict=True)], axis=1)
        b = np.concatenate([_padded(b[s:e], 0, w) for (s, e), w in zip(bounds, widths, strict=True)], axis=0)
        cut = widths
    epilogue = None if case.out == "f32" else case.out
    d = matmul(
        a, b, instruction=instruction, target="sm_90a", split_k=cut, promote_every=promote, epilogue=epilogue
    )  # fmt: skip
    codes = FORMATS[case.out].codes(d)
    assert np.array_equal(codes, recorded.expected), f"{(codes != recorded.expected).sum()} of {codes.size} differ"


def _padded(x: Array, axis: int, length: int) -> Array:
    return np.pad(x, [(0, length - n if i == axis else 0) for i, n in enumerate(x.shape)])


def test_inputs_are_those_of_the_recording() -> None:
    for recorded in RECORDED[::10]:
        assert recorded.case.digest() == recorded.digest


def test_the_recording_holds_what_it_should() -> None:
    """Shapes that k is split for and that it is not, hard inputs, every call; by an H200."""
    assert "H200" in " ".join(texts_of(ARCHIVE).values())
    split = [r for r in RECORDED if len(slices(r)) > 1]
    assert {r.case.dtype for r in split} == {"f16", "bf16", "e4m3"}
    for dtype in ("f16", "bf16"):
        shapes = {(r.case.m, r.case.n, r.case.k) for r in RECORDED if r.case.dtype == dtype}
        assert {(128, 128, 256), (256, 512, 1024), (256, 256, 4096)} <= shapes
        assert len(shapes) >= 13
    fast = {(r.case.m, r.case.n, r.case.k) for r in RECORDED if r.case.call == "scaled-fast"}
    assert (256, 256, 1024) in fast
    assert len(fast) >= 12


def test_a_wrong_rule_is_noticed() -> None:
    """Hard inputs tell a plain chain from a split one, and promoted sums from a chain."""
    for recorded in RECORDED:
        if recorded.case.kind != "hard" or not (len(slices(recorded)) > 1 and recorded.case.k >= 4096):
            continue
        a, b = recorded.parts()
        instruction = (_FP8 if recorded.case.dtype == "e4m3" else _HALF).format(recorded.case.dtype)
        epilogue = None if recorded.case.out == "f32" else recorded.case.out
        d = matmul(a, b, instruction=instruction, target="sm_90a", epilogue=epilogue)
        assert not np.array_equal(FORMATS[recorded.case.out].codes(d), recorded.expected), recorded.case
