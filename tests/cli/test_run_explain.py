"""`warpmma run --explain`: an `mma` of a kernel, by its line and lane."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ptx_products import GEMM

from warpmma.cli import main
from warpmma.cli.commands.kernel_arguments import KernelProduct
from warpmma.errors import OperandError

Capture = pytest.CaptureFixture[str]


def said(capture: Capture, folder: Path, *more: str) -> tuple[int, str, str]:
    (folder / "gemm.ptx").write_text(GEMM)
    given = ["--arg", "pa=f16[1024]:normal", "--arg", "pd=out:f32[128]", "--arg", "turns=4"]
    status = main(["run", str(folder / "gemm.ptx"), "--grid", "1", "--block", "32", *given, "--target", "sm_90", *more])
    return status, *capture.readouterr()


def test_an_element_is_explained_after_the_report(capsys: Capture, tmp_path: Path) -> None:
    status, out, err = said(capsys, tmp_path, "--explain", "77 lane=13, register=1 occurrence=3 chain against=sm_80")
    assert (status, err) == (0, "")
    assert "D[3, 3] of mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 on sm_90" in out
    assert "gemm.cu:77, block 0, warp 0, occurrence 3" in out
    assert "link 4 of 4" in out
    assert out.splitlines()[-1].endswith("no hazard was found")
    assert max(map(len, out.splitlines())) < 120
    status, out, err = said(capsys, tmp_path, "--explain", "14 row=3 column=3 occurrence=1", "--json")
    told = json.loads(out)["explanation"]
    assert (told["row"], told["column"], told["site"]) == (3, 3, "gemm.cu:77, block 0, warp 0, occurrence 1")


@pytest.mark.parametrize(("asked", "says"), [
    ("", "'' is not a line number; expected a line and NAME=NUMBER, such as '77 warp=1 lane=13"),
    ("x", "'x' is not a line number"),
    ("77 lanes=3", "'lanes=3'; did you mean 'lane'?"),
    ("77 lane", "'lane'"),
    ("77 chain=3", "'chain=3'"),
    ("77 lane=x", "lane is 'x'"),
])  # fmt: skip
def test_wrong_arguments_get_one_line(capsys: Capture, tmp_path: Path, asked: str, says: str) -> None:
    status, out, err = said(capsys, tmp_path, "--explain", asked)
    assert (status, out) == (2, "")
    assert says in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(("asked", "says"), [
    ("79", "nothing was watched; mma were executed at gemm.cu:77"),
    ("77 warp=1", "gemm.cu:77; expected line, block, warp and occurrence of one that is executed, as in watch=Watch(l"),
    ("77 occurrence=4", "nothing was watched"),
    ("77 lane=32", "lane 32 is out of range; expected 0 to 31"),
    ("77 lane=3 row=1", "expected lane and register of D's fragment, or row and column of D"),
    ("77 against=sm_70", "sm_70"),
])  # fmt: skip
def test_what_the_launch_found_is_printed_if_an_element_is_refused(
    capsys: Capture, tmp_path: Path, asked: str, says: str
) -> None:  # fmt: skip
    _, plain, _ = said(capsys, tmp_path)
    status, out, err = said(capsys, tmp_path, "--explain", asked)
    assert status == 2
    assert out.splitlines()[:-1] == plain.splitlines()[:-1]  # the last has the time
    assert "no hazard was found" in out
    assert says in err
    assert len(err.splitlines()) == 1
    _, plain, _ = said(capsys, tmp_path, "--json")
    status, out, err = said(capsys, tmp_path, "--explain", asked, "--json")
    assert (status, len(err.splitlines())) == (2, 1)
    assert json.loads(out) | {"seconds": 0} == json.loads(plain) | {"seconds": 0}


def test_only_what_is_needed_is_watched() -> None:
    alone, loop = KernelProduct("77 occurrence=3"), KernelProduct("77,warp=1,occurrence=3,chain")
    assert (alone.watch.occurrence, loop.watch.occurrence, loop.watch.warp) == (3, None, 1)
    with pytest.raises(OperandError):
        KernelProduct("-3")
