"""`warpmma where`, `what` and `layout`: what they print, as text and JSON, and how they refuse."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from warpmma import lookup
from warpmma.cli import main
from warpmma.layouts import TABLE_FORMATS

Capture = pytest.CaptureFixture[str]
Printed = Callable[..., str]
F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
QUAD = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"
SP = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
MX = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
WG = "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16"


@pytest.fixture
def printed(capsys: Capture) -> Printed:
    def run(*arguments: str) -> str:
        assert main(arguments) == 0
        return capsys.readouterr().out.rstrip("\n")

    return run


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((F16, "A", "3", "5"), "a1 of lane 14, bits 16-31 of register 0"),
        (("m16n8k16", "f16", "a", "3", "5"), "a1 of lane 14, bits 16-31 of register 0"),
        (("m16n8k256", "and", "A", "3", "5"), "a5 of lane 12, bit 5 of register 0"),
        ((QUAD, "D", "3", "5", "--matrix", "2"), "d7 of lane 9, bits 0-31 of register 7"),
        ((SP, "metadata", "9", "6", "--selector", "1"),
         "nibble 6 of lane 7, bits 24-27 of register 0, for A[9, 24-27]"),
        ((MX, "scale_a", "11", "1", "--byte-id=2", "--thread-id=1"),
         "byte 3 of lane 15, bits 24-31 of register 0, for A[11, 32-63]"),
        ((SP, "A", "3", "5"), "a1 of lane 14, bits 16-31 of register 0, for one of A[3, 8-11]"),
        ((MX, "SFB", "3", "1"), "byte 1 of lane 12, bits 8-15 of register 0, for B[32-63, 3]"),
        ((WG, "D", "35", "101"), "d49 of thread 78 (lane 14 of warp 2), bits 0-31 of register 49"),
    ],
)  # fmt: skip
def test_where(printed: Printed, arguments: tuple[str, ...], text: str) -> None:
    assert printed("where", *arguments) == text


def test_where_as_json(printed: Printed) -> None:
    assert json.loads(printed("where", SP, "metadata", "9", "6", "--selector", "1", "--json")) == {
        "instruction": SP, "operand": "metadata", "row": 9, "column": 6, "lane": 7, "register": 0, "low": 24,
        "high": 27, "index": 6, "name": "nibble 6", "selector": 1,
    }  # fmt: skip
    assert json.loads(printed("where", F16, "A", "3", "5", "--json"))["matrix"] == 0


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ((F16, "A", "--lane", "14", "--register", "1"),
         ["register  bits   name  holds", "1         0-15   a2    A[11, 4]", "1         16-31  a3    A[11, 5]"]),
        ((F16, "A", "--lane", "14", "--register", "1", "--word", "0x3c00bc01"),
         ["register  bits   name  holds     code    meaning",
          "1         0-15   a2    A[11, 4]  0xbc01  -1.0009765625", "1         16-31  a3    A[11, 5]  0x3c00  1"]),
        ((QUAD, "C", "--lane", "9", "--register", "7"),
         ["register  bits  name  holds", "7         0-31  c7    C[3, 5] of matrix 2"]),
        ((SP, "metadata", "--lane", "6", "--selector", "0"),
         ["lane 6 holds nothing that is read with selector 0; it is read with selector 1"]),
        ((MX, "scale_a", "--lane", "3", "--byte-id", "2", "--word", "0x807f0102"),
         ["register  bits   name    holds        read with               code  meaning",
          "0         16-23  byte 2  A[8, 0-31]   byte-id 2, thread-id 1  0x7f  1",
          "0         24-31  byte 3  A[8, 32-63]  byte-id 2, thread-id 1  0x80  2"]),
        ((SP, "A", "--lane", "14", "--register", "1"),
         ["register  bits   name  holds", "1         0-15   a2    one of A[11, 8-11]",
          "1         16-31  a3    one of A[11, 8-11]"]),
        (("m16n8k256", "and", "B", "--lane", "9", "--register", "1"),
         ["register  bits  name  holds", "1         0     b32   B[160, 2]"]),
    ],
)  # fmt: skip
def test_what(printed: Printed, arguments: tuple[str, ...], lines: list[str]) -> None:
    assert printed("what", *arguments).splitlines()[: max(2, len(lines)) if len(lines) > 1 else 1] == lines


def test_what_nibbles_mean(printed: Printed) -> None:
    lines = printed("what", SP, "metadata", "--lane", "6", "--word", "0x4EEEE944").splitlines()
    assert lines[3] == "0         8-11   nibble 2  A[1, 8-11]   selector 1  0x9   columns 9 and 10 are stored"
    found = json.loads(printed("what", SP, "metadata", "--lane", "6", "--word", "0x4EEEE944", "--json"))
    assert (found["word"], found["lane"], len(found["cells"])) == (0x4EEEE944, 6, 8)
    cell = found["cells"][2]
    assert (cell["row"], cell["column"], cell["stored"], cell["selector"]) == (1, 2, [9, 10], 1)


def test_what_a_lane_holds_in_all_its_registers(printed: Printed) -> None:
    found = json.loads(printed("what", F16, "A", "--lane", "14", "--json"))
    assert [(x["register"], x["name"]) for x in found["cells"]] == [(i // 2, f"a{i}") for i in range(8)]
    assert found["word"] is None and "code" not in found["cells"][0]


@pytest.mark.parametrize("form", TABLE_FORMATS)
def test_layout_in_every_format(printed: Printed, form: str, tmp_path: Path) -> None:
    table = lookup.layout_table(F16, "B", by="lane")
    made = getattr(table, form)()
    text = printed("layout", F16, "B", "--by", "lane", "--format", form)
    assert made in text if form == "html" else text == made.rstrip("\n")
    file = tmp_path / "old"
    file.write_text("old")
    assert not printed("layout", F16, "B", "--by", "lane", "--format", form, "-o", str(file))
    assert file.read_text().rstrip("\n") == text and [x.name for x in tmp_path.iterdir()] == ["old"]


def test_a_page_stands_alone(printed: Printed) -> None:
    page = printed("layout", SP, "metadata", "--format", "html")
    assert page.startswith("<!DOCTYPE html>") and page.endswith("</html>") and page.count("<table") == 2
    assert f"<title>metadata of {SP}</title>" in page and "prefers-color-scheme" in page
    assert not re.search(r"(?:src|href)=", page)


def test_layout_as_json(printed: Printed) -> None:
    assert json.loads(printed("layout", SP, "metadata", "--selector", "1", "--json"))["cells"][0] == {
        "row": 0, "column": 0, "matrix": 1, "lane": 2, "register": 0, "low": 0, "high": 3, "index": 0
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("where", F16, "A", "16", "0"), f"warpmma: {F16}: A has 16 rows; row is 16, expected 0 to 15"),
        (("where", F16, "E", "1", "0"), "warpmma: operand is 'E'; expected 'A', 'B', 'C', 'D', 'metadata', 'scale_a'"),
        (("where", "m16n8k16", "f16", "3", "5"), "warpmma: operand is 'f16'; expected 'A', 'B', 'C', 'D', 'metadata'"),
        (("layout", "m16n8k16", "f16"), "warpmma: operand is 'f16'; expected 'A', 'B', 'C', 'D', 'metadata', 'scale"),
        (("what", "m16n8k16", "f16", "--lane", "3"), "warpmma: operand is 'f16'; expected 'A', 'B', 'C', 'D', 'meta"),
        (("where", WG, "B", "1", "0"), f"warpmma: {WG}: B lies in shared memory, in no registers; expected 'A', 'C'"),
        (("where", F16, "metadata", "1", "0"), f"warpmma: {F16} is dense, without pattern and metadata; expected an"),
        (("what", F16, "A", "--lane", "32"), f"warpmma: {F16}: A is in 32 lanes; lane is 32, expected 0 to 31"),
        (("what", F16, "A", "--lane", "0", "--register", "4"), f"warpmma: {F16}: A is in 4 registers; register is 4, "),
        (("what", F16, "A", "--lane", "0", "--word", "1"),
         f"warpmma: {F16}: A has 4 registers; say which has the word: --register 0"),
        (("what", F16, "A", "--lane", "0", "--register", "0", "--word", "0x100000000"),
         f"warpmma: {F16}: the word is 4294967296; expected 32 bits, 0 to 0xffffffff"),
        (("layout", F16, "A", "-o", "/none/x.txt"), "warpmma: /none/x.txt cannot be written: No such file or"),
        (("layout", F16, "A", "-o", "/"), "warpmma: --output '/': expected a file *.txt or *.csv or *.md or *.json or"),
        (("layout", F16, "A", "--format", "csv", "-o", "/"), "warpmma: / cannot be written: Is a directory"),
        (("layout", F16, "A", "-o", "a\0b.txt"), "warpmma: a"),
    ],
)  # fmt: skip
def test_wrong_requests_get_one_line(capsys: Capture, arguments: tuple[str, ...], message: str) -> None:
    assert main(arguments) == 2
    output, error = capsys.readouterr()
    assert error.startswith(message) and error.count("\n") == 1 and not output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("where", F16, "A", "3", "x"), "warpmma where: argument COLUMN: 'x' is not a number; expected INSTRUC"),
        (("where", "m16n8k16", "f16", "A[3,5]"), "warpmma where: argument ROW: 'A[3,5]' is not a number; expected INS"),
        (("where", "A", "3", "5", "m16n8k16"), "warpmma where: argument COLUMN: 'm16n8k16' is not a number; exp"),
        (("what", F16, "A"), "warpmma what: the following arguments are required: --lane\n"),
        (("what", F16, "A", "--lane", "1", "--word", "0xg"),
         "warpmma what: argument --word: '0xg' is not a number; expected one such as 14 or 0x3c00bc00\n"),
        (("where", MX, "scale_a", "1", "0", "--byte-id", "x"),
         "warpmma where: argument --byte-id: 'x' is not a number; expected one such as 14 or 0x3c00bc00\n"),
        (("layout", F16, "A", "--format", "svgz"), "warpmma layout: argument --format: invalid choice: 'svgz' (ch"),
    ],
)  # fmt: skip
def test_wrong_arguments_get_one_line(capsys: Capture, arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    output, error = capsys.readouterr()
    assert end.value.code == 2 and error.startswith(message) and error.count("\n") == 1 and not output


def test_a_file_that_cannot_be_replaced_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "old"
    file.write_text("old")

    def full(self: Path, target: Path) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "replace", full)
    assert main(["layout", F16, "A", "-o", str(file)]) == 2
    assert file.read_text() == "old" and [x.name for x in tmp_path.iterdir()] == ["old"]


def test_where_loads_neither_numpy_nor_what_it_does_not_need() -> None:
    """What makes it quick: in a new process it takes a tenth of a second."""
    code = (
        "import sys; sys.modules['numpy'] = None\nfrom warpmma.cli import main\n"
        f"main(['where', '{F16}', 'A', '3', '5'])\n"
        "print(sorted({'difflib', 'json', 'fractions', 'rich', 'warpmma.sparsity', 'warpmma.scaling', 'warpmma.show',\n"
        "              'warpmma.arithmetic'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "a1 of lane 14, bits 16-31 of register 0\n[]\n", done.stderr
