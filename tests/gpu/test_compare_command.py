"""`warpmma compare` on a simulated GPU: reports, differences, interruptions, experiments; and without a GPU."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compared_gpu import ComparedGpu, found_by_commands

import warpmma as wm
from warpmma.arithmetic import FusedDotAdd, recipe
from warpmma.cli import main
from warpmma.cli.commands import gpu_commands
from warpmma.cuda import nvrtc
from warpmma.errors import MetadataError, UnsupportedError
from warpmma.hardware import open_recording, row_simulated
from warpmma.hardware.comparing import campaign, matrix_cases, row_cases
from warpmma.sparsity import check_metadata

TF32 = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
HALF = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> ComparedGpu:
    return found_by_commands(monkeypatch)


@pytest.fixture
def by_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without NVRTC, whose kernels the simulator runs slowly."""

    def refused(form: object) -> Any:
        raise UnsupportedError("no NVRTC")

    monkeypatch.setattr(matrix_cases, "kernel_of", refused)


def compare(path: Path, *words: str) -> int:
    return main(["compare", "--report", str(path), "--processes", "1", *words])


def test_without_a_gpu(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(gpu_commands, "why_no_gpu", lambda: "engine='cuda' needs an NVIDIA GPU: the driver has none")
    for words in (["compare"], ["record", str(tmp_path / "x.npz")]):
        assert main(words) == 2
        said = capsys.readouterr()
        line = f"warpmma: `warpmma {words[0]}` needs an NVIDIA GPU: the driver has none\n"
        assert (said.out, said.err) == ("", line)
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("by_cpu")
def test_every_kind_and_going_on(gpu: ComparedGpu, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "r.json"
    asked = (
        "mma.sync.aligned.m16n8k8.row.col.f16*", "mma.sp.*m16n8k8.*tf32*", "mma.*m8n8k4.row.col.f16*",
        "wgmma.*.m64n8k32.f16.e4m3.e5m2", "cvt.rn.f16.f32", "ex2.approx.f16", "mov.b32 of 2",
        "stmatrix*.m8n8.x2.shared.b16",
    )  # fmt: skip
    for pattern in asked:
        assert compare(path, "--instructions", pattern, "--outputs", "64") == 0
    facts = json.loads(path.read_text())
    counts = {name: row for key, some in facts.items() if key.startswith("counts of ") for name, row in some.items()}
    assert {key.removeprefix("counts of ") for key in facts if key.startswith("counts of ")} == {
        "mma", "wgmma", "operation", "function", "fragment",
    }  # fmt: skip
    assert len(counts) >= len(asked) and all(row[0] >= 6 and row[1] == row[3] == 0 for row in counts.values())
    assert "0 differences" in path.with_suffix(".txt").read_text()
    before = counts[f"{'mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16'}"]
    capsys.readouterr()
    assert compare(path, "--instructions", asked[0], "--outputs", "200", "--json") == 0
    said = capsys.readouterr()
    assert said.err == f"warpmma: goes on with {path}\n"
    after = json.loads(said.out)["counts of mma"]["mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16"]
    assert 200 <= after[0] < 2 * 200 and after[4] > before[4]
    launched = len(gpu.launches)
    assert compare(path, "--instructions", asked[0], "--outputs", "200") == 0 and len(gpu.launches) == launched


@pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()), reason=nvrtc.why_no_nvrtc())
def test_expected_results_are_made_and_compared_on_the_gpu(gpu: ComparedGpu, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    assert compare(path, "--instructions", TF32, "--outputs", "100") == 0
    names = [what.kernel.name for what in gpu.launches]
    assert names[:3] == ["product", "product", "differences"] and len(names) % 3 == 0
    outputs, different, sampled, wrong, pieces = json.loads(path.read_text())["counts of mma"][TF32]
    assert outputs == sampled == 64 * pieces and different == wrong == 0


@pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()), reason=nvrtc.why_no_nvrtc())
def test_a_difference_is_found_on_the_gpu(gpu: ComparedGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = recipe(TF32, "sm_90a")
    assert isinstance(own.unit, FusedDotAdd)
    wrong = replace(own, unit=replace(own.unit, fraction_bits=own.unit.fraction_bits - 9))
    monkeypatch.setattr(matrix_cases, "recipe", lambda *_: wrong)
    assert compare(tmp_path / "r.json", "--instructions", TF32, "--outputs", "400") == 1
    facts = json.loads((tmp_path / "r.json").read_text())
    first = facts["first"][TF32]
    assert facts["counts of mma"][TF32][1] > 0 == facts["counts of mma"][TF32][3] and first["gpu"] != first["model"]


@pytest.mark.usefixtures("by_cpu")
def test_a_wrong_recipe_is_found_and_explained(
    gpu: ComparedGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    own = recipe(HALF, "sm_90a")
    assert isinstance(own.unit, FusedDotAdd)
    wrong = replace(own, unit=replace(own.unit, products=own.unit.products // 2, fraction_bits=20))
    monkeypatch.setattr(matrix_cases, "recipe", lambda *_: wrong)
    path = tmp_path / "r.json"
    assert compare(path, "--instructions", HALF, "--outputs", "4000") == 1
    text, first = capsys.readouterr().out, json.loads(path.read_text())["first"][HALF]
    assert len(first["a"]) == len(first["b"]) == 16 and first["gpu"] != first["model"]
    gpu_said, model_said = f"GPU {first['gpu']:#x}", f"model {first['model']:#x}"
    assert f"{HALF}: " in text and gpu_said in text and model_said in text
    assert "products" in text and text == f"{path.with_suffix('.txt').read_text()}"
    # The operands are those of the difference: the right model gives what the GPU gave.
    a, b = (np.array(first[x], np.uint16).view(np.float16) for x in "ab")
    c = np.array([first["c"]], np.uint32).view(np.float32)
    d = wm.mma(HALF, np.tile(a, (16, 1)), np.tile(b[:, None], (1, 8)), np.tile(c, (16, 8)), target="sm_90a")
    assert int(d.view(np.uint32)[0, 0]) == first["gpu"]


def test_an_operation_that_differs(
    gpu: ComparedGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:

    def wrong(row: Any, given: Any, immediates: Any, native: bool) -> Any:
        return tuple(x ^ x.dtype.type(1) for x in row_cases_simulated(row, given, immediates, native))

    row_cases_simulated = row_simulated
    monkeypatch.setattr(row_cases, "row_simulated", wrong)
    assert compare(tmp_path / "r.json", "--instructions", "add.rn.f32", "--outputs", "10") == 1
    out = capsys.readouterr().out
    assert "add.rn.f32: 256 of 256 outputs differ\noperands 0x" in out and ": GPU 0x" in out


@pytest.mark.usefixtures("by_cpu")
def test_a_signal_ends_a_run_with_a_report(gpu: ComparedGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, pieces = matrix_cases.MatrixComparison.run, []

    def interrupted(self: Any, room: Any, number: int, done: int = 0) -> Any:
        pieces.append(number)
        if len(pieces) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return run(self, room, number, done)

    monkeypatch.setattr(matrix_cases.MatrixComparison, "run", interrupted)
    handler = signal.getsignal(signal.SIGTERM)
    path = tmp_path / "r.json"
    assert compare(path, "--instructions", HALF, "--outputs", "100000") == 130
    assert json.loads(path.read_text())["counts of mma"][HALF][4] == 2 and len(pieces) == 2
    assert signal.getsignal(signal.SIGTERM) is handler
    assert compare(path, "--instructions", HALF, "--outputs", "100000", "--minutes", "0.01") == 0
    assert json.loads(path.read_text())["counts of mma"][HALF][4] > 2


_SCRIPT = """
import sys
sys.path[:0] = ["tests/support"]
from compared_gpu import ComparedGpu
from warpmma.cli import main
from warpmma.cli.commands import gpu_commands
from warpmma.hardware.comparing import campaign
gpu_commands.first_gpu, gpu_commands.why_no_gpu = ComparedGpu, lambda: ""
campaign.SAVED_EVERY = 0
sys.exit(main(sys.argv[1:]))
"""


def test_a_killed_run_leaves_the_last_report(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    words = ["compare", "--instructions", "cvt.rn.f16*", "--outputs", "1e9", "--processes", "1", "--report", str(path)]
    process = subprocess.Popen([sys.executable, "-c", _SCRIPT, *words], cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        _until(lambda: path.exists() and '"counts of operation"' in path.read_text())
    finally:
        process.kill()
        assert process.wait() == -signal.SIGKILL
    facts = json.loads(path.read_text())
    assert facts["counts of operation"] and "not compared" not in facts
    assert "0 differences" in path.with_suffix(".txt").read_text()
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, *words[:-6], "--outputs", "10", *words[-4:]], cwd=ROOT, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and f"goes on with {path}" in done.stderr


def _until(true: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.usefixtures("gpu")
def test_what_cannot_be_gone_on_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "r.json"
    assert compare(path, "--instructions", "cvt.rn.f16.f32", "--outputs", "10") == 0
    assert compare(path, "--instructions", "cvt.rn.f16.f32", "--seed", "1") == 2
    assert "is of another seed: 0, now 1; give another file" in capsys.readouterr().err
    path.write_text(path.read_text().replace('"simulated"', '"another"'))
    assert compare(path, "--instructions", "cvt.rn.f16.f32") == 2
    assert "is of another GPU: " in capsys.readouterr().err
    for text in ("", "{}", "[1]", path.read_text()[:-20], '{"report": "warpmma compare", "version": 7, "fields": []}'):
        path.write_text(text)
        assert compare(path, "--instructions", "cvt.rn.f16.f32") == 2 and path.read_text() == text
        assert " report" in capsys.readouterr().err
    assert compare(tmp_path / "none" / "r.json", "--instructions", "cvt.rn.f16.f32") == 2
    assert "cannot be written" in capsys.readouterr().err
    assert compare(path, "--instructions", "m16n8k17") == 2
    assert "sm_90a has no instruction like m16n8k17" in capsys.readouterr().err


@pytest.mark.usefixtures("by_cpu")
def test_what_the_driver_refuses_is_left_out(gpu: ComparedGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launch = gpu.launch

    def refusing(what: Any, stream: int = 0) -> None:
        if "cvt.rn.f16.f32" in what.kernel.text:
            raise UnsupportedError("a PTX JIT compilation failed")
        launch(what, stream)

    monkeypatch.setattr(gpu, "launch", refusing)
    path = tmp_path / "r.json"
    assert compare(path, "--instructions", "cvt.r[nz].f16.f32", "--outputs", "3000") == 0
    facts = json.loads(path.read_text())
    assert list(facts["counts of operation"]) == ["cvt.rz.f16.f32"]
    assert facts["left_out"]["cvt.rn.f16.f32"] == "a PTX JIT compilation failed"


def test_record_and_verify(gpu: ComparedGpu, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.npz"
    assert main(["record", str(path), "--instructions", "mma.*m16n8k8.*tf32*", "--warps", "1"]) == 0
    assert main(["record", str(path), "--instructions", "m16n8k99"]) == 2
    assert main(["verify", str(path)]) == 0
    assert "simulated, driver" in capsys.readouterr().out


def test_undefined_metadata_is_recorded_and_verified(
    gpu: ComparedGpu, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, name = tmp_path / "x.npz", "mma.sp.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
    words = ["record", str(path), "--undefined", "--warps", "1", "--instructions"]
    assert main([*words, "mma.sp.sync.*m16n8k16.*bf16*"]) == 0
    assert [str(x.instruction) for x in open_recording(path).replay()] == [name]
    with np.load(path) as kept:
        arrays = {key: kept[key] for key in kept.files}
    assert arrays["undefined"] == "hardware"
    with pytest.raises(MetadataError, match="metadata nibble"):
        check_metadata(arrays[f"{name}|e"], name)
    assert main(["verify", str(path)]) == 0
    arrays[f"{name}|d1"][3, 1, 5] ^= 1
    np.savez(path, **arrays)
    assert main(["verify", str(path)]) == 1
    capsys.readouterr()
    assert main([*words, "mma.sync.*m16n8k8.*"]) == 2
    assert "sm_90a has no sparse mma like mma.sync.*m16n8k8.*" in capsys.readouterr().err
    monkeypatch.setattr(gpu, "capability", (8, 0))
    assert main([*words, "*"]) == 2
    assert "--undefined is for sm_90, sm_90a, whose undefined metadata is modelled; this GPU is sm_80" in (
        capsys.readouterr().err
    )


@pytest.mark.usefixtures("gpu")
def test_contribute(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.json"
    assert compare(path, "--instructions", "cvt.rn.f16.f32", "--outputs", "10") == 0
    monkeypatch.chdir(tmp_path)
    assert main(["contribute", str(path)]) == 0
    assert "attach it to an issue" in capsys.readouterr().out
    packed = json.loads((tmp_path / "warpmma-simulated-sm-90a.json").read_text())
    assert set(packed["device"]) == {"gpu", "target", "driver", "cuda", "nvrtc"}
    assert str(tmp_path) not in json.dumps(packed)
    assert main(["contribute", str(tmp_path / "none.json")]) == 2


def test_saved_often() -> None:
    assert campaign.SAVED_EVERY <= 10
