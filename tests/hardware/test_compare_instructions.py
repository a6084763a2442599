"""The tool that compares with a GPU, without one: its kernels assemble, and it finds differences."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from oracles import needs

import warpmma as wm
from lab.compare import instructions as tool
from lab.gpu.instruction_jobs import mma_jobs, mma_simulated
from warpmma.errors import MetadataError, ScaleError
from warpmma.hardware import ptx_kernel, ptx_module


@needs("ptxas")
@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"])
def test_kernels_assemble(target: str, tmp_path: Path) -> None:
    known = [i for i in wm.instructions(target) if i.ptx <= (9, 0)]  # what ptxas 13.0 reads
    jobs = [job for i in known for job in mma_jobs(i)]
    kernels = (ptx_kernel(i, f"k{n}", selector=s, ids=ids) for n, (i, s, ids) in enumerate(jobs))
    source = tmp_path / "k.ptx"
    source.write_text(ptx_module(kernels, target, (9, 0)))
    done = subprocess.run(
        ["ptxas", f"-arch={target}", source, "-o", tmp_path / "k.cubin"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


def _stub(flip: bool) -> type[Any]:
    class Stub:
        def __init__(self, jobs: list[Any], target: str) -> None:
            self.target = target

        def run(self, job: Any, given: dict[str, Any]) -> Any:
            defined = True
            try:
                d = mma_simulated(job, given, self.target)
            except MetadataError:
                defined, d = False, mma_simulated(job, given, self.target, undefined=True)
            if flip and defined and "m8n8k16" in str(job[0]):
                d = d.copy()
                d[0, 1, 5] ^= 1
            return d

    return Stub


@pytest.mark.parametrize("target", ["sm_75", "sm_90", "sm_120a"])
def test_every_instruction_is_compared(
    target: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tool, "InstructionGpu", _stub(False))
    assert tool.main(["--target", target, "--warps", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(wm.instructions(target)) + 1 and lines[-1].endswith(" 0 differences")


def test_a_difference_is_found_and_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(tool, "InstructionGpu", _stub(True))
    assert tool.main(["--target", "sm_75", "--warps", "1"]) == 1
    out = capsys.readouterr().out
    assert "warp 0 register 1 lane 5: gpu 0x" in out and not out.rstrip().endswith(" 0 differences")


def test_what_an_instruction_does_not_have_is_refused() -> None:
    sparse = wm.parse("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
    scaled = wm.parse("mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0")
    with pytest.raises(MetadataError, match="selector is 2; legal are 0, 1"):
        ptx_kernel(sparse, "k", selector=2)
    with pytest.raises(ScaleError, match="byte-id of A is 1; expected 0, 2"):
        ptx_kernel(scaled, "k", ids=(1, 0, 0, 0))
