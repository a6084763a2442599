"""Launches of compiled models are recorded through Triton's launcher, here of a mock GPU whose memory is the CPU's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from oracles import skip_without

pytest.importorskip("triton.language")
skip_without("PyTorch")

from torch_cases import torch  # noqa: E402

import warpmma as wm  # noqa: E402
from lab.record import torch_launches as tool  # noqa: E402
from lab.triton_programs.snapshots import digest, read, write  # noqa: E402

TEXT = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry twice(.param .u64 x, .param .u64 y, .param .u32 n, .param .u64 scratch, .param .u64 profile)
{
    .reg .pred %p<2>; .reg .f32 %f<2>; .reg .b32 %r<3>; .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
    setp.ge.u32 %p1, %r2, %r1;
    @%p1 ret;
    mul.wide.u32 %rd3, %r2, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
    ld.global.f32 %f1, [%rd4];
    add.f32 %f1, %f1, %f1;
    st.global.f32 [%rd5], %f1;
    ret;
}
"""
TYPES = {"x": "*fp32", "y": "*fp32", "n": "i32", "BLOCK": "constexpr"}


class Kernel:
    """In place of Triton's compiled kernel, which the driver loads."""

    def __init__(self, function: int, ctas: int = 1) -> None:
        self.function, self.name, self.asm = function, "twice", {"ptx": TEXT}
        self.metadata = SimpleNamespace(num_warps=2, shared=0, num_ctas=ctas)
        self._init_handles()

    def _init_handles(self) -> None:
        pass


class Launcher:
    """In place of Triton's launcher: launches the kernel."""

    global_scratch_size = profile_scratch_size = 0

    def __init__(self, source: Any, metadata: Any) -> None:
        pass

    def __call__(self, x: int, y: int, z: int, stream: int, function: int, *args: Any) -> str:
        a, b, n = args[4:7]
        b[:n] = 2 * a[:n]
        return "launched"


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    import triton

    monkeypatch.setattr(triton.compiler, "CompiledKernel", Kernel)
    monkeypatch.setattr(tool, "_driver", lambda: SimpleNamespace(CudaLauncher=Launcher))
    before = Kernel._init_handles, Launcher.__init__, Launcher.__call__
    found = tool.Recorder(name="model")
    with found.recording():
        yield found
    assert (Kernel._init_handles, Launcher.__init__, Launcher.__call__) == before


def launch(function: int, x: Any, y: Any, n: int, **attributes: int) -> Any:
    """Launch as Triton does: what is the launcher's own stands before the kernel's arguments."""
    launcher: Any = Launcher(SimpleNamespace(signature=TYPES), None)
    vars(launcher).update(attributes)
    return launcher(1, 1, 1, 0, function, None, None, None, None, x, y, n, 64)


def test_a_recorded_launch_is_repeated(recorder: Any, tmp_path: Path) -> None:
    Kernel(7)
    x, y = torch.randn(40), torch.zeros(100)
    assert launch(7, x[8:], y[4:], 32) == "launched"
    write(tmp_path / "launches.npz", recorder.launches, gpu="mock")
    (one,), texts, before = read(tmp_path / "launches.npz")
    assert (one.name, one.entry, one.grid, one.block) == ("model", "twice", [1, 1, 1], [64])
    assert [*map(list, one.arguments)] == [
        ["u64", x[8:].data_ptr()], ["u64", y[4:].data_ptr()], ["u32", 32], ["u64", 0], ["u64", 0],
    ]  # fmt: skip
    assert [(piece.start, piece.size) for piece in one.pieces] == [(x.data_ptr(), 160), (y.data_ptr(), 400)]
    assert torch.equal(y[4:36], 2 * x[8:])
    device = wm.Device("sm_90")
    memory = {piece: np.array(before[piece.before]) for piece in one.pieces}
    for piece, data in memory.items():
        device.map(data, piece.start)
    entry = wm.ptx.load(texts[one.text])[one.entry]
    entry.launch(device, one.grid, one.block, [value for _, value in one.arguments])
    assert {piece.after for piece in one.pieces} == {digest(data) for data in memory.values()}


def test_which_launches_are_kept(recorder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = torch.randn(8), torch.zeros(8)
    launch(3, x, y, 8)  # unknown: compiled before
    Kernel(7), Kernel(8, ctas=2)
    launch(8, x, y, 8)
    launch(7, x, y, 8, global_scratch_size=64)
    assert recorder.launches == [] and recorder.left_out == {"twice": 2}
    for _ in range(3):
        launch(7, x, y, 8)
    assert len(recorder.launches) == 1  # two were counted, of which one was left out
    recorder.name = "another model"
    monkeypatch.setattr(tool, "MOST", 63)
    launch(7, x, y, 8)
    assert len(recorder.launches) == 1 and recorder.left_out == {"twice": 3}
    monkeypatch.setattr(tool, "MOST", 64)
    launch(7, x, y, 8)
    assert [name for name, _ in recorder.launches] == ["model", "another model"]


def test_types_of_arguments() -> None:
    given = [("fp32", 0.5), ("i32", -1), ("constexpr", "x"), ("*fp32", None), ("i1", True), ("i64", -2)]
    assert tool._arguments(given) == (
        [("f32", 0.5), ("u32", 2**32 - 1), ("u64", 0), ("u8", 1), ("u64", 2**64 - 2)], [],
    )  # fmt: skip
    assert tool._arguments([("tensordesc<fp16[64, 64]>", None)]) is None
    assert tool._arguments([("*fp32", 12345)]) is None  # an address, whose memory is unknown
