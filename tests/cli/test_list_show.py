"""`list`, `show` and `targets`: they say what the tables say, as text and as JSON, without NumPy where they can."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from cli_cases import Capture

from warpmma.cli import main
from warpmma.isa import (
    TARGETS,
    MatrixInstruction,
    find,
    instructions,
    named,
    parse_any,
    warpgroup_instructions,
    words_of,
)

EVERY: tuple[MatrixInstruction, ...] = (*instructions(), *warpgroup_instructions())


def printed(capsys: Capture, *arguments: str) -> str:
    assert main(arguments) == 0
    return capsys.readouterr().out


def as_json(capsys: Capture, *arguments: str) -> Any:
    return json.loads(printed(capsys, *arguments, "--json"))


# list


def rows(output: str) -> list[str]:
    return [" ".join(line.split()[:-2]) for line in output.split("\n\n")[0].splitlines()[1:]]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], EVERY),
        (["--target", "sm_90a"], [i for i in EVERY if "sm_90a" in i.targets]),
        (["--type", "e4m3"], [i for i in EVERY if "e4m3" in (i.a_type, i.b_type)]),
        (["--type", "e4m3", "--type", "e2m1"], [i for i in EVERY if {i.a_type, i.b_type} == {"e4m3", "e2m1"}]),
        (["--type", "s32"], [i for i in EVERY if i.d_type == "s32"]),
        (["--kind", "mxf4", "--sparse"], find(kind="mxf4", sparse=True)),
        (["--a", "e2m1", "--d", "f16", "--dense"], find(a="e2m1", d="f16", sparse=False)),
        (["m16n8k16", "bf16"], find(m=16, n=8, k=16, a="bf16")),
        (["wgmma", "tf32", "--target", "sm_90a"], find(m=64, a="tf32")),
        (["--target", "sm_70", "--type", "e4m3"], []),
    ],
)
def test_list(capsys: Capture, arguments: list[str], expected: Sequence[Any]) -> None:
    found = as_json(capsys, "list", *arguments)
    assert [row["mnemonic"] for row in found] == [str(i) for i in expected]
    assert printed(capsys, "list", *arguments, "--mnemonics").split() == [str(i) for i in expected]
    shown = printed(capsys, "list", *arguments)
    mma = [i for i in expected if i.m != 64]
    assert rows(shown)[: len(mma)] == [words_of(i) for i in mma]
    last = shown.splitlines()[-1]
    assert last.startswith(f"{len(mma)} instruction" if mma else f"{len(expected) or 'no'} ")


def test_a_row_names_its_instruction() -> None:
    some: tuple[MatrixInstruction, ...] = (*instructions(), *warpgroup_instructions()[::16])
    for i in some:
        assert named(words_of(i)).instruction.canonical == i.canonical


def test_json_of_a_row(capsys: Capture) -> None:
    for row in as_json(capsys, "list", "--kind", "mxf4nvf4"):
        i = parse_any(row["mnemonic"])
        assert (row["m"], row["a"], row["scale_vec"], row["stype"]) == (i.m, i.a_type, i.scale_vec, i.stype)
        assert (tuple(row["targets"]), tuple(row["ptx"])) == (i.targets, i.ptx)


# show


@pytest.mark.parametrize("words", ["m16n8k16 f16", "sp m16n8k64 e4m3", "nvfp4", "m8n8k4 f64", "m64n24k16 bf16"])
def test_show_says_in_text_what_it_says_in_json(capsys: Capture, words: str) -> None:
    text, facts = printed(capsys, "show", *words.split()), as_json(capsys, "show", *words.split())
    i = named(words).instruction
    assert facts["mnemonic"] == text.splitlines()[0] == str(i) and facts["targets"] == list(i.targets)
    assert all(len(line) < 120 for line in text.splitlines())
    flowing = " ".join(text.split())
    for name, operand in facts["operands"].items():
        assert operand["type"] == i.type(name)
        if operand["in"] == "registers":
            assert operand["formulas"] == i.layout(name).formulas()
            assert all(f"{key:<6} = {value}\n" in text for key, value in operand["formulas"].items())
            assert f"{operand['registers']} of {operand['bits']} bits" in flowing
    assert sorted(t for each in facts["arithmetic"] for t in each["targets"]) == sorted(i.targets)
    for each in facts["arithmetic"]:
        assert f"{each['machine']}: " in flowing and " ".join(each["how"].split()) in flowing
        assert sorted(t for known in each["evidence"] for t in known["targets"]) == sorted(each["targets"])
        assert all(known["source"] in flowing and known["assumption"] in flowing for known in each["evidence"])


def test_show_of_words_and_scales(capsys: Capture) -> None:
    assert as_json(capsys, "show", "sp", "m16n8k32", "f16")["metadata"]["selectors"] == [0, 1]
    scales = as_json(capsys, "show", "mxf4", "dense")["scales"]
    assert (scales["byte_ids"], scales["elements"], scales["scale_vec"]) == ([0, 2], 32, "2X")
    software = as_json(capsys, "show", "m16n8k16", "e4m3")["arithmetic"]
    assert [(each["targets"][0], each["steps"]) for each in software] == [("sm_89", 1), ("sm_90", 2), ("sm_120", 1)]


def test_show_of_one_target(capsys: Capture) -> None:
    facts = as_json(capsys, "show", "m16n8k16", "e4m3", "--target", "sm_90")
    assert [each["targets"] for each in facts["arithmetic"]] == [["sm_90"]] and len(facts["targets"]) > 1
    assert "sm_89" not in printed(capsys, "show", "m16n8k16", "e4m3", "--target", "sm_90")


# targets


def test_targets(capsys: Capture) -> None:
    facts, text = as_json(capsys, "targets"), printed(capsys, "targets")
    assert [x["name"] for x in facts] == list(TARGETS) == [line.split()[0] for line in text.splitlines()[1:26]]
    for row, line in zip(facts, text.splitlines()[1:], strict=False):
        assert row["mma"] == len(instructions(row["name"])) and f" {row['mma']} " in line
        assert row["generation"] in line
    assert [x["gpus"][0] for x in facts if x["name"] in ("sm_70", "sm_90a", "sm_121f")] == ["V100", "H100", "GB10"]
    assert max(map(len, text.splitlines())) < 120


def test_one_target(capsys: Capture) -> None:
    facts, text = as_json(capsys, "targets", "sm_120a"), printed(capsys, "targets", "sm_120a")
    assert facts in as_json(capsys, "targets") and facts["kinds"] == ["f8f6f4", "mxf8f6f4", "mxf4", "mxf4nvf4"]
    assert "420 of mma" in text and "99 KiB a block" in text


# What they refuse, and need


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["list", "--target", "H100"], "unknown target 'H100'; H100 is sm_90 (sm_90a for wgmma)"),
        (["list", "--type", "e4m4"], "no instruction has type e4m4; did you mean 'e4m3'?"),
        (["list", "--kind", "mxf5"], "no instruction has kind='mxf5', did you mean 'mxf4'?"),
        (["list", "m16n8k17"], "m16n8k17: no such instruction is m16n8k17; did you mean 'm16n8k16'?"),
        (["show", "m16n8k61", "f16"], "m16n8k61 f16: no such instruction is m16n8k61; did you mean 'm16n8k16'?"),
        (
            ["show", "m16n8k32", "e4m3", "--target", "sm_80"],
            "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 is not legal on sm_80; legal on sm_89, ",
        ),
        (["targets", "sm_91"], "unknown target 'sm_91'; did you mean 'sm_90'?"),
    ],
)
def test_refusals(capsys: Capture, arguments: list[str], message: str) -> None:
    assert main(arguments) == 2
    output, error = capsys.readouterr()
    assert error.startswith(f"warpmma: {message}") and error.count("\n") == 1 and not output


@pytest.mark.parametrize("arguments", [["list"], ["targets"], ["list", "sp", "--json"], ["targets", "sm_90", "--json"]])
def test_no_numpy_is_needed(arguments: list[str]) -> None:
    code = "import sys; sys.modules['numpy'] = None; from warpmma.cli import main; raise SystemExit(main(sys.argv[1:]))"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert not done.returncode and done.stdout and not done.stderr
