"""The instruction that a product uses by default."""

from __future__ import annotations

import numpy as np
import pytest
from messages import exactly
from product_cases import F4, F16, HALF, zeros

import warpmma as wm
from warpmma import sparsity as sp
from warpmma.errors import MnemonicError, OperandError
from warpmma.formats import FORMATS
from warpmma.isa import TARGET_NAMES as TARGETS
from warpmma.isa import Instruction, instructions
from warpmma.products import default_instruction


def table() -> dict[tuple[str, str, str, str | None, bool], Instruction]:
    """The instruction that ought to be the default of each target, pair of types, C and sparsity."""
    best: dict[tuple[str, str, str, str | None, bool], Instruction] = {}
    order = [None, "sp", "sp::ordered_metadata"]
    for i in instructions():
        if (
            i.block_scale
            or i.satfinite
            or i.rounding
            or i.bit_op
            or i.c_type != i.d_type
            or i.a_layout + i.b_layout != "rowcol"
        ):
            continue
        for t in i.targets:
            for c in (i.c_type, None) if i.c_type != "f16" else (i.c_type,):
                key = (t, i.a_type, i.b_type, c, i.sparse)
                old = best.get(key)
                rank = (i.k, -order.index(i.sparsity), not i.kind)
                if old is None or rank > (old.k, -order.index(old.sparsity), not old.kind):
                    best[key] = i
    return best


DEFAULTS = table()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.alike(2)
def test_the_default_instruction_has_the_largest_k(target: str) -> None:
    mine = {key: i for key, i in DEFAULTS.items() if key[0] == target}
    assert mine
    for (_, a, b, c, sparse), i in mine.items():
        assert default_instruction(a, b, c, target, sparse=sparse) == i
        x, y = np.zeros((1, 16), FORMATS[a].dtype), np.zeros((16 * (1 + sparse), 1), FORMATS[b].dtype)
        z = None if c is None else np.zeros((1, 1), FORMATS[c].dtype)
        indices = np.tile([0, 1], (1, 2 * 16 // sp.pattern(i).width, 1)) if sparse else None
        if "u8" in (a, b):  # uint8 may hold raw codes of any narrow type
            with pytest.raises(OperandError, match="which type is meant"):
                wm.matmul(x, y, z, target=target, indices=indices)
            continue
        d = wm.matmul(x, y, z, target=target, indices=indices, float32="tf32-truncated")
        assert d.dtype == i.format("D").dtype
    types = {key[1:] for key in DEFAULTS}
    for a, b, c, sparse in types - {key[1:] for key in mine}:
        with pytest.raises(MnemonicError, match=exactly(f"{target} has no {'sparse ' * sparse}mma for {a} x {b}~")):
            default_instruction(a, b, c, target, sparse=sparse)


@pytest.mark.parametrize(
    ("a", "b", "c", "target", "expected"),
    [
        ("f16", "f16", None, "sm_70", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"),
        ("f16", "f16", None, "sm_75", "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"),
        ("f16", "f16", "f16", "sm_80", HALF), ("f16", "f16", "f32", "sm_121", F16),
        ("tf32", "tf32", None, "sm_80", "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"),
        ("e4m3", "e5m2", None, "sm_89", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32"),
        ("e4m3", "e5m2", "f16", "sm_120a", "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e5m2.f16"),
        ("e2m1", "e3m2", None, "sm_120f", "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e3m2.f32"),
        ("f64", "f64", None, "sm_80", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"),
        ("f64", "f64", "f64", "sm_90", "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64"),
        ("s8", "u8", None, "sm_75", "mma.sync.aligned.m8n8k16.row.col.s32.s8.u8.s32"),
        ("u4", "s4", "s32", "sm_100", "mma.sync.aligned.m16n8k64.row.col.s32.u4.s4.s32"),
    ],
)  # fmt: skip
def test_some_defaults(a: str, b: str, c: str | None, target: str, expected: str) -> None:
    assert str(default_instruction(a, b, c, target)) == expected


def test_c_chooses_the_accumulator() -> None:
    a = np.full((1, 16), 64, np.float16)
    for c, d in ((None, np.inf), (zeros(1, 1, **F4), 2**16), (zeros(1, 1), np.inf)):
        result = wm.matmul(a, a.T, c, target="sm_90")
        assert result.dtype == (np.float32 if c is None else c.dtype)
        assert result.item() == (2**16 if result.dtype == np.float32 else d)
