"""Hostile texts: `python -m lab.fuzz.ptx` tries 10,000, and measures memory."""

from __future__ import annotations

import resource

import pytest

from lab.fuzz.modules import MODULES
from lab.fuzz.outcomes import outcome
from lab.fuzz.ptx import MOST
from lab.fuzz.texts import grid_of, hostile
from warpmma.errors import OperandError

GROUPS = 10
TEXTS = 300


@pytest.mark.parametrize("text", MODULES)
def test_the_modules_run_as_they_are(text: str) -> None:
    assert outcome(text).kind == "ran", outcome(text)


@pytest.mark.parametrize("group", range(GROUPS))
def test_hostile_texts_run_or_are_refused_or_end_at_a_limit(group: int) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # of the whole process, and all its tests
    numbers = range(group * TEXTS // GROUPS, (group + 1) * TEXTS // GROUPS)
    found = {number: outcome(hostile(number), grid_of(number)) for number in numbers}
    bad = {number: one.text for number, one in found.items() if one.kind == "bad"}
    assert not bad, f"python -m lab.fuzz.ptx --first {min(bad)} --texts 1 --show"
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert (after - before) << 10 < MOST


HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
ENTRY = f"{HEAD}.visible .entry k(.param .u64 p) {{\n.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<3>;\n"
N = 3000


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (f"{ENTRY}mov.b32 %r1, {'1 + ' * N}1; ret; }}", "ran"),
        (f"{ENTRY}{'{' * N}{'}' * N}ret; }}", "refused"),
        (f"{ENTRY}add.s32 {'%r1, ' * N}%r1; ret; }}", "refused"),
        (f"{ENTRY}bra {'L' * N}; ret; }}", "refused"),
        (f"{ENTRY}add{'.a' * N} %r1, %r1, %r1; ret; }}", "refused"),
        (f"{ENTRY}.reg .b32 %q<99999999999>; mov.b32 %q7, 1; ret; }}", "ran"),
        (f"{ENTRY}mov.b32 %r1, {'(' * 1_000_000}1{')' * 1_000_000}; ret; }}", "refused"),
        (f"{ENTRY}L: bra L; }}", "limit"),
    ],
)
def test_large_texts(text: str, kind: str) -> None:
    assert outcome(text).kind == kind, outcome(text)


def test_functions_have_a_most_of_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpmma.ptx.text.bodies.MOST_STATEMENTS", 9)
    assert outcome(f"{ENTRY}{'ret;' * 9} }}").kind == "ran"
    assert "<ptx>:6:37: a function of more than 9 statements" in outcome(f"{ENTRY}{'ret;' * 10} }}").text


def test_long_names_are_cut_in_errors() -> None:
    found = outcome(f"{ENTRY}mov.b32 %r1{'.global' * 9999}, 1; ret; }}")
    assert found.kind == "refused" and len(found.text) < 1500 and "..." in found.text


BAR = "bar.sync 0, 33;"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"{ENTRY}{BAR} ret; }}", "<ptx>:6:1: bar.sync: b is 33; expected 0 to 4294967264, a multiple of 32"),
        (f"{ENTRY}mov.b32 %r1, %r2; st.global.b32 [%rd1], %r1; ret; }}", "<ptx>:6:19: st.global.b32: poison: "),
        (f"{ENTRY}trap; }}", "<ptx>:6:1: trap: "),
        (
            f"{ENTRY}t: .calltargets no; mov.u64 %rd1, 0; call %rd1, (), t; }}",
            "<ptx>:6:38: call: t lists no, which is no",
        ),
        (
            f"{HEAD}.global .align 2147483648 .b8 g[4];",
            "<ptx>:4:16: an alignment of 2147483648 bytes; 2^30 is the most",
        ),
        (f"{HEAD}.entry k(.param .u64 p) .reqntid 64 {{ ret; }}", "<ptx>:4:8: block is 32; k declares .reqntid 64"),
        (f"{HEAD}.shared .b8 s[300000]; .entry k() {{ .reg .b32 %r; mov.u32 %r, s; }}", "<ptx>:4:31: k declares 300"),
        (f"{HEAD}.const .b8 c[70000]; .entry k() {{ .reg .b64 %r; mov.u64 %r, c; }}", "<ptx>:4:12: c: 70000 bytes of"),
        (HEAD.replace("sm_80", "sm_90a") + ".entry k() { ret; }", "<ptx>:2:9: this is PTX for sm_90a, which sm_80"),
        (HEAD.replace("sm_80", "sm_999") + ".entry k() { ret; }", "<ptx>:2:9: unknown target 'sm_999'"),
    ],
)
def test_every_refusal_has_a_line_and_a_column(text: str, says: str) -> None:
    found = outcome(text)
    assert found.kind == "refused" and says in found.text, found


def test_an_error_without_a_place_is_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OperandError("something is wrong")

    monkeypatch.setattr("lab.fuzz.outcomes.load", fail)
    assert outcome(MODULES[0]).kind == "bad"
