"""Tutorials run as they are: one that asks the driver at once, wants memory of "cuda", and has a benchmark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from oracles import skip_without

pytest.importorskip("triton.language")
skip_without("PyTorch")

from lab.compare import triton_tutorials as tool  # noqa: E402
from lab.triton_programs.snapshots import read  # noqa: E402

TUTORIAL = """
import torch
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()
assert torch.cuda.get_device_capability()[0] == 8


@triton.jit
def twice(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)


x = torch.randn(100, device=DEVICE)
y = torch.empty(100, device="cuda")
twice[(2, )](x, y, 100, BLOCK=64)
assert torch.equal(y, 2 * x)


@triton.testing.perf_report(triton.testing.Benchmark(
    x_names=["n"], x_vals=[1], line_arg="who", line_vals=["us"], line_names=["us"], plot_name="it", args={}))
def benchmark(n, who):
    raise AssertionError("benchmarks are left out")


benchmark.run(print_data=True)
"""


def test_tutorial_runs_is_kept_and_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tool, "TUTORIALS", {"01-twice": lambda names: names["x"]})
    (tmp_path / "01-twice.py").write_text(TUTORIAL)
    kept, recorded = tmp_path / "kept.npz", tmp_path / "recorded.json"
    assert tool.main([str(tmp_path), "--launches", str(kept)]) == 0
    shown = capsys.readouterr().out
    assert "left out: benchmark" in shown and "1 launches" in shown
    ((launch,), _, _) = read(kept)
    assert (launch.name, launch.entry, tuple(launch.grid)) == ("01 twice 0", "twice", (2, 1, 1))
    one = {"name": launch.name, "text": launch.text[:20], "repeatable": True}
    one["left"] = sorted(f"{piece.size} {piece.after[:20]}" for piece in launch.pieces)
    monkeypatch.setattr(tool, "RECORDED", recorded)
    for left, failed in ((one["left"], 0), (["400 0"], 1)):
        recorded.write_text(json.dumps({"launches": [{**one, "left": left}]}))
        assert tool.main([str(tmp_path), "--compare"]) == failed
    assert "01 twice 0 DIFFERS" in capsys.readouterr().out
