"""Explanations to show: of instructions of every unit, made from the reference's own steps."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

import warpmma as wm
from warpmma.analysis import ChainLink, Explanation, Parting
from warpmma.arithmetic import Evidence, Recipe, evidence_of, recipe, reference_trace
from warpmma.formats import FORMATS, FloatFormat

__all__ = ["ALL", "B1", "BF16", "E4M3", "F16", "F64", "MXF4", "MXF8", "S8", "codes", "explained"]

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
E4M3 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"
F64 = "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64"
MXF4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
MXF8 = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e5m2.f32.ue8m0"
BF16 = "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32"
B1 = "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc"
S8 = "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32"


def codes(values: Sequence[float], fmt: str) -> list[int]:
    return [int(x) for x in FORMATS[fmt].encode(values)]


def _exact(code: int, fmt: str) -> Fraction | None:
    kind = FORMATS[fmt]
    if not isinstance(kind, FloatFormat):
        return Fraction(kind.unpack(code))
    n = kind.unpack(code)
    return (-1) ** n.sign * n.significand * Fraction(2) ** n.exponent if n.kind == "finite" else None


def _links(r: Recipe, name: str, k: int, a: list[int], b: list[int], c: int) -> tuple[ChainLink, ...]:
    links = []
    for first in range(0, len(a), k):
        part = slice(first, first + k)
        steps = reference_trace(r, a[part], b[part], c)
        links.append(ChainLink(name=name, k=range(first, first + k), steps=steps))
        c = steps[-1].result
    return tuple(links)


def explained(
    name: str,
    a: Sequence[float],
    b: Sequence[float],
    c: float = 0.0,
    target: str = "sm_90",
    against: str = "",
    scales: tuple[Sequence[float], Sequence[float]] = ((), ()),
) -> Explanation:
    i, r = wm.parse(name), recipe(name, target)
    x, y = codes(a, r.a), codes(b, r.b)
    z = codes([c], r.c)[0]
    sa, sb = (tuple(codes(s, r.scale)) if r.scale else () for s in scales)
    if r.scale:
        steps = reference_trace(r, x, y, z, sa, sb)
        links: tuple[ChainLink, ...] = (ChainLink(name=name, k=range(len(x)), steps=steps),)
    else:
        links = _links(r, name, i.k // (2 if i.sparse else 1), x, y, z)
    parts = [_exact(z, r.c)]
    for k, (p, q) in enumerate(zip(x, y, strict=True)):
        factors = [_exact(p, r.a), _exact(q, r.b)]
        if r.scale:
            factors += [_exact(s[k * len(s) // len(x)], r.scale) for s in (sa, sb)]
        known = [f for f in factors if f is not None]
        product = Fraction(1)
        for f in known:
            product *= f
        parts.append(product if len(known) == len(factors) else None)
    finite = [p for p in parts if p is not None]
    other = explained(name, a, b, c, against, scales=scales) if against else None
    parting = None
    if other is not None and other.result != links[-1].steps[-1].result:
        parting = Parting(link=0, step=0, reason="sm_80 takes 8 products in a step where sm_90 takes 16")
    evidence: Evidence = evidence_of(i, target)
    return Explanation(
        instruction=i, target=target, row=0, column=0, a=tuple(x), b=tuple(y), positions=tuple(range(len(x))),
        scale_a=sa, scale_b=sb, c=z, recipe=r, evidence=evidence, links=links, format=r.d,
        result=links[-1].steps[-1].result, exact=sum(finite, Fraction(0)) if len(finite) == len(parts) else None,
        bound=Fraction(1, 2**20), against=other, parting=parting,
    )  # fmt: skip


_RNG = np.random.default_rng(0)


def _normal(k: int, spread: float = 0) -> list[float]:
    return [float(x) for x in _RNG.standard_normal(k) * np.exp2(np.rint(spread * _RNG.standard_normal(k)))]


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
    "bf16 far apart": explained(BF16, [1e30, 1, 1e-38, 1e20, 0, 0, 0, 0], [1] * 8, 1e-30),
    "nan": explained(F16, [float("nan"), 1, float("inf")] + [0] * 13, [1] * 16),
    "infinity": explained(F16, [1, float("-inf")] + [0] * 14, [1] * 16, against="sm_80"),
    "zeros": explained(F16, [0] * 16, [1] * 16, -0.0),
}
