"""The command that compares the engines at length, and recipes beyond the native engine's arguments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from arrays import Array
from native_cases import LEVELS
from oracles import needs

from lab.check import engines as tool
from warpmma.arithmetic.dispatch import native
from warpmma.arithmetic.recipes.lowerings import recipe
from warpmma.errors import UnsupportedError
from warpmma.isa import parse

pytestmark = needs("native engine")


# The command that compares at length.


def test_the_comparison_finds_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main(["--outputs", "1e5", "--seed", "3", "--threads", "2"]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("114,688 outputs of ") and last.endswith(": 0 differences")


def test_the_comparison_finds_a_difference(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    product = native.product

    def flipped(*given: Any, level: str, **named: Any) -> Array:
        d = product(*given, level=level, **named)
        if level == LEVELS[-1].name:
            d[0, 0, 0] ^= 1
        return d

    monkeypatch.setattr(native, "product", flipped)
    assert tool.main(["--outputs", "1", "--seed", "4"]) == 1
    out = capsys.readouterr().out
    assert f", outer, seed 4, {LEVELS[-1].name}, (0, 0, 0): native 0x" in out and out.endswith(" 2 differences\n")


def test_options_of_a_gpu(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        tool.main(["--hardware"])
    assert "--hardware, --state and --minutes need --gpu" in capsys.readouterr().err
    monkeypatch.setattr(tool, "why_no_gpu", lambda: "no GPU")
    assert tool.main(["--gpu"]) == 2
    given: list[Any] = []
    monkeypatch.setattr(tool, "why_no_gpu", lambda: "")

    def run(options: Any) -> int:
        given.append(options)
        return 130

    monkeypatch.setattr("lab.check.gpu_engines.run", run)
    assert tool.main(["--gpu", "--hardware", "--minutes", "2", "--state", "x.json", "--threads", "3"]) == 130
    assert (given[0].minutes, given[0].hardware, given[0].state.name, given[0].threads) == (2, True, "x.json", 3)


def test_the_comparison_needs_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "levels", lambda: ())
    assert tool.main([]) == 2


HALF_SUM = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
GROUPS = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"


@pytest.mark.parametrize(
    ("mnemonic", "target", "change"),
    [
        (HALF_SUM, "sm_90", {"fraction_bits": 26}), (HALF_SUM, "sm_90", {"products": 5}),
        (GROUPS, "sm_120a", {"fraction_bits": 36}), (GROUPS, "sm_120a", {"group": 2}),
    ],
)  # fmt: skip
def test_recipes_beyond_its_arguments_are_refused(mnemonic: str, target: str, change: dict[str, int]) -> None:
    base = recipe(parse(mnemonic), target)
    changed = replace(base, unit=replace(base.unit, **change))  # type: ignore[arg-type]
    k, scales = parse(mnemonic).k, parse(mnemonic).scales_per_row
    a, b = np.zeros((1, 1, k), np.uint8), np.zeros((1, k, 1), np.uint8)
    of_a, of_b = np.zeros((1, 1, scales), np.uint8), np.zeros((1, scales, 1), np.uint8)
    extra: dict[str, Any] = {"scale_a": of_a, "scale_b": of_b, "scales": scales} if scales else {}
    with pytest.raises(UnsupportedError, match="use engine='numpy'"):
        native.product(changed, a, b, np.zeros((1, 1, 1), np.uint32), k=k, **extra)
