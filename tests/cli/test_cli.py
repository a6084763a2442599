"""The command line: what `verify` prints and returns, interrupted too."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from unittest.mock import DEFAULT, Mock

import numpy as np
import pytest
from cli_cases import F16, FP8, GOOD, HALF, SP, Capture, Patch, captured, process, recorded, saved, table_of

from warpmma import execute, instructions
from warpmma.cli import main
from warpmma.hardware import archives
from warpmma.sparsity import selectors

NVFP4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3"
MXFP8 = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"


@pytest.fixture
def good(tmp_path: Path) -> str:
    return saved(tmp_path / "good.npz", GOOD)


# The recording in the package.


def test_the_recording_in_the_package() -> None:
    assert process("no.npz", "--json") == (2, "", "warpmma: no.npz: No such file or directory\n")
    status, output, error = process()
    assert (status, error) == (0, "")
    rows, below = table_of(output)
    assert rows.keys() == {str(i) for i in instructions("sm_90a")}
    assert all(outputs > 0 and not differences for outputs, differences in rows.values())
    total = sum(outputs for outputs, _ in rows.values())
    assert below == [
        "h200_sm90a.npz of NVIDIA H200, driver 580.159, CUDA 13.0, executed as sm_90a:",
        f"{len(rows)} instructions, {total:,} outputs compared, 0 differences",
    ]


def test_another_target_skips_what_it_lacks_and_says_so() -> None:
    status, output = captured("--target", "sm_80")
    rows, below = table_of(output)
    here, there = ({str(i) for i in instructions(target)} for target in ("sm_80", "sm_90a"))
    differing = {name: count for name, (_, count) in rows.items() if count}
    assert status == 1  # the steps of an A100 are other ones
    assert differing and not any(".s32." in name or ".f64." in name for name in differing)
    assert rows.keys() == here & there
    assert below[1] == f"{len(there - here)} recorded instructions are not on sm_80 and were skipped"
    assert below[2].endswith(f" outputs compared, {sum(differing.values()):,} differences")


# Archives.


@pytest.mark.parametrize(("target", "status"), [("sm_90", 0), ("sm_80", 1)])
def test_json_agrees_with_the_table(good: str, target: str, status: int) -> None:
    found, output = captured(good, "--target", target)
    assert found == status
    rows, below = table_of(output)
    found, output = captured(good, "--target", target, "--json")
    assert found == status
    document = json.loads(output)
    assert {row["instruction"]: (row["outputs"], row["differences"]) for row in document["rows"]} == rows
    kinds = [["measured"] * 3, ["published", "derived"]][status]
    assert [row["evidence"]["kind"] for row in document["rows"]] == kinds
    assert (document["file"], document["target"], document["device"]) == (good, target, "")
    assert document["skipped"] == [FP8] * status
    outputs, differences = (sum(count[i] for count in rows.values()) for i in (0, 1))
    counts = [document[x] for x in ("instructions", "outputs", "differences")]
    assert counts == [len(rows), outputs, differences]
    assert below[0] == f"{good}, executed as {target}:"
    assert below[-1] == f"{len(rows)} instructions, {outputs:,} outputs compared, {differences:,} differences"


@pytest.mark.parametrize(
    ("mnemonic", "field", "at", "bit"),
    [(F16, "d", (1, 2, 17), 0), (HALF, "d", (0, 1, 31), 31), (SP, "d1", (1, 0, 0), 22)],
)  # fmt: skip
@pytest.mark.parametrize("count", [1, 2])
def test_flipped_bits_are_found(
    tmp_path: Path, capsys: Capture, mnemonic: str, field: str, at: tuple[int, int, int], bit: int, count: int
) -> None:
    files = recorded(mnemonic, "sm_90")
    d = files[f"{mnemonic}|{field}"]
    right, wrong = int(d[at]), int(d[at]) ^ 1 << bit
    d[at] = wrong
    d[1, -1, 31] ^= np.uint32(count - 1)  # another one
    path = saved(tmp_path / "bad.npz", files)
    assert main(["verify", path]) == 1
    output, error = capsys.readouterr()
    first = "warp {} register {} lane {}: ".format(*at) + f"{right:#x}, recorded {wrong:#x}"
    assert output.splitlines()[3] == f"  first difference: {first}"
    results = len(selectors(mnemonic)) if mnemonic == SP else 1
    assert table_of(output)[0][mnemonic] == (2 * 16 * 8 * results, count)
    assert output.endswith(f" outputs compared, {count} differences\n") and not error
    (row,) = json.loads(captured(path, "--json")[1])["rows"]
    assert (row["first"], row["differences"]) == (first, count)


@pytest.mark.parametrize(("mnemonic", "ids"), [(NVFP4, (0, 1, 0, 3)), (MXFP8, (3, 0, 1, 2))])
def test_block_scales(tmp_path: Path, mnemonic: str, ids: tuple[int, ...]) -> None:
    files = recorded(mnemonic, "sm_120a", *ids)
    path = saved(tmp_path / "scaled.npz", files)
    assert captured(path, "--target", "sm_120a")[0] == 0
    assert captured(saved(tmp_path / "named.npz", files, target="sm_120a", device="a GPU, a driver"))[0] == 0
    other = saved(tmp_path / "other.npz", files, **{f"{mnemonic}|ids": np.array((0, 0, 0, 0))})
    assert captured(other, "--target", "sm_120a")[0] == 1


# Interruption and progress.


@pytest.mark.parametrize("after", [0, 1, 2])
def test_interrupted_it_prints_some(good: str, monkeypatch: Patch, capsys: Capture, after: int) -> None:
    stopping = Mock(wraps=execute, side_effect=[DEFAULT] * after + [KeyboardInterrupt])
    monkeypatch.setattr(archives, "execute", stopping)
    assert main(["verify", good]) == 130
    output, error = capsys.readouterr()
    assert error == "warpmma: interrupted\n"
    rows, below = table_of(output)
    assert list(rows) == [F16, FP8][:after]
    assert below[-1].startswith(f"{after} instructions, ")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("rich", [False, True])
def test_progress_is_for_terminals(good: str, monkeypatch: Patch, rich: bool) -> None:
    plain = captured(good)
    if rich:
        monkeypatch.setenv("TERM", "xterm")
    else:
        monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    assert captured(good) == plain == (0, plain[1])
    shown = terminal.getvalue()
    counted = "".join(f"\rreplaying {i}/3" for i in (1, 2, 3)) + "\r\x1b[K"
    assert "replaying" in shown if rich else shown == counted
