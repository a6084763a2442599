"""Rows of arithmetic and conversions: legality, an H200's registers, and what is refused."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from operation_references import MNEMONICS, ROWS
from oracles import needs

from lab.generators import operation_inputs
from lab.gpu.lane_archives import LaneRecorder, recorded_lanes
from lab.gpu.row_jobs import RowJob, compared_lanes, different_lanes, lane_shown, row_simulated
from warpmma.errors import MnemonicError, OperandError, TargetError
from warpmma.hardware import ptx_module, row_kernel
from warpmma.isa import Spelling
from warpmma.kernel import operation

pytestmark = pytest.mark.quick

DATA = Path(__file__).parents[1] / "data"


# The table


def test_forms_expand_as_ptx_means_them() -> None:
    assert Spelling("add{.<rn rz>}{.sat}.f32").mnemonics == [
        "add.f32", "add.sat.f32", "add.rn.f32", "add.rn.sat.f32", "add.rz.f32", "add.rz.sat.f32",
    ]  # fmt: skip


def test_rows_are_distinct_and_name_their_sources() -> None:
    assert len(ROWS) == len(MNEMONICS)
    for row in ROWS.values():
        assert "PTX ISA" in row.source
        assert not row.lanes


# ptxas 13.0 knows no older target, and of a family an older PTX version knows the architecture alone.
_ASSEMBLED_FOR = {"sm_70": "sm_75", "sm_72": "sm_75", "sm_100f": "sm_100a"}
_TARGET_BEFORE = {
    "sm_80": "sm_75", "sm_86": "sm_80", "sm_89": "sm_88", "sm_90": "sm_89", "sm_100": "sm_90a", "sm_100f": "sm_100",
}  # fmt: skip
_VERSION_BEFORE = {(6, 5): (6, 4), (7, 1): (7, 0), (7, 2): (7, 1), (8, 1): (8, 0)}  # of others, the target's first


@needs("ptxas")
def test_every_row_assembles_for_its_oldest_target_and_version_and_not_before(tmp_path: Path) -> None:
    batches: dict[tuple[str, tuple[int, int], bool], list[str]] = defaultdict(list)
    for row in ROWS.values():
        target, version = _ASSEMBLED_FOR.get(row.since, row.since), max(row.ptx, (6, 3))
        batches[target, version, True].append(row.mnemonic)
        if row.since in _TARGET_BEFORE:
            batches[_TARGET_BEFORE[row.since], (9, 0), False].append(row.mnemonic)
        if version in _VERSION_BEFORE:
            batches[target, _VERSION_BEFORE[version], False].append(row.mnemonic)

    def refused(batch: tuple[str, tuple[int, int], bool]) -> set[str]:
        """Assemble kernels, each on a line of its own, and see which lines have errors."""
        target, version, _ = batch
        name = tmp_path / f"{target}_{version}_{len(batches[batch])}.ptx"
        kernels = [row_kernel(ROWS[m], f"k{i}").replace("\n", " ") for i, m in enumerate(batches[batch])]
        name.write_text(ptx_module(kernels, target, version))
        command = ["ptxas", "-O0", f"-arch={target}", str(name), "-o", str(name.with_suffix(".cubin"))]
        report = subprocess.run(command, capture_output=True, text=True, check=False).stderr
        assert ("error" in report) == (not batch[2]), report
        return {batches[batch][int(line) - 4] for line in re.findall(r"line (\d+); error", report)}

    with ThreadPoolExecutor() as pool:
        for batch, mnemonics in zip(batches, pool.map(refused, batches), strict=True):
            assert mnemonics == (set() if batch[2] else set(batches[batch])), batch


# An H200's registers


def test_recorded_registers_of_an_h200() -> None:
    names = set()
    files = ("h200_operations_arithmetic.npz", "h200_quotients.npz")
    for mnemonic, values, given, got in chain.from_iterable(recorded_lanes(DATA / name) for name in files):
        expected = row_simulated(ROWS[mnemonic], given, values)
        bad = different_lanes(compared_lanes(ROWS[mnemonic], given, values), got, expected)
        assert not bad.any(), f"{mnemonic}: {lane_shown(given, got, expected, np.argwhere(bad)[0])}"
        names.add(mnemonic)
    assert names == {m for m, row in ROWS.items() if "measured" in row.source}


def test_recordings_keep_what_was_run(tmp_path: Path) -> None:
    recorder = LaneRecorder()
    for job in (RowJob("add.f32", (), 256, 0), RowJob("mul.f32", (), 256, 0), RowJob("neg.f16", (), 256, 0)):
        drawn = [x[:1] for x in operation_inputs(job.mnemonic, job.lanes, job.seed)]
        recorder.add(job, drawn, row_simulated(ROWS[job.mnemonic], drawn, ()))
    recorder.save(tmp_path / "kept.npz", "none")
    kept = {name: (given, got) for name, _, given, got in recorded_lanes(tmp_path / "kept.npz")}
    assert list(kept) == ["add.f32", "mul.f32", "neg.f16"]
    assert kept["add.f32"][0] is kept["mul.f32"][0]
    for name, (given, got) in kept.items():
        np.testing.assert_array_equal(got[0], ROWS[name](*given)[0])
        bad = different_lanes(compared_lanes(ROWS[name], given, ()), got, [got[0] ^ got[0].dtype.type(1)])
        assert bad.sum() == 32


# Errors


def test_operands_that_do_not_fit_are_refused() -> None:
    word, half = np.zeros(32, np.uint32), np.zeros(32, np.uint16)
    add = operation("add.f32")
    with pytest.raises(OperandError, match=r"add\.f32 takes 2 operands \(d0, a0, a1\); got 1"):
        add(word)
    with pytest.raises(OperandError, match=r"add\.f32: operand 1 is uint16 \(32,\); expected uint32"):
        add(word, half)
    with pytest.raises(OperandError, match=r"add\.f32: operand 0 is uint32 \(31,\)"):
        add(word[:31], word)
    with pytest.raises(OperandError, match=r"do not broadcast"):
        add(np.zeros((2, 32), np.uint32), np.zeros((3, 32), np.uint32))


def test_unknown_mnemonics_and_targets_are_refused() -> None:
    with pytest.raises(MnemonicError, match=r"Nearest: cvt\.rn\.f16x2\.f32"):
        operation("cvt.rn.f16x2.f32x")
    with pytest.raises(TargetError, match=r"add\.bf16 is not legal on sm_80"):
        operation("add.bf16", "sm_80")
    with pytest.raises(TargetError, match="unknown target"):
        operation("add.f32", "sm_9")
    assert operation("cvt.rn.satfinite.e2m1x2.f32", "sm_120a").since == "sm_100f"
    assert operation("cvt.rn.satfinite.e4m3x2.f32", "sm_89") is ROWS["cvt.rn.satfinite.e4m3x2.f32"]
