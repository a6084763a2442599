"""Statements that are accepted or refused, like ptxas."""

from __future__ import annotations

import pytest
from oracles import needs
from ptx_statements import REFUSED, TAKEN, kernel
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


@needs("ptxas")
def test_ptxas_takes_the_same_statements() -> None:
    assert not [(x, why) for x in TAKEN if (why := verdict(kernel(x)))]
    assert not [x for x in REFUSED if not verdict(kernel(x))]
