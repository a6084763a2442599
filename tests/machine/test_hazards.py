"""Hazards: kernels that have each, found at its line, warp, lane and address."""

from __future__ import annotations

import linecache
from pathlib import Path

import pytest
from hazard_kernels.addresses import ADDRESSES
from hazard_kernels.case import Case, run
from hazard_kernels.cp_async import PENDING, PROXY
from hazard_kernels.races import RACES
from hazard_kernels.unwritten import UNWRITTEN
from hazard_kernels.whole_warps import WHOLE

from warpmma.machine.report.hazards import KINDS, HazardError, HazardWarning

pytestmark = pytest.mark.quick

CASES = [*RACES, *UNWRITTEN, *ADDRESSES, *PENDING, *PROXY, *WHOLE]


def name(case: Case) -> str:
    return f"{case.kind}-{case.kernel.__name__}"


@pytest.mark.parametrize("case", CASES, ids=name)
def test_found(case: Case) -> None:
    with pytest.raises(HazardError) as caught:
        run(case.kernel, *case.args, **case.options)
    hazard = caught.value.hazard
    assert (hazard.kind, hazard.block, hazard.warp, hazard.lane) == (case.kind, case.block, case.warp, case.lane)
    assert (hazard.address, hazard.count) == (case.address, case.count)
    assert linecache.getline(hazard.site.file, hazard.site.line).endswith("# here\n")
    text = str(caught.value)
    file = Path(case.kernel.__code__.co_filename).name
    assert text.startswith(f"{file}:{hazard.site.line}: {hazard.site.mnemonic}: {case.kind}: ")
    assert case.says in text
    if case.address is not None:
        assert f"{case.address:#x}" in text
    if case.kind == "poison":
        assert hazard.other is not None
        assert f"at {hazard.other.place} ({hazard.other.mnemonic})" in text
    elif case.kind in ("pending", "proxy") or (case.kind == "race" and "another lane of the warp" not in text):
        assert hazard.other is not None
        itself = "in this very access" in text
        assert linecache.getline(hazard.other.file, hazard.other.line).endswith("# here\n" if itself else "# there\n")
        assert itself or f" at {hazard.other.place} ({hazard.other.mnemonic})" in text
    else:
        assert hazard.other is None


def test_all_kinds_are_tested() -> None:
    assert {case.kind for case in CASES} == set(KINDS) - {
        "same value",
        "order",
        "deadlock",
    }  # which have files of their own


@pytest.mark.parametrize("case", CASES, ids=name)
def test_as_a_warning(case: Case) -> None:
    """The same hazard, and the kernel goes on to its end."""
    with pytest.warns(HazardWarning) as caught:
        result = run(case.kernel, *case.args, **case.options, hazards="warn")
    first = result.hazards[0]
    assert (first.kind, first.block, first.warp, first.lane, first.address, first.count) == (
        case.kind, case.block, case.warp, case.lane, case.address, case.count,
    )  # fmt: skip
    assert str(caught[0].message) == str(first)
    assert (caught[0].filename, caught[0].lineno) == (first.site.file, first.site.line)
    assert str(first) in result.text()
