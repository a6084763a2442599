"""What tests of `warpmma.torch.compile` share: caches of their own, kernels, and what PyTorch looks like."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from typing import Any

import pytest
from torch_cases import torch

pytest.importorskip("triton.language")

import triton
import triton.language as tl

from warpmma.torch import inductor

__all__ = ["beyond", "own_caches", "state", "twice"]


@pytest.fixture(autouse=True)
def own_caches(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Generated code of one run of the tests is in its temporary folder; Dynamo forgets what it compiled."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "inductor"))
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


def state() -> list[Any]:
    """Everything that is replaced while something is compiled or runs."""
    names = [str(each) for each in inductor.REPLACED]
    found: list[Any] = [inspect.getattr_static(*each.holder()) for each in inductor.REPLACED]
    variables = [os.environ.get(name) for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")]
    driver = vars(triton.runtime.driver).get("_active", vars(triton.runtime.driver).get("active"))
    settings = [torch._inductor.config.cpu_backend, torch._inductor.config.compile_threads]
    return [*names, *found, *variables, dict(triton.backends.backends), driver, settings, torch.cuda.synchronize]


@triton.jit  # type: ignore[untyped-decorator]
def twice(x, y, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, at < n), at < n)


@triton.jit  # type: ignore[untyped-decorator]
def beyond(x, y, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at), at < n)
