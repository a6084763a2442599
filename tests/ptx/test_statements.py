"""Statements that are accepted or refused, like ptxas."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from oracles import needs
from ptx_statements import REFUSED, TAKEN, kernel, kernels
from ptxas_cases import verdict

from warpmma import ptx
from warpmma.errors import PtxError


def said(text: str) -> str:
    """What is said against a text, if anything."""
    try:
        return "\n".join(str(x) for entry in ptx.load(text).check().entries for x in entry.problems)
    except PtxError as error:
        return str(error)


@pytest.mark.parametrize("statement", TAKEN)
def test_statements_that_are_taken(statement: str) -> None:
    assert said(kernel(statement)) == ""


@pytest.mark.parametrize(("statement", "message"), REFUSED.items())
def test_statements_that_are_refused(statement: str, message: str) -> None:
    assert message in said(kernel(statement))


def refused_by_ptxas(statements: Sequence[str]) -> set[str]:
    """Find statements that ptxas refuses: it names their lines, or is asked for fewer, until it assembles the rest."""
    text, lines = kernels(statements)
    why = verdict(text)
    named = {lines[int(line)] for line in re.findall(r"line (\d+); (?:error|fatal)", why)}
    if not why or len(statements) == 1:
        return set(statements) if why else set()
    if named:
        return named | refused_by_ptxas([x for x in statements if x not in named])
    half = len(statements) // 2
    return refused_by_ptxas(statements[:half]) | refused_by_ptxas(statements[half:])


@needs("ptxas")
def test_ptxas_takes_the_same_statements() -> None:
    """Behind each that it refuses is one that it takes: an error whose consequences are in other kernels is seen."""
    among = TAKEN[:: len(TAKEN) // len(REFUSED)][: len(REFUSED)]
    mixed = [x for pair in zip(REFUSED, among, strict=True) for x in pair]
    assert refused_by_ptxas([*mixed, *(x for x in TAKEN if x not in among)]) == REFUSED.keys()
