"""Blocks of code of the pages: what they are, and how each is run.

1. A block stands between fences at the beginning of a line, and says what it is: `python`, `console`, `sh` or `text`.
2. All blocks of a page run from its top to its end, in one namespace and in one empty folder, in which the folders of
   the repository stand. What an earlier block defined or wrote is there for a later one.
3. `python` runs; with prompts it is a doctest, in which white space counts as one blank.
4. `console` has commands, each behind `$ `, and after each what it prints on both streams, every character but blanks
   at the end of a line. A line `...` stands for any lines, and ` ...` at the end of a line for the rest of it. A
   command succeeds, or its failure is seen: a message of warpmma, an error, `failed`, or `$ echo $?` comes next.
   `warpmma` itself runs in this process, whatever has a pipe or the like in a shell.
5. `sh` has commands, one a line, that succeed; what they print is not looked at.
6. `text` is what something printed, and a mark says what.
7. Marks are comments, one a line, before the block's first fence; neither GitHub nor the site shows them.
   `<!-- file: NAME -->` writes the block into a file instead, which a later block must use;
   `<!-- printed -->` compares a text with what the last block of Python printed, as in 4;
   `<!-- output: COMMAND -->` compares it with the end of what a command prints, as in 4;
   `<!-- needs: MODULE -->` leaves the block out where a module, or one of several with ", " between them, is not
   installed (CI's second step has most); with an empty line behind it, it holds for all blocks of the page that have
   no such mark;
   `<!-- not run: REASON -->` has a reason of `REASONS`, each of which can be wrong.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib.util
import io
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warpmma.cli import main

__all__ = ["LANGUAGES", "REASONS", "Block", "Page", "blocks", "commands", "installed", "mistakes", "needs", "same"]

ROOT = Path(__file__).parents[2]
LANGUAGES = ("python", "console", "sh", "text")
MARKS = ("file", "printed", "output", "needs", "not run")
REASONS = {
    "installs": r"\bpip install\b",
    "a GPU": r"-m lab\.(?:compare|record)\.|\brun_twins\.py\b|^warpmma (?:compare|record|contribute)\b",
    "takes minutes": r"\b(?:benchmarks\b|pytest\b)|-m (?:lab|tests)\.|^\.ci/run$",
    "files of yours": r"~/|\blaunches\.npz\b|-m pytest$",
    "a notation": r"^(?!\$ )",
}
"""Why a block is not run, and what stands in every line of one of which that is true."""

_FENCED = re.compile(r"^(?P<marks>(?:<!-- .* -->\n)*)```(?P<language>.*)\n(?P<text>(?:.*\n)*?)```$", re.M)
_MARK = re.compile(r"<!-- (.*?)(?:: (.*))? -->")
_SHELL = re.compile(r"[|<>&;*~$`(){}]")


@dataclass(frozen=True)
class Block:
    """A block of code: its language, its text, the line of its first fence, and its marks."""

    language: str
    text: str
    line: int
    marks: dict[str, str] = field(default_factory=dict)


def blocks(text: str) -> list[Block]:
    """All blocks of a page."""
    whole = dict(_MARK.findall("\n".join(re.findall(r"^<!-- needs: .* -->$(?=\n\n)", text, re.M))))
    return [
        Block(
            found["language"],
            found["text"],
            text.count("\n", 0, found.start("language")) + 1,
            {name: value or "" for name, value in [*whole.items(), *_MARK.findall(found["marks"])]},
        )
        for found in _FENCED.finditer(text)
    ]


def commands(text: str) -> list[tuple[str, str]]:
    """Commands of a console, and what each prints."""
    found: list[tuple[str, str]] = []
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("$ "):
            command = line[2:]
            while command.endswith("\\"):
                command = command[:-1] + next(lines).removeprefix("> ").strip()
            found.append((command, ""))
        elif found:
            found[-1] = found[-1][0], found[-1][1] + line + "\n"
        else:
            raise AssertionError(f"a console begins with a command, not with {line!r}")
    return found


def same(shown: str, printed: str, *, end: bool = False) -> bool:
    """Whether what a page shows is what was printed, or its end."""
    want = [line.rstrip() for line in shown.strip("\n").splitlines()]
    have = "\n".join(line.rstrip() for line in printed.strip("\n").splitlines()) + "\n"
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "..."
        else re.escape(line[:-3]) + r".*\n" if line.endswith(" ...")
        else re.escape(line) + r"\n"
        for line in want
    )  # fmt: skip
    return re.fullmatch((r"(?:.*\n)*?" if end else "") + (pattern or r"\n"), have) is not None


def needs(page: str) -> tuple[str, ...]:
    """Modules that some of a page's blocks need."""
    return tuple(dict.fromkeys(module for block in blocks(page) if (module := block.marks.get("needs"))))


def installed(modules: str) -> bool:
    """Whether all modules of a mark are there."""
    try:
        return all(importlib.util.find_spec(module) is not None for module in modules.split(", "))
    except (ImportError, ValueError):
        return False


def mistakes(page: str) -> list[str]:
    """What is wrong with a page's blocks before any of them runs."""
    found, all_blocks = [], blocks(page)
    if len(re.findall(r"^\s*(?:```|~~~)", page, re.M)) != 2 * len(all_blocks):
        found.append("a fence is indented, or has no partner")
    for i, block in enumerate(all_blocks):
        where, reason = f"line {block.line}: ", block.marks.get("not run")
        if block.language not in LANGUAGES:
            found.append(f"{where}no language of {', '.join(LANGUAGES)}: {block.language!r}")
        found += [f"{where}no mark: {name!r}" for name in block.marks if name not in MARKS]
        if reason is not None and not all(re.search(REASONS.get(reason, "$^"), x) for x in block.text.splitlines()):
            found.append(f"{where}that is no reason, or not true: {reason!r}")
        if block.language == "text" and not block.marks.keys() & {"file", "printed", "output", "not run"}:
            found.append(f"{where}a text says what printed it")
        if block.marks.keys() & {"printed", "output"} and block.language != "text":
            found.append(f"{where}only a text is what was printed")
        name = block.marks.get("file")
        if name is not None and not any(name in later.text for later in all_blocks[i + 1 :]):
            found.append(f"{where}no later block uses {name!r}")
    return found


class Page:
    """A page that is run: its namespace, what was printed last, and the status of the last command."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.path, self.folder = path, folder
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.printed, self.status = "", 0
        for entry in ROOT.iterdir():
            if entry.is_dir() and not entry.name.startswith(".") and entry.name not in ("build", "site"):
                (folder / entry.name).symlink_to(entry)

    def run(self) -> int:
        """Run the page's blocks, in its folder, which the caller entered and can import from; how many were run."""
        modules = set(sys.modules)
        try:
            return sum(map(self._run, blocks(self.path.read_text())))
        finally:
            for name in sys.modules.keys() - modules:
                if str(getattr(sys.modules[name], "__file__", "")).startswith(str(self.folder)):
                    del sys.modules[name]

    def _run(self, block: Block) -> bool:
        if "file" in block.marks:
            (self.folder / block.marks["file"]).write_text(block.text)
        elif "not run" not in block.marks and installed(block.marks.get("needs", "sys")):
            getattr(self, f"_run_{block.language}")(block)
            return True
        return False

    def _run_python(self, block: Block) -> None:
        if re.search(r"^\s*>>> ", block.text, re.M):
            return self._run_doctest(block)
        # The lines are those of the page, where tracebacks and kernels find them.
        code = compile("\n" * block.line + block.text, str(self.path), "exec", dont_inherit=True)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(code, self.names)
        self.printed = out.getvalue()
        return None

    def _run_doctest(self, block: Block) -> None:
        name = f"{self.path.name}:{block.line}"
        test = doctest.DocTestParser().get_doctest(block.text, self.names, name, str(self.path), block.line)
        test.globs, said = self.names, io.StringIO()
        runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
        runner.run(test, out=said.write, clear_globs=False)
        if runner.failures:
            raise AssertionError(said.getvalue())

    def _run_console(self, block: Block) -> None:
        every, where = commands(block.text), f"{self.path.name}:{block.line}"
        for (command, shown), after in zip(every, [*every[1:], ("", "")], strict=True):
            printed = self._command(command)
            if not same(shown, printed):
                raise AssertionError(
                    f"{self.path.name}:{block.line}: $ {command}\nshown:\n{shown}\nprinted:\n{printed}"
                )
            seen = re.search(r"(?m)^warpmma.*: |\b[Ee]rror\b|\bfailed\b", shown) or after[0] == "echo $?"
            if self.status and (self.status == 3 or not seen):
                raise AssertionError(f"{where}: $ {command}\nends with {self.status}: {printed}")

    def _run_sh(self, block: Block) -> None:
        for line in block.text.replace("\\\n", " ").splitlines():
            printed = self._command(line)
            if self.status:
                raise AssertionError(f"{self.path.name}:{block.line}: {line}\nends with {self.status}: {printed}")

    def _run_text(self, block: Block) -> None:
        end = "output" in block.marks
        printed = self._command(block.marks["output"]) if end else self.printed
        if not same(block.text, printed, end=end):
            raise AssertionError(f"{self.path.name}:{block.line}\nshown:\n{block.text}\nprinted:\n{printed}")

    def _command(self, command: str) -> str:
        """What a command prints on both streams, as a terminal of 80 columns shows it that takes no colours."""
        if command == "echo $?":
            status, self.status = self.status, 0
            return f"{status}\n"
        inside = command.split(maxsplit=1)[0] == "warpmma" and not _SHELL.search(re.sub(r"'[^']*'", "", command))
        self.status, printed = (_in_process if inside else _in_a_shell)(command)
        return printed


def _in_process(command: str) -> tuple[int, str]:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, "utf-8", write_through=True)
    before, os.environ["COLUMNS"] = os.environ.get("COLUMNS"), "80"
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                status = main(shlex.split(command, comments=True)[1:])
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        os.environ.pop("COLUMNS")
        if before is not None:
            os.environ["COLUMNS"] = before
    return status, raw.getvalue().decode()


def _in_a_shell(command: str) -> tuple[int, str]:
    python = shlex.quote(sys.executable)
    programs = {"python": python, "pytest": f"{python} -m pytest", "warpmma": f"{python} -m warpmma"}
    functions = "".join(f'{name}() {{ {text} "$@"; }}\n' for name, text in programs.items())
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "COV_"))} | {"COLUMNS": "80"}
    # Of pytest's plugins those that pages use: to look for all that are installed takes as long as a page's tests.
    kept |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "warpmma.testing.plugin,_hypothesis_pytestplugin"}
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", functions + command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL, text=True, env=kept,
    )  # fmt: skip
    return done.returncode, done.stdout
