"""Instructions and registers that tests of execution share."""

from __future__ import annotations

import numpy as np
import pytest
from arrays import Array

from warpmma.isa import parse
from warpmma.layouts import Operand
from warpmma.registers import LANES

OPERANDS: tuple[Operand, ...] = ("A", "B", "C", "D")
ABC = OPERANDS[:3]

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
F64 = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"
TF32 = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
QUAD = "mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16"
S8 = "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32"
S4 = "mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32"
B1 = "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc"
FP8 = "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e5m2.f16"
FP4 = "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e2m1.f32"
SP = "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
MX = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"
SAMPLES = [(F16, "sm_80"), (F64, "sm_90"), (QUAD, "sm_75"), (S8, "sm_86"), (S4, "sm_90"), (B1, "sm_90a")]
each_sample = pytest.mark.parametrize(("mnemonic", "target"), SAMPLES)


def registers_of(mnemonic: str, operand: Operand, *batch: int, seed: int = 0) -> Array:
    """Random bits, all of which mean something."""
    layout, rng = parse(mnemonic).layout(operand), np.random.default_rng([seed, ord(operand)])
    bits = rng.integers(0, 1 << 32, (*batch, layout.registers, 2 * LANES), np.uint32)
    return bits.view(np.uint64) if layout.packing.width == 64 else bits[..., :LANES].copy()


def abc(mnemonic: str, *batch: int, seed: int = 0) -> list[Array]:
    return [registers_of(mnemonic, operand, *batch, seed=seed) for operand in ABC]
