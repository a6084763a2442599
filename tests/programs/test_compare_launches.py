"""Launches are repeated from their snapshots, on a mock GPU: memory at other addresses, pointers in memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpmma as wm
from lab.compare import launches as tool
from lab.programs.pointers import Allocation, moved
from lab.triton_programs.launching import watched
from lab.triton_programs.snapshots import memory, write

TEXT = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry through(.param .u64 table, .param .f32 factor)
{
    .reg .f32 %f<3>; .reg .b32 %r<2>; .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [table];
    ld.param.f32 %f1, [factor];
    ld.global.u64 %rd2, [%rd1];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd2, %rd3;
    ld.global.f32 %f2, [%rd4];
    mul.f32 %f2, %f2, %f1;
    st.global.f32 [%rd4], %f2;
    ret;
}
"""


class StandIn:
    """A device in place of a GPU, whose memory lies elsewhere; `factor` is what it computes wrongly."""

    factor = 1.0

    def __init__(self) -> None:
        self.device = wm.Device("sm_90")
        self.device.zeros(1000, np.uint8)
        self.arrays: dict[int, Any] = {}

    @staticmethod
    def about() -> dict[str, str]:
        return {"gpu": "none"}

    def load(self, text: str, names: Sequence[str]) -> dict[str, Any]:
        module = wm.ptx.load(text)
        return {name: module[name] for name in names}

    def place(self, array: Any) -> int:
        made = self.device.array(array)
        self.arrays[made.address] = made
        return made.address

    def put(self, address: int, array: Any) -> None:
        self.arrays[address].set(array)

    def fetch(self, address: int, like: Any) -> Any:
        return self.arrays[address].numpy()

    def free(self, address: int) -> None:
        self.arrays.pop(address).free()

    def launch(self, entry: Any, grid: Any, block: Any, arguments: Sequence[bytes], shared: int, cluster: Any) -> None:
        address, factor = (np.frombuffer(x, t)[0] for x, t in zip(arguments, (np.uint64, np.float32), strict=True))
        entry.launch(
            self.device, grid, block, [address, np.float32(factor * self.factor)], shared=shared, cluster=cluster
        )

    def synchronise(self) -> None:
        pass


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    device = wm.Device("sm_90")
    x = device.array(np.arange(32, dtype=np.float32))
    table = device.array(np.array([x.address, 7], np.uint64))
    with watched(memory) as launches:
        wm.ptx.load(TEXT)["through"].launch(device, 1, 32, [table, 0.5])
    np.testing.assert_array_equal(x.numpy(), np.arange(32) / 2)
    write(tmp_path / "launches.npz", [("through", one) for one in launches])
    return tmp_path / "launches.npz"


@pytest.mark.parametrize(("factor", "different"), [(1.0, 0), (2.0, 1)])
def test_what_differs_is_counted_and_kept(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, factor: float, different: int
) -> None:
    monkeypatch.setattr(tool, "Driver", StandIn)
    monkeypatch.setattr(StandIn, "factor", factor)
    assert tool.main([str(recorded), "--out", str(tmp_path / "out")]) == different
    (shown,) = json.loads((tmp_path / "out" / "replay.json").read_text())["launches"]
    assert (shown["different"], shown["repeatable"]) == ([128] * different, True)
    # The table of addresses is no result.
    assert [piece.split()[0] for piece in shown["left"]] == ["128"]
    with np.load(tmp_path / "out" / "memory.npz") as kept:
        for name in kept.files:
            np.testing.assert_array_equal(kept[name].view(np.float32), np.arange(32, dtype=np.float32))
        assert len(kept.files) == different


def test_words_that_are_addresses_move_and_others_do_not() -> None:
    pieces = [Allocation(start=start, size=16) for start in (0x9000, 0x7000)]
    words = np.array([0x7000, 0x700F, 0x7010, 0x9001, 0x6FFF, 3], np.uint64)
    made = moved(words.view(np.uint8), pieces, {0x7000: 0x100, 0x9000: 0x200}).view(np.uint64)
    assert made.tolist() == [0x100, 0x10F, 0x7010, 0x201, 0x6FFF, 3]
