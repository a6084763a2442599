"""What the package says of itself: classifiers, versions, licences, and pages of policy that agree with each other."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

import pytest

import warpmma as wm

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]
SUPPORTED = (ROOT / "docs" / "supported.md").read_text()


def cell(what: str) -> str:
    """The second cell of a row of the supported versions."""
    [row] = [line for line in SUPPORTED.splitlines() if line.startswith(f"| {what} |")]
    return row.split("|")[2].strip()


def test_versions_of_python_agree() -> None:
    named = re.findall(r"^Programming Language :: Python :: (3\.\d+)$", "\n".join(PROJECT["classifiers"]), re.M)
    assert PROJECT["requires-python"] == f">={named[0]}"
    assert [int(x.split(".")[1]) for x in named] == [*range(11, 11 + len(named))]
    assert cell("Python") == f"CPython {named[0]} to {named[-1]}"


def test_classifiers_are_those_of_the_index() -> None:
    known = pytest.importorskip("trove_classifiers").classifiers
    assert {*PROJECT["classifiers"]} <= known


def test_versions_of_others_agree() -> None:
    least = dict(re.findall(r"(\w+)>=([\d.]+)", "\n".join(PROJECT["dependencies"])))
    assert cell("NumPy") == f"{least['numpy']} or later" and cell("ml_dtypes") == f"{least['ml_dtypes']} or later"
    extras = PROJECT["optional-dependencies"]
    assert re.search(r"triton>=([\d.]+)", extras["triton"][0])[1] in cell("Triton")  # type: ignore[index]
    assert re.search(r"==([\d.]+)", extras["cute"][0])[1] == cell("CuTe DSL")  # type: ignore[index]
    assert re.search(r"==([\d.]+)\.\*", extras["cuda"][0])[1] in cell("CUDA")  # type: ignore[index]


def test_the_version_is_one() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"(?m)^version: (.*)$", citation) == [PROJECT["version"]] == [wm.__version__]
    assert re.findall(r"(?m)^license: (.*)$", citation) == [PROJECT["license"]]


def test_licences_are_those_of_what_is_linked_in() -> None:
    assert [name for name in PROJECT["license-files"] if not any(ROOT.glob(name))] == []
    spec = find_spec("nanobind")
    if spec is None or spec.origin is None:
        pytest.skip("nanobind is not installed")
    [text] = [x for x in distribution("nanobind").files or [] if x.name == "LICENSE"]
    assert (ROOT / "licenses" / "nanobind.txt").read_text() == Path(str(text.locate())).read_text()
    header = Path(spec.origin).parent / "ext" / "robin_map" / "include" / "tsl" / "robin_map.h"
    words = re.sub(r"(?m)^ \*/?", "", header.read_text().partition("#ifndef")[0].removeprefix("/**")).split()
    assert (ROOT / "licenses" / "robin-map.txt").read_text().split() == words


def test_variables_of_the_environment_are_listed() -> None:
    code = "\n".join(path.read_text() for path in (ROOT / "src" / "warpmma").rglob("*.py"))
    read = {*re.findall(r'environ\.get\("(WARPMMA_\w+)"', code)}
    build = {*re.findall(r"if\.env\.(WARPMMA_\w+)", (ROOT / "pyproject.toml").read_text())}
    assert read | build == {*re.findall(r"^\| `(WARPMMA_\w+)", SUPPORTED, re.M)}


def test_archives_are_never_unpickled() -> None:
    """SECURITY.md promises it."""
    assert "**never unpickled**" in (ROOT / "SECURITY.md").read_text()
    for path in (ROOT / "src" / "warpmma").rglob("*.py"):
        text = path.read_text()
        assert not re.search(r"allow_pickle\s*=\s*True|\bpickle\.loads?\b|\bnp\.load\(|\bmarshal\b", text), path


def test_the_workflow_says_that_it_has_not_been_run() -> None:
    text = (ROOT / ".github" / "workflows" / "wheels.yml").read_text()
    assert text.startswith("# NOT RUN YET") and "has not\nbeen run" in (ROOT / "docs" / "wheels.md").read_text()


def test_exceptions_of_the_review_are_argued() -> None:
    ignored = PYPROJECT["tool"]["repo-review"]["ignore"]
    for reason in ignored.values():
        assert reason.removeprefix("As ").rstrip(".") in ignored or len(reason) >= len("Local hooks.")
