"""Operands are bound once, when a text is loaded, and an instruction is added by its row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.errors import MnemonicError
from warpmma.isa.grammar import vocabulary
from warpmma.machine import Program
from warpmma.machine.handlers import dispatch
from warpmma.operations import Fence, row, table
from warpmma.operations.effects import Access
from warpmma.operations.forms import Form
from warpmma.operations.measurements import published
from warpmma.ptx.flow import registers_used
from warpmma.ptx.lower import binding

LOOP = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 to)
{
    .shared .align 4 .b8 kept[128];
    .reg .b64 %rd<3>; .reg .b32 %r<9>; .reg .pred %p;
    ld.param.u64 %rd1, [to];
    mov.u32 %r1, %tid.x;
    mad.lo.u32 %r2, %r1, 4, 0;
    mov.u32 %r3, kept;
    add.u32 %r3, %r3, %r2;
    st.shared.u32 [%r3], %r1;
    mov.u32 %r4, 0;
    mov.u32 %r5, 0;
MORE:
    ld.shared.u32 %r6, [%r3];
    add.u32 %r5, %r5, %r6;
    add.u32 %r4, %r4, 1;
    setp.lt.u32 %p, %r4, 50;
    @%p bra MORE;
    mad.wide.u32 %rd2, %r1, 4, %rd1;
    st.global.u32 [%rd2], %r5;
    ret;
}
"""


def test_operands_are_checked_at_load_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty executions of an `ld.shared`, in two launches, bind its operands once."""
    bound, elsewhere, bind = Counter[str](), Counter[str](), binding.bind

    def counted(names: Any, statement: Any, found: Any) -> Any:
        bound[statement.mnemonic] += 1
        return bind(names, statement, found)

    monkeypatch.setattr("warpmma.ptx.lower.lowering.bind", counted)
    monkeypatch.setattr(dispatch, "bound", lambda *given: elsewhere.update(["handlers"]))
    monkeypatch.setattr(Program, "check", lambda self: elsewhere.update(["program"]))
    entry, device = wm.ptx.load(LOOP)["k"], wm.Device("sm_90a")
    for _ in range(2):
        out = device.zeros(32, np.uint32)
        report = entry.launch(device, 1, 32, [out])
        assert (out.numpy() == np.arange(32) * 50).all()
    executed = {site.mnemonic: n for site, n in report.costs.instructions.items()}
    assert executed["ld.shared.u32"] == 50 and bound["ld.shared.u32"] == bound["st.shared.u32"] == 1
    assert not elsewhere


# An instruction by its row


@pytest.fixture
def added() -> Iterator[Any]:
    """Add forms to the table, for a test."""
    before = table._table

    def add(*forms: Form) -> None:
        made = table.FormTable((*table.FORMS, *forms))
        table._table = lambda: made  # type: ignore[assignment]
        registers_used._instruction.cache_clear()

    yield add
    table._table = before
    registers_used._instruction.cache_clear()


CACHED = "ld.global.wt.u32"
FENCE = "tcgen05.fence::before_thread_sync"
NEW = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 from, .param .u64 to)
{{
    .reg .b64 %rd<5>; .reg .b32 %r<5>;
    ld.param.u64 %rd1, [from];
    ld.param.u64 %rd2, [to];
    mov.u32 %r1, %tid.x;
    mad.wide.u32 %rd3, %r1, 4, %rd1;
    mad.wide.u32 %rd4, %r1, 4, %rd2;
    {load} %r2, [%rd3];
    {fence};
    st.global.u32 [%rd4], %r2;
    ret;
}}
"""


def test_a_load_with_a_new_cache_operator_is_a_row(added: Any) -> None:
    like = row("ld.global.ca.u32")
    assert isinstance(like, Access)
    with pytest.raises(MnemonicError):
        row(CACHED)
    fields = {"direction": "load", "space": "global", "type": "u32"}
    added(Form(spelling=CACHED, kind=Access, fields=lambda words: fields, evidence=like.evidence))
    _runs(CACHED, "d0, [p]", load=CACHED, fence="bar.warp.sync -1")


def test_a_new_fence_is_a_row(added: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpmma.isa.grammar.instruction_forms.WORDS", vocabulary.WORDS | {"fence::before_thread_sync"})
    with pytest.raises(wm.WarpmmaError):
        row(FENCE, "sm_90a")
    added(
        Form(
            spelling=FENCE, kind=Fence, fields=lambda words: {"order": "weak"}, since="sm_90a", ptx=(8, 0),
            evidence=published("tcgen05.fence"),
        )
    )  # fmt: skip
    _runs(FENCE, "", load="ld.global.u32", fence=FENCE)


def _runs(mnemonic: str, syntax: str, **text: str) -> None:
    """A new instruction is parsed, printed, checked, refused with wrong operands, lowered and run."""
    found = row(mnemonic, "sm_90a")
    assert str(found) == mnemonic and found.syntax == syntax
    assert found.statement() == f"{mnemonic} {syntax.replace('d0', '%d0').replace('p', '%p')}".rstrip() + ";"
    module = wm.ptx.load(NEW.format(**text))
    assert module.check("sm_90a").problems == 0
    wrong = wm.ptx.load(NEW.format(**text).replace(f"{mnemonic}", f"{mnemonic} 7,", 1).replace("7,;", "7;"))
    problems = [str(x) for entry in wrong.check("sm_90a").entries for x in entry.problems]
    assert any(f"expected {syntax or 'none'}" in x for x in problems)
    device = wm.Device("sm_90a")
    x, y = device.array(np.arange(5, 37, dtype=np.uint32)), device.zeros(32, np.uint32)
    module["k"].launch(device, 1, 32, [x, y])
    assert (y.numpy() == np.arange(5, 37)).all()
