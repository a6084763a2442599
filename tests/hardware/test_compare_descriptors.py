"""The campaign that compares what `wgmma` reads by descriptors with a GPU, without one."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import needs

import warpmma as wm
from lab.compare import descriptors as tool
from warpmma.hardware import ptx_module

SOME = [case for case in tool.cases() if case.instruction.n in (8, 64, 256)]


@pytest.mark.parametrize("case", SOME, ids=tool._named)
def test_what_is_expected_is_what_execute_computes(case: Any) -> None:
    i, rng = case.instruction, np.random.default_rng(4)
    memory = tool.image(case, rng)
    other, metadata, bits = tool.others(case, memory, rng)
    words, addresses = tool.descriptors(case, 8, rng)
    looked_at = wm.SharedOperand(memory, words, case.transposed, tool.AT)
    a, b = (other, looked_at) if case.of == "B" else (looked_at, wm.SharedOperand(memory, other[0], at=tool.AT))
    more: dict[str, Any] = {"metadata": metadata, "undefined": "hardware"} if i.sparse else {}
    c = np.zeros((i.layout("D").registers, 128), np.uint32)
    found = tool.numbers(case, wm.execute(i, a, b, c, target="sm_90a", **more))
    np.testing.assert_array_equal(found, tool.expected(case, memory, addresses, bits))
    assert (found != 0).any()


def test_every_n_is_there() -> None:
    cases = tool.cases()
    assert len(cases) == 359
    assert {(c.instruction.a_type, c.instruction.sparse, c.transposed) for c in cases if c.of == "A"} == {
        (c.instruction.a_type, c.instruction.sparse, c.transposed) for c in cases if c.of == "B"
    }


@needs("ptxas")
def test_ptxas_takes_the_kernels(tmp_path: Path) -> None:
    texts = [tool._written(case, f"k{n}") for n, case in enumerate(SOME) if case.instruction.n < 256]
    source = tmp_path / "kernels.ptx"
    source.write_text(ptx_module(texts, "sm_90a", (8, 4)))
    subprocess.run(["ptxas", "-arch=sm_90a", str(source), "-o", str(tmp_path / "x.cubin")], check=True)
