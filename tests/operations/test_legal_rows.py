"""ptxas takes every operation on the targets that its row names, and on no other."""

from __future__ import annotations

import pytest
from oracles import needs
from ptxas_cases import VECTORS, refused, statement

from warpmma.operations import operations

LAXER = {"sm_70": {"cvt.rn.satfinite.f16.f32", "cvt.rz.satfinite.f16.f32"}}
"""What ptxas takes for a target though the manual asks for a later one."""


@needs("ptxas")
@pytest.mark.parametrize("target", ["sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100a"])
def test_targets_are_those_of_ptxas(target: str) -> None:
    rows = [*operations(), *VECTORS]
    bad = refused([statement(row) for row in rows], target)
    wrong = {row.mnemonic: bad.get(i) for i, row in enumerate(rows) if (target in row.targets) != (i not in bad)}
    assert set(wrong) == LAXER.get(target, set()), wrong
