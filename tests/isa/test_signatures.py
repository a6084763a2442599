"""Signatures: the operands of an instruction as data."""

from __future__ import annotations

from typing import Any

import pytest

import warpmma as wm
from warpmma.errors import TableError
from warpmma.isa import OperandSpec, Signature, address, numbered, present, printed, value, warpgroup_instructions
from warpmma.operations import Hint, rows
from warpmma.operations.forms import Form
from warpmma.operations.measurements import published

pytestmark = pytest.mark.quick

RESULT = value("d0", "u32", role="result")
SIZE = value("size", "u32", optional=True)


def test_signatures_of_every_row_and_matrix_instruction() -> None:
    """A row with a signature that contradicts itself cannot be made: this makes all of them."""
    for one in (*rows(), *wm.instructions(), *warpgroup_instructions()):
        names = [name for x in one.signature if not x.implicit for name in x.names]
        assert len(set(names)) == len(names) and not any(x.problem for x in one.signature), one
        assert one.results + one.sources == tuple(sorted(one.signature, key=lambda x: x.role != "result"))


@pytest.mark.parametrize(
    ("signature", "syntax", "statement"),
    [
        ((), "", ""),
        ((RESULT, value("a0", "u32")), "d0, a0", "%d0, %a0"),
        ((address("p", "shared"), numbered("a", 2, "f32")), "[p], {a0, a1}", "[%p], {%a0, %a1}"),
        ((numbered("d", 1, "u32", role="result", braces="always"), SIZE), "{d0}{, size}", "{%d0}"),
        ((RESULT, value("d1", "pred", role="result", paired=True, optional=True)), "d0|d1", "%d0|%d1"),
        ((RESULT, value("a0", "u32", selector="-h1")), "d0, -a0.h1", "%d0, -%a0.h1"),
        ((RESULT, value("carry", "pred", implicit=True)), "d0", "%d0"),
    ],
)
def test_printing(signature: Signature, syntax: str, statement: str) -> None:
    assert printed(signature) == syntax
    assert printed(signature, "%{}".format) == statement


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"names": (), "kind": "b32"}, "at least one register"),
        ({"kind": "b8"}, "expected at least one register of b16"),
        ({"kind": "b64"}, "a register of b64 does not hold u32"),
        ({"role": "address"}, "an address has a state space"),
        ({"space": "shared"}, "nothing else has one"),
        ({"type": "imm", "kind": "imm", "role": "result"}, "an immediate is a source"),
        ({"sink": "alone"}, "only results are paired or discarded"),
    ],
)
def test_a_row_proves_itself(given: dict[str, Any], says: str) -> None:
    spec = OperandSpec(**{"names": ("a0",), "type": "u32", "kind": "b32", **given})
    form = Form(
        spelling="pmevent", kind=Hint, fields=lambda words: {"signature": (spec,)}, evidence=published("a text")
    )
    with pytest.raises(TableError, match=says):
        form.record("pmevent")


def test_what_is_left_out() -> None:
    of = [RESULT, SIZE, value("policy", "b64")]
    assert present(of, 3) == of and present(of, 2) == [of[0], of[2]]
    assert present(of, 1) is None and present(of, 4) is None


def test_immediates_say_what_they_may_be() -> None:
    given = (range(24, 257, 8), (4, 8, 16), (), tuple(1 << i for i in range(32)))
    assert [value("n", "imm", values=x).allowed for x in given] == [
        "24 to 256, a multiple of 8", "4 or 8 or 16", "an integer", "1, 2, 4, 8, ..., 2147483648"
    ]  # fmt: skip
