"""`warpmma compare` of `wmma`, atomics, asynchronous forms, loads and stores: on a simulated GPU, and their kernels."""

from __future__ import annotations

import json
import pickle
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arrays import Array
from compared_gpu import ComparedGpu, found_by_commands
from oracles import needs

import warpmma as wm
from warpmma.cli import main
from warpmma.errors import PtxError
from warpmma.gpu import TextKernel, TextLaunch
from warpmma.hardware import (
    LAUNCHED_PARTS,
    MOST_BYTES,
    Counts,
    Found,
    LaunchComparison,
    LaunchedWork,
    Refused,
    Report,
    Room,
    comparisons,
    not_compared,
    ptx_module,
)
from warpmma.hardware.comparing import kernel_parts, launched_cases
from warpmma.operations import Access, MatrixMove, Operation, rows

PATTERNS = {
    "wmma": "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", "atomic": "atom.global.add.u32",
    "asynchronous": "mbarrier.arrive_drop.b64", "access": "ld.global.v2.f32",
}  # fmt: skip
BASE, PAGE = 1 << 33, 4096
EVERY = 71  # of the forms


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> ComparedGpu:
    return found_by_commands(monkeypatch)


def compare(path: Path, *words: str) -> int:
    return main(["compare", "--report", str(path), "--processes", "1", *words])


@cache
def groups(target: str = "sm_90a") -> list[LaunchComparison]:
    return [x for x in comparisons(target, "*", 64, 0) if isinstance(x, LaunchComparison)]


def named(name: str) -> LaunchComparison:
    (found,) = (x for x in groups() if x.form.name == name)
    return found


def work_of(group: LaunchComparison, number: int, target: str = "sm_90a") -> tuple[LaunchedWork, dict[str, int]]:
    """Make a piece of work, and addresses of its arrays."""
    work = group.form.work(target, 2, number, np.random.default_rng(number), lambda name, size: BASE)
    addresses, at = {}, BASE
    for name, x in work.arrays.items():
        addresses[name] = at
        at += -(-x.nbytes // PAGE) * PAGE + PAGE
    return work, addresses


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("kind", PATTERNS)
def test_each_kind_is_in_the_report(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "r.json"
    assert compare(path, "--instructions", PATTERNS[kind], "--outputs", "10000") == 0
    counts = json.loads(path.read_text())[f"counts of {kind}"]
    name = PATTERNS[kind].replace("v2.f32", "v2.b32")  # counted with it
    assert counts[name][0] >= 10000 // LAUNCHED_PARTS[kind] and counts[name][1] == 0
    assert f"\n{kind} " in capsys.readouterr().out


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("kind", PATTERNS)
def test_a_wrong_simulator_is_found(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    right = launched_cases.launched_in_simulator

    def wrong(*given: Any) -> dict[str, Array]:
        found = right(*given)
        last = list(found.values())[-1].reshape(-1)
        last[5] ^= last.dtype.type(1)
        return found

    monkeypatch.setattr(launched_cases, "launched_in_simulator", wrong)
    path = tmp_path / "r.json"
    assert compare(path, "--instructions", PATTERNS[kind], "--outputs", "64") == 1
    facts = json.loads(path.read_text())
    ((name, row),) = facts[f"counts of {kind}"].items()
    first = facts["first"][name]
    assert row[1] == row[4] and row[1] > 0 and first["gpu"][0] ^ first["model"][0] == 1
    assert first["array"] in ("D", "d", "memory", "results", "values") and first["immediates"][-1] == 5
    assert f": GPU {first['gpu'][0]:#x}, model {first['model'][0]:#x}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("atom.global.add.u32", "atom.global.max.u32"), ("red.shared.and.b64", "red.shared.or.b64"),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32",
         "wmma.mma.sync.aligned.row.col.m16n16k16.s32.u8.u8.s32"),
        ("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16", "wmma.load.a.sync.aligned.col.m16n16k16.shared.f16"),
        ("ld.local.b8", "ld.local.s8"), ("st.shared.v2.b32", "st.shared.v2.b16"), ("ld.const.b16", "ld.const.s16"),
        ("st.param.b32", "st.param.b16"),
        ("mbarrier.test_wait.parity.shared::cta.b64",
         "xor.b32 %low, %low, 1; mbarrier.test_wait.parity.shared::cta.b64"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.min.s32",
         "cp.reduce.async.bulk.global.shared::cta.bulk_group.min.u32"),
        ("cp.reduce.async.bulk.tensor.2d.global.shared::cta.and.bulk_group",
         "cp.reduce.async.bulk.tensor.2d.global.shared::cta.xor.bulk_group"),
    ],
)  # fmt: skip
def test_a_gpu_that_executes_another_instruction_is_found(
    right: str, wrong: str, gpu: ComparedGpu, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch, seen = gpu.launch, list[bool]()

    def other(what: Any, stream: int = 0) -> None:
        text = what.kernel.text.replace(f"{right} ", f"{wrong} ")
        seen.append(text != what.kernel.text)
        kernel = TextKernel(text=text, name=what.kernel.name)
        launch(TextLaunch(kernel=kernel, grid=what.grid, threads=what.threads, given=what.given))

    monkeypatch.setattr(gpu, "launch", other)
    group = next(x for x in groups() if x.form.name == right)
    with Room(gpu, "sm_90a") as room:
        found = [x for number in range(8) for _, x in group.run(room, number) if isinstance(x, Found)]
    assert any(seen) and sum(x.differences for x in found) > 0


@pytest.mark.parametrize("target", ["sm_75", "sm_90a"])
def test_whatever_is_no_operation_is_compared_or_listed(target: str) -> None:
    names = {name for x in groups(target) for name in x.names}
    several = {row.mnemonic for x in groups(target) for row in getattr(x.form, "rows", ())}
    others = not_compared(target, "*")
    assert all(others.values()) and not others.keys() & (names | several)
    compared = names | several
    for row in rows(target):
        if not isinstance(row, Operation | MatrixMove):
            listed = row.mnemonic in others or row.mnemonic.partition(".")[0] in others
            assert listed != (row.mnemonic in compared), row.mnemonic
    assert {name.partition(".")[0] for name in names}.isdisjoint(others)


def test_a_pattern_finds_types_that_are_counted_under_another() -> None:
    (found,) = comparisons("sm_90a", "ld.relaxed.gpu.global.f32", 64, 0)
    assert found.names == ["ld.relaxed.gpu.global.b32"]
    assert [*not_compared("sm_90a", "ld.*")] == ["ld.param::func.b128"]
    assert "it orders others" in not_compared("sm_90a", "fence").values()


@pytest.mark.parametrize("target", ["sm_90a", "sm_120a"])
def test_a_whole_report_is_small(target: str) -> None:
    """Of a run with 10^9 outputs."""
    report = Report(device=dict.fromkeys(("gpu", "target", "driver", "cuda", "nvrtc"), "x" * 20), seed=0)
    for group in comparisons(target, "*", 10**9, 0):
        for name in group.names:
            sampled = 10**6 * (group.kind in ("mma", "wgmma"))
            made = Counts(outputs=group.wanted(10**9), sampled=sampled, pieces=999)
            report.counts.setdefault(group.kind, {})[name] = made
    report.left_out = not_compared(target, "*")
    assert len(report.json()) < 0.9 * MOST_BYTES


def test_comparisons_are_alike_wherever_they_are_made() -> None:
    for group in groups()[::101]:
        other = pickle.loads(pickle.dumps(group))
        for number in (0, 1):
            (one, _), (two, _) = work_of(group, number), work_of(other, number)
            assert one.text == two.text and one.arrays.keys() == two.arrays.keys()
            assert all((one.arrays[name] == two.arrays[name]).all() for name in one.arrays)


def sample() -> list[str]:
    return [x.form.name for x in groups()[::EVERY]]


@pytest.mark.parametrize("name", sample())
def test_kernels_have_no_hazards_and_change_what_is_compared(name: str) -> None:
    group, changed = named(name), False
    for number in (0, 1, 3):
        work, addresses = work_of(group, number)
        device = wm.Device("sm_90a")
        placed = {x: device.map(np.ascontiguousarray(y).copy(), addresses[x]) for x, y in work.arrays.items()}
        kernel = wm.ptx.load(ptx_module([work.text], "sm_90a", (9, 0)))["compared"]
        kernel.launch(device, work.blocks, work.threads, params=work.given(addresses), hazards="error")
        assert "waited" not in placed or placed["waited"].numpy().all()
        changed |= any((placed[x].numpy() != work.arrays[x]).any() for x in work.compared)
    assert changed


def test_a_wait_that_does_not_end_is_no_difference_only_if_both_give_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_parts, "_TRIES", 4)
    gpu = ComparedGpu()
    launch = gpu.launch

    def lost(what: Any, stream: int = 0) -> None:
        text = re.sub(r"@%few cp.async.bulk.shared[^;]*;", "", what.kernel.text)
        kernel = TextKernel(text=text, name=what.kernel.name)
        launch(TextLaunch(kernel=kernel, grid=what.grid, threads=what.threads, given=what.given))

    monkeypatch.setattr(gpu, "launch", lost)
    with Room(gpu, "sm_90a") as room:
        ((_, found),) = named("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes").run(room, 0)
    assert isinstance(found, Found) and found.differences > 32 * 8


def test_what_the_simulator_refuses_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*given: Any) -> Any:
        raise PtxError("no such thing\nin line 7")

    monkeypatch.setattr(launched_cases, "launched_in_simulator", refused)
    with Room(ComparedGpu(), "sm_90a") as room:
        ((_, found),) = named("ld.global.b32").run(room, 0)
    assert isinstance(found, Refused) and found.why == "not simulated: no such thing"


@needs("ptxas")
@pytest.mark.parametrize(("target", "every"), [("sm_75", 83), ("sm_80", 79), ("sm_90a", 31)])
def test_texts_are_ptx(target: str, every: int, tmp_path: Path) -> None:
    texts = {work_of(x, number, target)[0].text for x in groups(target)[::every] for number in (0, 1, 4)}
    body = "\n".join(re.sub(r"\b(compared|table|taken)\b", rf"\1_{i}", x) for i, x in enumerate(sorted(texts)))
    (tmp_path / "x.ptx").write_text(ptx_module([body], target, (9, 0)))
    words = ["ptxas", "-O1", f"-arch={target}", str(tmp_path / "x.ptx"), "-o", str(tmp_path / "x.cubin")]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[:500]


def test_loads_of_each_register_class_are_extended() -> None:
    group = named("ld.global.b8")
    assert [row.type for row in group.form.rows] == ["b8", "s8", "u8"]  # type: ignore[attr-defined]
    texts = [work_of(group, number)[0].text for number in range(18)]
    for type_ in ("b8", "s8", "u8"):
        assert {re.search(r"\.b(\d+) %d<", x)[1] for x in texts if f"ld.global.{type_} " in x} == {"16", "32", "64"}  # type: ignore[index]
    assert all(isinstance(row, Access) for row in group.form.rows)  # type: ignore[attr-defined]


def test_every_kind_has_comparisons() -> None:
    assert set(LAUNCHED_PARTS) == {x.kind for x in groups()}
