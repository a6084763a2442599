"""Pages: what they show runs and gives what they say, commands name what is there, and what kernels have is named."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from sybil import Document
from sybil.parsers.markdown import PythonCodeBlockParser

from warpmma.kernel import Launch, Register, Threads, launch

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "examples" / "README.md", *(ROOT / "docs").rglob("*.md")])
FENCED = re.compile(r"^```(.*)\n((?:.*\n)*?)```$", re.M)
EXTRAS = {"triton.md": "triton.language", "cuda.md": "cuda.bindings", "torch.md": "torch"}
"""Pages that need what an extra brings, or PyTorch, which is in none."""

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))


def blocks(page: Path, language: str) -> list[str]:
    return [text for name, text in FENCED.findall(page.read_text()) if name == language]


@each_page
def test_python_runs(page: Path) -> None:
    """In one namespace for a page, from its top to its end."""
    if page.name in EXTRAS:
        pytest.importorskip(EXTRAS[page.name])
    document = Document.parse(str(page), PythonCodeBlockParser(doctest_optionflags=doctest.NORMALIZE_WHITESPACE))
    examples = list(document)
    assert bool(examples) == bool(blocks(page, "python"))
    for example in examples:
        example.evaluate()


@each_page
def test_blocks_say_what_they_are(page: Path) -> None:
    assert {name for name, _ in FENCED.findall(page.read_text())} <= {"python", "sh", "text"}
    assert page.read_text().count("\n```") == 2 * len(FENCED.findall(page.read_text()))


def test_a_page_that_is_wrong_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for text in ("assert 1 + 1 == 3", ">>> 1 + 1\n3", "undefined"):
        page.write_text(f"# A page\n\n```python\nx = 1\n```\n\nand\n\n```python\n{text}\n```\n")
        with pytest.raises((AssertionError, NameError)):  # SybilFailure is an AssertionError
            test_python_runs(page)


# Commands


@cache
def helped(*command: str) -> str:
    """What a program says about its options."""
    done = subprocess.run([sys.executable, *command, "--help"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def known_options(program: str, arguments: list[str]) -> str:
    match Path(program).name, arguments:
        case "pytest", ["benchmarks", *_]:
            return (ROOT / "benchmarks" / "conftest.py").read_text()
        case "pytest", _:
            return helped("-m", "pytest")
        case "pip", [command, *_]:
            return helped("-m", "pip", command)
        case "python" | "python3", ["-m", module, *_]:
            return "-m " + helped("-m", module)
        case "python" | "python3", [script, *_]:
            return helped(script)
        case "warpmma", ["ptx", action, *_]:
            return helped("-m", "warpmma", "ptx", action)
        case "warpmma", [command, *_]:
            return helped("-m", "warpmma", command)
    raise AssertionError(f"a page names the program {program}")


def wrong(command: str, defined: str = "") -> Iterator[str]:
    """Options, files and extras in a command that are not there; a page may define a file that it names."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for part in command.replace("\n", " && ").split(" && "):
        program, *arguments = part.split()
        options = known_options(program, arguments)
        for word in arguments:
            name = word.partition("=")[0]
            if name.startswith("-") and not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", options):
                yield word
            if word.endswith(".py") and not (ROOT / word).exists() and f"`{word}`" not in defined:
                yield word
            if found := re.fullmatch(r"'\.\[(.*)\]'", word):
                yield from set(found[1].split(",")) - set(extras)


COMMANDS = [(page, block.strip()) for page in PAGES for block in blocks(page, "sh")]


@pytest.mark.parametrize(("page", "command"), COMMANDS, ids=lambda x: x.name if isinstance(x, Path) else None)
def test_commands_name_what_is_there(page: Path, command: str) -> None:
    assert list(wrong(command, page.read_text())) == []


def test_commands_are_found_and_their_mistakes_noticed() -> None:
    assert {page.name for page, _ in COMMANDS} >= {"README.md", "testing.md"} and len(COMMANDS) >= 7
    command = "python3 -m venv .venv && .venv/bin/pip install --quit '.[test,tests]' && .venv/bin/pytest --all-oracle"
    assert list(wrong(command)) == ["--quit", "tests", "--all-oracle"]
    assert list(wrong("python tools/compare_engines.py --none\npytest benchmarks --checks\npytest test_x.py")) == [
        "--none", "--checks", "test_x.py",
    ]  # fmt: skip


@each_page
def test_paths_lead_somewhere(page: Path) -> None:
    text = page.read_text()
    # What is under benchmarks/results a run of the benchmarks leaves there.
    named = re.findall(r"`((?:src|tests|tools|docs|examples|benchmarks)/(?!results)[\w./]+)`", text)
    prose = re.sub("`[^`]*`", "", FENCED.sub("", text))  # in Python `kernel[grid](x)` is a launch
    linked = [page.parent / link for link in re.findall(r"\]\((?!https?:)([^)#]+)\)", prose)]
    assert [str(x) for x in (*(ROOT / name for name in named), *linked) if not x.exists()] == []


# What kernels have


def public(thing: object) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


def in_a_kernel() -> tuple[Threads, Register, Launch]:
    seen: list[Any] = []
    report = launch(lambda t: seen.extend([t, t.laneid]), 1, 32, [], target="sm_90")
    return seen[0], seen[1], report


def test_everything_that_kernels_have_is_named() -> None:
    """Attributes of the threads, of a register and of the report; and special registers and instructions of memory."""
    page = (ROOT / "docs" / "kernels.md").read_text()
    threads, register, report = in_a_kernel()
    written = {f"t.{name}" for name in public(threads)} | {f".{name}" for name in public(register)}
    written |= {f"report.{name}" for name in public(report)}
    assert {name for name in written if not re.search(rf"(?<!\w){re.escape(name)}\b", page)} == set()
    for mnemonic in ("ld", "st", "ldmatrix", "stmatrix", "cp.async.wait_group", "bar.warp.sync", "shfl.sync"):
        assert f"`{mnemonic}`" in page
