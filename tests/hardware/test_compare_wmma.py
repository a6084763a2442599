"""`python -m lab.compare.wmma` without a GPU: its texts are PTX, and what it compares is what the machine computes."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import needs

from lab.compare import wmma as tool
from warpmma.operations import WmmaMultiply


class Twin:
    """A GPU that does what the machine does, but for a form that it gets wrong."""

    def __init__(self, wrong: str = "") -> None:
        self.wrong = wrong
        self.memory: dict[int, Any] = {}
        self.text, self.last = "", 0

    def load(self, text: str, names: list[str]) -> dict[str, str]:
        self.text = text
        return {name: name for name in names}

    def place(self, array: Any) -> int:
        self.last += 1
        self.memory[self.last] = array
        return self.last

    def launch(self, function: str, grid: Any, block: Any, arguments: list[bytes]) -> None:
        form = next(x for i, x in enumerate(tool.forms("sm_90")) if f"form{i}" == function)
        addresses = [int.from_bytes(x, "little") for x in arguments]
        names = [*tool.fragments(form, "sm_90"), *([] if isinstance(form, WmmaMultiply) else ["memory"])]
        given = dict(zip(names, (self.memory[x] for x in addresses), strict=True))
        made = tool.ours(form, "sm_90", given)
        if str(form) == self.wrong:
            made[0, 0] ^= made.dtype.type(1)
        self.memory[addresses[names.index(tool.result(form))]] = made

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
    status = tool.main(["--warps", "2", "--record", str(tmp_path / "wmma.npz")])
    printed = capsys.readouterr().out
    assert status == bool(wrong) and f"{32 if wrong else 0} differences" in printed
    assert f"{len(some)} forms" in printed and (wrong in printed)
    recorded = np.load(tmp_path / "wmma.npz")
    assert len({x.partition("|")[0] for x in recorded.files} - {"device"}) == len(some)


@needs("ptxas")
@pytest.mark.parametrize("target", ["sm_75", "sm_90"])
def test_texts_are_ptx(target: str, tmp_path: Path) -> None:
    body = "".join(tool.text(form, target, f"form{i}") for i, form in enumerate(tool.forms(target)))
    (tmp_path / "x.ptx").write_text(f".version 8.0\n.target {target}\n.address_size 64\n{body}")
    made = ["ptxas", f"-arch={target}", str(tmp_path / "x.ptx"), "-o", str(tmp_path / "x.cubin")]
    ran = subprocess.run(made, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[:500]
