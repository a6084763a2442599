"""Pages: what they show runs and gives what they say, commands name what is there, and what kernels have is named."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from help_texts import help_of
from kept_constants import share_constants
from page_blocks import Page, blocks, installed, mistakes, needs

import warpmma as wm
from warpmma.kernel import Launch, Register, Threads, launch

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "examples" / "README.md", *(ROOT / "docs").rglob("*.md")])
PAGES.append(ROOT / "CONTRIBUTING.md")

NEEDY = {page: wanted for page in PAGES if (wanted := needs(page.read_text()))}
"""Pages that need what an extra brings, or PyTorch, which is in none."""

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))


def absent(page: Path) -> list[str]:
    return [module for module in NEEDY.get(page, ()) if not installed(module)]


def of_language(page: Path, language: str) -> list[str]:
    return [block.text for block in blocks(page.read_text()) if block.language == language]


def run(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    share_constants(folder)
    return Page(page, folder).run()


@each_page
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one namespace and one folder for a page, from its top to its end, without those that need what is absent."""
    if page in NEEDY and not absent(page):
        pytest.skip("all of its blocks run in the next test")
    if not run(page, tmp_path, monkeypatch) and absent(page):
        pytest.skip(f"{page.name} needs {', '.join(absent(page))}")


@pytest.mark.parametrize("page", NEEDY, ids=lambda path: str(path.relative_to(ROOT)))
def test_all_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As above, of pages that need more than the tests do: CI's second step runs these."""
    if absent(page):
        pytest.skip(f"{page.name} needs {', '.join(absent(page))}")
    run(page, tmp_path, monkeypatch)


@each_page
def test_blocks_say_what_they_are(page: Path) -> None:
    assert mistakes(page.read_text()) == []


@pytest.mark.parametrize(
    ("block", "error"),
    [
        ("```python\nassert 1 + 1 == 3\n```", AssertionError),
        ("```python\n>>> x + 1\n3\n```", AssertionError),
        ("```python\nundefined\n```", NameError),
        ("```python\nprint(x)\n```\n\n<!-- printed -->\n```text\n2\n```", AssertionError),
        ("```console\n$ warpmma --version\nwarpmma\n```", AssertionError),
        ("```console\n$ cat file.txt\nfour\n```", AssertionError),
        ("```console\n$ cat none.txt\ncat: none.txt: No such file or directory\n```", AssertionError),
        ("```console\n$ false\n$ echo $?\n0\n```", AssertionError),
        ("```console\nwarpmma\n```", AssertionError),
        ("```sh\nfalse\n```", AssertionError),
        ("<!-- output: printf 'a\\nb' -->\n```text\na\n```", AssertionError),
    ],
)
def test_a_page_that_is_wrong_is_noticed(
    block: str, error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, folder = tmp_path / "page.md", tmp_path / "folder"
    folder.mkdir()
    right = f"""# A page

```python
x = 1
print("one\\ntwo words")
```

<!-- printed -->
```text
one
two ...
```

<!-- file: file.txt -->
```text
three
```

```console
$ cat file.txt \\
>   | cat
three
$ warpmma --version
warpmma {wm.__version__}
$ warpmma --none
...
warpmma: ...
$ false
$ echo $?
1
```

```sh
test -f file.txt
```

<!-- output: printf 'a\\nb' -->
```text
b
```

<!-- needs: no_such_module -->
```python
import no_such_module
```

"""
    page.write_text(right)
    assert mistakes(right) == []
    run(page, folder, monkeypatch)
    page.write_text(right + block + "\n")
    (folder / "again").mkdir()
    with pytest.raises(error):
        run(page, folder / "again", monkeypatch)


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("```json\n{}\n```", "no language"),
        ("```\nx\n```", "no language"),
        ("* a\n\n  ```python\n  x\n  ```", "indented"),
        ("```text\nx\n```", "a text says"),
        ("<!-- skip -->\n```python\nx\n```", "no mark"),
        ("<!-- not run: too long -->\n```python\nx\n```", "no reason"),
        ("<!-- not run: installs -->\n```sh\nwarpmma --version\n```", "not true"),
        ("<!-- not run: a GPU -->\n```console\n$ warpmma verify\n```", "not true"),
        ("<!-- not run: a notation -->\n```text\n$ warpmma verify\n```", "not true"),
        ("<!-- printed -->\n```console\n$ true\n```", "only a text"),
        ("<!-- file: a.py -->\n```python\nx\n```", "uses"),
    ],
)
def test_a_mistake_is_noticed_before_anything_runs(text: str, mistake: str) -> None:
    assert len(mistakes(text)) == 1 and mistake in mistakes(text)[0]


# Commands


def pip_help(command: str) -> str:
    """Return what pip says of a command: this environment's, or the machine's where a wheel is tried without one."""
    if installed("pip"):
        return help_of("-m", "pip", command)
    if not (found := shutil.which("pip")):
        pytest.skip("no pip here, which knows its options")
    own = {name: x for name, x in os.environ.items() if not name.startswith("PYTHON")}  # it has another Python
    done = subprocess.run([found, command, "--help"], capture_output=True, text=True, env=own)
    assert done.returncode == 0, done.stderr
    return done.stdout


def known_options(program: str, arguments: list[str]) -> str:
    match Path(program).name, arguments:
        case "pytest", ["benchmarks", *_]:
            return (ROOT / "benchmarks" / "conftest.py").read_text()
        case "pytest", _:
            return help_of("-m", "pytest")
        case "pip", [command, *_]:
            return pip_help(command) + " --group"  # from pip 25.1 on; older ones may run this test
        case "python" | "python3", ["-m", module, *_]:
            return "-m " + help_of("-m", module)
        case "python" | "python3", [script, *_]:
            return help_of(script)
        case "warpmma", ["ptx", action, *_]:
            return help_of("-m", "warpmma", "ptx", action)
        case "warpmma", [command, *_]:
            return help_of("-m", "warpmma", command)
        case "run", []:
            return (ROOT / ".ci" / "run").read_text()
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


COMMANDS = [(page, block.strip()) for page in PAGES for block in of_language(page, "sh")]


@pytest.mark.parametrize(("page", "command"), COMMANDS, ids=lambda x: x.name if isinstance(x, Path) else None)
def test_commands_name_what_is_there(page: Path, command: str) -> None:
    assert list(wrong(command, page.read_text())) == []


def test_commands_are_found_and_their_mistakes_noticed() -> None:
    assert {page.name for page, _ in COMMANDS} >= {"README.md", "testing.md"} and len(COMMANDS) >= 7
    assert list(wrong("python -m lab.check.engines --none\npytest benchmarks --checks\npytest test_x.py")) == [
        "--none", "--checks", "test_x.py",
    ]  # fmt: skip
    command = "python3 -m venv .venv && .venv/bin/pip install --quit '.[test,tests]' && .venv/bin/pytest --all-oracle"
    assert list(wrong(command)) == ["--quit", "tests", "--all-oracle"]


@each_page
def test_paths_lead_somewhere(page: Path) -> None:
    text = page.read_text()
    # What is under benchmarks/results a run of the benchmarks leaves there.
    named = re.findall(r"`((?:src|tests|lab|docs|examples|benchmarks)/(?!results)[\w./]+)`", text)
    # In Python `kernel[grid](x)` is a launch.
    prose = re.sub("`[^`]*`", "", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))
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
