"""The example that finds where two GPUs part: the layer, the element, and the step of its sum."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from oracles import skip_without

skip_without("PyTorch")
example: Any = import_module("where_gpus_part")


def test_two_generations_part_in_a_step(capsys: pytest.CaptureFixture[str]) -> None:
    example.main(["sm_80", "sm_90"])
    said = capsys.readouterr().out
    assert "first in layer 0.down, row" in said and "the sums part with product" in said


def test_a_difference_of_attention_is_not_blamed_on_the_layer_behind() -> None:
    torch: Any = import_module("torch")
    one, other = ([example.Layer("out", None, torch.full((2, 3), x), torch.zeros(2, 3))] for x in (1.0, 2.0))
    assert example.first_difference(one, other) == (one[0], None)
    assert example.first_difference(one, one) is None


@pytest.mark.parametrize("targets", [["sm_80"], ["sm_80", "sm_90", "sm_100a"]])
def test_two_targets_are_needed(targets: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        example.main(targets)
    assert f"{len(targets)} targets; expected two" in capsys.readouterr().err


def test_targets_with_one_arithmetic_do_not(capsys: pytest.CaptureFixture[str]) -> None:
    example.main(["sm_90", "sm_100a"])
    assert capsys.readouterr().out.endswith("sm_90 and sm_100a: no bit differs\n")
