"""What shells are told can stand at a place, and that real shells make it so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli_cases import Capture

from warpmma.cli import main
from warpmma.cli.command_line import COMMANDS
from warpmma.cli.commands.completion_command import candidates
from warpmma.isa import TARGETS, MatrixInstruction, every_fitting, instructions, warpgroup_instructions

EVERY: tuple[MatrixInstruction, ...] = (*instructions(), *warpgroup_instructions())


def offered(*words: str) -> list[str]:
    return [word for word, _ in candidates(words).words]


def test_commands() -> None:
    assert offered("") == [*COMMANDS] and offered("ex") == ["explore", "execute", "explain"]
    assert offered("--v") == ["--version"] and offered("nothing", "") == []
    assert all(what for _, what in candidates([""]).words)


def test_instructions() -> None:
    assert offered("show", "m8n8k4", "f64", "r") == ["rn", "rz", "rm", "rp"]
    assert offered("show", "m16n8k16", "b") == ["bf16"] and offered("show", "BF") == ["bf16"]
    assert offered("show", "kind::mxf4") == ["kind::mxf4", "kind::mxf4nvf4"]
    assert offered("show", "m16n8k128", "xor", "") == [] == offered("show", "fooo", "")
    assert offered("show", "mma.sync.aligned.m16n8k4.") == [
        "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32",
        *("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64" + x for x in ("", ".rn", ".rz", ".rm", ".rp")),
    ]
    assert "wgmma" in offered("show", "") and offered("show", "w") == ["wgmma"]
    assert offered("list", "m64n256k1") == ["m64n256k16"]


@pytest.mark.parametrize("words", ["", "m16n8k16", "e4m3", "sp f16", "mxf4nvf4"])
def test_what_is_offered_leaves_some_and_not_all(words: str) -> None:
    before = words.split()
    left = every_fitting(before) if before else EVERY
    found = offered("show", *before, "")
    assert found and len(set(found)) == len(found)
    assert all(0 < len(every_fitting([*before, word])) < len(left) for word in found)


def test_options_and_their_values() -> None:
    assert offered("list", "--sp") == ["--sparse"] and "--sparse" not in offered("list", "--sparse", "--")
    assert offered("list", "--target", "sm_12") == [t for t in TARGETS if t.startswith("sm_12")]
    assert offered("list", "--kind", "mxf4") == ["mxf4", "mxf4nvf4"] and offered("list", "--type", "e2") == [
        "e2m3",
        "e2m1",
    ]
    assert offered("show", "f16", "--color", "") == ["auto", "always", "never"]
    assert offered("targets", "sm_9") == ["sm_90", "sm_90a"] and offered("targets", "sm_90", "") == []
    assert offered("ptx", "") == ["check"] and offered("completion", "") == ["bash", "zsh", "fish"]


def test_files() -> None:
    assert candidates(["verify", ""]).files and candidates(["ptx", "check", ""]).files
    assert candidates(["execute", "m16n8k16", "f16", "A.npy", ""]).files
    assert candidates(["error", "A.npy", ""]).words and candidates(["explain", "m16n8k16", "f16", "--a", ""]).files
    assert not candidates(["show", "m16n8k16", ""]).files


def test_operands() -> None:
    assert offered("where", "m16n8k16", "f16", "dense", "f32", "") == ["A", "B", "C", "D"]
    assert offered("layout", "m16n8k32", "f16", "f32", "m") == ["metadata"]
    assert offered("what", "nvfp4", "dense", "s") == ["scale_a", "scale_b"]
    assert offered("where", "m16n8k16", "f16", "A", "") == []


def test_nothing_is_loaded_for_the_most_common() -> None:
    code = (
        "import sys; sys.modules['numpy'] = None\nfrom warpmma.cli import main\n"
        "raise SystemExit(main(['completion', 'candidates', '--', 'list', 'm16n8k16', '--target', 'sm_9']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "words\nsm_90\tHopper\nsm_90a\tHopper\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_asks_the_command(capsys: Capture, shell: str) -> None:
    assert main(["completion", shell]) == 0
    assert "completion candidates -- " in capsys.readouterr().out


# Real shells


@pytest.fixture
def shell(tmp_path: Path) -> dict[str, str]:
    """A folder with the command, and a file to be found."""
    command = tmp_path / "bin" / "warpmma"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m warpmma "$@"\n')
    command.chmod(0o755)
    (tmp_path / "A32.npy").touch()
    return os.environ | {
        "PATH": f"{command.parent}:{os.environ['PATH']}",
        "XDG_CONFIG_HOME": str(tmp_path),
        "HOME": str(tmp_path),
    }


LINES = {
    "warpmma sho": ["show"],
    "warpmma show m16n8k16 b": ["bf16"],
    "warpmma list --target sm_90": ["sm_90", "sm_90a"],
}


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash(shell: dict[str, str], tmp_path: Path) -> None:
    lines = LINES | {
        "warpmma show kind::mxf8": ["mxf8f6f4"],
        "warpmma show 'quoted": [],
    }  # bash keeps what is before ":"
    asked = "".join(
        f'COMP_LINE={line!r} COMP_POINT={len(line)}; COMPREPLY=(); _warpmma; echo "${{COMPREPLY[@]}}"\n'
        for line in lines
    )
    script = f'eval "$(warpmma completion bash)"\ncomplete -p warpmma\n{asked}'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=shell, cwd=tmp_path)
    first, *found = done.stdout.splitlines()
    assert first == "complete -F _warpmma warpmma" and not done.stderr.replace("compopt: not currently executing", "")
    assert [line.split() for line in found] == list(lines.values())


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish")
def test_fish(shell: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "fish" / "completions"
    folder.mkdir(parents=True)
    script = subprocess.run(["warpmma", "completion", "fish"], capture_output=True, text=True, env=shell)
    (folder / "warpmma.fish").write_text(script.stdout)
    lines = LINES | {"warpmma show kind::mxf8": ["kind::mxf8f6f4"], "warpmma execute m16n8k16 f16 A3": ["A32.npy"]}
    for line, expected in lines.items():
        done = subprocess.run(
            ["fish", "-c", f"complete -C '{line}'"], capture_output=True, text=True, env=shell, cwd=tmp_path
        )
        assert [x.split("\t")[0] for x in done.stdout.splitlines()] == expected


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh")
def test_zsh_reads_the_script(shell: dict[str, str], tmp_path: Path) -> None:
    code = 'autoload -U compinit; compinit -u -d dump; eval "$(warpmma completion zsh)"; print $_comps[warpmma]'
    done = subprocess.run(["zsh", "-f", "-c", code], capture_output=True, text=True, env=shell, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("_warpmma\n", "")
