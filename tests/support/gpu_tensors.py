"""What tests on a GPU share: tensors drawn on the CPU and compared with its bits; sparse instructions and targets."""

from __future__ import annotations

from typing import Any

SPARSE = {  # a pattern of each width, and a unit of each kind
    "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32": "sm_80",
    "mma.sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32": "sm_90",
    "mma.sp.sync.aligned.m16n8k64.row.col.satfinite.s32.s8.u8.s32": "sm_90",
    "mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.s32.s4.s4.s32": "sm_80",
    "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f32.e3m2.e5m2.f32": "sm_120a",
    "wgmma.mma_async.sp.sync.aligned.m64n8k64.f32.e4m3.e5m2": "sm_90a",
}


def drawn(torch: Any, *shape: int, dtype: str = "float32", seed: int = 0) -> Any:
    """Draw a tensor on the CPU."""
    made = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, generator=made).to(getattr(torch, dtype))


def same(torch: Any, there: Any, here: Any) -> None:
    """Compare a tensor on a GPU with one on the CPU."""
    assert there.device.type == "cuda" and there.dtype == here.dtype and there.shape == here.shape
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[here.element_size()]
    assert torch.equal(there.detach().cpu().contiguous().view(bits), here.detach().contiguous().view(bits))
