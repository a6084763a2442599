"""Sums of the columns of a matrix in f32, by copies in bulk through a ring of four stages: `python column_sums.py`.

A block has 512 columns. One thread copies four rows of them into a stage as soon as its readers have released it
(`cp.async.bulk`, counted by the mbarrier `full` of the stage); four warps wait for the bytes, add the rows to their
sums, and release the stage (`empty`, one arrival for each warp). At the end they write their sums to shared memory,
cross to the async proxy (`fence.proxy.async`), and one thread copies the sums to global memory.

A kernel in Python runs all threads in lockstep, so the producer and the consumers take turns in its text; the twin,
`cuda/column_sums.cu`, has a loop for each. Every sum is added in the order of the rows: both have the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from twins import Array, Call, report, simulate, spread, words

STAGES, ROWS, COLUMNS, WARPS = 4, 4, 512, 4
THREADS = 32 * (1 + WARPS)  # warp 0 copies
LINE = 4 * COLUMNS  # bytes of a row
SUMS, FULL, EMPTY = STAGES * ROWS * LINE, (STAGES * ROWS + 1) * LINE, (STAGES * ROWS + 1) * LINE + 8 * STAGES
SHARED = EMPTY + 8 * STAGES
LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
STORE = "cp.async.bulk.global.shared::cta.bulk_group"


def column_sums(t: Any, x: Any, y: Any, *, rows: int, columns: int) -> None:
    """Add the rows of a matrix."""
    producer, consumer, start = t.tid[0] == 0, t.warpid > 0, t.ctaid[0] * LINE
    with t.where(producer):
        for stage in range(STAGES):
            t("mbarrier.init.shared.b64", FULL + 8 * stage, 1)
            t("mbarrier.init.shared.b64", EMPTY + 8 * stage, WARPS)
    t("bar.sync", 0)
    at = (t.tid[0] - 32) * 16  # four columns
    sums = [t.constant(0.0) for _ in range(4)]
    steps = -(-rows // ROWS)
    for step in range(steps + STAGES):
        if step >= STAGES:
            with t.where(consumer):
                sums = _consume(t, at, sums, step - STAGES, min(ROWS, rows - (step - STAGES) * ROWS))
        if step < steps:
            with t.where(producer):
                _produce(t, x + start, step, min(ROWS, rows - step * ROWS), 4 * columns)
    with t.where(consumer):
        t("st.shared.v4.f32", SUMS + at, *sums)
        t("fence.proxy.async.shared::cta")
    t("bar.sync", 0)
    with t.where(producer):
        t(STORE, y + start, SUMS, LINE)
        t("cp.async.bulk.commit_group")
        t("cp.async.bulk.wait_group", 0)


def _produce(t: Any, x: Any, step: int, rows: int, pitch: int) -> None:
    """Copy some rows into a stage that is free."""
    stage, turn = step % STAGES, step // STAGES
    _wait(t, EMPTY + 8 * stage, turn + 1)
    t("mbarrier.arrive.expect_tx.shared.b64", FULL + 8 * stage, rows * LINE)
    for row in range(rows):
        t(LOAD, (stage * ROWS + row) * LINE, x + (step * ROWS + row) * pitch, LINE, FULL + 8 * stage)


def _consume(t: Any, at: Any, sums: list[Any], step: int, rows: int) -> list[Any]:
    """Add the rows of a stage, and release it."""
    stage, turn = step % STAGES, step // STAGES
    _wait(t, FULL + 8 * stage, turn)
    for row in range(rows):
        values = t("ld.shared.v4.f32", (stage * ROWS + row) * LINE + at)
        sums = [t("add.rn.f32", total, value) for total, value in zip(sums, values, strict=True)]
    t("bar.warp.sync", 0xFFFFFFFF)
    with t.where(t.laneid == 0):
        t("mbarrier.arrive.shared.b64", EMPTY + 8 * stage)
    return sums


def _wait(t: Any, barrier: int, turn: int) -> None:
    """Wait for a phase of an mbarrier."""
    while t.any(~t("mbarrier.try_wait.parity.shared.b64", barrier, turn % 2)):
        pass


@dataclass(frozen=True)
class Case:
    """A matrix; its columns are a multiple of 512, and `seed` makes its elements."""

    rows: int
    columns: int
    seed: int = 1

    @property
    def name(self) -> str:
        """As it is called in recordings and tests."""
        return f"{self.rows}x{self.columns} {self.seed}"


CASES = tuple(Case(rows, columns) for rows in (1, 4, 15, 16, 17, 67) for columns in (512, 1536))


def call(case: Case) -> Call:
    """Make the launch of a case."""
    if case.columns % COLUMNS or case.rows < 1:
        raise ValueError(f"{case.rows} rows of {case.columns} columns; expected some, and a multiple of {COLUMNS}")
    x = spread(words(case.seed, case.rows, case.columns), "f32", -7)
    return Call(
        kernel=column_sums, twin="column_sums", grid=(case.columns // COLUMNS,), block=THREADS, shared=SHARED,
        arrays=(x, np.empty(case.columns, np.float32)), sizes={"rows": case.rows, "columns": case.columns},
    )  # fmt: skip


def expected(case: Case) -> Array:
    """Add the rows one after the other."""
    total = np.zeros(case.columns, np.float32)
    for row in call(case).arrays[0]:
        total = total + row
    return total


def main() -> None:
    """Run the largest case, and print what it cost."""
    of = call(CASES[-1])
    result = simulate(of)
    print(f"{CASES[-1].name}: {'equal' if np.array_equal(of.output, expected(CASES[-1])) else 'differs'}")
    print(report(result))


if __name__ == "__main__":
    main()
