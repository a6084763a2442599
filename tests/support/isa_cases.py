"""Mnemonics that tests of the instruction table share."""

from __future__ import annotations

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
F64 = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"
B1 = "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32"
F8F6F4 = "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4"
NVF4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4"


ORDERS = [  # docs/specification/ptx.md 1.1: what ptxas takes, and what CUTLASS writes
    ("mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.e4m3.e2m1.f32", F8F6F4 + ".f32.e4m3.e2m1.f32"),
    ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e2m1.f32.kind::f8f6f4", F8F6F4 + ".f32.e4m3.e2m1.f32"),
    (
        "mma.sync.aligned.kind::f8f6f4.sp::ordered_metadata.m16n8k64.row.col.f32.e4m3.e4m3.f32",
        "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32",
    ),
    (
        "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32.satfinite",
        "mma.sync.aligned.m8n8k16.row.col.satfinite.s32.s8.s8.s32",
    ),
    ("mma.xor.popc.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32", B1 + ".xor.popc"),
    ("mma.sync.aligned.row.col.m16n8k16.f32.f16.f16.f32", F16),
    ("mma.aligned.sync.m16n8k16.row.col.f32.f16.f16.f32", F16),
    ("mma.sync.aligned.m8n8k4.row.col.rn.f64.f64.f64.f64", F64 + ".rn"),
    (
        "mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3",
        NVF4 + ".block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
    ),
]
