"""Evidence: how we know what an instruction computes on a target."""

from __future__ import annotations

import json
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from warpmma import evidence
from warpmma.arithmetic.recipes.lowerings import recipe
from warpmma.errors import TargetError
from warpmma.formats import FloatFormat
from warpmma.isa import TARGET_NAMES as TARGETS
from warpmma.isa import instructions, parse

pytestmark = pytest.mark.quick

ROWS = (Path(__file__).parents[1] / "data" / "catalogue.jsonl").read_text()
CATALOGUE = [json.loads(row) for row in ROWS.splitlines()]
UNPUBLISHED = ("sm_72", "sm_87", "sm_88", "sm_103", "sm_110", "sm_121")  # nobody measured these


@pytest.mark.parametrize("target", TARGETS)
def test_evidence_says_how_we_know(target: str) -> None:
    for instruction in instructions(target):
        found = evidence(str(instruction), target=target)
        assert found.kind in ("measured", "published", "derived")
        assert found.source and found.machine and "{" not in found.machine
        assert str(found).startswith(f"{found.kind}: {found.source}")
        assert (found.kind == "measured") == (target in ("sm_90", "sm_90a")) == bool(found.compared)
        assert found.assumption or found.kind != "derived"
        if isinstance(instruction.format("A"), FloatFormat):
            quad = target == "sm_75" and instruction.shape == "m8n8k4"
            assert found.kind != "published" or not (quad or target.rstrip("fa") in UNPUBLISHED)


@pytest.mark.parametrize("row", CATALOGUE, ids=itemgetter("mnemonic"))
def test_a_recipe_is_where_ptxas_has_the_instruction(row: dict[str, Any]) -> None:
    instruction = parse(row["mnemonic"])
    assert {recipe(instruction, target).d for target in row["targets"]} == {instruction.d_type}
    for target in set(TARGETS) - set(row["targets"]):
        for call in (recipe, lambda i, t: evidence(i, target=t)):
            with pytest.raises(TargetError, match=f"is not legal on {target}; legal on "):
                call(instruction, target)
