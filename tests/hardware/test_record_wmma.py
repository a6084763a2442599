"""`python -m lab.record.wmma` without a GPU: it records what the machine computes, and finds differences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpmma as wm
from lab.record import wmma as tool


class Twin:
    """A GPU that does what the machine does, but for a form that it gets wrong."""

    def __init__(self, wrong: str = "") -> None:
        self.wrong = wrong
        self.memory: dict[int, Any] = {}
        self.last = 0

    def load(self, text: str, names: list[str]) -> dict[str, str]:
        return dict.fromkeys(names, text)

    def place(self, array: Any) -> int:
        self.last += 1
        self.memory[self.last] = array.copy()
        return self.last

    def launch(self, text: str, grid: Any, block: Any, arguments: list[bytes]) -> None:
        addresses = [int.from_bytes(x, "little") for x in arguments]
        given = [self.memory[x] for x in addresses]
        wm.ptx.load(text)["compared"].launch(wm.Device("sm_90"), grid[0], block[0], given, hazards="off")
        if self.wrong and f"{self.wrong} {{" in text:
            made = self.memory[addresses[-1]]
            made[0, 0] ^= made.dtype.type(1)

    def fetch(self, address: int, like: Any) -> Any:
        return self.memory[address]

    def free(self, address: int) -> None:
        del self.memory[address]

    def synchronise(self) -> None:
        pass

    @staticmethod
    def about() -> dict[str, str]:
        return {"gpu": "twin", "driver": "0"}


@pytest.mark.parametrize("wrong", ["", "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32"])
def test_a_difference_is_found(
    wrong: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tool, "Driver", lambda: Twin(wrong))
    every = tool.forms("sm_90")
    some = [x for i, x in enumerate(every) if i % 23 == 0 or str(x) == wrong or "m16n16k16.f32.f32" in str(x)]
    monkeypatch.setattr(tool, "forms", lambda target: some)
    status = tool.main([str(tmp_path / "wmma.npz"), "--warps", "2"])
    printed = capsys.readouterr().out
    assert status == bool(wrong) and f"{32 if wrong else 0} differences" in printed
    assert f"{len(some)} forms" in printed and (wrong in printed)
    recorded = np.load(tmp_path / "wmma.npz")
    assert len({x.partition("|")[0] for x in recorded.files} - {"device"}) == len(some)
