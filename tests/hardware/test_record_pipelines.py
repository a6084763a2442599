"""Random pipelines of copies, as an H200 computes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.record.pipelines import digest, simulated

PIPELINES = json.loads((Path(__file__).parents[1] / "data" / "h200_pipelines.json").read_text())["digests"]


@pytest.mark.alike(16)
@pytest.mark.parametrize("number", range(len(PIPELINES)))
def test_pipelines(number: int) -> None:
    for options in ({"hazards": "off"}, {}, {"seed": 1 + number}):
        assert digest(simulated(number, **options)) == PIPELINES[number], options
