"""The examples' kernels: the bits that an H200 gave for their twins in CUDA C++, and those of `matmul`."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from left_out import without
from oracles import needs

from warpmma import matmul
from warpmma.machine.report.hazards import HazardError

twins: Any = import_module("twins")
NAMES = ("gemm_f16", "gemm_sparse", "gemm_int8")
EXAMPLES: dict[str, Any] = {name: import_module(name) for name in NAMES}


@cache
def recorded(name: str) -> tuple[dict[str, str], dict[str, Any]]:
    found: tuple[dict[str, str], dict[str, Any]] = twins.read(name)
    return found


CASES = [
    pytest.param(name, case, id=f"{name} {case.name}") for name in NAMES for case in EXAMPLES[name].CASES
]  # fmt: skip


@pytest.mark.parametrize(("name", "case"), CASES)
def test_matmul_gives_what_the_twin_gave(name: str, case: Any) -> None:
    example = EXAMPLES[name]
    assert np.array_equal(twins.kept(example.expected(case)), recorded(name)[1][case.name])


@pytest.mark.parametrize(("name", "case"), CASES)
def test_kernel_gives_what_the_twin_gave(name: str, case: Any) -> None:
    """Hazards are errors: there is none."""
    call = EXAMPLES[name].call(case)
    result = twins.simulate(call)
    assert not result.hazards
    assert np.array_equal(twins.kept(call.output), recorded(name)[1][case.name])
    assert np.array_equal(twins.codes(call.output), twins.codes(EXAMPLES[name].expected(case)))
    assert result.costs.sites
    assert not any(site.conflicts for site in result.costs.sites.values())


@pytest.mark.parametrize("name", NAMES)
def test_recordings_are_of_an_h200(name: str) -> None:
    about, found = recorded(name)
    assert "H200" in about["gpu"]
    assert about["driver"]
    assert list(found) == [case.name for case in EXAMPLES[name].CASES]


def test_recordings_are_small() -> None:
    assert sum(path.stat().st_size for path in twins.RECORDED.glob("*.npz")) < 2_000_000


def test_without_swizzle_there_are_conflicts_and_the_advice_is_the_swizzle() -> None:
    example = EXAMPLES["gemm_f16"]
    call = example.call(example.CASES[0], swizzled=False)
    costs = twins.simulate(call).costs
    assert np.array_equal(twins.kept(call.output), recorded("gemm_f16")[1][example.CASES[0].name])
    lost = {site.mnemonic: entry.conflicts for site, entry in costs.sites.items() if entry.conflicts}
    assert {name.partition(".")[0] for name in lost} == {"ldmatrix"}
    # Four matrices: of A each takes 4 wavefronts instead of one, of B 8.
    accesses = {site.mnemonic: entry.accesses for site, entry in costs.sites.items()}
    a, b = (f"ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16" for trans in ("", ".trans"))
    assert lost == {a: accesses[a] * 4 * 3, b: accesses[b] * 4 * 7}
    advice = {site.mnemonic: swizzle for site, swizzle in costs.advice().items()}
    assert advice == {a: example.A_SWIZZLE, b: example.B_SWIZZLE}


# Of the launches of CASES[1], by Nsight Compute on the H200: `l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum` and
# `l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum`. Without a swizzle, 4 wavefronts that the simulator does
# not have come and go on the GPU.
EXTRA = {"plain": (4, 4)}
COUNTED = {"gemm_f16": (2560, 0), "gemm_sparse": (3072, 0), "gemm_int8": (2048, 0), "plain": (15364, 12804)}


@pytest.mark.parametrize("name", COUNTED)
def test_conflicts_are_those_that_the_gpu_counts(name: str) -> None:
    example = EXAMPLES["gemm_f16" if name == "plain" else name]
    call = example.call(example.CASES[1], **({"swizzled": False} if name == "plain" else {}))
    sites = twins.simulate(call).costs.sites
    loads = [entry for site, entry in sites.items() if site.mnemonic.startswith("ldmatrix")]
    found = (sum(x.wavefronts for x in loads), sum(x.conflicts for x in loads))
    extra = EXTRA.get(name, (0, 0))
    assert (found[0] + extra[0], found[1] + extra[1]) == COUNTED[name]


def test_another_order_of_sums_is_noticed() -> None:
    """The inputs tell a chain along k from one that is split."""
    example = EXAMPLES["gemm_f16"]
    case = next(c for c in example.CASES if c.k == 2048)
    a, b, _ = example.call(case).arrays
    d = matmul(a, b, instruction=example.MMA, target=twins.TARGET, split_k=2)
    assert not np.array_equal(twins.kept(d), recorded("gemm_f16")[1][case.name])


def test_a_missing_wait_or_barrier_is_found() -> None:
    """The kernel with one instruction left out."""
    example = EXAMPLES["gemm_f16"]
    for missing, kind in (("cp.async.wait_group", "pending"), ("bar.sync", "race")):
        call = example.call(example.CASES[0])
        with pytest.raises(HazardError) as caught:
            twins.simulate(replace(call, kernel=without(missing, call.kernel)))
        assert caught.value.hazard.kind == kind


@needs("nvcc")
def test_twins_compile_without_warnings() -> None:
    run = twins.RECORDED.parent / "run_twins.py"
    done = subprocess.run([sys.executable, run, "--compile-only", *NAMES], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_main(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    EXAMPLES[name].main()
    assert "no bank conflicts" in capsys.readouterr().out
