"""Look-ups of `ldmatrix`, `stmatrix`, `movmatrix` and `wmma`: PTX's figures, errors, evidence and words' bits."""

from __future__ import annotations

import copy
import json
import pickle
import re
from pathlib import Path
from typing import Any

import pytest

import warpmma as wm
from warpmma import isa, lookup, operations
from warpmma.errors import MnemonicError, OperandError, TargetError, WarpmmaError
from warpmma.isa import FragmentMove, fragment_instructions, parse_fragments
from warpmma.lookup import layout_known, layout_table, operand_layout, read_word, what, where

LOAD = "ldmatrix.sync.aligned.m8n8.x4.shared.b16"
TRANS = "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"
WMMA = "wmma.load.a.sync.aligned.row.m16n16k16.f16"
F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


def test_a_row_is_at_the_address_of_its_lane() -> None:
    """PTX ISA 9.1, ldmatrix: threads 0-7, 8-15, 16-23, 24-31 have the addresses of the first to the fourth matrix."""
    for matrix in range(4):
        for row in range(8):
            assert where(LOAD, "address", row, 0, matrix=matrix).lane == 8 * matrix + row
    for row in range(16):
        square = "ldmatrix.sync.aligned.m16n16.x2.trans.shared.b8"
        assert where(square, "address", row, 0, matrix=1).lane == 16 + row
    assert what("ldmatrix.sync.aligned.m8n8.x2.b16", "address", lane=16) == ()
    (cell,) = what("ldmatrix.sync.aligned.m8n8.x2.b16", "address", lane=13)
    assert (cell.matrix, cell.row, cell.low, cell.high) == (1, 5, 0, 63)


def test_elements_are_where_the_figures_of_ptx_have_them() -> None:
    """PTX ISA 9.1, ldmatrix: thread 4 row + column / 2 has two elements of a row; with .trans of a column."""
    for row in range(8):
        for column in range(8):
            for matrix in range(4):
                plain, turned = (where(x, "D", row, column, matrix=matrix) for x in (LOAD, TRANS))
                assert (plain.lane, plain.register, plain.low) == (4 * row + column // 2, matrix, 16 * (column % 2))
                assert (turned.lane, turned.register, turned.low) == (4 * column + row // 2, matrix, 16 * (row % 2))
    cells = what(TRANS, "D", lane=9, register=1)
    assert [(x.matrix, x.row, x.column) for x in cells] == [(1, 2, 2), (1, 3, 2)]


def test_movmatrix_and_ldmatrix_have_the_layouts_of_mma() -> None:
    turn = "movmatrix.sync.aligned.m8n8.trans.b16"
    one = "ldmatrix.sync.aligned.m8n8.x1{}.b16"
    assert operand_layout(turn, "A") == operand_layout(one.format(""), "D")
    assert operand_layout(turn, "D") == operand_layout(one.format(".trans"), "D")
    b = operand_layout("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", "B")
    assert b == operand_layout(one.format(".trans"), "D")  # k in rows of memory


def test_words_are_codes_of_bits_and_numbers_of_wmma() -> None:
    assert [x.meaning for x in read_word(LOAD, "D", 0x0000ABCD, lane=0)] == ["0xabcd", "0x0000"]
    assert [x.value for x in read_word(LOAD, "D", 0x0000ABCD, lane=0)] == [None, None]
    assert [x.meaning for x in read_word(LOAD, "address", 0x80, lane=9)] == ["0x00000080"]
    assert [x.meaning for x in read_word(WMMA, "A", 0x3C00BC00, lane=0, target="sm_80")] == ["-1", "1"]
    six = "ldmatrix.sync.aligned.m8n16.x1.b8x16.b6x16_p32"
    assert [(x.cell.low, x.cell.high) for x in read_word(six, "D", 0, lane=0)] == [(0, 5), (8, 13), (16, 21), (24, 29)]


def test_targets_with_one_layout_need_no_name() -> None:
    assert where(LOAD, "D", 3, 5) == where(LOAD, "D", 3, 5, target="sm_90")
    assert where(F16, "A", 3, 5) == where(F16, "A", 3, 5, target="sm_80")
    assert where(WMMA, "A", 3, 5, target="sm_75") == where(WMMA, "A", 3, 5, target="sm_121a")
    assert where(WMMA, "A", 3, 5, target="sm_70").lane == 3
    assert layout_table(WMMA, "A", target="sm_70").title == f"A of {WMMA} on sm_70"


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: where(LOAD, "B", 0, 0), OperandError, f"{LOAD}: operand is 'B'; expected 'D' or 'address'"),
        (lambda: where(LOAD, "D", 8, 0), OperandError, f"{LOAD}: D has 8 rows; row is 8, expected 0 to 7"),
        (lambda: where(LOAD, "D", 0, 0, matrix=4), OperandError, f"{LOAD}: matrix of D is 4; expected 0, 1, 2, 3"),
        (lambda: where(LOAD, "address", 0, 1), OperandError, f"{LOAD}: address has 1 column; column is 1, expected 0"),
        (lambda: where(F16, "address", 0, 0), OperandError, f"{F16} has no address; expected 'A', 'B', 'C' or 'D'"),
        (lambda: where(WMMA, "A", 0, 0), TargetError,
         f"{WMMA}: the fragment of A differs between targets; name one of sm_70 to sm_72; sm_75 to sm_121a"),
        (lambda: where(WMMA, "A", 0, 0, target="sm_71"), TargetError, "unknown target 'sm_71'"),
        (lambda: what(LOAD, "D", lane=0, target="sm_70"), TargetError, f"{LOAD} is not legal on sm_70; legal on sm_75"),
        (lambda: what(F16, "A", lane=0, target="sm_75"), TargetError, f"{F16} is not legal on sm_75; legal on sm_80"),
        (lambda: where("ldmatrix.x4", "D", 0, 0), MnemonicError, "unknown instruction ldmatrix.x4"),
        (lambda: parse_fragments("ldmatrix.sync.aligned.m8n8.x3.b16"), MnemonicError,
         "unknown instruction ldmatrix.sync.aligned.m8n8.x3.b16; the nearest is ldmatrix.sync.aligned.m8n8.x1.b16"),
        (lambda: isa.parse_any(LOAD), MnemonicError, f"{LOAD}: starts with 'ldmatrix'; expected 'mma'"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_refused(call: Any, error: type[WarpmmaError], message: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}"):
        call()


# How it is known


def test_how_a_layout_is_known_is_what_the_evidence_says() -> None:
    for i in fragment_instructions():
        row = operations.row(str(i))
        for target in i.targets:
            said, evidence = layout_known(i, target), operations.evidence(str(i), target=target)
            assert said.startswith("opaque in PTX") == str(i).startswith("wmma"), i
            assert ("measured on an H200" in said) == (evidence.kind == "measured"), (i, target)
            if evidence.kind == "measured":
                assert evidence.compared in said and evidence.device.startswith("H200")
            elif not str(i).startswith("wmma"):
                assert said.startswith(evidence.kind)
        assert row.targets == i.targets and row.ptx == i.ptx
    rows = (*operations.rows(opcode="wmma"), *operations.matrix_moves())
    assert len(fragment_instructions()) == len(rows) + 1


def test_targets_that_were_read_are_those_of_the_recorded_machine_code() -> None:
    recorded = json.loads((Path(__file__).parents[1] / "data" / "wmma.json").read_text())
    read = {x for texts in recorded["fragments"].values() for targets in texts.values() for x in targets}
    for i in fragment_instructions():
        for target in i.targets if str(i).startswith("wmma") else ():
            said = layout_known(i, target)
            assert (target in read) == (said.startswith("opaque in PTX; read") or target == "sm_90")
    assert layout_known(F16) == "published: PTX ISA 9.1, 9.7.14.5"


def test_records_are_copied_and_pickled() -> None:
    for i in fragment_instructions()[::50]:
        i.fragments(i.operands[0])
        assert pickle.loads(pickle.dumps(i)) == i == copy.deepcopy(i) and parse_fragments(i) is i
    move = operations.matrix_move(LOAD)
    assert isinstance(move, FragmentMove) and where(move, "D", 3, 5) == wm.where(LOAD, "D", 3, 5)
    assert lookup.ids_of(move, "D") == tuple({"matrix": n} for n in range(4))
