"""Against the PyPI package mmasim 2.1.1, by its batched path in PyTorch, on one thread; where it is installed.

Its chain of k is that of the same instruction, with the same bits. It does many products at once: 64 x 64 elements of
the chain, of 16 to 512 on a side its fastest, per product.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import warpmma as wm

from .families import BF16, E4M3, F16, WGMMA_E4M3
from .inputs import matrices
from .measure import against, measure, repeat

SIZE, PART = 2048, 64


@pytest.fixture(scope="module")
def package() -> Iterator[Any]:
    """It compiles an extension when imported, and PyTorch would use every core."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch = pytest.importorskip("torch")
        nv_ptx = pytest.importorskip("mmasim.nv_ptx", reason="mmasim is not installed")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield nv_ptx
    torch.set_num_threads(threads)


def tensor(array: npt.NDArray[Any]) -> Any:
    import torch

    types = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float8_e4m3fn": torch.float8_e4m3fn}
    bits = np.ascontiguousarray(array).view(f"int{8 * array.dtype.itemsize}")
    return torch.from_numpy(bits).view(types[array.dtype.name])


@pytest.mark.parametrize(
    ("label", "name", "theirs", "instruction", "target"),
    [
        ("f16", "f16", ("MMA", "Hopper", "m16n8k16.f32.f16.f16.f32"), F16, "sm_90"),
        ("bf16", "bf16", ("MMA", "Hopper", "m16n8k16.f32.bf16.bf16.f32"), BF16, "sm_90"),
        ("e4m3 mma, Ada", "e4m3", ("MMA", "Ada Lovelace", "m16n8k32.f32.e4m3.e4m3.f32"), E4M3, "sm_89"),
        ("e4m3 wgmma", "e4m3", ("WGMMA", "Hopper", "m64n128k32.f32.e4m3.e4m3"), WGMMA_E4M3, "sm_90a"),
    ],
)
def test_product(
    benchmark: BenchmarkFixture, package: Any, label: str, name: str, theirs: tuple[str, str, str], instruction: str,
    target: str,
) -> None:  # fmt: skip
    if "native" not in wm.engines():
        pytest.skip("takes minutes with NumPy")
    import torch

    a, b = matrices("normal", name, SIZE, SIZE, SIZE)
    model: Callable[..., Any] = getattr(package, theirs[0])(*theirs[1:])
    part = (tensor(a[:PART]), tensor(b[:, :PART]), torch.zeros(PART, PART))
    ours = wm.matmul(a[:PART], b[:, :PART], instruction=instruction, target=target)
    assert np.array_equal(ours.view(np.uint32), model(*part).numpy().view(np.uint32))
    measure(
        benchmark, lambda: wm.matmul(a, b, instruction=instruction, target=target), section="against mmasim",
        label=f"matmul {label} {SIZE}, one thread", work=SIZE**3, unit="products/s",
        reference=against("mmasim", lambda: model(*part), PART * PART * SIZE), seconds=5,
    )  # fmt: skip


def test_one_call(benchmark: BenchmarkFixture, package: Any) -> None:
    import torch

    a, b = matrices("normal", "f16", 16, 8, 16)
    model: Callable[..., Any] = package.MMA("Hopper", "m16n8k16.f32.f16.f16.f32")
    given = (tensor(a), tensor(b), torch.zeros(16, 8))
    measure(
        benchmark, repeat(lambda: wm.mma(F16, a, b, target="sm_90"), 20), section="against mmasim",
        label="one mma, f16 m16n8k16", work=20, unit="us a call",
        reference=against("mmasim", repeat(lambda: model(*given), 5), 5), seconds=0.5,
    )  # fmt: skip
