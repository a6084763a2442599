"""Sums of columns through a ring of copies in bulk: the bits of the twin on an H200, and mistakes in either."""

from __future__ import annotations

from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import needs

import warpmma as wm
from warpmma.machine.report.hazards import HazardError

twins: Any = import_module("twins")
column_sums: Any = import_module("column_sums")
TWIN = Path(column_sums.__file__).parent / "cuda/column_sums.cu"


@cache
def recorded() -> tuple[dict[str, str], dict[str, Any]]:
    found: tuple[dict[str, str], dict[str, Any]] = twins.read("column_sums")
    return found


@pytest.mark.parametrize("case", column_sums.CASES, ids=lambda case: case.name)
def test_kernel_gives_what_the_twin_gave(case: Any) -> None:
    call = column_sums.call(case)
    result = twins.simulate(call)
    assert not result.hazards and not any(site.conflicts for site in result.costs.sites.values())
    assert np.array_equal(twins.kept(call.output), recorded()[1][case.name])
    assert np.array_equal(call.output, column_sums.expected(case))


def test_recording_says_what_it_is_of() -> None:
    about, found = recorded()
    assert about["gpu"] == "NVIDIA H200" and about["driver"]
    assert list(found) == [case.name for case in column_sums.CASES]


@needs("nvcc")
@pytest.mark.parametrize(
    ("wrong", "right", "kinds"),
    [
        ("", "", {""}),
        ("expect(&s.full[stage], many * Line)", "expect(&s.full[stage], many * Line + 16)", {"deadlock"}),
        ("if (threadIdx.x % 32 == 0) arrive(&s.empty[stage]);", "", {"deadlock"}),
        ("wait(&s.empty[stage], (step / Stages + 1) % 2);", "", {"race", "pending", "barrier"}),
        ("wait(&s.full[stage], step / Stages % 2);", "", {"deadlock", "pending", "unwritten", "race"}),
        ('asm volatile("fence.proxy.async.shared::cta;" ::: "memory");', "", {"proxy"}),
        ("init(&s.empty[stage], Warps);", "init(&s.empty[stage], Warps - 1);", {"race", "pending", "deadlock"}),
    ],
)
def test_mistakes_in_the_twin(wrong: str, right: str, kinds: set[str], tmp_path: Path) -> None:
    text = TWIN.read_text()
    assert wrong in text
    path = tmp_path / "column_sums.cu"
    path.write_text(text.replace(wrong, right, 1).replace('"warp.cuh"', f'"{TWIN.parent / "warp.cuh"}"'))
    kernel, case = wm.cuda.load(path)["column_sums"], column_sums.CASES[-1]
    call, found = column_sums.call(case), set()
    launch = partial(kernel.launch, wm.Device("sm_90"), call.grid, call.block)
    for seed in range(3):
        y = np.zeros(case.columns, np.float32)
        try:
            launch([call.arrays[0], y, *map(np.int32, (case.rows, case.columns))], seed=seed)
            assert np.array_equal(y, column_sums.expected(case))
            found.add("")
        except HazardError as error:
            found.add(error.hazard.kind)
    assert found and found <= kinds
