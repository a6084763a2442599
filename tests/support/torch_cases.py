"""Tensors, arrays and products that tests of `warpmma.torch` share; PyTorch must be there."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from arrays import Array, same
from oracles import skip_without

import warpmma as wm
from warpmma._arrays import as_array

__all__ = ["array", "expected", "same_tensor", "tensors", "torch"]

skip_without("PyTorch")  # pytest looks for doctests here, too
torch: Any = importlib.import_module("torch")


def array(x: Any) -> Array:
    """A tensor's numbers, in its type."""
    return as_array(x.detach(), "x")


def same_tensor(x: Any, y: Any) -> None:
    """Compare bits, shapes and types."""
    assert x.dtype == y.dtype
    words = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()]
    same(x.detach().contiguous().view(words).numpy(), y.detach().contiguous().view(words).numpy())


def tensors(dtype: str, *shapes: tuple[int, ...], seed: int = 0) -> list[Any]:
    """Normal numbers of a type."""
    rng = np.random.default_rng(seed)
    return [torch.from_numpy(rng.standard_normal(shape)).to(getattr(torch, dtype)) for shape in shapes]


def expected(a: Any, b: Any, **more: Any) -> Any:
    """The product by `warpmma.matmul`, rounded to the operands' type, as a tensor of it."""
    given = {"target": "sm_90", **more}
    d = torch.from_numpy(np.asarray(wm.matmul(a, b, **given)))
    return d.to(a.dtype)
