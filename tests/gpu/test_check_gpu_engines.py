"""The command that compares products on a GPU with the native engine, on a simulated one."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arrays import Array
from oracles import needs
from simulated_gpu import SimulatedGpu

from lab.check import gpu_engines as tool
from lab.check.gpu_engines import Campaign, Job, Outcome
from lab.generators import operands
from warpmma.cuda import nvrtc
from warpmma.gpu import ProductLaunch

pytestmark = [needs("native engine"), pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()), reason=nvrtc.why_no_nvrtc())]

SIDE = 24


class Driver:
    """The driver's functions that a room calls, on a simulated device."""

    def __init__(self, gpu: Gpu) -> None:
        self.device, self.held = gpu.device, list[Any]()

    def cuStreamCreate(self, flags: int) -> tuple[int, int]:
        return 0, 7

    def cuStreamSynchronize(self, stream: int) -> tuple[int]:
        return (0,)

    def cuMemHostAlloc(self, size: int, flags: int) -> tuple[int, int]:
        self.held.append(ctypes.create_string_buffer(size))
        return 0, ctypes.addressof(self.held[-1])

    def cuMemAlloc(self, size: int) -> tuple[int, int]:
        self.held.append(self.device.array(np.zeros(size, np.uint8)))
        return 0, self.held[-1].address

    def cuMemcpyHtoDAsync(self, there: int, here: int, size: int, stream: int) -> tuple[int]:
        self.device.write(there, ctypes.string_at(here, size))
        return (0,)

    def cuMemcpyDtoHAsync(self, here: int, there: int, size: int, stream: int) -> tuple[int]:
        ctypes.memmove(here, self.device.read(there, size), size)
        return (0,)


class Gpu(SimulatedGpu):
    """A simulated GPU that a room is on; every result of an instruction may be made wrong."""

    flip = False

    def __init__(self) -> None:
        super().__init__("off", "sm_90a")
        self.driver = Driver(self)

    def loaded(self, kernel: object) -> None:
        pass

    @contextmanager
    def current(self) -> Iterator[Driver]:
        yield self.driver

    def launch(self, what: ProductLaunch, stream: int = 0) -> None:
        super().launch(what, stream)
        if self.flip and what.kernel.arch:
            (first,) = self.device.read(what.d, 1)
            self.device.write(what.d, bytes([first ^ 1]))


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    simulated = Gpu()
    monkeypatch.setattr(tool, "gpu", lambda: simulated)
    monkeypatch.setattr(tool, "SIDE", SIDE)
    return simulated


def compared(outputs: float, *, seed: int = 0, threads: int = 1, **options: Any) -> int:
    return tool.run(tool.Options(outputs=outputs, seed=seed, threads=threads, **options))


def few(monkeypatch: pytest.MonkeyPatch, cases: str, *parts: str) -> None:
    """Leave those cases whose names have one of these parts."""
    every = getattr(tool, cases)
    monkeypatch.setattr(tool, cases, lambda *of: [x for x in every(*of) if any(part in x.name for part in parts)])


def test_recipes(gpu: Gpu, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    few(monkeypatch, "recipe_cases_of_gpu", "k128.row.col.s32.b1.b1.s32.and", "mxf4nvf4")
    assert compared(3 * SIDE**2, threads=2) == 0
    *_, total, last = capsys.readouterr().out.splitlines()
    assert total.startswith("all ") and last.startswith(f"{3 * SIDE**2:,} outputs of simulated by engine='cuda', comp")
    assert "0 differences" in last and len(gpu.launches) == 3


def test_instructions(gpu: Gpu, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    few(monkeypatch, "hardware_cases", "mma.sync.aligned.m16n8k16.row.col.f32.f16", "m64n8k64.f32.e4m3.e5m2")
    assert compared(1, hardware=True) == 0
    gpu.flip = True
    assert compared(2 * SIDE**2, hardware=True) == 1
    out = capsys.readouterr().out
    assert ", seed 0, job 0, (0, 0, 0): hardware 0x" in out and "2 differences" in out
    assert "wgmma: FusedDotAdd, sparse             1            576      576       1" in out


def test_a_state_is_continued(
    gpu: Gpu, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few(monkeypatch, "recipe_cases_of_gpu", "m16n8k16.row.col.f32.f16.f16", "m16n8k8.row.col.f32.f16", "s32.s8.s8.s32")
    computed: list[Job] = []

    def compare(job: Job, seed: int, side: int) -> Outcome:
        computed.append(job)
        return Outcome(side * side, int(len(computed) == 2), "")

    monkeypatch.setattr(tool, "compare", compare)
    path = tmp_path / "state.json"
    options: Any = {"state": path, "seed": 5}
    assert compared(3 * SIDE**2, **options) == 1
    state = json.loads(path.read_text())
    assert state["jobs"] == 3 and sum(state["outputs"].values()) == 3 * SIDE**2 and state["seed"] == 5
    assert list(state["differences"].values()) == [1]
    assert compared(9 * SIDE**2, **options) == 1  # the difference is not forgotten
    assert [job.number for job in computed] == list(range(12))
    by_recipe = [sum(job.case.recipe == how for job in computed) for how in {job.case.recipe for job in computed}]
    assert max(by_recipe) - min(by_recipe) <= 1
    assert f"{12 * SIDE**2:,} outputs" in capsys.readouterr().out.splitlines()[-1]
    assert compared(1, state=path, seed=6) == 2
    path.write_text("[]")
    assert compared(1, **options) == 2
    assert capsys.readouterr().err.endswith(f"{path} is no state of this command\n")


def test_time_is_up(gpu: Gpu, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(tool, "compare", lambda job, seed, side: Outcome(side * side, 0, ""))
    assert compared(1e15, hardware=True, minutes=1e-4) == 0
    assert "the native engine: 0 differences" in capsys.readouterr().out


def test_an_interrupt(gpu: Gpu, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    told: list[object] = []

    def interrupted(self: Campaign, *given: Any) -> None:
        told.append(given)
        if len(told) == 2:
            raise KeyboardInterrupt
        add(self, *given)

    add = Campaign.add
    monkeypatch.setattr(Campaign, "add", interrupted)
    monkeypatch.setattr(tool, "compare", lambda job, seed, side: Outcome(side * side, 0, ""))
    assert compared(1e15) == 130
    assert "interrupted; so far:" in capsys.readouterr().out


def test_row_and_column_belong_together() -> None:
    cases = tool.recipe_cases_of_gpu()
    assert len({case.name for case in cases}) == len(cases) and len({case.recipe for case in cases}) > 100
    case = next(x for x in cases if x.recipe.a == "f16" and not x.width and x.k == 16)
    given = tool.drawn(Job(case, "cancel", 0), np.random.default_rng(3), 8)
    again = operands(case.recipe, case.k, 8, "cancel", np.random.default_rng(3))
    for name, x in (("a", given["a"][0].T), ("b", given["b"][0]), ("c", np.diagonal(given["c"][0]))):
        assert (x == again[name]).all()


def test_every_instruction_is_a_case() -> None:
    cases = tool.hardware_cases((9, 0))
    assert len({case.name for case in cases}) == len(cases) == 198 + 1074
    sparse: list[Array] = []
    for case in cases:
        if case.width and ("m16n8" in case.name or "n8k" in case.name):
            given = tool.drawn(Job(case, "bits", 0), np.random.default_rng(0), 40)
            sparse.append(given["chosen"])
            groups = given["chosen"].reshape(40, -1, case.width // 2)
            assert (groups // case.width == np.arange(groups.shape[1])[:, None]).all()
    assert len(sparse) > 80
