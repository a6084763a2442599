"""Bank conflicts as a slow model counts them, and a kernel that has some."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

LDSM = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
BANKS = 32


def model(address: Sequence[int], size: int, load: bool = False) -> tuple[int, int]:
    """Count phases and wavefronts as the module says it, a lane at a time; -1 is no lane."""
    lanes = {1: 32, 2: 32, 4: 32, 8: 16, 16: 8}[size]
    if load and size > 4:
        for bit in (1, 2):
            pairs = [(address[lane], address[lane ^ bit]) for lane in range(32)]
            if all(a == b or min(a, b) < 0 for a, b in pairs):
                lanes = 32 if size == 8 else 16
    phases = waves = 0
    for start in range(0, 32, lanes):
        wanted: dict[int, set[int]] = {}
        for at in address[start : start + lanes]:
            if at >= 0:
                for byte in range(at, at + size):
                    wanted.setdefault(byte // 4 % BANKS, set()).add(byte // 4)
        if wanted:
            phases += 1
            waves += max(map(len, wanted.values()))
    return phases, waves


def tiles(t: Any, x: Any, pitch: int, swizzle: Callable[[Any], Any]) -> None:
    """Rows of 64 bytes come by `cp.async`, and fragments go by `ldmatrix`: the classic."""
    for i in range(4):
        row, piece = (t.tid[0] >> 2) + i * 8, t.tid[0] & 3
        t("cp.async.cg.shared.global", swizzle(row * pitch + piece * 16), x + (row * 64 + piece * 16), 16)
    t("cp.async.wait_all")
    t("bar.warp.sync", 0xFFFFFFFF)
    for k in range(2):
        t(LDSM, swizzle((t.laneid & 15) * pitch + (t.laneid >> 4) * 16 + k * 32))
        t("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16", swizzle((t.laneid & 15) * pitch + k * 32))
