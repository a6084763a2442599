"""What PyTorch's torch.compile launched on an H200 leaves the same bytes here; neither PyTorch nor a GPU is needed."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.compare import torch_launches as tool
from lab.programs.texts import read_text
from lab.triton_programs.launching import Launched
from lab.triton_programs.snapshots import Snapshot, digest, write

LAUNCHES, TEXTS, BEFORE = tool.stored()

TEXT = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry add(.param .u64 sums, .param .f32 first)
{
    .reg .f32 %f<3>; .reg .b32 %r<2>; .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [sums];
    ld.param.f32 %f1, [first];
    mov.u32 %r1, %tid.x;
    cvt.rn.f32.u32 %f2, %r1;
    add.f32 %f2, %f2, %f1;
    red.global.add.f32 [%rd1], %f2;
    ret;
}
"""
RACE = TEXT.replace("red.global.add.f32", "st.global.f32")


def launch(text: str, after: float, first: float = 0.5, start: int = 0x7F0000000000) -> Launched:
    """A launch of 64 threads that add to, or overwrite, one float at an address of a GPU."""
    arguments = (("u64", start), ("f32", first))
    before, left = ({start: np.array([x, 3.0], np.float32).view(np.uint8)} for x in (1.0, after))
    return Launched(
        text=text, entry="add", grid=(1, 1, 1), block=(64,), arguments=arguments, shared=0, report=None, seconds=0.0,
        before=before, after=left,
    )  # fmt: skip


@pytest.mark.parametrize("one", LAUNCHES, ids=[f"{i} {x.name}" for i, x in enumerate(LAUNCHES)])
def test_all_bytes_are_the_gpu_s(one: Snapshot) -> None:
    found = tool.repeat(one, TEXTS[one.text], BEFORE)
    assert found.different == () and not found.report.hazards
    assert any(piece.before != piece.after for piece in one.pieces)


def test_what_is_stored() -> None:
    assert len(LAUNCHES) == 40 and len({one.name for one in LAUNCHES}) >= 28
    text = "\n".join(TEXTS.values())
    assert set(re.findall(r"wgmma\.mma_async\.sync\.aligned\.(\w+)\.f32\.(\w+)", text)) == {
        (shape, type_) for shape in ("m64n16k16", "m64n32k16", "m64n64k16") for type_ in ("f16", "bf16")
    }
    about = json.loads(read_text(tool.KEPT))["about"]
    assert about == {"gpu": "NVIDIA H200", "driver": "580.159.04", "torch": "2.11.0+cu130", "triton": "3.6.0"}


def test_a_bit_is_not_overlooked() -> None:
    one = LAUNCHES[0]
    read = next(piece for piece in one.pieces if piece.before == piece.after)
    changed = np.array(BEFORE[read.before])
    changed[0] ^= 1
    found = tool.repeat(
        one, TEXTS[one.text], {**{x.before: BEFORE[x.before] for x in one.pieces}, read.before: changed}
    )
    assert read.start in found.different and not found.explained


def test_the_order_of_atomics_explains_other_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, total = tmp_path / "launches.npz", 1 + 63 * 32 + 64 * 0.5
    write(file, [("same", launch(TEXT, total)), ("other", launch(TEXT, total, 0.1))], gpu="H200")
    assert tool.main([str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("1 other, add: 1 of 1 pieces differ: ") and "red.global.add.f32" in lines[0]
    assert lines[1:3] == ["same: 1 of 1", "other: 0 of 1"]
    assert lines[3].startswith("1 of 2 launches leave the GPU's bytes")


def test_other_bytes_and_hazards_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, alone = tmp_path / "launches.npz", replace(launch(RACE, 0.5), block=(1,))
    write(
        file, [("right", alone), ("wrong", replace(alone, after=launch(RACE, 7.0).after)), ("race", launch(RACE, 0.5))]
    )
    assert tool.main([str(file), "--only", "right"]) == 0
    assert tool.main([str(file), "--only", "wrong"]) == 1
    assert "1 wrong, add: 1 of 1 pieces differ, NOT EXPLAINED" in capsys.readouterr().out
    assert tool.main([str(file), "--only", "race"]) == 1
    assert ": race: " in capsys.readouterr().out


def test_a_sample_prefers_what_is_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, kept = tmp_path / "launches.npz", dict[str, Any]()
    more = TEXT.replace("add.f32 %f2, %f2, %f1;", "add.f32 %f2, %f2, %f1; \n sub.f32 %f2, %f2, %f1;")
    write(
        file, [("a", launch(TEXT, 0)), ("b", launch(TEXT, 1)), ("a", launch(RACE, 0)), ("c", launch(more, 0))], gpu="x"
    )
    monkeypatch.setattr(tool, "keep", kept.__setitem__)
    monkeypatch.setattr(tool, "MEMORY", tmp_path / "memory.npz")
    assert tool.main([str(file), "--sample", "2"]) == 0
    index = json.loads(kept[tool.KEPT])
    assert index["about"] == {"gpu": "x"} and [one["name"] for one in index["launches"]] == ["c", "a"]
    assert set(index["texts"]) == {digest(more), digest(RACE)}
    assert set(np.load(tool.MEMORY)) == {piece["before"] for one in index["launches"] for piece in one["pieces"]}
