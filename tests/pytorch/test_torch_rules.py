"""Alpha, beta, C, scales, biases and tf32: what PyTorch gave on an H200, bit for bit, through the override.

Recorded by `python -m lab.record.torch_rules`; PyTorch 2.11, cuBLAS of CUDA 13.0. Where a kernel splits k its grid says
so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import skip_without

import warpmma as wm

skip_without("PyTorch")
from torch_cases import torch  # noqa: E402

ARCHIVE = np.load(Path(__file__).parents[1] / "data" / "torch_rules_h200.npz")
RECORDED = json.loads(ARCHIVE["cases"].tobytes())
CASES = {case["name"]: case for case in RECORDED["cases"]}

SCALED = {"alpha": 0.7, "beta": -1.3}
CALLS: dict[str, Callable[..., Any]] = {
    "mm": torch.mm, "bmm": torch.bmm, "mv": torch.mv, "int_mm": torch._int_mm, "linear": torch.nn.functional.linear,
    "addmm": torch.addmm, "addmm-row": torch.addmm, "addmm-scaled": partial(torch.addmm, **SCALED),
    "addmm-alpha": partial(torch.addmm, alpha=0.7), "addmm-beta": partial(torch.addmm, beta=-1.3),
    "addmm-nothing": partial(torch.addmm, alpha=0.7, beta=0), "addmm-row2": lambda a, b, c: torch.addmm(c, a, b),
    "addmm-column": lambda a, b, c: torch.addmm(c, a, b), "addmv": torch.addmv, "baddbmm": torch.baddbmm,
    "baddbmm-scaled": partial(torch.baddbmm, **SCALED),
}  # fmt: skip


def operand(digest: str, dtype: str) -> Any:
    return torch.from_numpy(ARCHIVE[digest].copy()).view(getattr(torch, dtype.removeprefix("torch.")))


def scaled(name: str, x: dict[str, Any]) -> Any:
    out = re.search(r" (?:fast|slow) (\w+)", name)
    assert out is not None
    b = x["b"].view(torch.uint8).t().contiguous().view(x["b"].dtype).t()
    return torch._scaled_mm(
        x["a"], b, x["sa"], x["sb"], bias=x.get("bias"), use_fast_accum=" fast " in name,
        out_dtype=getattr(torch, out[1]),
    )  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_same_bits_as_an_h200(name: str) -> None:
    case = CASES[name]
    kind, dtype = name.split()[:2]
    x = {given: operand(*where) for given, where in case["operands"].items()}
    kernel = case["kernels"][0]
    split = int(kernel.rpartition("x")[2]) if "sgemm" in kernel and len(case["kernels"]) == 2 else 1
    with wm.torch.arithmetic(
        "sm_90a", instruction="wgmma", float32="tf32" if dtype == "tf32" else "ieee", split_k=split
    ) as report:
        d = scaled(name, x) if kind.startswith("scaled") else CALLS[kind](*x.values())
    words = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[d.element_size()]
    codes = d.contiguous().view(words).numpy()
    assert np.array_equal(codes, ARCHIVE[f"{name}|d"]), f"{(codes != ARCHIVE[f'{name}|d']).sum()} of {codes.size}"
    assert report.products.total() == 1 and not report.left and case["repeatable"]


def test_the_recording_holds_what_it_should() -> None:
    assert "H200" in RECORDED["about"]["gpu"]
    kinds = {name.split()[0] for name in CASES}
    assert set(CALLS) | {"scaled-tensor", "scaled-row"} == kinds
    assert {name.split()[1] for name in CASES} >= {"f32", "tf32", "f16", "bf16", "f64", "s8", "e4m3-e4m3", "e5m2-e4m3"}
