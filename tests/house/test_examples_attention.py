"""The attention kernel gives the bits of its twin in CUDA C++ on an H200; the NVFP4 product, those of `matmul`."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from left_out import without
from oracles import needs

from warpmma import matmul
from warpmma.arithmetic import resolve
from warpmma.kernel.launching import launch
from warpmma.machine.report.hazards import HazardError

twins: Any = import_module("twins")
attention: Any = import_module("attention")
nvfp4: Any = import_module("gemm_nvfp4")
# Scores at most: without the native engine, the longest take too long.
SIMULATED = 1 << 30 if resolve("auto") == "native" else 1 << 17
CASES = [
    pytest.param(case, id=case.name) for case in attention.CASES if case.heads * case.length**2 <= SIMULATED
]  # fmt: skip


@cache
def recorded() -> tuple[dict[str, str], dict[str, Any]]:
    found: tuple[dict[str, str], dict[str, Any]] = twins.read("attention")
    return found


def clean(result: Any) -> bool:
    """Whether there are neither hazards nor bank conflicts."""
    sites = result.costs.sites.values()
    return bool(sites) and not result.hazards and not any(site.conflicts for site in sites)


@pytest.mark.parametrize("case", CASES)
def test_attention_gives_what_the_twin_gave(case: Any) -> None:
    call = attention.call(case)
    assert clean(twins.simulate(call))
    assert np.array_equal(twins.kept(call.output), recorded()[1][case.name])
    if not case.shift:  # near to exact: within an ulp of an output below 4, for P is rounded too
        ulp = 2.0**-9 if case.kind == "f16" else 2.0**-6
        assert np.abs(call.output.astype(np.float64) - attention.exact(case)).max() < ulp


def test_recording_says_what_it_is_of() -> None:
    about, found = recorded()
    assert about["gpu"] == "NVIDIA H200"
    assert about["driver"]
    assert list(found) == [case.name for case in attention.CASES]
    assert (twins.RECORDED / "attention.npz").stat().st_size < 300_000


@pytest.mark.parametrize("length", [1, 63, 65, 129])
def test_a_query_sees_no_key_after_it(length: int) -> None:
    """Rows of a causal case are, in every bit, those of the case that ends there."""
    whole = attention.call(attention.Case(1, 192, causal=True, seed=9))
    twins.simulate(whole)
    inputs = [np.ascontiguousarray(x[:, :length]) for x in whole.arrays[:3]]
    part = replace(
        whole, arrays=(*inputs, np.empty_like(inputs[0])), sizes={"length": length}, grid=(-(-length // 64), 1)
    )
    twins.simulate(part)
    assert np.array_equal(twins.codes(part.output), twins.codes(whole.output)[:, :length])


def mapped(mnemonic: str, x: Any) -> Any:
    """What a kernel gets from an instruction of f32 numbers, 32 blocks of 32 lanes."""
    out = np.empty_like(x)

    def kernel(t: Any, source: Any, to: Any) -> None:
        at = (t.ctaid[0] * 32 + t.laneid) * 4
        t("st.global.f32", to + at, t(mnemonic, t("ld.global.f32", source + at)))

    launch(kernel, x.size // 32, 32, [x, out], target="sm_90")
    return out


def test_ex2_is_a_power_of_two() -> None:
    x = -np.concatenate([np.linspace(0, 126, 4000), np.arange(92), [np.inf] * 4]).astype(np.float32)
    found = mapped(attention.EX2, x)
    assert (np.abs(found[:4092] / np.exp2(x[:4092].astype(np.float64)) - 1) < 2e-7).all()
    assert np.array_equal(found[4000:], np.exp2(x[4000:]))  # whole numbers exactly, and 0 where no key is seen


def test_reciprocal() -> None:
    x = np.linspace(1, 3000, 4096).astype(np.float32)
    assert (np.abs(mapped(attention.RCP, x).astype(np.float64) * x - 1) < 2.0**-23).all()


@pytest.mark.parametrize(("missing", "kind"), [("cp.async.wait_group", "pending"), ("bar.sync", "race")])
def test_a_missing_wait_or_barrier_is_found(missing: str, kind: str) -> None:
    """The kernel with one instruction left out."""
    call = attention.call(attention.Case(1, 128))
    with pytest.raises(HazardError) as caught:
        twins.simulate(replace(call, kernel=without(missing, call.kernel)))
    assert caught.value.hazard.kind == kind


@pytest.mark.parametrize("case", nvfp4.CASES, ids=lambda case: case.name)
def test_nvfp4_gives_what_matmul_gives(case: Any) -> None:
    a, b = nvfp4.operands(case)
    call = nvfp4.product(a, b, case.out)
    assert clean(twins.simulate(call))
    epilogue = None if case.out == "f32" else case.out
    expected = matmul(a, b, instruction=nvfp4.MMA, target=nvfp4.TARGET, epilogue=epilogue)
    assert np.array_equal(twins.codes(call.output), twins.codes(expected))


def test_nvfp4_needs_whole_words_of_scales() -> None:
    a, b = nvfp4.operands(twins.Case(16, 8, 96, "f32"))
    with pytest.raises(ValueError, match="k is 96 and n is 8; expected multiples of 64 and of 2"):
        nvfp4.product(a, b, "f32")


@pytest.mark.parametrize("example", [attention, nvfp4])
def test_main(example: Any, capsys: pytest.CaptureFixture[str]) -> None:
    example.main()
    assert "no bank conflicts" in capsys.readouterr().out


@needs("nvcc")
@pytest.mark.parametrize(("name", "arch"), [("attention", "sm_90"), ("rowwise", "sm_90"), ("gemm_nvfp4", "sm_120a")])
def test_twins_compile_without_warnings(name: str, arch: str, tmp_path: Path) -> None:
    source = twins.RECORDED.parent / "cuda" / f"{name}.cu"
    flags = ["-cubin", f"-arch={arch}", "-std=c++17", "-O3", "-Xcompiler=-Wall,-Wextra", "--Werror=all-warnings"]
    done = subprocess.run(
        ["nvcc", *flags, "-o", str(tmp_path / "twin.cubin"), str(source)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
