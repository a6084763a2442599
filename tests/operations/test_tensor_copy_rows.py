"""Tensor copies and tensor maps: what their rows say, and what ptxas takes of 1,000 statements."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import warpmma as wm
from warpmma.errors import PtxError, TargetError
from warpmma.isa import OperandSpec, address, printed, value
from warpmma.operations import REDUCED, MapPublication, MapReplacement, TensorCopy, row

RECORDED = json.loads(gzip.decompress((Path(__file__).parents[1] / "data/tensor_copies_ptxas.json.gz").read_bytes()))
LOAD = "cp.async.bulk.tensor.{}d.shared::cluster.global{}.mbarrier::complete_tx::bytes"


@pytest.mark.parametrize(
    ("mnemonic", "kind", "expected"),
    [
        (LOAD.format(2, ""), TensorCopy,
         {"rank": 2, "direction": "load", "im2col": False, "offsets": 0, "syntax": "[p], [q, {c0, c1}], [m]"}),
        (LOAD.format(4, ".im2col") + ".multicast::cluster.L2::cache_hint", TensorCopy,
         {"im2col": True, "multicast": True, "hint": True, "offsets": 2,
          "syntax": "[p], [q, {c0, c1, c2, c3}], [m], {offset0, offset1}, mask, policy"}),
        ("cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes", TensorCopy,
         {"rank": 1, "ptx": (8, 6)}),
        ("cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs.bulk_group", TensorCopy,
         {"direction": "store", "im2col": True, "offsets": 0, "syntax": "[q, {c0, c1, c2}], [p]"}),
        ("cp.reduce.async.bulk.tensor.5d.global.shared::cta.xor.bulk_group", TensorCopy,
         {"operation": "xor", "rank": 5, "direction": "store"}),
        ("tensormap.replace.tile.box_dim.shared::cta.b1024.b32", MapReplacement,
         {"field": "box_dim", "space": "shared", "since": "sm_90a", "syntax": "[p], ordinal, a1"}),
        ("tensormap.replace.tile.global_address.b1024.b64", MapReplacement, {"space": "generic", "syntax": "[p], a1"}),
        ("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned", MapPublication,
         {"scope": "gpu", "convergence": "warp", "syntax": "[p], [q], size"}),
    ],
)  # fmt: skip
def test_what_rows_say(mnemonic: str, kind: type, expected: dict[str, Any]) -> None:
    found = row(mnemonic)
    assert isinstance(found, kind)
    assert {name: getattr(found, name) for name in expected} == expected


def test_the_type_of_a_map_names_the_reduction() -> None:
    def red(operation: str, type_: str) -> str:
        found = row(f"cp.reduce.async.bulk.tensor.2d.global.shared::cta.{operation}.bulk_group")
        assert isinstance(found, TensorCopy)
        return found.reds.get(type_, "")

    for operation, type_ in (("add", "f16"), ("min", "bf16"), ("and", "u64"), ("inc", "u32"), ("add", "f32")):
        row(red(operation, type_))
    for operation, type_ in (("min", "f32"), ("inc", "s32"), ("and", "f16"), ("add", "u16")):
        assert red(operation, type_) == ""
    for operation, types in REDUCED.items():
        for type_ in types:
            row(red(operation, type_))


@pytest.mark.parametrize("target", RECORDED["targets"])
def test_ptxas_takes_the_same(target: str) -> None:
    number = RECORDED["targets"].index(target)
    head, statements = RECORDED["head"].format(target=target), RECORDED["taken"]
    text = head + "\n".join(statements) + "\nret; }\n"
    problems = wm.ptx.load(text).check(target).entries[0].problems
    refused = {int(str(x).split(":")[1]) for x in problems}
    first = head.count("\n") + 1
    takes = [answer[number] == "y" for answer in statements.values()]
    different = [x for i, x in enumerate(statements) if (i + first in refused) == takes[i]]
    assert different == []
    assert sum(takes) > 250


def test_an_older_target_has_none() -> None:
    for mnemonic in (LOAD.format(2, ""), "tensormap.replace.tile.rank.b1024.b32"):
        with pytest.raises(TargetError):
            row(mnemonic, "sm_80")


def test_coordinates_stand_in_the_brackets_of_an_address() -> None:
    within = value(("c0", "c1"), "s32", braces="always", within=True)
    assert printed((address("p", "generic"), within, value("x", "u32"))) == "[p, {c0, c1}], x"
    assert OperandSpec(names=("d",), role="result", type="b32", kind="b32", within=True).problem
    text = RECORDED["head"].format(target="sm_90") + LOAD.format(2, "") + " [%r8], [%d1+64, {%r1, %r2}], [%r7]; ret; }"
    with pytest.raises(PtxError, match=r"has an offset; expected \[address, \{coordinates\}\]"):
        wm.ptx.load(text)["k"].launch(wm.Device("sm_90"), 1, 32, [])
