"""A file of named registers that tracks which were written."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from warpmma.errors import RegisterError, shown
from warpmma.machine import RegisterFile, WarpRegister
from warpmma.registers import LANES


@pytest.fixture
def registers() -> RegisterFile:
    file = RegisterFile((2, 3))
    file.declare(32, "%r0", "%r1", "%r2")
    file.declare(64, "%rd0")
    return file


@pytest.fixture
def narrow() -> RegisterFile:
    file = RegisterFile()
    file.declare(16, "%h0")
    file.declare("pred", "%p0")
    return file


def test_a_new_file_is_empty() -> None:
    file = RegisterFile()
    assert (file.warps, list(file), "%r0" in file, repr(file)) == ((), [], False, "RegisterFile(warps=(): empty)")


def test_registers_are_listed_with_their_widths(registers: RegisterFile) -> None:
    assert list(registers) == ["%r0", "%r1", "%r2", "%rd0"]
    assert [registers.width(name) for name in registers] == [32, 32, 32, 64]
    assert "%r1" in registers
    assert "%r9" not in registers
    assert repr(registers) == "RegisterFile(warps=(2, 3): .b32 %r0, .b32 %r1, .b32 %r2, .b64 %rd0)"


def test_halves_and_predicates_are_registers_too(narrow: RegisterFile) -> None:
    file = narrow
    assert [file.width(name) for name in file] == [16, 1]
    assert repr(file) == "RegisterFile(warps=(): .b16 %h0, .pred %p0)"
    file.write("%h0", 0xFFFF)
    file.write("%p0", np.arange(LANES) < 5)
    assert file.read("%h0").dtype == np.uint16 and file.read("%h0")[31] == 0xFFFF
    assert file.read("%p0").dtype == bool and file.read("%p0").sum() == 5


@pytest.mark.parametrize(("name", "width"), [("%r0", 32), ("%rd0", 64)])
def test_what_is_written_is_read(registers: RegisterFile, name: str, width: int) -> None:
    values = np.random.default_rng(6).integers(0, 2**width - 1, (2, 3, LANES), f"uint{width}", endpoint=True)
    registers.write(name, values)
    result = registers.read(name)
    assert result.dtype == f"uint{width}"
    np.testing.assert_array_equal(result, values)
    assert registers.written(name).all()


def test_a_value_is_broadcast_to_every_warp_and_lane(registers: RegisterFile) -> None:
    registers.write("%r0", 7)
    registers.write("%r1", np.arange(LANES))
    registers.write("%r2", np.arange(3)[:, None])
    np.testing.assert_array_equal(registers.read("%r0"), np.full((2, 3, LANES), 7))
    np.testing.assert_array_equal(registers.read("%r1"), np.tile(np.arange(LANES), (2, 3, 1)))
    np.testing.assert_array_equal(registers.read("%r2")[1, :, 9], [0, 1, 2])


def test_reads_are_copies(registers: RegisterFile) -> None:
    given = np.zeros((2, 3, LANES), np.uint32)
    registers.write("%r0", given)
    given += 1
    registers.read("%r0")[...] = 2
    registers.written("%r0")[...] = False
    assert not registers.read("%r0").any()


def test_masked_writes_keep_the_other_lanes(registers: RegisterFile) -> None:
    mask = np.random.default_rng(7).integers(0, 2, (2, 3, LANES)).astype(bool)
    registers.write("%r0", 1)
    registers.write("%r0", 2, where=mask)
    np.testing.assert_array_equal(registers.read("%r0"), np.where(mask, 2, 1))
    registers.write("%r1", 2, where=mask)
    np.testing.assert_array_equal(registers.written("%r1"), mask)
    np.testing.assert_array_equal(registers.read("%r1", where=mask)[mask], np.full(mask.sum(), 2))


@pytest.mark.parametrize(
    ("lanes", "named"),
    [
        (range(LANES), "lanes 0-31"),
        ([0], "lanes 0"),
        ([31], "lanes 31"),
        ([0, 1, 2, 7, 9, 10], "lanes 0-2, 7, 9-10"),
        ([4, 6], "lanes 4, 6"),
    ],
)
def test_an_unwritten_lane_cannot_be_read(lanes: Any, named: str) -> None:
    file = RegisterFile()
    file.declare(32, "%r0")
    file.write("%r0", 5, where=~np.isin(np.arange(LANES), list(lanes)))
    with pytest.raises(RegisterError, match=f"^%r0 is read before it is written: {named}$"):
        file.read("%r0")


def test_an_unwritten_lane_is_named_with_its_warp(registers: RegisterFile) -> None:
    written = np.ones((2, 3, LANES), bool)
    written[1, 2, [3, 30]] = False
    registers.write("%r0", 5, where=written)
    with pytest.raises(RegisterError, match=r"^%r0 is read before it is written: lanes 3, 30 of warp \(1, 2\)$"):
        registers.read("%r0")
    with pytest.raises(RegisterError, match=r"lanes 30 of warp \(1, 2\)$"):
        registers.read("%r0", where=np.arange(LANES) > 3)
    np.testing.assert_array_equal(registers.read("%r0", where=np.arange(LANES) < 3)[..., :3], np.full((2, 3, 3), 5))
    line = RegisterFile((4,))
    line.declare(32, "%r0")
    with pytest.raises(RegisterError, match=r"lanes 0-31 of warp 0$"):
        line.read("%r0")


def test_fragments_are_registers_side_by_side(registers: RegisterFile) -> None:
    fragment = np.random.default_rng(8).integers(0, 2**32, (2, 3, 2, LANES), np.uint32)
    registers.write_fragment(["%r2", "%r0"], fragment)
    np.testing.assert_array_equal(registers.read("%r0"), fragment[:, :, 1])
    np.testing.assert_array_equal(registers.read_fragment(["%r2", "%r0"]), fragment)
    registers.write_fragment(["%r1", "%r2"], fragment[0, 0])
    np.testing.assert_array_equal(registers.read_fragment(["%r1", "%r2"])[1, 2], fragment[0, 0])
    registers.write_fragment(["%rd0"], np.full((1, LANES), 2**63, np.uint64))
    assert registers.read_fragment(["%rd0"]).dtype == np.uint64


def test_a_fragment_with_an_unwritten_register_cannot_be_read(registers: RegisterFile) -> None:
    registers.write("%r0", 1)
    with pytest.raises(RegisterError, match="%r1 is read before it is written"):
        registers.read_fragment(["%r0", "%r1"])


# Errors.


@pytest.mark.parametrize("width", [0, 8, 33, 128, True, 32.0, "b32", None])
def test_registers_of_other_widths_are_refused(registers: RegisterFile, width: Any) -> None:
    with pytest.raises(RegisterError, match=f"^a register has 16, 32 or 64 bits or is a 'pred', not {shown(width)}$"):
        registers.declare(width, "%x")
    assert "%x" not in registers


@pytest.mark.parametrize(("name", "known"), [("%r0", ".b32"), ("%rd0", ".b64")])
def test_a_name_is_declared_once(registers: RegisterFile, name: str, known: str) -> None:
    with pytest.raises(RegisterError, match=f"{name} is already declared, as {known}"):
        registers.declare(64, name)


@pytest.mark.parametrize("use", ["width", "written", "read"])
def test_unknown_registers_are_named_with_those_that_exist(registers: RegisterFile, use: str) -> None:
    with pytest.raises(RegisterError, match="no register '%r9'; declared are %r0, %r1, %r2, %rd0"):
        getattr(registers, use)("%r9")
    with pytest.raises(RegisterError, match="no register '%r9'; declared are none"):
        RegisterFile().write("%r9", 0)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("%r0", 1.0, "%r0 holds bits: got dtype float64; expected uint32"),
        ("%r0", [True] * LANES, "%r0 holds bits: got dtype bool; expected uint32"),
        ("%rd0", np.array(["1"]), "%rd0 holds bits: got dtype <U1; expected uint64"),
        ("%r0", np.array(1, object), "%r0 holds bits: got dtype object; expected uint32"),
        ("%r0", -1, "%r0 is .b32: a value of int64 does not fit it"),
        ("%r0", np.full(LANES, 2**32), "%r0 is .b32: a value of int64 does not fit it"),
        ("%rd0", np.full(LANES, -1, np.int32), "%rd0 is .b64: a value of int32 does not fit it"),
        ("%r0", np.zeros(31, int), "%r0: values (31,) must broadcast to (2, 3, 32)"),
        ("%r0", np.zeros((2, 2, 1), int), "%r0: values (2, 2, 1) must broadcast to (2, 3, 32)"),
    ],
)  # fmt: skip
def test_values_that_do_not_fit_are_refused(registers: RegisterFile, name: str, values: Any, message: str) -> None:
    with pytest.raises(RegisterError, match=f"^{re.escape(message)}$"):
        registers.write(name, values)
    assert not registers.written(name).any()


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("%h0", 2**16, "%h0 is .b16: a value of int64 does not fit it"),
        ("%h0", True, "%h0 holds bits: got dtype bool; expected uint16"),
        ("%p0", 1, "%p0 is a predicate: got dtype int64; expected bool"),
        ("%p0", np.ones(5, bool), "%p0: values (5,) must broadcast to (32,)"),
    ],
)
def test_values_that_do_not_fit_narrow_registers_are_refused(
    narrow: RegisterFile, name: str, values: Any, message: str
) -> None:
    with pytest.raises(RegisterError, match=f"^{re.escape(message)}$"):
        narrow.write(name, values)


def test_an_array_is_no_width(registers: RegisterFile) -> None:
    with pytest.raises(RegisterError, match=r"^a register has 16, 32 or 64 bits or is a 'pred', not array\(\["):
        registers.declare(np.array(["pred", "x"]), "%x")  # type: ignore[arg-type]


def test_the_machine_puts_values_of_the_register_s_type(narrow: RegisterFile) -> None:
    half = WarpRegister(np.full(LANES, 7, np.uint16))
    narrow.put("%h0", half, np.arange(LANES) < 3)
    assert narrow.written("%h0").sum() == 3
    defined = narrow.get("%h0").defined
    assert defined is not None and defined.sum() == 3
    with pytest.raises(RegisterError, match=r"^%p0 is \.pred; got a value of \.b16$"):
        narrow.put("%p0", half, np.ones(LANES, bool))


def test_a_mask_that_does_not_broadcast_is_refused(registers: RegisterFile) -> None:
    with pytest.raises(RegisterError, match=r"^%r0: .*mask \(5,\) must broadcast to \(2, 3, 32\)$"):
        registers.write("%r0", 1, where=np.ones(5, bool))
    assert not registers.written("%r0").any()


def test_a_mask_of_a_read_that_does_not_broadcast_is_refused(registers: RegisterFile) -> None:
    with pytest.raises(RegisterError, match=r"^%r0: .*\(5,\) must broadcast to \(2, 3, 32\)$"):
        registers.read("%r0", where=np.ones(5, bool))


@pytest.mark.parametrize("shape", [(LANES,), (1, LANES), (3, LANES), (2, 31), (2, LANES, 1)])
def test_fragments_of_another_shape_are_refused(registers: RegisterFile, shape: tuple[int, ...]) -> None:
    message = f"got a fragment {shape}; expected [..., 2, 32] for ['%r0', '%r1']"
    with pytest.raises(RegisterError, match=f"^{re.escape(message)}$"):
        registers.write_fragment(["%r0", "%r1"], np.zeros(shape, np.uint32))


@pytest.mark.parametrize("names", [[], ["%r0", "%rd0"]])
def test_a_fragment_has_registers_of_one_width(registers: RegisterFile, names: list[str]) -> None:
    with pytest.raises(RegisterError, match="a fragment is one or more registers of one width"):
        registers.read_fragment(names)
