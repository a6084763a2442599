"""Tensors of tests on a GPU: drawn on the CPU, and compared with what the CPU gives, bit for bit."""

from __future__ import annotations

from typing import Any


def drawn(torch: Any, *shape: int, dtype: str = "float32", seed: int = 0) -> Any:
    """Draw a tensor on the CPU."""
    made = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, generator=made).to(getattr(torch, dtype))


def same(torch: Any, there: Any, here: Any) -> None:
    """Compare a tensor on a GPU with one on the CPU."""
    assert there.device.type == "cuda" and there.dtype == here.dtype and there.shape == here.shape
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[here.element_size()]
    assert torch.equal(there.detach().cpu().contiguous().view(bits), here.detach().contiguous().view(bits))
