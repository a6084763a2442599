"""`ldmatrix`, `stmatrix`, `movmatrix`: bijections, PTX's fragments lane by lane, `mma`'s operands, an H200's bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arrays import Array

import warpmma as wm
from warpmma.errors import MnemonicError, OperandError, TargetError
from warpmma.operations import MatrixMove, Operation, matrix_move, matrix_moves, operation, rows

pytestmark = pytest.mark.quick

MOVES = {move.mnemonic: move for move in matrix_moves()}
SHARED = {name: move for name, move in MOVES.items() if ".shared." in name}
RECORDING = Path(__file__).parents[1] / "data" / "h200_fragments.npz"
LANE = np.arange(32)
G, T = LANE >> 2, LANE & 3
each_move = pytest.mark.parametrize("move", SHARED.values(), ids=SHARED)


def rows_of(move: MatrixMove, number: int = 1, seed: int = 0) -> Array:
    """Random bytes of the rows of several warps."""
    shape = (number, move.matrices, move.rows_per_matrix, move.row_bytes)
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def elements(move: MatrixMove, data: Array) -> Array:
    """Elements of rows: numbers that NumPy reads, or bits picked one by one."""
    if move.bits == 16:
        return data.view("<u2")
    whole = [int.from_bytes(row.tobytes(), "little") for row in data.reshape(-1, 16)]
    picked = [[x >> (move.bits * i) & ((1 << move.bits) - 1) for i in range(16)] for x in whole]
    return np.array(picked).reshape(*data.shape[:-1], 16)


# The table


def test_every_form_that_ptx_has() -> None:
    """Counts of docs/specification/ptx.md 5.1; each without a state space, with .shared and with .shared::cta."""
    counts = {
        ("ldmatrix", "m8n8", 16): 6, ("ldmatrix", "m16n16", 8): 2, ("ldmatrix", "m16n16", 6): 2,
        ("ldmatrix", "m16n16", 4): 2, ("ldmatrix", "m8n16", 6): 3, ("ldmatrix", "m8n16", 4): 3,
        ("stmatrix", "m8n8", 16): 6, ("stmatrix", "m16n8", 8): 3,
    }  # fmt: skip
    found = [(m.mnemonic.split(".")[0], m.mnemonic.split(".")[3], m.bits) for m in SHARED.values()]
    assert {key: found.count(key) for key in found} == counts
    spaces = {m.replace(".shared::cta", "").replace(".shared", "") for m in MOVES}
    assert (len(SHARED), len(spaces), len(MOVES)) == (27, 27, 81)
    assert len(matrix_moves("sm_75")) == 18
    assert len(matrix_moves("sm_90")) == len(matrix_moves("sm_100")) == 36
    assert len(matrix_moves("sm_120a")) == len(matrix_moves("sm_100f")) == 81


@each_move
def test_matrices_fill_rows_and_registers(move: MatrixMove) -> None:
    assert move.row_bytes == move.alignment == 16
    assert move.address_lanes == move.matrices * move.rows_per_matrix <= 32
    columns = move.layout.shape[-1]
    assert columns == (8 if move.bits == 16 else 16)
    assert move.registers * 32 * move.layout.packing.per_register == move.address_lanes * columns
    assert move.syntax.count("d" if move.direction == "load" else "a") == move.registers
    assert f".x{move.matrices}." in move.mnemonic
    assert move.direction == {"ld": "load", "st": "store"}[move.mnemonic[:2]]


@each_move
def test_every_element_has_one_place(move: MatrixMove) -> None:
    """Its number, byte by byte of the number, comes out (or goes in) once."""
    size = move.address_lanes * move.layout.shape[-1]
    np.testing.assert_array_equal(np.sort(move.layout.flat, axis=None), np.arange(size))
    assert move.layout.flat.shape == (move.registers, 32, move.layout.packing.per_register)
    number = np.arange(size)
    if move.direction == "store":
        seen = []
        for shift in (0, 8):
            codes = (number >> shift) & 0xFF if move.bits == 8 else number
            registers = move.layout.packing.pack(codes.reshape(move.registers, 32, -1))
            seen.append(elements(move, move.collect(registers)).reshape(-1).astype(np.int64))
        whole = seen[0] | (seen[1] << 8 if move.bits == 8 else 0)
        np.testing.assert_array_equal(np.sort(whole), number)
        return
    whole = np.zeros(size, np.int64)
    for shift in range(0, 12, move.bits):
        codes = (number >> shift) & ((1 << move.bits) - 1)
        bits = codes.reshape(-1, move.layout.shape[-1], 1) >> np.arange(move.bits) & 1
        packed = np.packbits(bits.reshape(len(bits), -1).astype(np.uint8), axis=-1, bitorder="little")
        data = np.zeros((len(bits), 16), np.uint8)
        data[:, : packed.shape[-1]] = packed
        got = move.distribute(data.reshape(move.matrices, move.rows_per_matrix, 16))
        whole |= move.layout.packing.unpack(got).reshape(-1).astype(np.int64) << shift
    np.testing.assert_array_equal(np.sort(whole), number)


# Fragments, lane by lane: docs/specification/ptx.md 5.3. Element e of register r is element x of row p of matrix q.

Place = Callable[[int, int], tuple[Any, Any, Any]]  # (register, element) -> (matrix, row, column) of each lane
PLACES: dict[str, Place] = {
    "m8n8": lambda r, e: (r, G, 2 * T + e),
    "m8n8.trans": lambda r, e: (r, 2 * T + e, G),
    "m8n16": lambda r, e: (r, G, 4 * T + e),
    "m16n16.trans": lambda r, e: (r // 2, 4 * T + e, G + 8 * (r % 2)),
    "m16n8.trans": lambda r, e: (r, 2 * T + e % 2, G + 8 * (e // 2)),
}


@each_move
def test_fragments_of_the_manual(move: MatrixMove) -> None:
    words = move.mnemonic.split(".")
    place = PLACES[words[3] + ".trans" * ("trans" in words)]
    slot = move.layout.packing.slot
    per_register = 32 // slot
    data = rows_of(move, 5)
    if move.direction == "load":
        registers = move.distribute(data)
    else:
        shape = (5, move.registers, 32)
        registers = np.random.default_rng(1).integers(0, 2**32, shape, np.uint32)
        data = move.collect(registers)
    m = elements(move, data)
    assert registers.shape == (5, move.registers, 32)
    for r in range(move.registers):
        for e in range(per_register):
            q, p, x = place(r, e)
            got = registers[:, r] >> np.uint32(e * slot) & np.uint32((1 << slot) - 1)
            np.testing.assert_array_equal(got, m[:, q, p, x], err_msg=f"register {r} element {e}")


@pytest.mark.parametrize("name", [name for name in SHARED if name.endswith(("b6x16_p32", "b4x16_p64"))])
def test_padding_does_not_count(name: str) -> None:
    move = MOVES[name]
    data = rows_of(move)
    other = data.copy()
    other[..., 2 * move.bits :] ^= 0xFF
    np.testing.assert_array_equal(move.distribute(data), move.distribute(other))
    assert not (move.distribute(data) & (0xC0C0C0C0 if move.bits == 6 else 0xF0F0F0F0)).any()


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
def test_stmatrix_undoes_ldmatrix(count: int, trans: str) -> None:
    load, store = (matrix_move(f"{x}matrix.sync.aligned.m8n8.x{count}{trans}.shared.b16") for x in ("ld", "st"))
    data = rows_of(load, 3)
    np.testing.assert_array_equal(store.collect(load.distribute(data)), data)


# What the instructions are for


def tiles(matrix: Array, corners: list[tuple[int, int]]) -> Array:
    """Rows of 16 bytes of 8x8 tiles of 16-bit elements."""
    picked = [np.ascontiguousarray(matrix[r : r + 8, c : c + 8]) for r, c in corners]
    return np.stack(picked).view(np.uint8)


def test_ldmatrix_loads_the_fragments_of_mma() -> None:
    i = wm.parse("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 2**16, (16, 16), np.uint16), rng.integers(0, 2**16, (16, 8), np.uint16)
    four = tiles(a, [(0, 0), (8, 0), (0, 8), (8, 8)])
    got = matrix_move("ldmatrix.sync.aligned.m8n8.x4.shared.b16").distribute(four)
    np.testing.assert_array_equal(got, wm.load(i, "A", a))
    # A stored by columns, and B by rows, want .trans; B by columns does not.
    four = tiles(np.ascontiguousarray(a.T), [(0, 0), (0, 8), (8, 0), (8, 8)])
    got = matrix_move("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16").distribute(four)
    np.testing.assert_array_equal(got, wm.load(i, "A", a))
    got = matrix_move("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16").distribute(tiles(b, [(0, 0), (8, 0)]))
    np.testing.assert_array_equal(got, wm.load(i, "B", b))
    two = tiles(np.ascontiguousarray(b.T), [(0, 0), (0, 8)])
    got = matrix_move("ldmatrix.sync.aligned.m8n8.x2.shared.b16").distribute(two)
    np.testing.assert_array_equal(got, wm.load(i, "B", b))


def test_stmatrix_stores_the_accumulators_of_mma() -> None:
    i = wm.parse("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16")
    d = np.random.default_rng(3).integers(0, 2**16, (16, 8), np.uint16)
    registers = wm.load(i, "D", d)
    got = matrix_move("stmatrix.sync.aligned.m8n8.x2.shared.b16").collect(registers)
    np.testing.assert_array_equal(got.view(np.uint16).reshape(16, 8), d)
    got = matrix_move("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16").collect(registers)
    np.testing.assert_array_equal(got.view(np.uint16), np.stack([d[:8].T, d[8:].T]))


def test_stmatrix_of_bytes_takes_an_accumulator_of_four() -> None:
    """Byte j of a lane's register is element cj of an m16n8 accumulator; memory has the matrix by columns."""
    i = wm.parse("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    d = np.arange(128, dtype=np.uint32).reshape(16, 8)
    bytes_ = wm.load(i, "D", d.view(np.float32)).astype(np.uint8)
    register = np.ascontiguousarray(bytes_.T).view("<u4").reshape(1, 32).astype(np.uint32)
    got = matrix_move("stmatrix.sync.aligned.m16n8.x1.trans.shared.b8").collect(register)
    np.testing.assert_array_equal(got[0], d.T)


def test_ldmatrix_of_bytes_loads_the_b_of_f8_mma() -> None:
    """16 rows of k, each 16 columns of n: two fragments of B for k16, 8 columns each."""
    i = wm.parse("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32")
    b = np.random.default_rng(4).integers(0, 256, (16, 16), np.uint8)
    got = matrix_move("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8").distribute(b[None])
    for half in range(2):
        columns = np.ascontiguousarray(b[:, 8 * half : 8 * half + 8]).view(np.int8)
        np.testing.assert_array_equal(got[half : half + 1], wm.load(i, "B", columns))


def test_movmatrix_transposes() -> None:
    (row,) = rows(opcode="movmatrix")
    assert isinstance(row, Operation)
    assert row.targets[0] == "sm_75"
    load = matrix_move("ldmatrix.sync.aligned.m8n8.x1.shared.b16")
    m = np.random.default_rng(5).integers(0, 2**16, (3, 1, 8, 8), np.uint16)
    a = load.distribute(m.view(np.uint8))
    (d,) = row(a[:, 0])
    np.testing.assert_array_equal(d[:, None], load.distribute(np.ascontiguousarray(m.swapaxes(-1, -2)).view(np.uint8)))
    np.testing.assert_array_equal(row(d)[0], a[:, 0])
    assert operation("movmatrix.sync.aligned.m8n8.trans.b16") is row


# Addresses


@each_move
def test_lanes_point_to_rows(move: MatrixMove) -> None:
    addresses = np.stack([LANE * 16, LANE[::-1] * 32]).astype(np.uint32)
    got = move.rows(addresses)
    assert got.shape == (2, move.matrices, move.rows_per_matrix)
    for q in range(move.matrices):
        for p in range(move.rows_per_matrix):
            np.testing.assert_array_equal(got[:, q, p], addresses[:, move.rows_per_matrix * q + p])


def test_addresses_are_aligned_where_they_count() -> None:
    move = matrix_move("ldmatrix.sync.aligned.m8n8.x2.shared.b16")
    addresses = np.zeros((2, 32), np.uint32)
    addresses[1, 16:] = 1  # of no consequence
    assert not move.rows(addresses).any()
    addresses[1, 15] = 24
    with pytest.raises(OperandError, match=r"x2\.shared\.b16: lane 15: address 0x18 is not a multiple of 16"):
        move.rows(addresses)


# Errors


LOAD, STORE = "ldmatrix.sync.aligned.m8n8.x2.shared.b16", "stmatrix.sync.aligned.m8n8.x2.shared.b16"


@pytest.mark.parametrize(
    ("method", "shape", "dtype", "message"),
    [
        ("rows", (31,), np.uint32, r"addresses are uint32 \(31,\); expected integers \[\.\.\., 32\]"),
        ("rows", (32,), np.float32, r"addresses are float32 \(32,\); expected integers \[\.\.\., 32\]"),
        ("distribute", (2, 8, 8), np.uint8, r"data are uint8 \(2, 8, 8\); expected uint8 \[\.\.\., 2, 8, 16\]"),
        ("distribute", (2, 8, 16), np.uint16, r"data are uint16 \(2, 8, 16\); expected uint8 \[\.\.\., 2, 8, 16\]"),
        ("collect", (1, 32), np.uint32, r"registers are uint32 \(1, 32\); expected uint32 \[\.\.\., 2, 32\]"),
        ("collect", (2, 32), np.int32, r"registers are int32 \(2, 32\); expected uint32 \[\.\.\., 2, 32\]"),
    ],
)
def test_arrays_that_do_not_fit(method: str, shape: tuple[int, ...], dtype: Any, message: str) -> None:
    move = matrix_move(STORE if method == "collect" else LOAD)
    with pytest.raises(OperandError, match=message):
        getattr(move, method)(np.zeros(shape, dtype))


@pytest.mark.parametrize("move", matrix_moves(), ids=str)
def test_a_batch_of_no_warps(move: MatrixMove) -> None:
    rows, fragment = (move.matrices, move.rows_per_matrix, 16), (move.registers, 32)
    if move.direction == "load":
        assert move.distribute(np.zeros((0, 3, *rows), np.uint8)).shape == (0, 3, *fragment)
    else:
        assert move.collect(np.zeros((0, 3, *fragment), np.uint32)).shape == (0, 3, *rows)


@pytest.mark.parametrize("move", matrix_moves(), ids=str)
def test_as_many_dimensions_as_there_may_be(move: MatrixMove) -> None:
    rng = np.random.default_rng(0)
    if move.direction == "load":
        data = rng.integers(0, 256, (move.matrices, move.rows_per_matrix, 16), np.uint8)
        assert (move.distribute(data.reshape((1,) * 29 + data.shape)) == move.distribute(data)).all()
    else:
        words = rng.integers(0, 1 << 32, (move.registers, 32), np.uint32)
        assert (move.collect(words.reshape((1,) * 30 + words.shape)) == move.collect(words)).all()


def test_loads_do_not_collect_and_stores_do_not_distribute() -> None:
    with pytest.raises(OperandError, match=r"x2\.shared\.b16 is a load; use distribute"):
        matrix_move(LOAD).collect(np.zeros((2, 32), np.uint32))
    with pytest.raises(OperandError, match=r"x2\.shared\.b16 is a store; use collect"):
        matrix_move(STORE).distribute(np.zeros((2, 8, 16), np.uint8))


def test_mnemonics() -> None:
    assert matrix_move("ldmatrix.sync.aligned.x4.m8n8.shared.b16", "sm_80").mnemonic == LOAD.replace("x2", "x4")
    nearest = r"Nearest: ldmatrix\.sync\.aligned\.m16n16\.x[12]\.trans\.shared\.b8"
    with pytest.raises(MnemonicError, match=rf"is not a simulated ldmatrix or stmatrix\. {nearest}"):
        matrix_move("ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8")
    with pytest.raises(MnemonicError, match="is not a simulated ldmatrix"):
        matrix_move("ldmatrix.sync.aligned.m8n16.x1.shared.s8.s4")
    with pytest.raises(TargetError, match=r"x2\.shared\.b16 is not legal on sm_80; legal on sm_90, "):
        matrix_move(STORE, "sm_80")
    with pytest.raises(TargetError, match="unknown target"):
        matrix_move(STORE, "sm_91")
    with pytest.raises(TargetError, match="unknown target"):
        matrix_moves("sm_91")


# An H200


def recording() -> dict[str, Array]:
    with np.load(RECORDING) as archive:
        return dict(archive)


def test_the_forms_of_an_h200_are_recorded() -> None:
    recorded = recording()
    assert recorded.pop("device") == "NVIDIA H200, driver 580.159.04"
    assert {key.split("|")[0] for key in recorded} == {name for name, m in SHARED.items() if "sm_90" in m.targets}


@pytest.mark.parametrize("name", sorted({key.split("|")[0] for key in recording()} - {"device"}))
def test_replay(name: str) -> None:
    archive, move = recording(), MOVES[name]
    memory, addresses, out = (archive[f"{name}|{x}"] for x in ("memory", "addresses", "out"))
    assert len(memory) == len(addresses) == len(out) == 4
    for warp in range(4):
        rows = move.rows(addresses[warp])
        if move.direction == "load":
            data = np.stack([[memory[warp, x : x + 16] for x in matrix] for matrix in rows.tolist()])
            np.testing.assert_array_equal(move.distribute(data), out[warp])
            continue
        expected = memory[warp].copy()
        for x, row in zip(rows.ravel(), move.collect(archive[f"{name}|registers"][warp]).reshape(-1, 16), strict=True):
            expected[x : x + 16] = row
        assert (expected != memory[warp]).any()
        np.testing.assert_array_equal(expected, out[warp])
