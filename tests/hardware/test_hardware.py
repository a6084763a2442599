"""Recorded registers and published rows: 0 differences."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from oracles import PUBLISHED_ROWS, needs

from warpmma import engines, execute
from warpmma.arithmetic import Engine, compute
from warpmma.arithmetic.dispatch import native
from warpmma.arithmetic.recipes.lowerings import recipe
from warpmma.hardware import archives, open_recording, shipped
from warpmma.isa import Instruction, instructions, parse

H200 = Path(__file__).parents[1] / "data" / "h200_sm90a.npz"
RECORDED = open_recording(H200)
each_engine = pytest.mark.parametrize("engine", engines())


def test_the_recordings_have_every_instruction() -> None:
    assert set(RECORDED.fields) == set(shipped().fields) == set(instructions("sm_90a"))


@each_engine
@pytest.mark.parametrize("target", ["sm_90", "sm_90a"])
def test_h200(target: str, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "execute", partial(execute, engine=engine))
    rows = list(RECORDED.replay(target))
    assert {str(row.instruction): row.first for row in rows if row.differences} == {}
    assert {row.evidence.kind for row in rows} == {"measured"}


@each_engine
def test_the_shipped_recording(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "execute", partial(execute, engine=engine))
    rows = list(shipped().replay())
    assert len(rows) == len(instructions("sm_90a")) and not any(row.differences for row in rows)


@each_engine
@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_120"])
def test_other_targets_differ(target: str, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The replay can fail: other generations give other bits for the same registers."""
    monkeypatch.setattr(archives, "execute", partial(execute, engine=engine))
    differing = {row.instruction.a_type for row in RECORDED.replay(target) if row.differences}
    assert differing >= ({"e4m3", "e5m2"} if target == "sm_120" else {"f16", "bf16", "tf32"})


SM8X = "sm_80 sm_86 sm_89"
SETS = {
    "m8n8k4": {"f32.f16.f16.f32": "sm_70", "f16.f16.f16.f16": "sm_70"},
    "m16n8k4": {"f32.tf32.tf32.f32": f"{SM8X} sm_90 sm_100"},
    "m16n8k8": dict.fromkeys(("f32.f16.f16.f32", "f16.f16.f16.f16", "f32.bf16.bf16.f32"), SM8X),
    "m16n8k16": dict.fromkeys(("f32.f16.f16.f32", "f16.f16.f16.f16", "f32.bf16.bf16.f32"), "sm_90 sm_100"),
    "m16n8k32": dict.fromkeys(("f32.e4m3.e4m3.f32", "f32.e5m2.e5m2.f32"), "sm_89 sm_100")
    | dict.fromkeys(("f16.e4m3.e4m3.f16", "f16.e5m2.e5m2.f16"), "sm_89 sm_90 sm_100"),
}  # fmt: skip
PUBLISHED = [
    (target, parse(f"mma.sync.aligned.{shape}.row.col.{types}"))
    for shape, of_shape in SETS.items() for types, targets in of_shape.items() for target in targets.split()
]  # fmt: skip


@needs("published rows")
def test_the_published_rows_are_these() -> None:
    with np.load(PUBLISHED_ROWS, allow_pickle=False) as archive:
        names = [key.split("|")[:2] for key in archive.files if key.endswith("|d")]
    ours = [(target, parse(mnemonic)) for target, mnemonic in names if mnemonic.startswith("mma")]
    assert len(ours) == len(PUBLISHED) and set(ours) == set(PUBLISHED)


@needs("published rows")
@pytest.mark.parametrize(("target", "instruction"), PUBLISHED, ids=str)
def test_published_rows(target: str, instruction: Instruction) -> None:
    with np.load(PUBLISHED_ROWS, allow_pickle=False) as archive:
        a, b, c, d = (archive[f"{target}|{instruction}|{x}"] for x in "abcd")
    assert len(d) == 2500
    how = recipe(instruction, target)
    assert np.array_equal(compute(how, a.T, b.T, c), d)
    if "native" in engines():
        products = native.product(how, a[:, None], b[..., None], c[:, None, None], k=a.shape[1])
        assert np.array_equal(products[:, 0, 0], d)
