"""When the state is kept to tell a deadlock: not while asynchronous operations complete."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from warpmma.machine.run.deadlock import Spins


def looks(monkeypatch: pytest.MonkeyPatch, moved: range, until: int) -> tuple[list[int], list[int]]:
    """Return after which rounds the state is kept, and after which it is found to be the same, while it stays."""
    scheduler, kept, same = SimpleNamespace(vain=0), list[int](), list[int]()
    state: Any = SimpleNamespace(scheduler=scheduler)
    spins = Spins(state, None)  # type: ignore[arg-type]

    def now(vain: int) -> Any:
        kept.append(vain)
        return SimpleNamespace(vain=vain)

    monkeypatch.setattr(spins, "_now", now)
    monkeypatch.setattr(spins, "_same", lambda before, after: True)
    for vain in range(1, until):
        scheduler.vain = vain
        if spins.endless(moved=vain in moved):
            same.append(vain)
    return kept, same


def test_a_deadlock_is_told_one_round_later(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looks(monkeypatch, range(0), 70) == ([64, 65], [65])


def test_nothing_is_kept_while_operations_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    assert looks(monkeypatch, range(1, 200), 200) == ([], [])
    assert looks(monkeypatch, range(1, 100), 110) == ([100, 101], [101])
