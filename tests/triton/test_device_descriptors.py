"""Descriptors that Triton builds on the device for sm_90: `tensormap.replace`, `cp_fenceproxy`, and tensor copies."""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, no-untyped-call, name-defined"

from __future__ import annotations

import importlib
from typing import Any

import pytest
from oracles import skip_without

import warpmma as wm

tl: Any = pytest.importorskip("triton.language")
triton: Any = pytest.importorskip("triton")
skip_without("PyTorch")
torch: Any = importlib.import_module("torch")
if not hasattr(tl, "make_tensor_descriptor"):
    pytest.skip("this Triton has no descriptors", allow_module_level=True)


@triton.jit
def twice(x, y, m, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    given = tl.make_tensor_descriptor(x, shape=[m, n], strides=[n, 1], block_shape=[ROWS, COLUMNS])
    out = tl.make_tensor_descriptor(y, shape=[m, n], strides=[n, 1], block_shape=[ROWS, COLUMNS])
    at = tl.program_id(0) * ROWS
    value = given.load([at, 0])
    out.store([at, 0], value + value)


def allocated(size: int, alignment: int, stream: Any) -> Any:
    held = torch.zeros(size + alignment, dtype=torch.int8)
    start = -held.data_ptr() % alignment
    return held[start : start + size]


@pytest.mark.parametrize("columns", [32, 64])
def test_descriptors_of_the_device(columns: int) -> None:
    triton.set_allocator(allocated)
    x = torch.arange(60 * 64, dtype=torch.float32).reshape(60, 64)  # the last tile reaches beyond it
    y = torch.zeros_like(x)
    with wm.triton.device("sm_90a", ptx_target="sm_90a") as session:
        twice[(4,)](x, y, 60, 64, ROWS=16, COLUMNS=columns)
    assert torch.equal(y[:, :columns], 2 * x[:, :columns]) and not y[:, columns:].any()
    assert len(session.launches) == 1
