"""The tool that compares approximate functions with a GPU, without one: its operands, findings and errors."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import numpy as np
import pytest
from arrays import Array

from lab.compare import functions as tool
from lab.gpu.row_jobs import RowJob
from warpmma.hardware import function_plan as plan
from warpmma.operations import operation
from warpmma.operations.arithmetic import approximations, divisions

ROWS = [mnemonic for form in approximations.FORMS for mnemonic in form.mnemonics]


class Stub:
    """A GPU that computes as we do, but for a bit of one operation where its last operand is a certain one."""

    device = "no GPU"
    flip = ("", 0)

    def __init__(self, jobs: Sequence[RowJob], target: str) -> None:
        self.names = [job.mnemonic for job in jobs]
        self.seen: dict[str, list[Array]] = {}
        self._lock = Lock()

    def run(self, job: RowJob, given: Sequence[Array]) -> tuple[Array, ...]:
        assert job.mnemonic in self.names and given[0].shape[1:] == (32,)
        (result,) = (x.copy() for x in operation(job.mnemonic)(*given))
        with self._lock:
            self.seen.setdefault(job.mnemonic, []).append(given[-1])
        mnemonic, operand = self.flip
        return (result ^ ((given[-1] == operand) & (mnemonic == job.mnemonic)).astype(result.dtype),)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Stub]:
    stubs: list[Stub] = []

    def make(jobs: Sequence[RowJob], target: str) -> Stub:
        stubs.append(Stub(jobs, target))
        return stubs[-1]

    monkeypatch.setattr(tool, "OperationGpu", make)
    monkeypatch.setattr(tool, "CHUNK", 1 << 11)
    return stubs


def test_every_form_is_compared(made: list[Stub], capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main(["--most", "4127", "--threads", "2"]) == 0
    (gpu,) = made
    assert gpu.names == list(gpu.seen) == ROWS
    for mnemonic, parts in gpu.seen.items():
        codes = np.sort(np.concatenate(parts).ravel())
        assert len(codes) == 4096
        if mnemonic.endswith(("f32", ".f16", ".bf16")) and "div" not in mnemonic:
            assert len(np.unique(codes)) == 4096
            assert len(np.unique(codes >> (codes.itemsize * 8 - 9))) == 512  # of every sign and exponent, if it has 8
    assert "30 forms, 122,880 operands, 0 differences; " in capsys.readouterr().out


def test_a_difference_is_found_and_shown(
    made: list[Stub], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Stub, "flip", ("tanh.approx.bf16", 0x3F01))
    assert tool.main(["--only", "tanh.*16", "--threads", "3"]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[1].split()[:4] == ["tanh.approx.f16", "65,536", "0", "differ"]
    assert out[2].split()[:4] == ["tanh.approx.bf16", "65,536", "1", "differ"]
    assert "in 0x3f01" in out[3] and out[4].startswith("2 forms, 131,072 operands, 1 differences; ")


def test_ieee_forms_are_compared_instead(made: list[Stub], capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main(["--ieee", "--only", "*.rz.*", "--most", "64", "--pairs", "96"]) == 0
    assert made[0].names == [name for form in divisions.FORMS for name in form.mnemonics if ".rz." in name]


def test_how_many_operands_there_are() -> None:
    """All of every form, but for those with two and for rsqrt.approx.f64."""
    counts = {mnemonic: plan(operation(mnemonic), 96)[0] for mnemonic in ROWS}
    assert {mnemonic for mnemonic, count in counts.items() if count == 96} == {
        "div.approx.f32", "div.approx.ftz.f32", "div.full.f32", "div.full.ftz.f32", "rsqrt.approx.f64"
    }  # fmt: skip
    assert sum(count == 1 << 32 for count in counts.values()) == 17
    assert {counts[x] for x in ROWS if x.endswith("16")} == {1 << 16}
    assert {counts[x] for x in ROWS if x.endswith("x2")} == {1 << 20}


@pytest.mark.parametrize("mnemonic", ["ex2.approx.f16x2", "rcp.approx.ftz.f64", "div.full.f32", "rsqrt.approx.f64"])
def test_operands_are_the_same_however_they_are_cut(mnemonic: str) -> None:
    _, operands = plan(operation(mnemonic), 1 << 10)
    whole = operands(0, 1 << 10)
    for x, *parts in zip(whole, operands(0, 96), operands(96, 928), strict=True):
        assert x.dtype == parts[0].dtype and np.array_equal(x, np.concatenate(parts))


@pytest.mark.parametrize(
    ("mnemonic", "bits"), [("ex2.approx.f32", 32), ("rcp.approx.ftz.f64", 32), ("tanh.approx.f16", 16)]
)
@pytest.mark.parametrize("first", [0, 12345 << 4, (1 << 32) - 64])
def test_every_code_comes_once(mnemonic: str, bits: int, first: int) -> None:
    """They are numbers from 0 on, times an odd one: times its inverse, they are the numbers again."""
    count, operands = plan(operation(mnemonic), 32)
    assert count == 1 << bits
    first %= count
    (x,) = operands(first, 64)
    codes = x.astype(np.uint64) >> np.uint64(x.itemsize * 8 - bits)
    inverse = np.uint64(pow(0x9E3779B1, -1, 1 << 32))
    assert np.array_equal(codes * inverse & np.uint64(count - 1), np.arange(first, first + 64, dtype=np.uint64))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--pairs", "0"], "argument --pairs: 0 operands are no warp; at least 32"),
        (["--most", "31"], "argument --most: 31 operands are no warp; at least 32"),
        (["--most", "all"], "argument --most: invalid _warps value: 'all'"),
        (["--threads", "0"], "--threads is positive"),
    ],
)
def test_what_would_compare_nothing_is_refused(
    arguments: list[str], text: str, made: list[Stub], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        tool.main(arguments)
    assert text in capsys.readouterr().err and not made


def test_no_such_function(capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main(["--target", "sm_70", "--only", "tanh*"]) == 2
    assert capsys.readouterr().out == "no such function of sm_70 is like tanh*\n"
