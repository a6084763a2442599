"""`_native.pyi`, which type checkers read, says what the extension has; and its numbers are those of the records."""

from __future__ import annotations

import ast
import re
from enum import IntEnum
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import warpmma
from warpmma._rounding import Rounding
from warpmma.arithmetic import SPECIAL_FUNCTIONS, Unit
from warpmma.arithmetic.dispatch import native
from warpmma.arithmetic.recipes.sequences import OperandScaling

pytestmark = pytest.mark.skipif(not native.levels(), reason="warpmma was installed without its native engine")
_native: Any = native._native

STUB = ast.parse((Path(warpmma.__file__).parent / "_native.pyi").read_text())
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}
FUNCTIONS = {node.name: node for node in STUB.body if isinstance(node, ast.FunctionDef)}


def public(x: Any) -> set[str]:
    return {name for name in dir(x) if not name.startswith("_")}


def fields(node: ast.ClassDef) -> dict[str, str]:
    """Return what a class of the stub declares, as name: type."""
    return {
        part.target.id: ast.unparse(part.annotation)
        for part in node.body
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
    }


def test_the_stub_names_what_is_bound() -> None:
    assert public(_native) == set(CLASSES) | set(FUNCTIONS)


@pytest.mark.parametrize(
    "name",
    [
        "Format",
        "Table",
        "Parameters",
        "Plan",
        "Scaling",
        "Step",
        "Kept",
        "FunctionParameters",
        "FunctionPlan",
        "ElementParameters",
        "ElementPlan",
    ],
)
def test_the_stub_has_the_fields_that_are_bound(name: str) -> None:
    """Nanobind writes a getter's type into its docstring's first line: `(self) -> int`."""
    kind = getattr(_native, name)
    bound = {
        field: re.sub(r"[\w.]+\.", "", getattr(kind, field).fget.__doc__.splitlines()[0].partition(" -> ")[2])
        for field in public(kind)
    }
    assert fields(CLASSES[name]) == bound


@pytest.mark.parametrize("name", ["Unit", "Rounding", "Law", "After", "ElementOp", "Element", "Comparison"])
def test_the_stub_has_the_names_of_enumerations(name: str) -> None:
    listed = [part.targets[0].id for part in CLASSES[name].body if isinstance(part, ast.Assign)]  # type: ignore[attr-defined]
    kind = getattr(_native, name)
    assert issubclass(kind, IntEnum) and listed == [x.name for x in kind]
    assert [ast.unparse(base) for base in CLASSES[name].bases] == ["IntEnum"]


def test_the_stub_has_as_many_arguments() -> None:
    for name, node in FUNCTIONS.items():
        says = getattr(_native, name).__doc__.splitlines()[0].partition(") -> ")[0]
        assert len(node.args.posonlyargs) == says.count("arg"), name


def test_enumerations_are_those_of_the_records() -> None:
    assert {x.name for x in _native.Unit} == {unit.__name__ for unit in get_args(Unit)}
    assert {x.name for x in _native.Rounding} == set(get_args(Rounding))
    assert {x.name for x in _native.Law} == {function.law for function in SPECIAL_FUNCTIONS.values()}
    assert {x.name for x in _native.After} == set(get_args(get_type_hints(OperandScaling)["after"]))
