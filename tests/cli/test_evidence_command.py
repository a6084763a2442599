"""`evidence`: the table of targets, and what is known of an instruction and of a target, as the library says it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cli_cases import Capture

import warpmma as wm
from warpmma.arithmetic import group
from warpmma.cli import main
from warpmma.isa import instructions, named, parse_any, warpgroup_instructions


def printed(capsys: Capture, *arguments: str) -> str:
    assert main(["evidence", *arguments]) == 0
    return capsys.readouterr().out


def as_json(capsys: Capture, *arguments: str) -> Any:
    return json.loads(printed(capsys, *arguments, "--json"))


def test_the_table(capsys: Capture) -> None:
    text, rows = printed(capsys), as_json(capsys)
    tables = [part.splitlines() for part in text.split("\n\n")]
    assert [len(part) for part in tables[:3]] == [26, 23, 2]
    shown: dict[tuple[str, str], str] = {}
    for head, *lines in tables[:3]:
        starts = [i for i, x in enumerate(head) if i == 0 or (x != " " and head[i - 2 : i] == "  ")]
        ends = [*starts[1:], 200]
        names = [head[a:b].strip() for a, b in zip(starts, ends, strict=True)]
        for line in lines:
            cells = [line[a:b].strip() for a, b in zip(starts, ends, strict=True)]
            shown |= {(cells[0], name): cell for name, cell in zip(names[1:], cells[1:], strict=True) if cell}
    expected: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        expected.setdefault((row["target"], row["group"]), set()).add(row["kind"][0].upper())
    assert {key: set(cell) for key, cell in shown.items()} == expected
    pairs = [(row["target"], mnemonic) for row in rows for mnemonic in row["instructions"]]
    every = [(t, str(i)) for t in wm.TARGETS for i in (*instructions(t), *warpgroup_instructions(t))]
    assert sorted(pairs) == sorted(every)


def test_of_a_target(capsys: Capture) -> None:
    rows, text = as_json(capsys, "--target", "sm_90a"), " ".join(printed(capsys, "--target", "sm_90a").split())
    for row in rows:
        for mnemonic in row["instructions"][:3]:
            i = parse_any(mnemonic)
            known = wm.evidence(i, target="sm_90a")
            assert (row["kind"], row["source"], row["assumption"]) == (known.kind, known.source, known.assumption)
            assert row["group"].replace("sp ", "") == group(i)
        assert f"sm_90a {row['group']}: {row['instructions'][0]}" in text and row["assumption"] in text


@pytest.mark.parametrize("words", ["m16n8k16 f16", "sp e4m3", "nvfp4", "m64n8k16 f16 f16"])
def test_of_an_instruction(capsys: Capture, words: str) -> None:
    i = named(words).instruction
    rows, text = as_json(capsys, *words.split()), printed(capsys, *words.split())
    assert sorted(t for row in rows for t in row["targets"]) == sorted(i.targets) and text.startswith(f"{i}\n")
    for row in rows:
        assert all(wm.evidence(i, target=t).machine == row["machine"] for t in row["targets"])
        assert row["kind"] in text and " ".join(row["targets"]) in " ".join(text.split())
    assert as_json(capsys, *words.split(), "--target", i.targets[-1])[0]["targets"] == [i.targets[-1]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--target sm_99", "unknown target 'sm_99'"),
        ("m16n8k32 e4m3 --target sm_80", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 is not legal on sm_80"),
        ("f16", "f16: 3 instructions are left; say the shape: "),
    ],
)
def test_refusals(capsys: Capture, arguments: str, message: str) -> None:
    assert main(["evidence", *arguments.split()]) == 2
    output, error = capsys.readouterr()
    assert error.startswith(f"warpmma: {message}") and error.count("\n") == 1 and not output
