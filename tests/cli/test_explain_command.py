"""`warpmma explain`: what it prints is what the library says; wrong arguments get one line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from explanation_cases import F16, MXF4

import warpmma as wm
from warpmma.analysis import explain
from warpmma.cli import main
from warpmma.cli.arguments.matrix_files import codes_of
from warpmma.formats import FORMATS

pytestmark = pytest.mark.quick

LOW = ["m16n8k16", "f16", "--target", "sm_90", "--a", "1 6x0 2^-24 2^-24", "--b", "1"]
Capture = pytest.CaptureFixture[str]


def said(capture: Capture, *arguments: str) -> tuple[int, str, str]:
    try:
        status = main(["explain", *arguments])
    except SystemExit as done:
        status = int(done.code or 0)
    out, err = capture.readouterr()
    return status, out, err


def low() -> tuple[np.ndarray, np.ndarray]:
    a = np.zeros((1, 16), np.float16)
    a[0, 0], a[0, 7:9] = 1, 2**-24
    return a, np.ones((16, 1), np.float16)


def test_values_that_are_written_out(capsys: Capture) -> None:
    status, out, err = said(capsys, *LOW, "--against", "sm_80")
    assert status == 0 and err.startswith("warpmma: m16n8k16 f16 is taken as")
    assert out == explain(F16, *low(), target="sm_90", against="sm_80").text()


def test_json_and_picture(capsys: Capture, tmp_path: Path) -> None:
    picture = tmp_path / "x.svg"
    status, out, _ = said(capsys, *LOW, "--json", "--output", str(picture))
    told = explain(F16, *low(), target="sm_90")
    assert status == 0 and json.loads(out) == json.loads(told.json())
    assert picture.read_text() == told.svg()
    assert said(capsys, *LOW, "--output", "-.svg")[1] == told.svg()


def test_three_targets(capsys: Capture) -> None:
    told = explain(F16, *low(), targets=["sm_90", "sm_80", "sm_100"])
    for against in (("--against", "sm_80", "--against", "sm_100"), ("--against", "sm_80,sm_100")):
        assert said(capsys, *LOW, *against)[1] == told.text()
    document = json.loads(said(capsys, *LOW, *against, "--json")[1])
    assert document["against"]["target"] == "sm_80" and "takes 16 products" in document["parting"]["reason"]
    assert [(x["parting"], x["against"]["target"]) for x in document["further"]] == [(None, "sm_100")]


def test_a_chain_of_float32_needs_no_instruction(capsys: Capture) -> None:
    status, out, err = said(capsys, "--float32", "ieee", "--target", "sm_90", "--a", "1 2^-12 3", "--b", "2^-13")
    assert (status, err) == (0, "") and out.startswith("D[0, 0] of fma.rn.f32 on sm_90")
    a, b = np.array([[1, 2.0**-12, 3]], np.float32), np.full((3, 1), 2.0**-13, np.float32)
    assert out == explain(a, b, target="sm_90", float32="ieee").text()
    rounded = said(capsys, "m16n8k8", "tf32", "--float32", "tf32", "--target", "sm_90", "--a", "0x3f801fff", "--b", "1")
    assert "ignored bits" not in rounded[1] and "0x41002000" in rounded[1]  # 8 times what 1 + 2^-10 is rounded to


def test_matrices_in_files(capsys: Capture, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((40, 100)), rng.standard_normal((100, 30))
    c = rng.standard_normal((40, 30)).astype(np.float32)
    files = {name: str(tmp_path / f"{name}.npy") for name in "abc"}
    x, y = a.astype(ml_dtypes.bfloat16), b.astype(ml_dtypes.bfloat16)
    for name, array in (("a", x), ("b", y), ("c", c)):
        np.save(files[name], array)  # of bfloat16 NumPy writes bytes
    place = ["--row", "39", "--column", "2", "--split-k", "2", "--json"]
    names = [word for name in "abc" for word in (f"--{name}", files[name])]
    status, out, _ = said(capsys, "m16n8k16", "bf16", "--target", "sm_80", *names, *place)
    product = wm.matmul(x, y, c, target="sm_80", split_k=2)
    assert status == 0 and json.loads(out)["result"] == f"0x{product[39, 2].view(np.uint32):08x}"


def test_scales(capsys: Capture) -> None:
    status, out, _ = said(
        capsys, MXF4, "--target", "sm_120a", "--a", "6", "--b=-0.5", "--scale-a", "1 2 4 8", "--scale-b", "0.5"
    )
    assert status == 0 and re.search(r"^  k 48-63 +8 x 0\.5 +-192 ", out, re.M)


def test_long_values_are_a_chain(capsys: Capture) -> None:
    status, out, _ = said(capsys, F16, "--target", "sm_90", "--a", "4096x0.1", "--b", "0.1", "--all", "--json")
    a, b = np.full((1, 4096), 0.1, np.float16), np.full((4096, 1), 0.1, np.float16)
    told = json.loads(out)
    assert status == 0 and len(told["links"]) == 256
    assert told["result"] == f"0x{wm.matmul(a, b, target='sm_90')[0, 0].view(np.uint32):08x}"


def test_cut_bits_are_coloured_on_request(capsys: Capture) -> None:
    plain, coloured = (said(capsys, *LOW, "--color", x)[1] for x in ("never", "always"))
    assert "\x1b[31m000000000\x1b[0m" in coloured
    assert re.sub(r"\x1b\[\d*m", "", coloured) == plain == said(capsys, *LOW)[1]


WRONG = {
    "--a: 'x' is not a number; expected numbers such as 0.5": ("--a", "x", "--b", "1"),
    "--a: '70000' is out of range of f16, which goes from -65504 to 65504": ("--a", "70000", "--b", "1"),
    "--a: '0x12345' is not a code of f16, which has 16 bits": ("--a", "0x12345", "--b", "1"),
    "--a: no.npy: No such file or directory": ("--a", "no.npy", "--b", "1"),
    "--c has 2 values; expected one, or FILE.npy": ("--a", "1", "--b", "1", "--c", "1 2"),
    "--row chooses of a matrix A in a file .npy; values of --a are one row": ("--a", "1", "--b", "1", "--row", "3"),
    "--column chooses of a matrix B in a file .npy": ("--a", "1", "--b", "1", "--column", "3"),
    "takes no block scales": ("--a", "1", "--b", "1", "--scale-a", "1"),
    "unknown target 'sm_91'; did you mean 'sm_90'?": ("--a", "1", "--b", "1", "--against", "sm_91"),
    "/nowhere/x.svg cannot be written: No such file or directory": ("--a", "1", "--b", "1", "-o", "/nowhere/x.svg"),
    "the following arguments are required: --b": ("--a", "1"),
}


@pytest.mark.parametrize(("words", "arguments"), WRONG.items(), ids=WRONG)
def test_wrong_arguments_get_one_line(capsys: Capture, words: str, arguments: tuple[str, ...]) -> None:
    status, out, err = said(capsys, F16, "--target", "sm_90", *arguments)
    assert (status, out) == (2, "") and words in err and err.count("\n") == 1, err


def test_scales_are_counted(capsys: Capture) -> None:
    status, _, err = said(capsys, MXF4, "--target", "sm_120a", "--a", "1", "--b", "1", "--scale-a", "1 2")
    assert status == 2 and "--scale-a has 2 values; expected 4" in err


@pytest.mark.parametrize(
    ("text", "fmt", "expected"),
    [
        ("1, -0 2^-24;-3*2^-14", "f16", [0x3C00, 0x8000, 1, 0x8A00]),
        ("inf -inf nan 1/3 0x1.8p-3 0x3c00", "f16", [0x7C00, 0xFC00, 0x7FFF, 0x3555, 0x3200, 0x3C00]),
        ("65519", "f16", [0x7BFF]), ("3x-1", "s8", [255] * 3), ("-128 127", "s8", [0x80, 0x7F]), ("", "f16", []),
        ("448 nan", "e4m3", [0x7E, 0x7F]), ("1e300", "f64", [0x7E37E43C8800759C]), ("inf -inf", "e5m2", [0x7C, 0xFC]),
        ("1.0000000596046447 1.0000000596046448", "f32", [0x3F800000, 0x3F800001]),  # about 1 + 2^-24, a tie
    ],
)  # fmt: skip
def test_values_of_every_kind(text: str, fmt: str, expected: list[int]) -> None:
    assert codes_of(text, FORMATS[fmt], "--a") == expected


@pytest.mark.parametrize(
    ("text", "fmt"),
    [
        ("449", "e4m3"), ("inf", "e4m3"), ("65520", "f16"), ("128", "s8"), ("1.5", "s8"), ("nan", "s8"), ("7", "e2m1"),
        ("nan", "e2m1"), ("-1", "ue8m0"), ("1e400", "f64"), ("1e400", "s8"), ("2^99999", "f32"), ("1//2", "f16"),
        ("1/0", "f16"), ("9999999x1", "f16"), ("2^-x", "f16"), ("nan*2^3", "f16"), ("٣", "f16"),
    ],
)  # fmt: skip
def test_what_is_no_value_is_refused(text: str, fmt: str) -> None:
    with pytest.raises(wm.OperandError, match="--a"):
        codes_of(text, FORMATS[fmt], "--a")
