"""The recorder of launches, and their comparison on another device: here a simulated one, with memory elsewhere."""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, no-untyped-call, attr-defined"

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpmma as wm
from lab.record import cute as recorder
from warpmma.machine import DeviceArray

pytest.importorskip("cutlass.cute")

import cutlass
from cute_kernels import add, aligned, hopper_product
from cutlass import cute
from cutlass.cute.runtime import from_dlpack


class SimulatedDriver:
    """As much of `lab.gpu.driver.Driver` as a comparison needs."""

    def __init__(self, changed: int = 0) -> None:
        self.device, self.changed = wm.Device("sm_90a"), changed
        self._arrays: list[DeviceArray] = []

    def place(self, array: np.ndarray) -> int:
        self._arrays.append(self.device.array(array))
        return self._arrays[-1].address

    def put(self, address: int, array: np.ndarray) -> None:
        self.device.write(address, array.tobytes())

    def fetch(self, address: int, like: np.ndarray) -> np.ndarray:
        return np.frombuffer(self.device.read(address, like.nbytes), like.dtype).copy()

    def load(self, text: bytes, names: Sequence[str]) -> dict[str, Any]:
        module = wm.ptx.load(text)
        return {name: module[name] for name in names}

    def launch(self, entry: Any, grid: Any, block: Any, given: Sequence[bytes], shared: int, cluster: Any) -> None:
        params = bytearray(max(x.offset + x.size for x in entry.parameters))
        for at, value in zip(entry.parameters, given, strict=True):
            params[at.offset : at.offset + at.size] = value
        entry.launch(self.device, grid, block, params=bytes(params), shared=shared, cluster=cluster)

    def synchronise(self) -> None:
        if self.changed:
            array = self._arrays[self.changed]
            self.device.write(array.address, bytes(array.nbytes))


@cute.kernel
def gathering(table: cute.Tensor, z: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    pointer = cute.make_ptr(cutlass.Float32, table[thread % 2], cute.AddressSpace.gmem)
    x = cute.make_tensor(pointer, cute.make_layout(32))
    z[thread] = x[thread]


@cute.jit
def gather(table: cute.Tensor, z: cute.Tensor):
    gathering(table, z).launch(grid=(1, 1, 1), block=(32, 1, 1))


def test_a_product_with_tensor_maps(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal((64, 128)).astype(np.float16) for _ in "ab")
    c = np.zeros((64, 64), np.float32)
    kept = recorder.Recorder(tmp_path, "a product")
    with wm.cute.device("sm_90"), kept.recording():
        hopper_product(aligned(a), aligned(b), aligned(c))
        hopper_product(aligned(b), aligned(a), aligned(c))
    (path,) = recorder.rows_of(tmp_path, "a product")
    assert recorder.compare_on_gpu(SimulatedDriver(), path) == ""
    assert "bytes of piece" in recorder.compare_on_gpu(SimulatedDriver(changed=2), path)


def test_a_table_of_addresses(tmp_path: Path) -> None:
    x, y, z = np.arange(32, dtype=np.float32), np.ones(32, np.float32), np.zeros(32, np.float32)
    table = np.array([x.ctypes.data, y.ctypes.data])
    kept = recorder.Recorder(tmp_path, "gather")
    with wm.cute.device("sm_90"), kept.recording():
        told = from_dlpack(x), from_dlpack(y)
        gather(from_dlpack(table), from_dlpack(z))
        del told
    assert z.tolist() == [i if i % 2 == 0 else 1 for i in range(32)]
    (path,) = recorder.rows_of(tmp_path, "gather")
    assert recorder.compare_on_gpu(SimulatedDriver(), path) == ""


def recorded(folder: Path, factor: float) -> Path:
    """Record a launch that doubles numbers, in memory of its own."""
    folder.mkdir()
    x, z = np.arange(64, dtype=np.float32) * np.float32(factor), np.zeros(64, np.float32)
    kept = recorder.Recorder(folder, "sum")
    with wm.cute.device("sm_90"), kept.recording():
        add(from_dlpack(x), from_dlpack(x), from_dlpack(z))
    (path,) = recorder.rows_of(folder, "sum")
    return path


def test_a_launch_that_changes_nothing_is_not_written(tmp_path: Path) -> None:
    x, z = np.ones(64, np.float32), np.full(64, 2, np.float32)
    kept = recorder.Recorder(tmp_path, "sum")
    with wm.cute.device("sm_90"), kept.recording():
        add(from_dlpack(x), from_dlpack(x), from_dlpack(z))
        assert recorder.rows_of(tmp_path, "sum") == []
        z[:] = 0
        add(from_dlpack(x), from_dlpack(x), from_dlpack(z))
    assert len(recorder.rows_of(tmp_path, "sum")) == 1


def test_hashes_are_those_of_the_same_launch_in_other_memory(tmp_path: Path) -> None:
    first, again, other = (recorded(tmp_path / name, factor) for name, factor in (("a", 1), ("b", 1), ("c", 3)))
    file = tmp_path / "kept.json"
    recorder.keep(file, [first], {"gpu": "none"})
    text = file.read_text()
    (launch,) = json.loads(text)["launches"]
    assert len(launch["read"]) == len(launch["written"]) == 1 and ".entry" not in text
    assert recorder.differences(again, file) == ""
    assert recorder.differences(other, file) == "differs: read, written"
    assert recorder.differences(again, recorder.RECORDED) == recorder.NOT_RECORDED


def test_differences_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recorded(tmp_path / "a", 1)
    file = tmp_path / "kept.json"
    recorder.keep(file, [path], {"gpu": "none"})
    folder = str(path.parent)
    monkeypatch.setattr(recorder, "CASES", {"sum": recorder.Case(example="", arguments="")})
    assert recorder.main([folder, "--compare"]) == 0  # it is not recorded
    monkeypatch.setattr(recorder, "RECORDED", file)
    assert recorder.main([folder, "--compare"]) == 0
    file.write_text(file.read_text().replace('"shared": 0', '"shared": 1'))
    assert recorder.main([folder, "--compare"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "sum_0: not recorded", "sum_0: as on the H200", "sum_0: differs: shared"
    ]  # fmt: skip


def test_an_example_that_does_not_end_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(recorder, "_SECONDS", 0.01)
    assert recorder.main([str(tmp_path), "--examples", str(tmp_path), "--only", "sgemm"]) == 1
    assert capsys.readouterr().out == "sgemm: killed after 0.01 s, kernels written: 0, 0 s\n"


def test_the_h200_ran_every_example() -> None:
    kept = json.loads(recorder.RECORDED.read_text())
    assert kept["gpu"] == "NVIDIA H200"
    examples = {one["launch"].rpartition("_")[0] for one in kept["launches"]}
    assert examples == {name.replace(" ", "_") for name in recorder.CASES}
    assert all(one["written"] for one in kept["launches"])
