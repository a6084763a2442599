"""The random programs of clusters: no hazard, and an H200's words (`python -m lab.record.cluster_programs`)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.record.cluster_programs import digest, simulated

FOUND = json.loads((Path(__file__).parents[1] / "data/h200_cluster_programs.json").read_text())["digests"]


@pytest.mark.parametrize("seed", range(60))
def test_a_program_has_no_hazard_and_gives_an_h200s_words(seed: int) -> None:
    assert digest(simulated(seed, hazards="error")) == FOUND[seed]
