"""A pending `cp.async` whose source is changed before it has read it writes poison."""

from __future__ import annotations

from typing import Any

import pytest
from poison_cases import kind, launch

from warpmma.machine import HazardError
from warpmma.machine.memory.access_shadow import AccessShadow

COPY = "cp.async.ca.shared.global [%r5], [%rd4], 4{size}; cp.async.commit_group;\n"
WAIT = "cp.async.wait_group 0; bar.warp.sync -1;\n"
READ = "ld.shared.u32 %r9, [%r5];\n"
USE = "st.global.u32 [%rd6], %r9;\n"
LOWER, UPPER = "and.b32 %r9, %r9, 65535;\n", "shr.u32 %r9, %r9, 16;\n"

OWN = "st.global.u32 [%rd4], 7;\n"
HALF = "mov.u16 %h1, 7; st.global.u16 [%rd4+2], %h1;\n"
NEIGHBOUR = "xor.b32 %r7, %r2, 1; mul.wide.u32 %rd7, %r7, 4; add.s64 %rd7, %rd1, %rd7; st.global.u32 [%rd7], 7;\n"
SAME = "st.global.u32 [%rd4], %r2;\n"  # x[lane] is the lane
ATOMIC = "atom.global.add.u32 %r8, [%rd4], 1;\n"

CASES = [  # the hazard, and that of "strict"
    ("its own lane", COPY + OWN + WAIT + READ + USE, "pending", "pending"),
    ("another lane", COPY + NEIGHBOUR + WAIT + READ + USE, "pending", "pending"),
    ("an atomic", COPY + ATOMIC + WAIT + READ + USE, "pending", "pending"),
    ("not used", COPY + OWN + WAIT + READ, "", "pending"),
    ("not read", COPY + OWN + WAIT, "", "pending"),
    ("after the wait", COPY + WAIT + OWN + READ + USE, "", ""),
    ("upper half, lower used", COPY + HALF + WAIT + READ + LOWER + USE, "", "pending"),
    ("upper half, upper used", COPY + HALF + WAIT + READ + UPPER + USE, "pending", "pending"),
    ("beyond the copied bytes", COPY.replace("{size}", ", 2") + HALF + WAIT + READ + USE, "", ""),
    ("the same value", COPY + SAME + WAIT + READ + USE, "", "pending"),
]


@pytest.mark.parametrize(("body", "found", "strict"), [x[1:] for x in CASES], ids=[x[0] for x in CASES])
def test_what_was_copied_of_it_is_poison(body: str, found: str, strict: str) -> None:
    text = body.replace("{size}", "")
    assert [kind(text), kind(text, hazards="strict"), kind(text, hazards="off")] == [found, strict, ""]


@pytest.mark.filterwarnings("ignore::warpmma.machine.HazardWarning")
def test_another_warp_after_a_barrier() -> None:
    """The barrier orders the store after the instruction, but not after what the copy reads."""
    body = "setp.lt.u32 %p2, %r1, 32; @%p2 " + COPY.replace("{size}", "").replace("; cp", "; @%p2 cp", 1)
    body += "bar.sync 0; @!%p2 st.global.u32 [%rd4], 7;\n@%p2 " + WAIT.replace("; bar", "; @%p2 bar")
    body += "@%p2 " + READ + "@%p2 "
    with pytest.raises(HazardError) as caught:
        launch(body + USE, threads=64)
    hazard = caught.value.hazard
    assert hazard.kind == "pending" and hazard.site.mnemonic == "st.global.u32"
    assert hazard.other is not None and hazard.other.mnemonic.startswith("cp.async")
    assert hazard.decided is not None and "may still read it, and was not waited for" in str(hazard)
    report, _, y = launch(body + USE, threads=64, hazards="warn")
    assert y[:32].tolist() == list(range(32)) and len(report.hazards) == 1
    report, *_ = launch(body + USE.replace("st.global.u32 [%rd6], %r9", "add.u32 %r9, %r9, 1"), threads=64)
    assert not report.hazards and sum(report.harmless.values()) >= 1


def test_sources_are_kept_until_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 500 copies, at most three are pending."""
    kept, will_read = [0], AccessShadow.will_read

    def counted(self: Any, *given: Any) -> None:
        will_read(self, *given)
        kept.append(len(self._sources))

    monkeypatch.setattr(AccessShadow, "will_read", counted)
    body = """mov.u32 %r10, 0; mov.u32 %r12, 0;
    LOOP: mad.lo.u32 %r11, %r12, 128, %r5; cp.async.ca.shared.global [%r11], [%rd4], 4; cp.async.commit_group;
    st.global.u32 [%rd4], %r10; cp.async.wait_group 2;
    add.u32 %r12, %r12, 1; and.b32 %r12, %r12, 3;
    add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, 500; @%p3 bra LOOP; cp.async.wait_all;"""
    report, *_ = launch(body)
    assert len(kept) == 501 and max(kept) == 3
    assert [key[0] for key in report.harmless] == ["pending"]
