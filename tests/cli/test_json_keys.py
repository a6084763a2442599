"""What docs/command_line.md says about the keys of JSON is what commands print."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

import warpmma as wm
from warpmma.cli import main

ROOT = Path(__file__).parents[2]
ROWS = dict(re.findall(r"^\| (`[a-z ]+`[a-z ]*) \| (.*) \|$", (ROOT / "docs/command_line.md").read_text(), re.M))
MMA = "m16n8k16 f16 f32 dense"
SUMS = f"{ROOT}/examples/row_sums.ptx"
ASKED = {
    "`list`": f"list {MMA}", "`show`": f"show {MMA}", "`where`": f"where {MMA} A 3 5",
    "`what`": f"what {MMA} A --lane 3", "`layout`": f"layout {MMA} A", "`targets`": "targets", "`evidence`": "evidence",
    "`tensormap`": "tensormap map.bin --load 0,64",
    "`descriptor`": "descriptor 0x4000004000000040 --instruction wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
                    "--meant 0x4000004000000040 --window 0:0x4000",
    "`evidence` of one": f"evidence {MMA}", "`execute`": f"execute {MMA} A.npy B.npy --target sm_90",
    "`error`": "error A.npy B.npy --target sm_90",
    "`run`": f"run {SUMS} --grid 1 --block 128 --arg a=f32[1,64]:ones --arg b=out:f32[1] --arg n=64",
    "`ptx check`": f"ptx check {SUMS}", "`verify`": "verify", "`explore`": "explore x.html",
}  # fmt: skip
LATER = {"advice", "worst", "explanation", "code", "meaning"}
"""What is there where it was asked for."""


def no_number(word: str) -> NoReturn:
    raise AssertionError(word)


def keys(document: Any) -> list[str]:
    return list(document[0] if isinstance(document, list) else document)


@pytest.mark.parametrize("command", ASKED)
def test_keys_are_those_of_the_page(
    command: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("A.npy", np.full((16, 16), np.nan, np.float16))
    np.save("B.npy", np.ones((16, 8), np.float16))
    Path("map.bin").write_bytes(bytes(wm.TensorMap(0x400, (16, 64), type="f16", shape=(100, 128))))
    assert main([*ASKED[command].split(), "--json"]) == 0
    document = json.loads(capsys.readouterr().out, parse_constant=no_number)
    said = set(re.findall(r"`(\w+)`", ROWS[command])) - LATER - {"where"}
    found = set(keys(document))
    if command == "`error`":
        found |= set(keys(document["products"]))
    assert said <= found
    assert "..." in ROWS[command] or said == found


def test_every_row_is_tested() -> None:
    assert set(ROWS) - {"`explain`"} == set(ASKED)
