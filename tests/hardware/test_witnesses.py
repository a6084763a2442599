"""Witness vectors with published results, each for one parameter (docs/specification/numerics.md 1.6).

The expected bits are those of mmasim 2.1.1 (Xie et al., arXiv 2511.10909), whose authors checked the behaviours on
V100, T4, A100, RTX 4090, H100, B200 and RTX PRO 6000; W9 and W10 on Hopper belong to `wgmma` and are not here.
"""

from __future__ import annotations

import numpy as np
import pytest

import warpmma as wm
from warpmma.formats import FORMATS

pytestmark = pytest.mark.quick

VOLTA, TURING, AMPERE, ADA, HOPPER = "sm_70", "sm_75", "sm_80", "sm_89", "sm_90"
BLACKWELL, RTX = "sm_100", "sm_120"
F24 = (TURING, AMPERE, ADA)
F25 = (HOPPER, BLACKWELL, RTX)

Products = dict[int, float]


def single(target: str, types: str, c: float | int, products: Products) -> int:
    """D[0, 0] of the instruction of these types with the largest k of at most 16, from products at these k."""
    d_type, a_type, *_ = types.split(".")
    shape = {VOLTA: "m8n8k4", TURING: "m16n8k8"}.get(target, "m16n8k16")
    i = wm.parse(f"mma.sync.aligned.{shape}.row.col.{types}")
    a = np.zeros(i.layout("A").shape, FORMATS[a_type].code_dtype)
    b = np.zeros(i.layout("B").shape, FORMATS[a_type].code_dtype)
    a, b = (x[0] if x.ndim == 3 else x for x in (a, b))  # m8n8k4: one of its four matrices
    for k, product in products.items():
        mantissa, exponent = np.frexp(product)
        # A product of two powers of two, each within the format's reach.
        x = np.ldexp(mantissa, exponent // 2)
        a[0, k], b[k, 0] = FORMATS[a_type].encode(x), FORMATS[a_type].encode(np.ldexp(1.0, exponent - exponent // 2))
    fmt = FORMATS[d_type]
    code = fmt.encode(float(c))
    accumulator = np.full(i.layout("C").shape, code, fmt.code_dtype)
    if i.shape == "m8n8k4":
        a, b = np.broadcast_to(a, (4, *a.shape)), np.broadcast_to(b, (4, *b.shape))
    d = wm.mma(i, a, b, accumulator, target=target)
    return int(d.view(fmt.code_dtype).ravel()[0])


F32, F16, BF16 = "f32.f16.f16.f32", "f16.f16.f16.f16", "f32.bf16.bf16.f32"


@pytest.mark.parametrize("target", [VOLTA, *F24, *F25])
def test_w1_w2_w3_fraction_bits(target: str) -> None:
    ones, one_more = 0x3F800000, 0x3F800001
    assert single(target, F32, 1, dict.fromkeys((0, 1), 2.0**-24)) == (ones if target == VOLTA else one_more)
    assert single(target, F32, 1, dict.fromkeys(range(4), 2.0**-25)) == (one_more if target in F25 else ones)
    assert single(target, F32, 1, dict.fromkeys(range(4), 2.0**-26)) == ones


@pytest.mark.parametrize(("target", "expected"), [*((t, 0x3F800000) for t in F24[1:]), *((t, 0x3F800001) for t in F25)])
def test_w4_products_in_a_step(target: str, expected: int) -> None:
    assert single(target, F32, 0, {0: 1.0, 7: 2.0**-24, 8: 2.0**-24}) == expected


def last(target: str) -> int:
    return 23 if target == VOLTA else 24 if target in F24 else 25


@pytest.mark.parametrize("target", [VOLTA, *F24, *F25])
def test_w5_one_rounding_to_f16(target: str) -> None:
    for q in range(18, 30):
        expected = 0x3C01 if q <= last(target) else 0x3C00
        assert single(target, F16, 1, {0: 2.0**-11, 1: 2.0**-q}) == expected, q


@pytest.mark.parametrize("target", [VOLTA, *F24, *F25])
def test_w6_overflow_of_f16(target: str) -> None:
    assert single(target, F16, 65504, {0: 8.0, 1: 8.0, 2: -(2.0**-10)}) == (0x7BFF if target in F25 else 0x7C00)


@pytest.mark.parametrize("target", [VOLTA, *F24, *F25])
def test_w7_floor_of_f16(target: str) -> None:
    reach = {23: 42, 24: 44, 25: 46}[last(target)]
    for q in range(30, 49):
        assert single(target, F16, 0, {0: 2.0**-25, 1: 2.0**-q}) == int(q <= reach), q


@pytest.mark.parametrize("target", [*F24[1:], *F25])
def test_w8_floor_of_f32(target: str) -> None:
    reach = 156 if target in F24 else 158
    for q in range(150, 163):
        # 2^-149 - 2^-q has q - 149 ones; two to a product, they fit one step, and 2^-q completes them.
        pairs, odd = divmod(q - 149, 2)
        below = {k: 3.0 * 2.0 ** -(151 + 2 * k) for k in range(pairs)} | ({6: 2.0**-q} if odd else {})
        assert single(target, BF16, 0, {**below, 7: 2.0**-q}) == int(q <= reach), q


def fp8(target: str, c: float, products: Products) -> int:
    i = wm.parse("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32")
    a, b = np.zeros((16, 32), np.uint8), np.zeros((32, 8), np.uint8)
    for k, product in products.items():
        x = 2.0 ** (np.log2(product) // 2)
        a[0, k], b[k, 0] = FORMATS["e4m3"].encode(x), FORMATS["e4m3"].encode(product / x)
    return int(wm.mma(i, a, b, np.full((16, 8), c, np.float32), target=target)[0, 0].view(np.uint32))


@pytest.mark.parametrize(("target", "expected"), [(ADA, 0x40000000), (RTX, 0x40000200)])
def test_w9_thirteen_bits(target: str, expected: int) -> None:
    assert fp8(target, 0, {0: 1.0, 1: 1.0, 2: 2.0**-13}) == expected


@pytest.mark.parametrize(("target", "expected"), [(ADA, (0x3F800000, 0)), (RTX, (0x3F800200, 1))])
def test_w10_thirteen_bits_of_c(target: str, expected: tuple[int, int]) -> None:
    assert (fp8(target, 1 + 2.0**-14, {}), fp8(target, 2.0**-149, {})) == expected


@pytest.mark.parametrize("target", [VOLTA, *F24, *F25])
def test_w11_w12_zeros_and_infinities(target: str) -> None:
    assert single(target, F32, -0.0, {0: -0.0, 1: -0.0}) == 0
    assert single(target, F32, 0, {0: np.inf, 1: -np.inf}) == 0x7FFFFFFF
