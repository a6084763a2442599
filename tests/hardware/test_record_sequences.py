"""The tool that records approximate functions, without a GPU: what it keeps and finds, and its kernels."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
import record_sequences
from arrays import Array, same
from oracles import skip_without

from warpmma.hardware.emitting import ptx_module

RECORDED = np.load(Path(__file__).parents[1] / "data" / "h200_sequences.npz")


class Stub:
    device = "no GPU"
    flip = ""

    def __init__(self, forms: list[str], target: str) -> None:
        self.forms = forms

    def run(self, form: str, given: tuple[Array, ...]) -> Array:
        assert form in self.forms
        results = record_sequences.expected(form, given).copy()
        results[1] ^= results.dtype.type(form == self.flip)
        return results


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_sequences, "SequenceGpu", Stub)


def test_what_is_kept(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "kept.npz"
    assert record_sequences.main(["--only", "ex2.approx.f[13]*", "--record", str(file)]) == 0
    assert "no GPU: 3 forms, 1235276 results, 0 differences; " in capsys.readouterr().out
    with np.load(file) as archive:
        kept = dict(archive)
    assert str(kept.pop("device")) == "no GPU"
    assert set(kept) == {key for key in RECORDED.files if key.startswith(("ex2.approx.f1", "ex2.approx.f3"))}
    for key, x in kept.items():
        same(x, RECORDED[key])


def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(Stub, "flip", "tanh.approx.bf16")
    assert record_sequences.main(["--only", "tanh.approx.bf16*"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("        1 tanh.approx.bf16 chosen: in, out, expected 0x1 0x0 0x1\n")
    assert "no GPU: 2 forms, 131072 results, 1 differences; " in out


def test_no_form(capsys: pytest.CaptureFixture[str]) -> None:
    assert record_sequences.main(["--only", "ex3.*"]) == 2
    assert capsys.readouterr().out == "no such form\n"


def test_digests_see_every_result_and_its_place() -> None:
    results = np.arange(10, dtype=np.uint32)
    whole = record_sequences.digests(results, 4)
    assert whole.shape == (3,)
    for place in range(10):
        changed = results.copy()
        changed[place] ^= 1 << 31
        assert (record_sequences.digests(changed, 4) != whole).tolist() == [place // 4 == i for i in range(3)]
    assert (record_sequences.digests(results[::-1], 4) != whole).all()


def test_kernels_are_assembled(tmp_path: Path) -> None:
    skip_without("ptxas")
    kernels = [record_sequences.kernel(form, f"k{i}") for i, form in enumerate(record_sequences.FORMS)]
    source = tmp_path / "k.ptx"
    source.write_text(ptx_module(kernels, "sm_90a", (8, 0)))
    subprocess.run(["ptxas", "-arch=sm_90a", str(source), "-o", str(tmp_path / "k.cubin")], check=True)
