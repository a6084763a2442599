"""One instruction of each group of `arithmetic.LOWERINGS` with fragments, and the variants that compute differently."""

from __future__ import annotations

from typing import NamedTuple

DENSE = "mma.sync.aligned"
SPARSE = "mma.sp::ordered_metadata.sync.aligned"
F16 = f"{DENSE}.m16n8k16.row.col.f32.f16.f16.f32"
BF16 = f"{DENSE}.m16n8k16.row.col.f32.bf16.bf16.f32"
E4M3 = f"{DENSE}.m16n8k32.row.col.f32.e4m3.e4m3.f32"
WGMMA_E4M3 = "wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3"


class Family(NamedTuple):
    label: str
    mnemonic: str
    target: str


FAMILIES = (
    Family("f16 m16n8k16, sm_90", F16, "sm_90"),
    Family("f16 m16n8k16, sm_80", F16, "sm_80"),
    Family("f16 m16n8k16, D f16", f"{DENSE}.m16n8k16.row.col.f16.f16.f16.f16", "sm_90"),
    Family("bf16 m16n8k16", BF16, "sm_90"),
    Family("tf32 m16n8k8", f"{DENSE}.m16n8k8.row.col.f32.tf32.tf32.f32", "sm_90"),
    Family("sparse f16 m16n8k32", f"{SPARSE}.m16n8k32.row.col.f32.f16.f16.f32", "sm_90"),
    Family("quad pair f16 m8n8k4, sm_70", f"{DENSE}.m8n8k4.row.col.f32.f16.f16.f32", "sm_70"),
    Family("quad pair f16 m8n8k4, sm_90", f"{DENSE}.m8n8k4.row.col.f32.f16.f16.f32", "sm_90"),
    Family("e4m3 m16n8k32, Ada", E4M3, "sm_89"),
    Family("e4m3 m16n8k32, sm_90 (software)", E4M3, "sm_90"),
    Family("f8f6f4 e3m2 x e2m1 m16n8k32", f"{DENSE}.m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m1.f32", "sm_120a"),
    Family(
        "mxf8f6f4 e4m3 m16n8k32",
        f"{DENSE}.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0", "sm_120a",
    ),
    Family(
        "mxf4 e2m1 m16n8k64",
        f"{DENSE}.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0", "sm_120a",
    ),
    Family(
        "nvfp4 e2m1 m16n8k64",
        f"{DENSE}.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3", "sm_120a",
    ),
    Family("f64 m16n8k16", f"{DENSE}.m16n8k16.row.col.f64.f64.f64.f64", "sm_90"),
    Family("s8 m16n8k32", f"{DENSE}.m16n8k32.row.col.s32.s8.s8.s32", "sm_90"),
    Family("sparse s8 m16n8k64", f"{SPARSE}.m16n8k64.row.col.s32.s8.s8.s32", "sm_90"),
    Family("s4 m16n8k64", f"{DENSE}.m16n8k64.row.col.s32.s4.s4.s32", "sm_90"),
    Family("b1 m16n8k256, xor", f"{DENSE}.m16n8k256.row.col.s32.b1.b1.s32.xor.popc", "sm_90"),
)  # fmt: skip
