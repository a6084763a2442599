"""The extension validates its arguments: any mistake in a plan or an array is an error before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arrays import Array
from oracles import skip_without

from warpmma.arithmetic import product
from warpmma.arithmetic.dispatch import native
from warpmma.arithmetic.recipes.lowerings import recipe
from warpmma.isa import Instruction, parse

pytestmark = pytest.mark.quick

skip_without("native engine")
_native: Any = native._native

DENSE = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
CHAINS = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"
GROUPS = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
SCALED = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
DOUBLES = "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64"
INTEGERS = "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32"
BITS = "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc"
TARGETS = {DENSE: "sm_90", CHAINS: "sm_90", GROUPS: "sm_120a", SCALED: "sm_120a", DOUBLES: "sm_90", SPARSE: "sm_90",
           INTEGERS: "sm_90", BITS: "sm_90"}  # fmt: skip
BATCH = 3


def stored(i: Instruction) -> int:
    """Products of one instruction, of which a register of single bits holds 32."""
    return i.k // (32 if i.a_type == "b1" else 2 if i.sparse else 1)


def plan(mnemonic: str) -> Any:
    """Return a plan that nobody has checked."""
    i = parse(mnemonic)
    return native._parameters(recipe(i, TARGETS[mnemonic]), stored(i), i.sparse, i.scales_per_row)


def operands(mnemonic: str) -> dict[str, Array]:
    """Zeros for one instruction."""
    i = parse(mnemonic)
    k, rows = stored(i), stored(i) * (2 if i.sparse else 1)
    wide = np.uint64 if i.a_type == "f64" else np.uint32
    x = {
        "a": np.zeros((BATCH, i.m, k), wide), "b": np.zeros((BATCH, rows, i.n), wide),
        "c": np.zeros((BATCH, i.m, i.n), wide), "d": np.ones((BATCH, i.m, i.n), wide),
    }  # fmt: skip
    if i.sparse:
        x["chosen"] = np.zeros((BATCH, i.m, k), np.uint8)
    if i.scales_per_row:
        x["scale_a"] = np.zeros((BATCH, i.m, i.scales_per_row), np.uint8)
        x["scale_b"] = np.zeros((BATCH, i.scales_per_row, i.n), np.uint8)
    return x


def run(checked: Any, mnemonic: str, x: dict[str, Array], *, level: int | None = None, **more: Any) -> None:
    i = parse(mnemonic)
    number = native.levels()[0].number if level is None else level
    size = {"registers": False, "m": i.m, "n": i.n, "k": stored(i)} | more
    extra = (x.get(name) for name in ("chosen", "scale_a", "scale_b"))
    partial = (x.get("ends", ()), x.get("sums"))
    _native.execute(checked, number, x["a"], x["b"], x["c"], x["d"], *size.values(), *extra, *partial)


# Plans.

E4M3, F32, F64 = (native._format(name, name) for name in ("e4m3", "f32", "f64"))


def nested(part: str, **fields: int) -> Callable[[Any], None]:
    """Change fields of a format or a table where it lies in its plan."""

    def change(plan: Any) -> None:
        for name, value in fields.items():
            setattr(getattr(plan, part), name, value)

    return change


def fields(**values: Any) -> Callable[[Any], None]:
    def change(plan: Any) -> None:
        for name, value in values.items():
            setattr(plan, name, value)

    return change


WRONG_PLANS: list[tuple[str, Callable[[Any], None], str]] = [
    (DENSE, fields(unit=6), "no such unit"), (DENSE, fields(unit=-1), "no such unit"),
    (DENSE, fields(k=0), "from 1 to 32768"), (DENSE, fields(k=-16), "from 1 to 32768"),
    (DENSE, fields(k=1 << 30), "from 1 to 32768"), (DENSE, fields(b_k=32), "b_k"), (SPARSE, fields(b_k=16), "b_k"),
    (DENSE, fields(step=15), "equal length"), (DENSE, fields(step=0, steps=0), "equal length"),
    (DENSE, fields(step=-4, steps=-4), "equal length"), (DENSE, fields(step=1 << 16, steps=1 << 16), "equal length"),
    (DENSE, fields(order=list(range(15))), "permutation"), (DENSE, fields(order=[0] * 16), "permutation"),
    (DENSE, fields(order=[*range(15), 16]), "permutation"), (DENSE, fields(order=[*range(15), -1]), "permutation"),
    (DENSE, fields(step=1, steps=16), "even number"), (DENSE, fields(rounding=1), "rounding mode"),
    (DOUBLES, fields(rounding=4), "four rounding modes"), (DOUBLES, fields(rounding=-1), "four rounding modes"),
    (DENSE, fields(fraction_bits=26), "fraction bits"), (DENSE, fields(fraction_bits=0), "fraction bits"),
    (DENSE, fields(floor=-1 << 20), "least exponent"), (DENSE, fields(result_bits=24), "fraction bits"),
    (DENSE, fields(nearest=True), "rounded"), (DENSE, fields(scales=2), "256 entries"),
    (SCALED, fields(scales=-1), "divide k"), (SCALED, fields(scales=3), "divide k"),
    (SCALED, fields(scales=32), "even number"), (SCALED, fields(scale_value=[1.0] * 255), "256 entries"),
    (SCALED, fields(scale_exponent=[]), "256 entries"), (SCALED, fields(scale_value=[3.0] * 256), "powers of two"),
    (SCALED, fields(scale_exponent=[1 << 20] * 256), "exponents"), (GROUPS, fields(scales=0), "groups have"),
    (GROUPS, fields(step=2, steps=32), "at most 16 groups"), (GROUPS, fields(fraction_bits=36), "fraction bits"),
    (GROUPS, fields(scale_value=[4.0] * 256, scale_exponent=[0] * 256), "its exponent"),
    (GROUPS, fields(a=E4M3), "the sum of a group"), (GROUPS, fields(a=F32), "the sum of a group"),
    (DENSE, fields(a=F32), "does not hold products"), (DENSE, fields(c=E4M3), "C and D of f16 or f32"),
    (DENSE, fields(d=F64), "C and D of f16 or f32"), (DENSE, nested("a", width=0), "floating-point"),
    (DENSE, nested("a", width=33), "floating-point"), (DENSE, nested("b", fraction_bits=-1), "floating-point"),
    (DENSE, nested("b", fraction_bits=24), "floating-point"), (DENSE, nested("a", emin=1000), "floating-point"),
    (DENSE, nested("a", emin=-127), "floating-point"), (DENSE, nested("a", magnitude=0), "floating-point"),
    (DENSE, nested("a", magnitude=1 << 31), "floating-point"), (DENSE, nested("a", special_from=0), "floating-point"),
    (DENSE, nested("a", infinity=1 << 31), "floating-point"), (DENSE, nested("a", emin=120), "floating-point"),
    (DENSE, nested("a", nominal_emin=-1 << 20), "floating-point"), (DENSE, nested("a", integer=True), "floating-point"),
    (CHAINS, fields(a=F32), "does not hold products"), (CHAINS, fields(c=F64), "chains in f32"),
    (CHAINS, fields(scales=1), "no block scales"), (CHAINS, fields(sparse=True, b_k=8), "no sparse form"),
    (INTEGERS, nested("a", width=9), "8 bits"), (INTEGERS, nested("b", integer=False), "8 bits"),
    (INTEGERS, nested("c", width=16), "32 bits"), (INTEGERS, nested("d", is_signed=False), "clamped"),
    (BITS, nested("a", width=8), "single bits"), (BITS, nested("d", width=16), "32 bits"),
    (DOUBLES, nested("c", width=32), "f64 chain"), (DENSE, fields(registers=1), "d_flat"),
    (DENSE, fields(registers=-1), "registers"), (DENSE, fields(per_register=0), "registers"),
    (DENSE, fields(matrices=0), "matrices"), (DENSE, fields(matrices=1 << 30), "matrices"),
    (DENSE, fields(registers=1, d_flat=[0] * 32), "d_shift"),
    (DENSE, fields(registers=1, d_flat=[0] * 32, d_shift=[32]), "shift"),
    (DENSE, fields(registers=1, d_flat=[0] * 31 + [-1], d_shift=[0]), "places"),
    (DENSE, nested("a_table", word=[0]), "a shift for each word"),  # type: ignore[arg-type]
    (DENSE, nested("b_table", word=[-1], shift=[0]), "counted from 0"),  # type: ignore[arg-type]
    (DENSE, nested("c_table", word=[0], shift=[-1]), "shift"),  # type: ignore[arg-type]
]  # fmt: skip


@pytest.mark.parametrize(("mnemonic", "change", "text"), WRONG_PLANS)
def test_a_wrong_plan_is_refused(mnemonic: str, change: Callable[[Any], None], text: str) -> None:
    made = plan(mnemonic)
    _native.Plan(made)
    change(made)
    with pytest.raises(ValueError, match=text):
        _native.Plan(made)


def test_an_empty_plan_is_refused() -> None:
    with pytest.raises(ValueError, match="k, the products"):
        _native.Plan(_native.Parameters())


def test_a_plan_that_nobody_checked_does_not_run() -> None:
    with pytest.raises(TypeError, match="incompatible function arguments"):
        run(plan(DENSE), DENSE, operands(DENSE))


@pytest.mark.parametrize("mnemonic", TARGETS)
def test_a_checked_plan_no_longer_changes(mnemonic: str) -> None:
    made, x = plan(mnemonic), operands(mnemonic)
    checked = _native.Plan(made)
    run(checked, mnemonic, x)
    expected = x["d"].copy()
    made.order, made.k, made.unit, made.a.width = [1 << 30], 0, 99, 0
    x["d"][...] = 1
    run(checked, mnemonic, x)
    np.testing.assert_array_equal(x["d"], expected)
    assert not [name for name in dir(checked) if not name.startswith("_")]


# Levels and arrays.


@pytest.mark.parametrize("level", [99, -1, 4])
def test_a_level_that_is_not_there(level: int) -> None:
    with pytest.raises(ValueError, match="no such level"):
        run(_native.Plan(plan(DENSE)), DENSE, operands(DENSE), level=level)


def test_every_level_that_is_there() -> None:
    x = operands(DENSE)
    for level in native.levels():
        x["d"][...] = 1
        run(_native.Plan(plan(DENSE)), DENSE, x, level=level.number)
        assert not x["d"].any()


def _read_only(x: Array) -> Array:
    x = x.copy()
    x.flags.writeable = False
    return x


def _a_byte_further(x: Array) -> Array:
    return np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape)


def _of_records(x: Array) -> Array:
    """Rows of columns that lie three bytes further apart than they should."""
    records = np.zeros(x.shape, [("x", x.dtype), ("pad", "u1", 3)])
    return records["x"]


WRONG_ARRAYS: list[tuple[str, Callable[[Array], Any], str]] = [
    *((name, cut, rf"{name.upper()} is \[") for name in "abc" for cut in (
        lambda x: x[:, :-1], lambda x: x[:, :, :-1], lambda x: x.repeat(2, axis=1), lambda x: x[:, :0], lambda x: x[0],
    )),
    *((name, lambda x: x[:2], rf"{name.upper()} is for a batch of 2, D for one of 3") for name in "abc"),
    *((name, lambda x: None, rf"{name.upper()} is missing") for name in "abcd"),
    *((name, lambda x: x.tolist(), rf"{name.upper()} is no array") for name in "abcd"),
    *((name, lambda x: x[..., None, None], "1 to 4 dimensions") for name in "abcd"),
    *((name, lambda x: x.view("f4"), "unsigned integers") for name in "abcd"),
    *((name, lambda x: x.view(">u4"), "unsigned integers") for name in "abcd"),
    *((name, _a_byte_further, "aligned") for name in "abc"), ("a", _of_records, "aligned"),
    ("d", _read_only, "D is no array that can be written"), ("d", lambda x: x[:, :, ::-1], "D is not contiguous"),
    ("d", lambda x: x.astype(np.uint16), "D is not contiguous, of 4 bytes"),
    ("d", lambda x: x.astype(np.uint64), "D is not contiguous, of 4 bytes"),
    ("d", lambda x: x.transpose(0, 2, 1), r"D is not contiguous"), ("d", lambda x: x[:, :-1].copy(), r"D is \["),
    ("d", lambda x: np.broadcast_to(x[:1], x.shape), "D is no array that can be written"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "text"), WRONG_ARRAYS)
def test_a_wrong_array_is_refused(name: str, change: Callable[[Array], Any], text: str) -> None:
    x: dict[str, Any] = operands(DENSE)
    x[name] = change(x[name])
    before = np.array(x["d"])
    with pytest.raises(ValueError, match=text):
        run(_native.Plan(plan(DENSE)), DENSE, x)
    if x["d"] is not None:
        np.testing.assert_array_equal(x["d"], before)


@pytest.mark.parametrize(
    "size", [{"m": 17}, {"n": 9}, {"k": 32}, {"m": -1}, {"k": 15}, {"m": 1 << 62}, {"registers": True}]
)
def test_a_wrong_size_is_refused(size: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=r"is \[|multiple|without tables"):
        run(_native.Plan(plan(DENSE)), DENSE, operands(DENSE), **size)


@pytest.mark.parametrize(
    ("mnemonic", "name", "change", "text"),
    [
        (SPARSE, "chosen", lambda x: None, "chosen is missing"),
        (SPARSE, "chosen", lambda x: x[:, :-1], r"chosen is \["),
        (SPARSE, "chosen", lambda x: x[:, :, 1:], r"chosen is \["),
        (SPARSE, "chosen", lambda x: x.astype(np.uint16), "bytes"),
        (SCALED, "scale_a", lambda x: None, "scale_a is missing"),
        (SCALED, "scale_b", lambda x: x[..., 1:], r"scale_b is \["),
        (GROUPS, "scale_b", lambda x: x[:, 1:], r"scale_b is \["),
        (GROUPS, "scale_a", lambda x: x[:, 1:], r"scale_a is \["),
        (DENSE, "chosen", lambda x: np.zeros((3, 16, 16), np.uint8), "another kind"),
        (DENSE, "scale_a", lambda x: np.zeros((3, 16, 1), np.uint8), "another kind"),
        (DOUBLES, "d", lambda x: x.astype(np.uint32), "8 bytes"),
    ],
)  # fmt: skip
def test_a_wrong_companion_is_refused(mnemonic: str, name: str, change: Callable[[Any], Any], text: str) -> None:
    x: dict[str, Any] = operands(mnemonic)
    x[name] = change(x.get(name))
    with pytest.raises(ValueError, match=text):
        run(_native.Plan(plan(mnemonic)), mnemonic, x)


@pytest.mark.parametrize("place", [(0, 0, 0), (2, 15, 15), (1, 8, 3)])
def test_a_choice_beyond_its_instruction_is_refused(place: tuple[int, ...]) -> None:
    x = operands(SPARSE)
    for value, legal in ((31, True), (32, False), (255, False)):
        x["chosen"][place] = value
        for level in native.levels():
            if legal:
                run(_native.Plan(plan(SPARSE)), SPARSE, x, level=level.number)
                continue
            with pytest.raises(ValueError, match="chosen names a row beyond"):
                run(_native.Plan(plan(SPARSE)), SPARSE, x, level=level.number)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"ends": []}, None), ({"ends": [(2, True)]}, None), ({"ends": [(1, False), (2, True)]}, None),
        ({"sums": None, "ends": [(1, True)]}, "have sums"), ({"ends": [(0, True)]}, "ascending"),
        ({"ends": [(3, True)]}, "ascending"), ({"ends": [(2, False), (1, True)]}, "ascending"),
        ({"ends": [(1, False), (1, True)]}, "ascending"), ({"sums": np.zeros((2, BATCH, 16, 7), np.uint32)}, "sums is"),
        ({"sums": np.zeros((1, BATCH, 16, 8), np.uint32)}, "sums is"), ({"sums": np.zeros(4, np.uint32)}, "sums is"),
        ({"sums": np.zeros((2, BATCH, 16, 8), np.uint64)}, "sums is"),
        ({"sums": np.zeros((2, BATCH, 8, 16), np.uint32).swapaxes(2, 3)}, "sums is .* contiguous"),
        ({"sums": np.zeros((2, BATCH, 16, 8), np.float32)}, "unsigned integers"),
        ({"sums": np.broadcast_to(np.uint32(0), (2, BATCH, 16, 8))}, "sums is no array that can be written"),
    ],
)  # fmt: skip
def test_sums_that_do_not_fit_are_refused(change: dict[str, Any], text: str | None) -> None:
    x: dict[str, Any] = operands(DENSE) | {"ends": [(1, True)], "sums": np.zeros((2, BATCH, 16, 8), np.uint32)}
    x |= {"a": x["a"].repeat(2, axis=2), "b": x["b"].repeat(2, axis=1)} | change
    checked = _native.Plan(plan(DENSE))
    if text is None:
        return run(checked, DENSE, x, k=32)
    with pytest.raises(ValueError, match=text):
        run(checked, DENSE, x, k=32)
    return None


def test_sums_of_what_is_not_f32_are_refused() -> None:
    registers, x = words(DENSE)
    whole = operands(INTEGERS)
    whole["sums"] = np.zeros((2, *whole["c"].shape), np.uint32)
    with pytest.raises(ValueError, match="C and D of f32"):
        run(_native.Plan(plan(INTEGERS)), INTEGERS, whole)
    flat = [v.reshape(BATCH, -1) for v in x.values()]
    sums = np.zeros((2, BATCH, 16, 8), np.uint32)
    with pytest.raises(ValueError, match="of matrices"):
        _native.execute(
            registers._plan, registers._level.number, *flat, True, *registers._shape, None, None, None, [], sums
        )


def test_a_batch_of_one_is_for_all() -> None:
    rng = np.random.default_rng(1)
    r, codes = recipe(parse(DENSE), "sm_90"), rng.standard_normal((4, 16, 16)).astype(np.float16).view(np.uint16)
    b, c = codes[1:, :, :8], np.zeros((3, 16, 8), np.uint32)
    expected = native.product(r, codes[:1].repeat(3, axis=0), b, c, k=16)
    np.testing.assert_array_equal(native.product(r, codes[:1], b, c, k=16), expected)
    np.testing.assert_array_equal(product(r, codes[:1], b, c, k=16, engine="numpy"), expected)


# Registers.


def words(mnemonic: str) -> tuple[native.Registers, dict[str, Array]]:
    i = parse(mnemonic)
    layouts = {name: i.layout(name) for name in ("A", "B", "C", "D")}
    registers = native.Registers(recipe(i, TARGETS[mnemonic]), layouts, sparse=i.sparse, scales=i.scales_per_row)
    x = {n.lower(): np.zeros((BATCH, layouts[n].registers, 32), layouts[n].packing.dtype) for n in "ABCD"}
    return registers, x


@pytest.mark.parametrize("name", ["a", "b", "c", "d"])
@pytest.mark.parametrize("mnemonic", [DENSE, DOUBLES])
def test_wrong_registers_are_refused(mnemonic: str, name: str) -> None:
    changes: list[Callable[[Array], Array]] = [
        lambda v: v[:, :-1].copy(), lambda v: v[:, :, :31].copy(), lambda v: v[:2], lambda v: v[:0],
        lambda v: v.astype(np.uint32 if v.dtype == np.uint64 else np.uint64), lambda v: v.astype(np.int8),
    ]  # fmt: skip
    for change in changes:
        registers, x = words(mnemonic)
        registers.run(x["a"], x["b"], x["c"], x["d"])
        x[name] = change(x[name])
        with pytest.raises(ValueError, match=r"[ABCD] (is|has registers of) "):
            registers.run(x["a"], x["b"], x["c"], x["d"])


def test_tables_are_for_one_level_and_shape() -> None:
    registers, x = words(DENSE)
    own = registers._level
    flat = [v.reshape(BATCH, -1) for v in x.values()]
    _native.execute(registers._plan, own.number, *flat, True, *registers._shape, None, None, None)
    for level in (level for level in native.levels() if level != own):
        with pytest.raises(ValueError, match="tables are for another level"):
            _native.execute(registers._plan, level.number, *flat, True, *registers._shape, None, None, None)
    for m, n, k in ((0, 8, 16), (17, 8, 16), (16, 9, 16), (16, 1 << 40, 16), (16, 8, 32), (16, 8, 0)):
        with pytest.raises(ValueError, match=r"another shape|hold one instruction"):
            _native.execute(registers._plan, own.number, *flat, True, m, n, k, None, None, None)
