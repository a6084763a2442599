"""Invalid arguments: each has its own error, which never comes from NumPy or Python."""

# mypy: disable-error-code="arg-type,list-item"
# What is refused has types that are refused too.

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma import arithmetic as targets
from warpmma import scaling, sparsity, testing
from warpmma._arguments import check_choice, is_integer, members
from warpmma._arrays import as_array
from warpmma.arithmetic import FloatChains, FmaChain, FusedDotAdd, Popcount, Recipe
from warpmma.errors import (
    MetadataError,
    MnemonicError,
    OperandError,
    RegisterError,
    ScaleError,
    TargetError,
    WarpmmaError,
    shown,
)
from warpmma.formats import FORMATS, FloatFormat
from warpmma.hardware import execute_fields, open_recording, ptx_kernel, ptx_module, ptx_statement
from warpmma.isa import WarpgroupInstruction, check_target, parse_any
from warpmma.kernel import operation
from warpmma.products import choice
from warpmma.registers import Packing

pytestmark = pytest.mark.quick

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SP = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
MX = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
SECOND: Any = np.timedelta64(1, "s")  # which is an integer to NumPy, and a signed one
NONE: Any = None
A, B, C = np.ones((16, 16), np.float16), np.ones((16, 8), np.float16), np.zeros((16, 8), np.float32)
SCALES = np.zeros((16, 2), np.uint8)
WORDS = np.full(32, 0x44444444, np.uint32)
DEEP = (1,) * 62


class Broken:
    """An object of which nothing works."""

    __hash__ = None  # type: ignore[assignment]

    def fail(self, *arguments: Any, **named: Any) -> Any:
        raise RuntimeError("broken")

    __repr__ = __str__ = __eq__ = __bool__ = __len__ = __getitem__ = __iter__ = __array__ = __index__ = fail


BROKEN: Any = Broken()
UNSHOWN = "<Broken that cannot be shown>"


# What the checks are made of.


@pytest.mark.parametrize("value", [0, -1, 10**30, np.int8(1), np.uint64(2**64 - 1)])
def test_integers(value: object) -> None:
    assert is_integer(value)


@pytest.mark.parametrize("value", [True, np.True_, 1.0, "1", None, SECOND, np.datetime64(1, "s"), np.array(1), BROKEN])
def test_no_integers(value: object) -> None:
    assert not is_integer(value)


def test_what_came_is_shown_in_a_line_of_some_length() -> None:
    assert shown("a\nb") == r"'a\nb'"
    assert shown(np.zeros((2, 2), int)) == "array([[0, 0], [0, 0]])"
    assert shown(10**5000) == "<int that cannot be shown>"
    assert shown(BROKEN) == UNSHOWN
    assert shown("x" * 1000) == "'" + "x" * 199 + "..."


def test_choices_name_the_nearest() -> None:
    check_choice("size", "large", ("small", "large"))
    check_choice("size", np.str_("large"), ("small", "large"))
    for value, text in (
        ("larg", "size is 'larg'; expected 'small' or 'large'; did you mean 'large'?"),
        ("xyz", "size is 'xyz'; expected 'small' or 'large'"),
        (None, "size is None; expected 'small' or 'large'"),
        (np.array(["small", "large"]), "size is array(['small', 'large'], dtype='<U5'); expected 'small' or 'large'"),
        (BROKEN, f"size is {UNSHOWN}; expected 'small' or 'large'"),
    ):
        with pytest.raises(OperandError, match=f"^{re.escape(text)}$"):
            check_choice("size", value, ("small", "large"))


def test_members_of_sequences() -> None:
    assert members([1, 2, 3], 5) == [1, 2, 3] and members(range(10**30), 2) == [0, 1, 2] and members((), 0) == []
    assert members("ab", 2) is members(b"ab", 2) is members(np.arange(2), 2) is members({1}, 2) is None


@pytest.mark.parametrize(
    ("array", "message"),
    [
        ([[1], [1, 2]], "x: not an array: setting an array element with a sequence"),
        (BROKEN, "x: not an array: broken"),
        (np.zeros(DEEP), "x has 62 dimensions; expected at most 32"),
        (
            np.broadcast_to(np.uint8(1), (1 << 25, 1 << 23)),
            "x has 281,474,976,710,656 elements, [33554432, 8388608]: more than any memory holds",
        ),
        (np.ma.masked_array([1], [True]), "x is a masked array, and instructions do not take masks; fill it first"),
    ],
)
def test_what_is_no_array(array: Any, message: str) -> None:
    with pytest.raises(ScaleError, match=f"^{re.escape(message)}"):
        as_array(array, "x", ScaleError)


# The functions.


def mma(**changes: Any) -> Any:
    return wm.mma(**{"instruction": F16, "a": A, "b": B, "target": "sm_90"} | changes)


def matmul(**changes: Any) -> Any:
    given: dict[str, Any] = {"a": A, "b": B, "target": "sm_90"}
    return wm.matmul(**given | changes)


def unit(**changes: Any) -> FusedDotAdd:
    given = {"fraction_bits": 25, "products": 16, "floor": -133, "result_bits": 23, "rounding": "rz"}
    return FusedDotAdd(**given | changes)


def instruction(**changes: Any) -> wm.Instruction:
    given = {"m": 16, "n": 8, "k": 16, "d_type": "f32", "a_type": "f16", "b_type": "f16", "c_type": "f32"}
    return wm.Instruction(**given | changes)


def registers(**more: Any) -> wm.RegisterFile:
    file = wm.RegisterFile(**more)
    file.declare(32, "%r0", "%r1")
    file.write("%r0", 1)
    return file


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        # Spans of time
        (lambda: matmul(split_k=SECOND), OperandError, "split_k is np.timedelta64(1,'s'); expected a positive number"),
        (lambda: matmul(split_k=[SECOND]), OperandError, "split_k is [np.timedelta64(1,'s')]; expected a positive num"),
        (lambda: matmul(promote_every=SECOND), OperandError, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: prom"),
        (lambda: matmul(threads=SECOND), OperandError, "threads is np.timedelta64(1,'s'); expected a positive integer"),
        (lambda: mma(selector=SECOND), OperandError, f"{F16} is dense: it takes no selector; got np.timedelta64(1,'s'"),
        (lambda: sparsity.pack_metadata(np.zeros((16, 8, 2), int), SP, selector=SECOND), MetadataError,
         f"{SP}: selector is np.timedelta64(1,'s'); legal are 0, 1"),
        (lambda: sparsity.metadata_place(SP, SECOND, 0), MetadataError, f"{SP}: row is np.timedelta64(1,'s'); legal "),
        (lambda: scaling.pack_scales(SCALES, MX, "A", byte_id=SECOND), ScaleError, f"{MX}: byte-id of A is np.timedel"),
        # Choices
        (lambda: mma(undefined="nonsense"), OperandError, "undefined is 'nonsense'; expected 'error' or 'hardware'"),
        (lambda: mma(engine="Native"), OperandError, "engine is 'Native'; expected 'auto', 'numpy' or 'native'; did y"),
        (lambda: operation("shfl.sync.idx.b32")(*[np.zeros(32, np.uint32)] * 4, undefined="nonsense"),
         OperandError, "shfl.sync.idx.b32: undefined is 'nonsense'; expected 'error' or 'zero'"),
        (lambda: operation("mov.b32")(np.zeros(32, np.uint32), undefined=NONE),
         OperandError, "mov.b32: undefined is None; expected 'error' or 'zero'"),
        (lambda: testing.assert_same_bits(C, C, nan=np.zeros(2)),
         OperandError, "nan is array([0., 0.]); expected 'bits' or 'any'"),
        (lambda: testing.assert_same_bits(C, C, operand="E"), OperandError, "operand is 'E'; expected 'A', 'B', 'C' o"),
        (lambda: unit(rounding="rp"), OperandError, "rounding is 'rp'; expected 'rz' or 'rn'"),
        (lambda: FmaChain(rounding=NONE), OperandError, "rounding is None; expected 'rn', 'rz', 'rm' or 'rp'"),
        (lambda: FloatChains(length=4, seed="one"), OperandError, "seed is 'one'; expected 'zero' or 'product'"),
        (lambda: Popcount(operation="or"), OperandError, "operation is 'or'; expected 'xor' or 'and'"),
        (lambda: Recipe(d="f32", a="f16", b="f16", c="f32", unit=unit(), order="descending"),
         OperandError, "order is 'descending'; expected 'ascending' or 'halves'; did you mean 'ascending'?"),
        (lambda: FloatFormat(name="x", exponent_bits=4, fraction_bits=3, bias=7, nan="some", overflow="infinity",
                             dtype_name="uint8", source=""), OperandError, "nan is 'some'; expected 'ieee', 'ones' or"),
        (lambda: choice.default_instruction("f16", "f61", None, "sm_90"), OperandError,
         "type of B is 'f61'; expected "),
        (lambda: choice.default_instruction("f16", "f16", None, "sm_90", sparse=2**31), OperandError,
         "sparse is 2147483648; expected a bool"),
        (lambda: wm.choose(None, B, target="sm_90"), OperandError, "A is object: which type is meant? Name the instr"),
        (lambda: testing.array_with(BROKEN, 2, {}), OperandError, f"array_with: no format {UNSHOWN}; expected one "),
        (lambda: testing.array_with("f16", 2, {0: BROKEN}), OperandError, "f16: not an array: broken"),
        # Places and lists
        (lambda: scaling.scale_place(MX, "A", 1.0, 0), ScaleError,
         f"{MX}: no scale for index 1.0, block 0 of A; it has 16 by 2"),
        (lambda: scaling.scale_place(MX, "A", "3", 0), ScaleError, f"{MX}: no scale for index '3', block 0 of A; "),
        (lambda: scaling.scale_place(MX, "A", 0, NONE), ScaleError, f"{MX}: no scale for index 0, block None of A; "),
        (lambda: scaling.scale_place(MX, "A", True, 0), ScaleError, f"{MX}: no scale for index True, block 0 of A; "),
        (lambda: scaling.thread_ids(np.array(["A", "B"])),
         OperandError, "operand array(['A', 'B'], dtype='<U1') has no scales; expected 'A' or 'B'"),
        (lambda: scaling.scale_codes("mma", "A", SCALES), MnemonicError, "mma: needs .sync; got none"),
        (lambda: sparsity.check_indices(np.ones((16, 8, 2), int), SP, legal=[4, None]), MetadataError,
         "legal is [4, None]; None is not a nibble, an integer from 0 to 15"),
        (lambda: sparsity.check_indices(np.ones((16, 8, 2), int), SP, legal=5), MetadataError,
         "legal is 5; expected nibbles, integers from 0 to 15"),
        (lambda: sparsity.check_metadata(WORDS, SP, legal=5), MetadataError,
         "legal is 5; expected nibbles, integers from 0 to 15"),
        (lambda: sparsity.check_metadata(WORDS, SP, legal=range(10**30)), MetadataError,
         "legal is range(0, 1000000000000000000000000000000); 16 is not a nibble, an integer from 0 to 15"),
        (lambda: matmul(split_k=b"\x10"), OperandError, r"split_k is b'\x10'; expected a positive number of slices"),
        (lambda: matmul(split_k=range(1, 10**30)), OperandError, f"{F16}: slices of k are (1, 2, 3, 4, 5, 6, 7, 8, 9,"),
        (lambda: testing.assert_same_bits(C, C, names=range(10**30)),
         OperandError, "names are range(0, 1000000000000000000000000000000); expected two strings"),
        (lambda: testing.ulps(BROKEN, 1, 1), OperandError, f"no format {UNSHOWN}; expected one of f64, "),
        # Numbers of dimensions
        (lambda: wm.store(F16, "A", np.zeros((*DEEP, 4, 32)[2:], np.uint32)), OperandError,
         f"{F16}: registers of A has 62 dimensions; expected at most 32"),
        (lambda: sparsity.unpack_metadata(np.zeros((*DEEP, 32), np.uint32), SP), MetadataError,
         f"{SP}: metadata has 63 dimensions; expected at most 32"),
        (lambda: wm.RegisterFile((1,) * 40), RegisterError, "warps has 40 dimensions; expected at most 30"),
        (lambda: wm.RegisterFile((10**9, 10**9)), RegisterError, "warps is (1000000000, 1000000000); a register of so"),
        # Registers
        (lambda: registers().declare(32, ["%a"]), RegisterError, "the name of a register is a string, not ['%a']"),
        (lambda: registers().declare([32], "%a"), RegisterError,
         "a register has 16, 32 or 64 bits or is a 'pred', not [32]"),
        (lambda: registers().declare(32, "%a", "%a"), RegisterError, "%a is declared twice"),
        (lambda: registers().read(["%r0"]), RegisterError, "no register ['%r0']; declared are %r0, %r1"),
        (lambda: registers().read_fragment("%r0"), RegisterError, "names are '%r0'; expected a sequence of strings"),
        (lambda: registers().write_fragment(["%r0"], BROKEN), RegisterError, "fragment: not an array: broken"),
        (lambda: registers().write("%r0", 1, where="no"), RegisterError, "%r0: where is 'no', of <U2; expected bool"),
        (lambda: registers().write("%r0", 1, where=[0, 1] * 16), RegisterError, "%r0: where is [0, 1, 0, 1, 0, 1, "),
        (lambda: registers().read("%r0", where="no"), RegisterError, "%r0: where is 'no', of <U2; expected bool"),
        (lambda: registers().read("%r0", where=1), RegisterError, "%r0: where is 1, of int64; expected bool"),
        (lambda: Packing(slot=8.0, bits=8), RegisterError, "Packing(slot=8.0, bits=8, shift=0) is not a valid packing"),
        # Quantized by hand
        (lambda: scaling.Quantized(elements=A, scales=SCALES).dequantize(), OperandError,
         "elements are float16 (16, 16); expected an ml_dtypes type of 4 to 8 bits"),
        (lambda: scaling.Quantized(elements=FORMATS["e4m3"].array(np.zeros((16, 64), int)), scales=SCALES[:3])
         .dequantize(), ScaleError, "scales are uint8 (3, 2); expected uint8, blocks of a row or column of (16, 64)"),
        # Instructions and targets
        (lambda: wm.parse("mma\ud800"), MnemonicError, r"'mma\ud800': a mnemonic has no lone surrogates"),
        (lambda: wm.parse(instruction(m=[16])), MnemonicError, "no instruction has m [16]; expected an integer of 1 t"),
        (lambda: wm.parse(instruction(kind="\ud800")), MnemonicError, r"no instruction has kind '\ud800'; expected a"),
        (lambda: wm.parse(instruction(k=0)), MnemonicError, "no instruction has k 0; expected an integer of 1 to 9999"),
        (lambda: instruction(satfinite="no"), MnemonicError, "no instruction has satfinite 'no'; expected a bool"),
        (lambda: instruction(a_type=BROKEN), MnemonicError, f"no instruction has a_type {UNSHOWN}; expected a qualifi"),
        (lambda: WarpgroupInstruction(n=NONE, k=16, d_type="f32", a_type="f16", b_type="f16"), MnemonicError,
         "no instruction has n None; expected an integer of 1 to 9999"),
        (lambda: targets.variants("90"), TargetError, "an architecture is a number such as 90; got '90'"),
        (lambda: targets.recipe(F16, ["sm_90"]), TargetError, "a target is a string such as 'sm_90'; got ['sm_90']"),
        (lambda: targets.recipe(NONE, "sm_90"), MnemonicError, "a mnemonic is a string, such as 'mma.sync...'; got No"),
        (lambda: sparsity.legal_codes(SP, "sm_91"), TargetError, "unknown target 'sm_91'; did you mean 'sm_90'"),
        # PTX and recordings
        (lambda: ptx_statement(SP, selector=NONE), MetadataError, f"{SP}: selector is None; legal are 0, 1"),
        (lambda: ptx_statement(MX, ids=(0, 0)), ScaleError, f"{MX}: ids are (0, 0); expected byte-id and thread-id of"),
        (lambda: ptx_kernel(F16, "a b"), OperandError, f"{F16}: the kernel's name is 'a b'; expected an identifier of"),
        (lambda: ptx_module("text", "sm_90", (8, 0)), OperandError, "kernels are one string; expected an iterable of "),
        (lambda: ptx_module([1], "sm_90", (8, 0)), OperandError, "kernels are [1]; expected an iterable of strings"),
        (lambda: ptx_module([], "sm_90", (8,)), OperandError, "version is (8,); expected two integers, such as (8, 0)"),
        (lambda: execute_fields(F16, {}, "sm_90", selector=0, ids=(), undefined="error"), OperandError,
         f"{F16}: fields are {{}}; expected a mapping with a, b, c"),
        (lambda: open_recording(BROKEN), WarpmmaError, f"{UNSHOWN}: "),
    ],
)  # fmt: skip
def test_what_is_refused(call: Callable[[], object], error: type[WarpmmaError], message: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}"):
        call()


def test_a_fragment_is_written_whole_or_not_at_all() -> None:
    file = wm.RegisterFile()
    file.declare(32, "%a", "%b")
    with pytest.raises(RegisterError, match=r"^%b is \.b32: a value of int64 does not fit it$"):
        file.write_fragment(["%a", "%b"], np.stack([np.zeros(32, int), np.full(32, 1 << 32)]))
    assert not file.written("%a").any()
    with pytest.raises(RegisterError):
        file.declare(32, "%c", "%a")
    assert "%c" not in file and BROKEN not in file


@pytest.mark.parametrize("name", [F16, WGMMA])
def test_functions_take_mnemonics_as_well_as_records(name: str) -> None:
    record = parse_any(name)
    target = record.targets[-1]
    assert targets.recipe(name, target) == targets.recipe(record, target)
    assert targets.lowering(name, target) == targets.lowering(record, target)
    assert targets.group(name) == targets.group(record)
    assert sparsity.legal_codes(SP, "sm_90") == sparsity.legal_codes(wm.parse(SP), "sm_90")
    check_target(F16, "sm_90")
    assert ptx_statement(F16) == ptx_statement(wm.parse(F16))
    assert ptx_kernel(F16, "k") == ptx_kernel(wm.parse(F16), "k")
    assert scaling.scale_codes(MX, "A", SCALES).dtype == np.uint8
