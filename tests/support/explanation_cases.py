"""Explanations to show: of instructions of every unit, and of chains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from warpmma.analysis import Explanation, explain
from warpmma.formats import FORMATS
from warpmma.isa import parse_any

__all__ = ["ALL", "B1", "BF16", "E4M3", "F16", "F64", "MXF4", "MXF8", "S8", "codes", "explained"]

Numbers = Sequence[float] | npt.NDArray[np.float64]

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
E4M3 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"
F64 = "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64"
MXF4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
MXF8 = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e5m2.f32.ue8m0"
BF16 = "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32"
B1 = "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc"
WGMMA = "wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
TF32 = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
S8 = "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32"


def codes(values: Numbers, fmt: str) -> list[int]:
    return [int(x) for x in FORMATS[fmt].encode(values)]


def explained(
    name: str,
    a: Numbers,
    b: Numbers,
    c: float = 0.0,
    target: str = "sm_90",
    against: str | None = None,
    scales: tuple[Numbers, Numbers] | None = None,
    **more: Any,
) -> Explanation:
    """Explain a row and a column, of an instruction's k or longer."""
    i = parse_any(name)
    row, column, of_c = (
        np.array(codes(x, fmt.name), fmt.code_dtype)
        for x, fmt in ((a, i.format("A")), (b, i.format("B")), ([c], i.format("C")))
    )
    if scales is not None and i.stype is not None:
        fmt = FORMATS[i.stype]
        of_a, of_b = (np.array(codes(x, fmt.name), fmt.code_dtype) for x in scales)
        more |= {"scale_a": of_a[None, :], "scale_b": of_b[:, None]}
    return explain(i, row[None, :], column[:, None], of_c[:, None], target=target, against=against, **more)


_RNG = np.random.default_rng(0)


def _normal(k: int, spread: float = 0) -> list[float]:
    return [float(x) for x in _RNG.standard_normal(k) * np.exp2(np.rint(spread * _RNG.standard_normal(k)))]


def _normal_sparse(k: int) -> list[float]:
    return [x if i % 4 in (0, 3) else 0.0 for i, x in enumerate(_normal(k))]


ALL = {
    "f16": explained(F16, _normal(16), _normal(16), 1.5, against="sm_80"),
    "f16 spread": explained(F16, _normal(16, 4), _normal(16, 4), 1.5, against="sm_80"),
    "f16 low bits": explained(F16, [1] + [0] * 6 + [2**-24] * 2 + [0] * 7, [1] * 16, against="sm_80"),
    "f16 long": explained(F16, _normal(1024, 3), _normal(1024), against="sm_80"),
    "fp8 of Ada": explained(E4M3, _normal(32), _normal(32), 1.5, target="sm_89"),
    "fp8 in software": explained(E4M3, _normal(32), _normal(32), 1.5),
    "f64": explained(F64, _normal(16), _normal(16), 1.5),
    "f64 apart": explained(F64, [1e300, 1e-300] * 8, [1e-200, 1e8] * 8, 1e-300),
    "s8 clamped": explained(S8, [100] * 32, [100] * 32, 2**31 - 5),
    "b1": explained(B1, [1, 0, 1, 1] * 64, [0, 0, 1, 0] * 64, 7),
    "groups": explained(MXF4, _normal(64), _normal(64), 1e-3, "sm_120a", scales=([1, 2, 0.5, 8], [1, 1, 2, 1])),
    "scaled": explained(MXF8, _normal(32), _normal(32), 1e-3, "sm_120a", scales=([4.0], [0.5])),
    "quad pair": explained(F16.replace("m16n8k16", "m8n8k4"), _normal(4), _normal(4), 1),
    "quad pair of f16": explained("mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16", _normal(4), _normal(4), 1),
    "promoted": explained(WGMMA, _normal(512), _normal(512), target="sm_90a", promote_every=128, epilogue="bf16"),
    "slices": explained(F16, _normal(200), _normal(200), 1.5, split_k=3),
    "sparse": explained(SPARSE, _normal_sparse(64), _normal(64), 1.5, against="sm_80"),
    "tf32": explained(TF32, _normal(8), _normal(8), 1.5, "sm_80"),
    "of no k": explained(F16, [], [], 1.5),
    "bf16 far apart": explained(BF16, [1e30, 1, 1e-38, 1e20, 0, 0, 0, 0], [1] * 8, 1e-30),
    "nan": explained(F16, [float("nan"), 1, float("inf")] + [0] * 13, [1] * 16),
    "infinity": explained(F16, [1, float("-inf")] + [0] * 14, [1] * 16, against="sm_80"),
    "zeros": explained(F16, [0] * 16, [1] * 16, -0.0),
}
