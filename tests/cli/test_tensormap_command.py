"""`tensormap`: files and digits of maps, as text, JSON and pictures, and the errors of both."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from cli_cases import Capture

import warpmma as wm
from warpmma.cli import main

MAP = wm.TensorMap(0x7F0000000400, (16, 64), type="f16", shape=(100, 120), strides=(256,), swizzle=128, fill="nan")
OTHER = wm.TensorMap(0x400, (16,), type="u8", shape=(64,))


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "maps.bin"
    path.write_bytes(bytes(MAP))
    return str(path)


def test_files_and_digits_print_the_same(file: str, capsys: Capture) -> None:
    digits = bytes(MAP).hex()
    words = [hex(int.from_bytes(bytes(MAP)[i : i + 8], "little")) for i in range(0, 128, 8)]
    for given in ([file], [digits], [f"0x{digits}"], [digits[:100], digits[100:]], words, [" ".join(words)]):
        assert main(["tensormap", *given]) == 0
        assert capsys.readouterr().out == f"{MAP}\n"


def test_several_maps(file: str, capsys: Capture) -> None:
    Path(file).write_bytes(bytes(MAP) + bytes(OTHER))
    assert main(["tensormap", file]) == 0
    assert capsys.readouterr().out == f"{MAP}\n\n{OTHER}\n"
    assert main(["tensormap", file, "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert first["encoded"] == bytes(MAP).hex() and first["box"] == [16, 64] and second["type"] == "u8"


def test_a_load(file: str, tmp_path: Path, capsys: Capture) -> None:
    assert main(["tensormap", file, "--load", "-3,80", "--at", "0x400"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "a load at [-3, 80] brings [16, 64] elements, 504 of them filled, to shared memory 0x400; the mbarrier gets "
        "2048 bytes"
    )
    picture = tmp_path / "load.svg"
    assert main(["tensormap", file, "--load", "-3,80", "--at", "0x400", "--json", "-o", str(picture)]) == 0
    found = json.loads(capsys.readouterr().out)[0]
    assert found["load"] == {"elements": [16, 64], "filled": 504, "bytes": 2048, "at": 1024, "span": 2048}
    assert picture.read_text() == MAP.svg((-3, 80), 0x400)
    assert main(["tensormap", file, "--load", "-3,80", "-o", "-.svg"]) == 0
    assert ElementTree.fromstring(capsys.readouterr().out).tag.endswith("svg")


@pytest.mark.parametrize(("words", "message"), [
    (["0x12"], "0x12 is neither a file nor the digits of a map; expected a file, 256 hexadecimal digits, or 16 words"),
    (["FILE", "--load", "1,2"], "coordinates[1] is 2: byte 4 of a row; expected a multiple of 16 bytes"),
    (["FILE", "--load", "a"], "--load 'a'; expected integers, such as 0,64"),
    (["FILE", "--at", "128"], "--output, --offsets and --at are of a load; expected --load C,C... too"),
    (["FILE", "FILE", "--load", "0,0"], "--load with 2 maps; expected one"),
    (["FILE", "--load", "0,0", "-o", "x.png"], "--output 'x.png': expected a file *.svg"),
    (["SHORT"], "has 100 bytes; expected 128 for each tensor map"),
])  # fmt: skip
def test_errors_are_one_line(words: list[str], message: str, file: str, tmp_path: Path, capsys: Capture) -> None:
    short = tmp_path / "short.bin"
    short.write_bytes(bytes(100))
    assert main(["tensormap", *(str(short) if x == "SHORT" else file if x == "FILE" else x for x in words)]) == 2
    output, error = capsys.readouterr()
    assert not output and message in error and error.count("\n") == 1
