"""CUTLASS's `device::Gemm` writes what an H200 wrote; needs nvcc, and the headers of the package nvidia-cutlass."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from oracles import needs

from lab.programs.archive import Recording, difference, read
from lab.programs.cutlass_cases import CUTLASS, LAUNCHES, compiled, cutlass_cases, described, headers, text_hash
from lab.programs.launches import Case
from lab.programs.simulating import simulate
from lab.programs.texts import read_text
from warpmma import ptx

WARNED = {"unwritten": "warn", "poison": "warn", "metadata": "warn"}
"""At edges CUTLASS multiplies what nobody copied, and does not store it."""

pytestmark = [needs("nvcc"), pytest.mark.skipif(headers() is None, reason="no package nvidia-cutlass")]


@cache
def recording() -> Recording:
    return read()


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, Path]]:
    include = headers()
    assert include is not None
    return {name: compiled(name, include, tmp_path_factory.mktemp(name)) for name in CUTLASS}


@pytest.mark.filterwarnings("ignore::warpmma.machine.HazardWarning")
@pytest.mark.parametrize("case", cutlass_cases(), ids=str)
def test_product_is_what_an_h200_gave(case: Case, programs: dict[str, tuple[str, Path]]) -> None:
    module: Any = ptx.load(programs[case.program][0])
    outputs, _, _ = simulate(module, case.make(), hazards=WARNED)
    for name, array in outputs.items():
        assert difference(array, recording().outputs[str(case)][name]) == "", name


@pytest.mark.parametrize("name", CUTLASS)
def test_launches_are_those_of_this_cutlass(name: str, programs: dict[str, tuple[str, Path]]) -> None:
    text, program = programs[name]
    kept_launches = json.loads(read_text(LAUNCHES))[name]
    assert [described(program, text, size) for size in CUTLASS[name][2]] == kept_launches["launches"]
    assert text_hash(text) == kept_launches["sha256"]
