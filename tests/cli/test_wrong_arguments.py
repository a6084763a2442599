"""Whatever is written behind a command: a result and status 0 or 1, or one line and status 2; never a traceback."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest
from cli_cases import Capture
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import warpmma as wm
from warpmma.cli import main
from warpmma.cli.command_line import COMMANDS, parser_of

WORDS = (
    "m16n8k16", "m16n8k8", "m16n8k32", "m8n8k4", "m64n8k16", "m16n8k17", "f16", "bf16", "e4m3", "s8", "f64", "b1", "sp",
    "dense", "wgmma", "mxf4", "nvfp4", "4X", "satfinite", "xor", "rz", "row", "col", "a=e4m3", "d=f16", "m=16", "fp16",
    "fp8", "foo", "", ".", "::", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "HMMA.16816.F32", "𝟙", "\udcff",
    "A", "B", "D", "metadata", "scale_a", "a", "Q", "0", "3", "5", "15", "-1", "99999999999999999999", "1e3", "0x10",
    "A.npy", "B.npy", "C.npy", "none.npy", "junk.npy", "sm_90", "sm_80", "sm_120a", "H100", "sm_0",
)  # fmt: skip
OPTIONS = (
    "--target", "--against", "--json", "--color", "--type", "--kind", "--sparse", "--dense", "--mnemonics",
    "--selector",
    "--byte-id", "--thread-id", "--lane", "--register", "--by", "--format", "--matrix", "--row", "--column", "--a",
    "--b", "--c", "--cast", "--split-k", "--promote-every", "--epilogue", "--rtol", "--atol", "--threads", "--metadata",
    "--indices", "--scale-a", "--scale-b", "--undefined", "--none", "-x", "--", "--target=sm_90", "--target=",
    "--json=1", "--advise", "--worst", "--all", "-h", "--load", "--at",
)  # fmt: skip
VALUES = ("element", "lane", "csv", "json", "svg", "markdown", "always", "never", "0.5", "2^-24", "nan", "1 2 3", "-2")
QUIET = sorted(set(COMMANDS) - {"run", "explore", "verify", "ptx", "compare", "record", "contribute"})
"""Those that write no file unless they are told to, and that are done at once."""

arguments = st.lists(st.sampled_from(WORDS + OPTIONS + VALUES), max_size=9)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files")
    for name, shape in (("A", (16, 16)), ("B", (16, 8)), ("C", (16, 8))):
        np.save(path / f"{name}.npy", np.ones(shape, np.float16 if name != "C" else np.float32))
    (path / "junk.npy").write_text("junk")
    (path / "map.bin").write_bytes(bytes(wm.TensorMap(0x400, (16, 64), type="f16", shape=(100, 128), swizzle=128)))
    return path


def ended(*words: str) -> tuple[int, str, str]:
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        try:
            status = main(words)
        except SystemExit as end:
            status = int(str(end.code or 0))
    return status, out.getvalue(), err.getvalue()


def check(*words: str) -> None:
    status, out, err = ended(*words)
    assert status in (0, 1, 2) and "Traceback" not in err, err
    if status == 2:
        assert not out and err.count("\n") == 1 and err.startswith("warpmma") and len(err) < 2500
    elif "--json" in words and "-h" not in words and out.startswith(("{", "[")):
        json.loads(out)


@pytest.mark.parametrize("command", QUIET)
@settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=arguments)
@example(words=[])
@example(words=["m16n8k16", "f16", "--target", "sm_70"])
@example(words=["\udcff"])
def test_whatever_is_written(command: str, words: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    check(command, *words)
    assert len(list(folder.iterdir())) == 5


RIGHT = {
    "list": ["m16n8k16"], "show": ["m16n8k16", "f16"], "where": ["m16n8k16", "f16", "A", "3", "5"],
    "what": ["m16n8k16", "f16", "A", "--lane", "14"], "layout": ["m16n8k16", "f16", "A"], "targets": ["sm_90"],
    "descriptor": ["0x4000004000000040", "--instruction", "m64n8k16", "f16", "f32", "dense"],
    "evidence": ["m16n8k16", "f16"], "execute": ["m16n8k16", "f16", "A.npy", "B.npy", "--target", "sm_90"],
    "explain": ["m16n8k16", "f16", "--target", "sm_90", "--a", "1", "--b", "2"],
    "error": ["m16n8k16", "f16", "A.npy", "B.npy", "--target", "sm_90"], "completion": ["bash"],
    "tensormap": ["map.bin", "--load", "0,64"],
}  # fmt: skip


def test_every_command_is_tried() -> None:
    assert set(RIGHT) == set(QUIET)


@pytest.mark.parametrize("command", QUIET)
@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_what_is_nearly_right(command: str, data: st.DataObject, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    words = list(RIGHT[command])
    at = data.draw(st.integers(0, len(words)))
    words[at : at + data.draw(st.integers(0, 1))] = data.draw(st.lists(st.sampled_from(WORDS + OPTIONS), max_size=2))
    check(command, *words)


@pytest.mark.parametrize("command", QUIET)
def test_json_everywhere(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    if command == "completion":  # what it prints is for shells
        return
    status, out, _ = ended(command, *RIGHT[command], "--json")
    assert status == 0 and json.loads(out)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_no_wider_than_a_terminal(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    status, out, err = ended(command, "--help")
    assert (status, err) == (0, "") and out.startswith(f"usage: warpmma {command} ")
    assert max(map(len, out.splitlines())) < 120
    assert parser_of(command).description


def test_a_command_that_is_not_there(capsys: Capture) -> None:
    assert ended("exlpain")[2].startswith(
        "warpmma: unknown command 'exlpain'; did you mean 'explain'?; commands: list, "
    )
