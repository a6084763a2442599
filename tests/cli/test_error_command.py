"""`warpmma error`: what it prints is what the library says; wrong arguments get one line."""

from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import warpmma as wm
from warpmma.cli import main
from warpmma.products import FLOAT32

Capture = pytest.CaptureFixture[str]
RNG = np.random.default_rng(0)
A, B = (RNG.standard_normal(shape).astype(np.float16) for shape in ((32, 64), (64, 16)))
C = RNG.standard_normal((32, 16)).astype(np.float32)
A8, B8 = (x.astype(ml_dtypes.float8_e4m3fn) for x in (A, B))


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, x in (("A", A), ("B", B), ("C", C), ("A8", A8), ("B8", B8), ("F", A.astype(np.float32))):
        np.save(f"{name}.npy", x)


def said(capture: Capture, *arguments: str) -> tuple[int, str, str]:
    try:
        status = main(["error", *arguments])
    except SystemExit as done:
        status = int(done.code or 0)
    out, err = capture.readouterr()
    return status, out, err


def test_it_prints_what_the_library_says(capsys: Capture) -> None:
    report = wm.error(A, B, C, targets=["sm_80", "sm_90"], split_k=2)
    status, out, err = said(
        capsys, "A.npy", "B.npy", "C.npy", "--targets", "sm_80,sm_90", "--split-k", "2", "--rtol", "1e-3",
        "--atol", "1e-4", "--output", "out.svg", "-o", "out.csv", "--worst",
    )  # fmt: skip
    parts = [report.text(), report.advise(1e-3, 1e-4).text(), report.worst().text()]
    assert (status, out, err) == (0, "\n".join(parts), "")
    assert Path("out.svg").read_text() == report.svg()
    assert Path("out.csv").read_text() == report.csv()


def test_words_name_the_instruction_of_types_that_numpy_does_not_name(capsys: Capture) -> None:
    i = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"
    status, out, err = said(capsys, i, "A8.npy", "B8.npy", "--target", "sm_90", "--advise", "--json")
    report = wm.error(A8, B8, instruction=i, target="sm_90")
    told = json.loads(out)
    assert (status, err) == (0, "")
    assert told["products"] == json.loads(report.json())["products"]
    assert told["advice"] == json.loads(report.advise().json())


def test_an_output_of_ones_own_is_measured(capsys: Capture) -> None:
    d = A.astype(np.float32) @ B.astype(np.float32)
    np.save("D.npy", d)
    status, out, _ = said(capsys, "A.npy", "B.npy", "--target", "sm_90", "--measure", "D.npy", "--no-bound")
    assert (status, out) == (0, wm.error(A, B, target="sm_90", outputs={"D.npy": d}, bound=False).text())
    assert said(capsys, "A.npy", "B.npy", "--target", "sm_90", "--measure", "A.npy")[0] == 2
    older = said(capsys, "A.npy", "B.npy", "--target", "sm_90", "--output", "D.npy", "--no-bound")
    assert older[:2] == (0, out) and "the D that is measured is now --measure D.npy" in older[2]


def test_float32_is_multiplied_as_the_word_says(capsys: Capture) -> None:
    a, b = A.astype(np.float32), B.astype(np.float32)
    np.save("A32.npy", a)
    np.save("B32.npy", b)
    files = ("A32.npy", "B32.npy", "--target", "sm_80,sm_90", "--no-bound")
    for way in FLOAT32:
        status, out, err = said(capsys, *files, "--float32", way)
        report = wm.error(a, b, targets=["sm_80", "sm_90"], float32=way, bound=False)  # type: ignore[arg-type]
        assert (status, out, err) == (0, report.text(), "")
    status, out, err = said(capsys, *files)
    assert status == 0 and "float32 truncated to tf32" in " ".join(out.split())
    assert err.count("\n") == 1 and err.startswith("warpmma: float32 operands without float32= or instruction=")


def test_values_are_rounded_when_it_is_asked_for(capsys: Capture) -> None:
    words = ["m16n8k16", "f16", "F.npy", "B.npy", "--target", "sm_90"]
    status, out, _ = said(capsys, *words, "--cast")
    assert (status, out) == (0, wm.error(A, B, target="sm_90").text())
    assert "--cast" in said(capsys, *words)[2]


def test_where_nothing_is_compared_no_figure_is_zero(capsys: Capture) -> None:
    np.save("nan.npy", np.full(A.shape, np.nan, A.dtype))
    words = ["nan.npy", "B.npy", "--target", "sm_90"]
    [row] = [line for line in said(capsys, *words)[1].splitlines() if line.startswith("sm_90 ")]
    assert set(row.split()[1:]) == {"-"}
    [product] = json.loads(said(capsys, *words, "--json")[1])["products"]
    assert (product["compared"], product["mean_ulps"], product["backward"]) == (0, None, None)


@pytest.mark.parametrize(("rtol", "atol", "status"), [("1e-3", "1e-3", 0), ("0", "0", 1), ("0", "1e9", 1)])
def test_the_status_says_whether_a_tolerance_is_good(capsys: Capture, rtol: str, atol: str, status: int) -> None:
    assert said(capsys, "A.npy", "B.npy", "--target", "sm_90", "--rtol", rtol, "--atol", atol)[0] == status


@pytest.mark.parametrize(("arguments", "says"), [
    ("A.npy --target sm_90", "1 file *.npy; expected those of A, B and, if there is one, C"),
    ("A.npy B.npy --target ,", "--target is empty; expected such as sm_90, or sm_80,sm_90"),
    ("A.npy B.npy --target sm_91", "unknown target 'sm_91'; did you mean 'sm_90'?"),
    ("A.npy B.npy --target sm_90,sm_90", "['sm_80', 'sm_90'], each once"),
    ("A8.npy B8.npy --target sm_90", "of a type that NumPy does not name; expected words of the instruction"),
    ("A.npy absent.npy --target sm_90", "absent.npy: No such file or directory"),
    ("A.npy A.npy --target sm_90", "A is (32, 64) and B is (32, 64); expected [..., m, k] and [..., k, n]"),
    ("A.npy B.npy --target sm_90 --rtol 1", "rtol is given without atol; expected both"),
    ("A.npy B.npy --target sm_90 --rtol -1 --atol 0", "rtol is -1.0; expected a number of at least 0"),
    ("A.npy B.npy --target sm_90 --svg no/such/x.svg", "x.svg cannot be written: No such file or directory"),
    ("m64n8k32 e4m3 A8.npy B8.npy --target sm_80", "sm_80"),
    ("A.npy B.npy", "--target"),
])  # fmt: skip
def test_wrong_arguments_get_one_line(capsys: Capture, arguments: str, says: str) -> None:
    status, out, err = said(capsys, *arguments.split())
    assert (status, out) == (2, "")
    assert says in err.splitlines()[-1]
    assert "Traceback" not in err
