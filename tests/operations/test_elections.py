"""`elect` and `mad` of floating-point numbers."""

from __future__ import annotations

import numpy as np
import pytest

from lab.generators import operation_inputs
from warpmma.errors import OperandError
from warpmma.operations import operation
from warpmma.operations.arithmetic import multiply_adds


def test_a_leader_is_in_its_group_and_the_only_one() -> None:
    elect = operation("elect.sync")
    masks = np.random.default_rng(1).integers(1, 1 << 32, (64, 1), dtype=np.uint32)
    leader, chosen = elect(np.broadcast_to(masks, (64, 32)), undefined="zero")
    for mask, numbers, which in zip(masks[:, 0].tolist(), leader.tolist(), chosen.tolist(), strict=True):
        named = [lane for lane in range(32) if mask >> lane & 1]
        assert {numbers[lane] for lane in named} == {named[0]}
        assert [lane for lane in named if which[lane]] == named[:1]
    assert elect.membermask and elect.syntax == "d0|d1, a0" and elect.since == "sm_90"


def test_several_groups_and_lanes_without_one() -> None:
    elect, lane = operation("elect.sync"), np.arange(32)
    leader, chosen = elect(np.where(lane < 8, 0xFF, 0xFFFFFF00).astype(np.uint32))
    assert leader.tolist() == [0] * 8 + [8] * 24 and np.flatnonzero(chosen).tolist() == [0, 8]
    with pytest.raises(OperandError, match="PTX leaves the result undefined"):
        elect(np.full(32, 6, np.uint32), active=np.ones(32, bool))


@pytest.mark.parametrize("name", [mnemonic for form in multiply_adds.FORMS for mnemonic in form.mnemonics])
def test_mad_is_fma(name: str) -> None:
    given = operation_inputs(name, 512, 1)
    (mad,), (fma,) = operation(name)(*given), operation(name.replace("mad", "fma"))(*given)
    assert np.array_equal(mad, fma) and len(np.unique(mad)) > 50
