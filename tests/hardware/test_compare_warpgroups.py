"""The campaign that compares the arithmetic of `wgmma` with a GPU, without one."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import needs

import warpmma as wm
from lab.compare import warpgroups as tool
from warpmma.execution.shared_operands import bits_apart
from warpmma.hardware import ptx_module


@pytest.mark.parametrize("base", tool.bases(), ids=str)
def test_what_is_expected_is_what_mma_computes(base: Any) -> None:
    if "native" not in wm.engines():
        pytest.skip("the native engine is not built")
    given = tool.inputs(base, 40_000, np.random.default_rng(0))
    a, b = map(int, given.pairs[0])
    of_a, of_b, more = given.a[a], given.b[b].T, {}
    if base.sparse:
        more = {"metadata": tool.metadata(base, given, 0)[a], "undefined": "hardware"}
    if base.a_type == "b1":
        of_a, of_b = bits_apart(of_a), bits_apart(given.b[b]).T
    expected = wm.mma(base, of_a, of_b, given.c[a], target="sm_90a", **more)
    found = tool.simulated(base, given, b)[0]
    np.testing.assert_array_equal(found, expected.view(found.dtype))


def test_every_form_is_compared() -> None:
    bases = tool.bases()
    every = [v for base in bases for v in tool.variants(base)]
    assert (len(bases), len(every), len(set(every))) == (41, 516, 516)
    assert {v.instruction.n for v in every} == {8, 256} and {v.source for v in every} == {"registers", "memory"}


@needs("ptxas")
def test_ptxas_takes_the_kernels(tmp_path: Path) -> None:
    every = [v for base in tool.bases()[::5] for v in tool.variants(base)]
    texts = [tool._written(v, f"k{n}") for n, v in enumerate(every) if v.instruction.n == 8]
    source = tmp_path / "kernels.ptx"
    source.write_text(ptx_module(texts, "sm_90a", (8, 4)))
    subprocess.run(["ptxas", "-arch=sm_90a", str(source), "-o", str(tmp_path / "x.cubin")], check=True)


RECORDED = Path(__file__).parents[1] / "data" / "h200_wgmma.npz"
"""The first eight columns of a product of each type, of the campaign on an H200 (driver 580.159.04)."""


@pytest.mark.skipif("native" not in wm.engines(), reason="the native engine is not built")
def test_products_of_every_type_are_those_of_an_h200() -> None:
    with np.load(RECORDED) as archive:
        found = {name: archive[name] for name in archive.files if "|" in name}
    names, bases = sorted({name.split("|")[0] for name in found}), {str(base): base for base in tool.bases()}
    for name in names:
        a, b, c, d = (found[f"{name}|{x}"] for x in "abcd")
        given = tool.Inputs(a, b, c, found.get(f"{name}|nibbles"), np.zeros((1, 2), np.uint32))
        np.testing.assert_array_equal(tool.simulated(bases[name], given, 0), d, err_msg=name)
    assert len(names) == 41
