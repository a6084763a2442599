"""Registers to registers on one core, with NumPy: `python benchmarks/registers.py`.

Prints how many instructions a second each family reaches in batches of 4,096 warps (processor time, best of several),
what a single call takes, how sparse compares with dense, what a million warps need beyond inputs and outputs, and what
the import costs. Numbers of one machine: compare them within one run. No BLAS is involved, so there is one thread.
"""

from __future__ import annotations

import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

import warpmma as wm
from warpmma.layouts import Operand
from warpmma.scaling import pack_scales
from warpmma.sparsity import legal_codes, pack_metadata, pattern

WARPS = 4096
NAMES: tuple[Operand, ...] = ("A", "B", "C")
DENSE = "mma.sync.aligned"
SPARSE = "mma.sp::ordered_metadata.sync.aligned"
HALF = f"{DENSE}.m16n8k16.row.col.f32.f16.f16.f32"

FAMILIES = [
    (HALF, "sm_90"),
    (HALF, "sm_80"),
    (f"{DENSE}.m16n8k16.row.col.f16.f16.f16.f16", "sm_90"),
    (f"{DENSE}.m16n8k16.row.col.f32.bf16.bf16.f32", "sm_90"),
    (f"{DENSE}.m16n8k8.row.col.f32.tf32.tf32.f32", "sm_90"),
    (f"{DENSE}.m8n8k4.row.col.f32.f16.f16.f32", "sm_90"),
    (f"{DENSE}.m16n8k32.row.col.f32.e4m3.e4m3.f32", "sm_89"),
    (f"{DENSE}.m16n8k32.row.col.f32.e4m3.e4m3.f32", "sm_90"),
    (f"{DENSE}.m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m1.f32", "sm_120a"),
    (f"{DENSE}.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0", "sm_120a"),
    (f"{DENSE}.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3", "sm_120a"),
    (f"{DENSE}.m16n8k16.row.col.f64.f64.f64.f64", "sm_90"),
    (f"{DENSE}.m16n8k32.row.col.s32.s8.s8.s32", "sm_90"),
    (f"{DENSE}.m16n8k64.row.col.s32.s4.s4.s32", "sm_90"),
    (f"{DENSE}.m16n8k256.row.col.s32.b1.b1.s32.xor.popc", "sm_90"),
]

PAIRS = [  # dense, and sparse of the same stored size
    (f"{DENSE}.m16n8k16.row.col.{types}", f"{SPARSE}.m16n8k32.row.col.{types}", "sm_90")
    for types in ("f32.f16.f16.f32", "f16.f16.f16.f16", "f32.bf16.bf16.f32")
] + [
    (f"{DENSE}.m16n8k8.row.col.f32.f16.f16.f32", f"{SPARSE}.m16n8k16.row.col.f32.f16.f16.f32", "sm_90"),
    (f"{DENSE}.m16n8k4.row.col.f32.tf32.tf32.f32", f"{SPARSE}.m16n8k8.row.col.f32.tf32.tf32.f32", "sm_90"),
    (f"{DENSE}.m16n8k8.row.col.f32.tf32.tf32.f32", f"{SPARSE}.m16n8k16.row.col.f32.tf32.tf32.f32", "sm_90"),
    (f"{DENSE}.m16n8k32.row.col.f32.e4m3.e4m3.f32", f"{SPARSE}.m16n8k64.row.col.f32.e4m3.e4m3.f32", "sm_90"),
    (f"{DENSE}.m16n8k16.row.col.s32.s8.s8.s32", f"{SPARSE}.m16n8k32.row.col.s32.s8.s8.s32", "sm_90"),
    (f"{DENSE}.m16n8k32.row.col.s32.s8.s8.s32", f"{SPARSE}.m16n8k64.row.col.s32.s8.s8.s32", "sm_90"),
    (f"{DENSE}.m16n8k32.row.col.s32.s4.s4.s32", f"{SPARSE}.m16n8k64.row.col.s32.s4.s4.s32", "sm_90"),
    (f"{DENSE}.m16n8k64.row.col.s32.s4.s4.s32", f"{SPARSE}.m16n8k128.row.col.s32.s4.s4.s32", "sm_90"),
    (
        f"{DENSE}.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0",
        f"{SPARSE}.m16n8k64.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0",
        "sm_120a",
    ),
    (
        f"{DENSE}.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0",
        f"{SPARSE}.m16n8k128.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0",
        "sm_120a",
    ),
]


def call(mnemonic: str, target: str, warps: int) -> Callable[[], Any]:
    """A call of `execute` on normally distributed operands (random bits for integers)."""
    rng = np.random.default_rng(0)
    i = wm.parse(mnemonic)
    operands: list[Any] = []
    for name in NAMES:
        layout, fmt = i.layout(name), i.format(name)
        if fmt.dtype.kind in "iu" or fmt.name in ("s4", "u4"):
            operands.append(rng.integers(0, 2**32, (warps, layout.registers, 32), dtype=np.uint32))
        else:
            operands.append(wm.load(i, name, fmt.encode(rng.standard_normal((warps, *layout.shape)))))
    extra: dict[str, Any] = {}
    if i.sparse:
        groups = i.k // pattern(i).width
        nibbles = rng.choice(sorted(legal_codes(i)), (warps, i.m, groups)).astype(np.uint8)
        extra["metadata"] = pack_metadata(np.stack([nibbles & 3, nibbles >> 2], axis=-1), i)
    if i.block_scale:
        s = i.scales_per_row
        one = 127 if i.stype == "ue8m0" else 0x38
        extra["scale_a"] = pack_scales(np.full((warps, i.m, s), one, np.uint8), i, "A")
        extra["scale_b"] = pack_scales(np.full((warps, s, i.n), one, np.uint8), i, "B")
    return lambda: wm.execute(i, *operands, target=target, **extra)


def singles(mnemonic: str, target: str) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """One warp by `execute`, and one multiplication of matrices by `mma`."""
    i = wm.parse(mnemonic)
    a, b = (np.zeros(i.layout(x).shape, i.format(x).code_dtype) for x in NAMES[:2])
    scales: dict[str, Any] = {}
    if i.block_scale:
        s = i.scales_per_row
        scales = {"scale_a": np.zeros((i.m, s), np.uint8), "scale_b": np.zeros((s, i.n), np.uint8)}
    return call(mnemonic, target, 1), lambda: wm.mma(i, a, b, target=target, **scales)


def memory(mnemonic: str, warps: int = 1_000_000) -> float:
    """Memory that many warps need beyond inputs and outputs, in MiB."""
    i = wm.parse(mnemonic)
    a, b, c = (np.zeros((warps, i.layout(x).registers, 32), np.uint32) for x in NAMES)
    extra = {"metadata": np.full((warps, 32), 0x44444444, np.uint32)} if i.sparse else {}
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    d = wm.execute(i, a, b, c, target="sm_90", **extra)  # type: ignore[arg-type]
    beyond = tracemalloc.get_traced_memory()[1] - before - d.nbytes
    tracemalloc.stop()
    return beyond / 2**20


def seconds(function: Callable[[], Any], times: int = 5) -> float:
    """Best processor time of several."""
    function()
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return best


def short(mnemonic: str) -> str:
    return mnemonic.replace("sync.aligned.", "").replace(".row.col", "")


def main() -> None:
    print(f"{'instruction':78}{'target':>8}{'a second':>10}{'one execute':>14}{'one mma':>12}")
    for mnemonic, target in FAMILIES:
        rate = WARPS / seconds(call(mnemonic, target, WARPS))
        single = [seconds(lambda f=f: [f() for _ in range(20)]) / 20 * 1e6 for f in singles(mnemonic, target)]  # type: ignore[misc]
        print(f"{short(mnemonic):78}{target:>8}{rate:10,.0f}{single[0]:11,.0f} us{single[1]:9,.0f} us")

    print(f"\n{'sparse':89}{'dense time / sparse time':>26}")
    for dense, sparse, target in PAIRS:
        ratio = seconds(call(sparse, target, WARPS), 9) / seconds(call(dense, target, WARPS), 9)
        print(f"{short(sparse):89}{f'1 / {ratio:.2f}':>26}")

    print()
    for mnemonic in (HALF, f"{SPARSE}.m16n8k16.row.col.f32.f16.f16.f32"):
        print(f"memory of 1,000,000 warps beyond inputs and outputs, {short(mnemonic)}: {memory(mnemonic):.1f} MiB")

    def imported(what: str) -> float:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", what], check=True)
        return time.perf_counter() - start

    ours, base = (min(imported(what) for _ in range(7)) for what in ("import warpmma", "pass"))
    print(f"import warpmma: {ours - base:.3f} s, NumPy included")


if __name__ == "__main__":
    main()
