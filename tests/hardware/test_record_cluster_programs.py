"""The random programs of clusters: they run without a hazard, and twice alike."""

from __future__ import annotations

import pytest

from lab.record.cluster_programs import drawn, simulated, text


@pytest.mark.parametrize("seed", range(20))
def test_a_program_has_no_hazard_and_one_result(seed: int) -> None:
    assert text(drawn(seed)) == text(drawn(seed))
    assert (simulated(seed, hazards="error") == simulated(seed, hazards="off")).all()
