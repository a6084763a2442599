"""Hostile texts: `python tools/fuzz_ptx.py` tries 10,000, and measures memory."""

from __future__ import annotations

import resource

import pytest
from fuzz_ptx import MOST
from hostile.modules import MODULES
from hostile.outcomes import outcome
from hostile.texts import hostile

GROUPS = 10
TEXTS = 300


@pytest.mark.parametrize("text", MODULES)
def test_the_modules_run_as_they_are(text: str) -> None:
    assert outcome(text).kind == "ran", outcome(text)


@pytest.mark.parametrize("group", range(GROUPS))
def test_hostile_texts_run_or_are_refused_or_end_at_a_limit(group: int) -> None:
    numbers = range(group * TEXTS // GROUPS, (group + 1) * TEXTS // GROUPS)
    bad = {number: found.text for number in numbers if (found := outcome(hostile(number))).kind == "bad"}
    assert not bad, f"python tools/fuzz_ptx.py --first {min(bad)} --texts 1 --show"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10 < 2 * MOST  # of the whole process


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
        (f"{ENTRY}L: bra L; }}", "limit"),
    ],
)
def test_large_texts(text: str, kind: str) -> None:
    assert outcome(text).kind == kind, outcome(text)
