"""`_scaled_mm`, `scaled_mm` and `_int_mm` under the override; block scales as libraries lay them out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from arrays import same
from messages import exactly
from oracles import skip_without

import warpmma as wm
from warpmma.errors import OperandError, TargetError

skip_without("PyTorch")
from torch_cases import array, same_tensor, tensors, torch  # noqa: E402

E4M3 = torch.float8_e4m3fn
ONE = torch.ones(())
WGMMA: dict[str, Any] = {"target": "sm_90a", "instruction": "wgmma"}


def fp8(m: int = 40, n: int = 24, k: int = 512, dtype: Any = E4M3) -> tuple[Any, Any]:
    a, b = tensors("float32", (m, k), (n, k))
    return (3 * a).to(dtype), (3 * b).to(dtype).t()


def sums(a: Any, b: Any, **more: Any) -> Any:
    return wm.torch.matmul(a, b, **WGMMA, **more)


def test_fast_sums_and_those_that_are_promoted() -> None:
    a, b = fp8()
    with wm.torch.arithmetic(**WGMMA) as report:
        slow = torch._scaled_mm(a, b, ONE, ONE, out_dtype=torch.float32)
        fast = torch._scaled_mm(a, b, ONE, ONE, out_dtype=torch.float32, use_fast_accum=True)
    same_tensor(slow, sums(a, b, promote_every=128))
    same_tensor(fast, sums(a, b))
    assert not torch.equal(slow, fast) and [p.promote_every for p in report.products] == [128, 0]
    for every in (0, 64):
        with wm.torch.arithmetic(**WGMMA, promote_every=every):
            d = torch._scaled_mm(a, b, ONE, ONE, out_dtype=torch.float32)
        same_tensor(d, sums(a, b, promote_every=every))
    with wm.torch.arithmetic("sm_90a") as report:  # whose mma keeps all bits
        torch._scaled_mm(a, b, ONE, ONE, out_dtype=torch.float32)
    assert [p.promote_every for p in report.products] == [0]


def test_scales_bias_and_outputs() -> None:
    a, b = fp8()
    plain = sums(a, b)
    of_a, of_b = torch.tensor(0.37), torch.tensor(1.9)
    rows, columns = (x.abs() for x in tensors("float32", (40, 1), (1, 24), seed=1))
    [bias] = tensors("bfloat16", (24,), seed=2)
    more = {"use_fast_accum": True}
    with wm.torch.arithmetic(**WGMMA):
        whole = torch._scaled_mm(a, b, of_a, of_b, out_dtype=torch.float32, **more)
        each = torch._scaled_mm(a, b, rows, columns, bias=bias, out_dtype=torch.bfloat16, **more)
        narrow = torch._scaled_mm(a, b, of_a, of_b, scale_result=torch.tensor(100.0), **more)
        recipes = torch.nn.functional.ScalingType
        named = torch.nn.functional.scaled_mm(
            a, b, rows, recipes.RowWise, columns, recipes.RowWise, output_dtype=torch.float32, use_fast_accum=True
        )
    same_tensor(whole, plain * (of_a * of_b))
    same_tensor(each, (plain * columns * rows + bias.float()).bfloat16())
    same_tensor(named, plain * columns * rows)
    assert narrow.dtype == E4M3 and narrow.float().abs().max() == 448  # the largest number, not NaN
    inside = whole.abs() * 100 < 400
    same_tensor(narrow[inside], (whole * 100).to(E4M3)[inside])


def test_int8() -> None:
    a, b = (x.mul(40).to(torch.int8) for x in tensors("float32", (32, 64), (64, 24)))
    with wm.torch.arithmetic("sm_100a") as report:
        d = torch._int_mm(a, b)
    same_tensor(d, a.int() @ b.int())
    assert list(report.instructions) == ["mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"]


def laid_out(scales: Any) -> Any:
    """In tiles of 128 rows and 4 columns, each of which lies as 32 rows of 4 times 4."""
    rows, columns = scales.shape
    padded = torch.zeros(-(-rows // 128) * 128, -(-columns // 4) * 4, dtype=torch.uint8)
    padded[:rows, :columns] = scales.view(torch.uint8)
    tiles = padded.view(-1, 4, 32, padded.shape[1] // 4, 4).permute(0, 3, 2, 1, 4)
    return tiles.flatten().view(scales.dtype)


@pytest.mark.parametrize("shape", [(40, 24, 256), (130, 140, 160)])
def test_block_scales(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    a, b = fp8(*shape)
    rng = np.random.default_rng(0)
    of_a, of_b = (
        torch.from_numpy(rng.integers(120, 134, (rows, k // 32)).astype(np.uint8)).view(torch.float8_e8m0fnu)
        for rows in (m, n)
    )
    with wm.torch.arithmetic("sm_120a") as report:
        d = torch._scaled_mm(a, b, laid_out(of_a), laid_out(of_b), out_dtype=torch.float32)
    [entry] = report.products
    same(array(d), wm.matmul(a, b, instruction=entry.instruction, target="sm_120a", scale_a=of_a, scale_b=of_b.T))
    assert "block_scale" in entry.instruction
    exact = (a.double() * of_a.double().repeat_interleave(32, 1)) @ (
        b.double() * of_b.double().repeat_interleave(32, 1).T
    )
    torch.testing.assert_close(d.double(), exact, rtol=1e-4, atol=1e-2)


def test_nvfp4() -> None:
    m, n, k = 20, 24, 128
    rng = np.random.default_rng(1)
    x, y = (rng.integers(0, 16, (rows, k)).astype(np.uint8) for rows in (m, n))
    a, b = (
        torch.from_numpy(z[:, ::2] | z[:, 1::2] << 4).view(torch.float4_e2m1fn_x2) for z in (x, y)
    )  # fmt: skip
    of_a, of_b = (x.abs().to(E4M3) for x in tensors("float32", (m, k // 16), (n, k // 16)))
    with wm.torch.arithmetic("sm_120a") as report:
        d = torch._scaled_mm(a, b.t(), laid_out(of_a), laid_out(of_b), out_dtype=torch.float32)
    [entry] = report.products
    assert entry.shape == (m, n, k) and "mxf4nvf4" in entry.instruction and "4X" in entry.instruction
    table = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    values = [np.where(z & 8, -1, 1) * table[z & 7] for z in (x, y)]
    exact = (values[0] * np.repeat(array(of_a).astype(float), 16, 1)) @ (
        values[1] * np.repeat(array(of_b).astype(float), 16, 1)
    ).T
    np.testing.assert_allclose(array(d), exact, rtol=1e-5, atol=1e-4)


def test_what_is_refused() -> None:
    a, b = fp8()
    blocks = torch.ones(2048).to(torch.float8_e8m0fnu)
    cases: list[tuple[tuple[Any, ...], dict[str, Any], type[Exception], str]] = [
        ((a, b, torch.ones(3), ONE), {}, OperandError, "aten::_scaled_mm: scales are float32 (3,) and float32 (); ~"),
        ((a, b, ONE, ONE.double()), {}, OperandError, "aten::_scaled_mm: scales are float32 () and float64 (); ~"),
        ((a, b, ONE, ONE), {"out_dtype": torch.float64}, OperandError, "aten::_scaled_mm: out_dtype is float64; ~"),
        ((a.half(), b.half(), ONE, ONE), {}, OperandError, "aten::_scaled_mm: A is float16, B float16; ~"),
        ((a, b, blocks, blocks), {}, TargetError, "sm_100a has no mma for e4m3 x e4m3 with block scales of ue8m0; ~"),
        ((a, b, blocks[:8], blocks), {}, OperandError, "aten::_scaled_mm: scale_a has 8 block scales; ~"),
    ]  # fmt: skip
    with wm.torch.arithmetic("sm_100a"):
        for operands, more, kind, message in cases:
            with pytest.raises(kind, match=exactly(message)):
                torch._scaled_mm(*operands, **{"out_dtype": torch.float32, **more})
