"""Finding instructions: every combination against a loop over the tables, and what is refused."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from messages import exactly

import warpmma as wm
from warpmma.errors import MnemonicError, TargetError
from warpmma.isa import TARGET_NAMES as TARGETS
from warpmma.isa import MatrixInstruction, instructions, warpgroup_instructions

pytestmark = pytest.mark.quick

EVERY: tuple[MatrixInstruction, ...] = (*instructions(), *warpgroup_instructions())
NAMES = {"a": "a_type", "b": "b_type", "c": "c_type", "d": "d_type"}


def test_nothing_asked_is_everything() -> None:
    assert wm.find() == EVERY
    for target in TARGETS:
        assert wm.find(target=target) == tuple(i for i in EVERY if target in i.targets)


@pytest.mark.parametrize("part", [*"abcdmnk", "kind", "sparse", "block_scale", "stype", "satfinite"])
def test_each_part_alone(part: str) -> None:
    values = {getattr(i, NAMES.get(part, part)) for i in EVERY} - {None}
    assert len(values) > 1
    found = {value: wm.find(**{part: value}) for value in values}
    for value, mine in found.items():
        assert mine == tuple(i for i in EVERY if getattr(i, NAMES.get(part, part)) == value)
        assert mine


def test_several_parts_are_all_of_them() -> None:
    for a, d, k, target in product(("e4m3", "f16", "s8"), ("f32", "s32"), (16, 32), ("sm_80", "sm_90a", "sm_120a")):
        expected = tuple(i for i in EVERY if (i.a_type, i.d_type, i.k) == (a, d, k) and target in i.targets)
        assert wm.find(a=a, d=d, k=k, target=target) == expected


def test_wgmma_is_found() -> None:
    found = wm.find(a="e4m3", b="e4m3", d="f32", k=32, m=64, n=128, target="sm_90a")
    assert list(map(str, found)) == ["wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3"]
    assert wm.find(m=64, target="sm_90") == ()


def test_a_default_scale_vec_counts() -> None:
    found = {i.scale_vec for i in wm.find(kind="mxf4", scale_vec="2X")}
    assert found == {None, "2X"}
    assert {i.scales_per_row for i in wm.find(scale_vec="4X")} == {4}


def test_numpy_integers_are_sizes() -> None:
    assert wm.find(k=np.int16(16)) == wm.find(k=16)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"a": "fp16"}, "no instruction has a='fp16', did you mean 'f16'? expected one of 'b1', 'bf16', ~, 'u8'"),
        ({"a": "e4m3", "b": "e4m4"}, "no instruction has b='e4m4', did you mean 'e4m3'? expected one of ~"),
        ({"d": "e4m3"}, "no instruction has d='e4m3'; expected one of 'f16', 'f32', 'f64', 's32'"),
        ({"kind": "MXF4"}, "no instruction has kind='MXF4'; expected one of 'f8f6f4', 'mxf4', 'mxf4nvf4', 'mxf8f6f4'"),
        ({"kind": "wgmma"}, "no instruction has kind='wgmma'; ~"),
        ({"k": 17}, "no instruction has k=17; expected one of 4, 8, 16, 32, 64, 128, 256"),
        ({"m": True}, "no instruction has m=True; expected one of 8, 16, 64"),
        ({"m": 16.0}, "no instruction has m=16.0; expected one of 8, 16, 64"),
        ({"n": "8"}, "no instruction has n='8'; expected one of 8, 16, 24, ~, 256"),
        ({"sparse": 1}, "no instruction has sparse=1; expected one of False, True"),
        ({"satfinite": "yes"}, "no instruction has satfinite='yes'; expected one of False, True"),
        ({"a": ["f16"]}, "no instruction has a=['f16']; expected one of ~"),
        ({"k": np.timedelta64(16, "s")}, "no instruction has k=np.timedelta64(16~); expected one of ~"),
        ({"a": np.float16}, "no instruction has a=<class 'numpy.float16'>; expected one of ~"),
        ({"scale_vec": "3X"}, "no instruction has scale_vec='3X'; expected one of '1X', '2X', '4X'"),
        ({"stype": "e8m0"}, "no instruction has stype='e8m0', did you mean 'ue8m0'? expected one of 'ue4m3', 'ue8m0'"),
    ],
)  # fmt: skip
def test_what_no_instruction_has(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(MnemonicError, match=exactly(message)):
        wm.find(**asked)


def test_targets_are_checked() -> None:
    with pytest.raises(TargetError, match="unknown target 'sm_91'"):
        wm.find(a="f16", target="sm_91")
