"""Rows of `bits`, `collectives` and `movmatrix`: an H200's registers; what ptxas takes, of comparisons too."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from arrays import Array
from operation_rows import BITS, COLLECTIVES, ROWS
from oracles import needs

from warpmma.isa import TARGET_NAMES as TARGETS
from warpmma.operations import MatrixMove, Operation, matrix_moves, operation
from warpmma.operations.arithmetic import comparisons

RECORDING = Path(__file__).parents[1] / "data" / "h200_operations_bits.npz"


# The table


def test_rows_are_distinct_and_say_where_they_are_from() -> None:
    assert len(ROWS) == len(BITS) + len(COLLECTIVES) + 1 == 127
    for row in ROWS.values():
        assert row.source.startswith("PTX ISA 9.1, ")
        assert row.lanes == (row.mnemonic not in BITS)


# An H200


@cache
def recording() -> dict[str, Array]:
    with np.load(RECORDING) as archive:
        return dict(archive)


def test_the_rows_of_an_h200_are_recorded() -> None:
    recorded = dict(recording())
    assert recorded.pop("device") == "NVIDIA H200, driver 580.159.04"
    assert {name.split()[0] for name in recorded} == {m for m, row in ROWS.items() if "sm_90a" in row.targets}


@pytest.mark.parametrize("name", sorted(set(recording()) - {"device"}))
def test_replay(name: str) -> None:
    table = recording()[name]
    mnemonic, *values = name.split()
    row, immediates, numbers = ROWS[mnemonic], iter(values), iter(range(9))
    operands = [int(next(immediates)) if kind == "imm" else table[f"a{next(numbers)}"] for kind in row.inputs]
    results = row(*operands, undefined="zero")
    defined = ~row.undefined_lanes(*operands) & (operands[-1] != 0 if row.membermask else True)
    np.testing.assert_array_equal(np.broadcast_to(defined, table.shape), table["compared"])
    assert table["compared"].sum() > 8
    for i, result in enumerate(results):
        got = np.broadcast_to(result, table.shape)
        np.testing.assert_array_equal(got[table["compared"]], table[f"d{i}"][table["compared"]])


# ptxas

FIRST = {"sm_75": (6, 3), "sm_80": (7, 0), "sm_90": (7, 8), "sm_100f": (8, 8)}  # the PTX version that brought a target


def statement(row: Operation | MatrixMove) -> str:
    syntax = row.syntax.replace("[p]", "[%p]")
    names = {f"a{i}": "7" if kind == "imm" else f"%{kind}a{i}" for i, kind in enumerate(getattr(row, "inputs", ()))}
    names |= {f"d{i}": f"%{kind}d{i}" for i, kind in enumerate(getattr(row, "outputs", ()))}
    for name in reversed([f"{letter}{i}" for letter in "ad" for i in range(5)]):
        syntax = syntax.replace(name, names.get(name, f"%b32{name}"))
    return f"{row.mnemonic} {syntax};"


HEAD = (
    ".version {}", ".target {}", ".address_size 64", ".visible .entry k() {{", ".reg .b64 %p;",
    *(f".reg .{kind} %{kind}{letter}<5>;" for kind in ("b16", "b32", "b64", "pred") for letter in "ad"),
)  # fmt: skip


def assembles(target: str, version: tuple[int, int], *rows: Operation | MatrixMove) -> str:
    """Return what ptxas has to say: nothing, if all is well."""
    head = "\n".join(HEAD).format(f"{version[0]}.{version[1]}", target)
    body = [*map(statement, rows), "ret;", "}"]
    command = ["ptxas", f"-arch={target}", "/dev/stdin", "-o", "/dev/null"]
    return subprocess.run(command, input="\n".join([head, *body]), capture_output=True, text=True).stderr


def refused(target: str, version: tuple[int, int], *rows: Operation | MatrixMove) -> set[str]:
    """Return the mnemonics that ptxas has errors for."""
    said = assembles(target, version, *rows)
    places = {int(line) - len(HEAD) - 1 for line in re.findall(r"line (\d+); error", said)}
    assert bool(places) == bool(said), said
    return {rows[place].mnemonic for place in places}


def groups() -> dict[tuple[str, tuple[int, int]], list[Operation | MatrixMove]]:
    """Rows by the oldest target that ptxas 13 still knows, and the oldest PTX version for both."""
    found: dict[tuple[str, tuple[int, int]], list[Operation | MatrixMove]] = {}
    compared = [operation(mnemonic) for form in comparisons.FORMS for mnemonic in form.mnemonics]
    rows: list[Operation | MatrixMove] = [*ROWS.values(), *compared, *matrix_moves()]
    for row in rows:
        target = max(row.since, "sm_75") if row.since == "sm_70" else row.since
        found.setdefault((target, max(row.ptx, FIRST[target])), []).append(row)
    return found


@needs("ptxas")
def test_every_row_assembles_for_its_oldest_target() -> None:
    for (target, version), rows in groups().items():
        assert assembles(target, version, *rows) == ""


@needs("ptxas")
def test_no_row_is_older_than_it_says() -> None:
    """One minor PTX version before its first, or on any other target, ptxas refuses a row."""
    known = [t for t in TARGETS if not assembles(t, (9, 0))]
    assert "sm_90a" in known
    cases = defaultdict[tuple[str, tuple[int, int]], dict[str, tuple[Operation | MatrixMove, bool]]](dict)
    for (target, version), rows in groups().items():
        if version > FIRST[target]:
            before = (version[0], version[1] - 1)
            cases[target, before] |= {row.mnemonic: (row, False) for row in rows[:3]}
        one_of_each = {(type(row), row.targets): row for row in rows}
        for t in known:
            cases[t, (9, 0)] |= {row.mnemonic: (row, t in row.targets) for row in one_of_each.values()}
    for (target, version), each in cases.items():
        taken = [row for row, legal in each.values() if legal]
        absent = [row for row, legal in each.values() if not legal]
        assert refused(target, version, *absent, *taken) == {row.mnemonic for row in absent}, (target, version)
        assert assembles(target, version, *taken) == ""
    assert sum(map(len, cases.values())) > 100
