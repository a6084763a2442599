"""What a launch takes: arrays, numbers, options; names that threads do not have; rows and errors that can be copied."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.errors import MnemonicError, OperandError, UnknownNameError
from warpmma.kernel import Hazard, HazardError, Output, Site, launch, matrix_move, matrix_moves, operation
from warpmma.operations import operations

pytestmark = pytest.mark.quick


def run(kernel: Callable[..., object], *args: Any, **options: Any) -> None:
    launch(kernel, **{"grid": 1, "block": 32, **options}, args=args, target="sm_90")


def nothing(t: Any, *args: Any) -> None:
    """Do nothing."""


# Arrays.

with warnings.catch_warnings():
    warnings.simplefilter("ignore", PendingDeprecationWarning)
    MATRIX = np.matrix([[1.0, 2.0]])

ARRAYS: dict[str, tuple[Any, str]] = {
    "matrix": (MATRIX, r"args\[0\] is a np\.matrix, whose slices stay matrices: use np\.asarray"),
    "masked": (np.ma.masked_array([1.0, 2.0], [False, True]), r"args\[0\] is a masked array, and memory has no masks"),
    "text": (np.array(["a", "b"]), r"args\[0\] is an array of <U1; in global memory lie numbers: texts"),
    "bytes": (np.array([b"a", b"b"]), r"args\[0\] is an array of \|S1; in global memory lie numbers: texts"),
    "new text": (np.array(["a"], np.dtypes.StringDType()), r"args\[0\] is an array of StringDType\(\); in global"),
    "objects": (np.array([None, 1]), r"args\[0\] is an array of object; in global memory lie numbers: texts and"),
    "dates": (np.array(["2020-01-01"], "M8[D]"), r"of datetime64\[D\]; .* give a time as an integer"),
    "times": (np.array([1, 2], "m8[s]"), r"of timedelta64\[s\]; .* give a time as an integer, array\.view"),
    "big-endian": (np.arange(3, dtype=">i4"), r"of >i4; .* little-endian; convert with array\.astype"),
    "a big-endian field": (np.zeros(2, [("a", "<f4"), ("b", ">i2", (3,))]), "a GPU is little-endian"),
    "a field of text": (np.zeros(2, [("a", "<f4"), ("b", "U3")]), "texts and Python objects are none"),
    "opaque bytes": (np.zeros(2, "V8"), r"of \|V8; in global memory lie numbers: of at most 64 bits"),
    "strided": (np.zeros((4, 4))[:, ::2], r"args\[0\] is float64 \(4, 2\), not contiguous; in global memory lie C-c"),
    "no array": (Output([1, 2]), r"args\[0\] is list; in global memory lie C-contiguous ndarrays"),  # type: ignore[arg-type]
}  # fmt: skip


@pytest.mark.parametrize("wrap", [lambda x: x, Output], ids=["array", "Output"])
@pytest.mark.parametrize("name", ARRAYS)
def test_refused_arrays(name: str, wrap: Callable[[Any], Any]) -> None:
    array, says = ARRAYS[name]
    if isinstance(array, Output):
        array = array.array
        wrap = Output
    with pytest.raises(OperandError, match=says):
        run(nothing, wrap(array))


def test_refused_arrays_are_named() -> None:
    with pytest.raises(OperandError, match=r"args\[2\] is a np\.matrix"):
        run(nothing, 1, np.zeros(3), MATRIX)


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize <= 8, reason="long double is double here")
def test_long_double() -> None:
    with pytest.raises(OperandError, match="of at most 64 bits"):
        run(nothing, np.zeros(3, np.longdouble))


def test_subclasses_and_structures(tmp_path: Path) -> None:
    """Arrays of a file are arrays; structures of numbers are what their bytes are; dimensions do not matter."""

    def kernel(t: Any, x: Any) -> None:
        with t.where(t.laneid < 2):
            at = x + t.laneid * 8
            t("st.global.b32", at, t("ld.global.b32", at) + 1)

    structures = np.array([(1, 2.0), (3, 4.0)], [("a", "<u4"), ("b", "<f4")])
    run(kernel, structures)
    assert structures.tolist() == [(2, 2.0), (4, 4.0)]
    mapped = np.memmap(tmp_path / "memory", np.uint64, "w+", shape=(2,))
    run(kernel, mapped)
    assert mapped.tolist() == [1, 1]
    deep = np.zeros((1,) * 40 + (2,), np.complex64)
    run(kernel, deep)
    assert deep.ravel().real.view(np.uint32).tolist() == [1, 1]


# Numbers.


@pytest.mark.parametrize(
    ("argument", "says"),
    [
        (1 << 32, r"args\[1\]: 4294967296 is not a value of b32; expected an integer of -2147483648 to 4294967295"),
        (1e300, r"args\[1\]: 1e\+300 is beyond the range of f32, where it would be inf"),
        (np.timedelta64(1, "s"), r"args\[1\] is a timedelta64; expected an integer, a float or an array"),
        (np.datetime64("2020-01-01"), r"args\[1\] is a datetime64; expected an integer, a float or an array"),
        (np.complex64(1), r"args\[1\] is a complex64; expected an integer, a float or an array"),
    ],
    ids=repr,
)  # fmt: skip
def test_refused_numbers(argument: Any, says: str) -> None:
    with pytest.raises(OperandError, match=says):
        run(nothing, 1, argument)


# Options.

HUGE = 10**5000  # which Python does not print


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"hazards": np.array(["error", "warn"])}, "hazards: 'race': array"),
        ({"hazards": {"race": np.array([1, 2])}}, "hazards: 'race': array"),
        ({"hazards": ["error"]}, "hazards: 'race': "),
        ({"hazards": {("race",): "error"}}, r"hazards: \('race',\): 'error'; expected 'error', 'warn' or 'count' for"),
        ({"grid": np.timedelta64(3, "s")}, "grid is "), ({"block": np.timedelta64(3, "s")}, "block is "),
        ({"grid": np.array([3])}, "grid is "), ({"block": (np.array([3, 4]),)}, "block is "),
        ({"grid": HUGE}, "grid is <int that cannot be shown>"), ({"block": (1, HUGE)}, "block is "),
        ({"shared": np.timedelta64(3, "s")}, "shared is "), ({"shared": np.array([3, 4])}, "shared is "),
        ({"shared": HUGE}, "shared is <int that cannot be shown>"),
        ({"threads": np.array([1, 2])}, "threads is "),
        ({"engine": np.array(["numpy"])}, "engine is "), ({"progress": np.array([1, 2])}, "progress is "),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)  # fmt: skip
def test_wrong_options(options: dict[str, Any], says: str) -> None:
    with pytest.raises(OperandError, match=says):
        run(nothing, **options)


def test_integers_of_numpy() -> None:
    """As good as Python's, however narrow."""

    def kernel(t: Any, x: Any) -> None:
        t("cp.async.cg.shared.global", t.laneid * 16, x + t.laneid * 16, np.int8(16), np.int8(8))
        t("cp.async.commit_group")
        t("cp.async.wait_group", np.uint8(0))
        assert t("ld.shared.b32", t.laneid * 16).bits[0, 0, 31] == 31 * 4
        assert t("lop3.b32", t.laneid, 0, 0, np.uint8(0xF0)).bits[0, 0, 31] == 31

    numbers = np.arange(128, dtype=np.uint32)
    run(kernel, numbers, grid=np.int8(3), block=(np.int8(32), np.uint8(1)), shared=np.int16(1024), threads=np.int8(1))


# What threads take besides instructions.

THREADS: dict[str, tuple[Callable[[Any], object], str]] = {
    "register of floats": (lambda t: t.register(np.ones(32, np.float32)), r"are float32; expected integers; bits of"),
    "register of bools": (lambda t: t.register(np.ones(32, bool)), "the values are bool; expected integers"),
    "predicate of integers": (lambda t: t.register(np.ones(32, int), bool), "the values are int64; expected bools"),
    "register too narrow": (lambda t: t.register([1 << 32]), "the values are 4294967296 to 4294967296, beyond 32 bits"),
    "register of 31": (lambda t: t.register(np.zeros(31, int)), r"are \(31,\); expected what broadcasts to"),
    "register of text": (lambda t: t.register(["a"]), "the values are <U1; expected integers"),
    "register of times": (lambda t: t.register(np.zeros(32, "m8[s]")), "expected integers"),
    "ragged register": (lambda t: t.register([[1], [1, 2]]), "register: the values: not an array"),
    "register of f32": (lambda t: t.register([1], np.float32), "expected uint16, uint32, uint64 or bool"),
    "register of an old alias": (lambda t: t.register([1], "a"), "is 'a'; expected uint16, uint32, uint64 or bool"),
    "register of nothing": (lambda t: t.register([1], "nonsense"), "'nonsense'; expected uint16, uint32, uint64"),
    "constant": (lambda t: t.constant(np.timedelta64(1, "s")), "is not a value of a b32 register"),
    "huge constant": (lambda t: t.constant(HUGE), "<int that cannot be shown> is not a value of a b32 register"),
    "kind of a constant": (lambda t: t.constant(1, ["b32"]), r"a register is of b16, b32, b64, pred; got \['b32'\]"),
    "time": (lambda t: t("add.u32", t.laneid, np.timedelta64(1, "s")), "is timedelta64; expected a register or a"),
    "time of an operator": (lambda t: t.laneid + np.timedelta64(1, "s"), "is timedelta64; expected a register"),
    "where": (lambda t: t.where(np.ones(32, bool)), "where takes a predicate"),
    "barrier": (lambda t: t("bar.sync", np.timedelta64(0, "s")), r"operand a .* timedelta64; expected a register or a"),
    "groups": (lambda t: t("cp.async.wait_group", np.timedelta64(0, "s")), "n is timedelta64; expected an immediate"),
}  # fmt: skip


@pytest.mark.parametrize("name", THREADS)
def test_threads(name: str) -> None:
    function, says = THREADS[name]
    with pytest.raises(wm.WarpmmaError, match=says):
        run(function)


def test_registers_of_arrays() -> None:
    found: list[Any] = []

    def kernel(t: Any) -> None:
        found.extend([t.register([-1, 0] * 16), t.register(np.arange(2)[:, None, None], "u8"), t.register(True, bool)])

    run(kernel, grid=2)
    assert [x.kind for x in found] == ["b32", "b64", "pred"]
    assert found[0].bits[1, 0, :2].tolist() == [0xFFFFFFFF, 0] and found[1].bits[:, 0, 5].tolist() == [0, 1]


def test_pictures_are_of_a_line() -> None:
    report = launch(lambda t: t("st.shared.b32", t.laneid * 4, 0), 1, 32, [], target="sm_90", shared=128)
    for site in (np.array([1, 2]), None, HUGE, "line"):
        with pytest.raises(OperandError, match="0 accesses to shared memory; give a Site"):
            report.svg(site)  # type: ignore[arg-type]


# Mnemonics and rows.


@pytest.mark.parametrize("find", [operation, matrix_move])
@pytest.mark.parametrize("mnemonic", [[], {}, 5, None, np.array(["mov.b32"])], ids=repr)
def test_mnemonics_are_strings(find: Callable[[Any], object], mnemonic: Any) -> None:
    with pytest.raises(MnemonicError, match="a mnemonic is a string"):
        find(mnemonic)


@pytest.mark.parametrize("undefined", ["nonsense", None, np.array(["zero", "error"]), True], ids=repr)
def test_undefined_is_one_of_two(undefined: Any) -> None:
    x = np.zeros(32, np.uint32)
    with pytest.raises(OperandError, match=r"add\.u32: undefined is .*; expected 'error' or 'zero'"):
        operation("add.u32")(x, x, undefined=undefined)


@pytest.mark.parametrize("immediate", [True, 1.0, np.timedelta64(1, "s"), None], ids=repr)
def test_immediates_are_integers(immediate: Any) -> None:
    x = np.zeros(32, np.uint32)
    with pytest.raises(OperandError, match="expected an immediate int"):
        operation("lop3.b32")(x, x, x, immediate)


def test_rows_can_be_copied() -> None:
    """By their names: what comes back is the row."""
    for row in operations():
        assert pickle.loads(pickle.dumps(row)) is row and copy.copy(row) is row and copy.deepcopy([row])[0] is row
    for move in matrix_moves():
        assert pickle.loads(pickle.dumps(move)) == move == copy.deepcopy(move)


def test_a_row_of_ones_own_is_not_another() -> None:
    """What is no row of the table is copied itself, or not at all."""
    mine = replace(operation("not.b32"), evidence=wm.Evidence(kind="published", source="mine"))
    assert copy.copy(mine) == mine and copy.copy(mine).source == "mine"


def test_hazards_can_be_pickled() -> None:
    hazard = Hazard(kind="race", site=Site("kernel.py", 3, "st.shared.b32"), block=0, warp=1, lane=2)
    again = pickle.loads(pickle.dumps(HazardError(hazard)))
    assert again.hazard == hazard and str(again) == str(hazard)


# Names.


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("clock", "Threads has no 'clock': PTX's special register %clock is not simulated. It has tid, ntid, ctaid, "
                  "nctaid, laneid, warpid, target, where, any, update, constant, register"),
        ("lanid", "Threads has no 'lanid', did you mean 'laneid'? It has tid"),
        ("threadIdx", "Threads has no 'threadIdx': CUDA's threadIdx is t.tid here. It has tid"),
        ("nonsense", "Threads has no 'nonsense'. It has tid"),
    ],
)  # fmt: skip
def test_names_of_threads(name: str, says: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        run(lambda t: getattr(t, name))
    assert str(caught.value).startswith(says)
    assert isinstance(caught.value, AttributeError) and isinstance(caught.value, wm.WarpmmaError)


def test_names_of_registers() -> None:
    with pytest.raises(UnknownNameError, match=r"Register has no 'shape'\. It has bits, defined, kind, site, threads"):
        run(lambda t: t.laneid.shape)
    with pytest.raises(AttributeError, match=r"Register has no 'bit', did you mean 'bits'\?"):
        run(lambda t: t.laneid.bit)


def test_names_can_be_asked_for() -> None:
    def kernel(t: Any) -> None:
        assert hasattr(t, "tid") and not hasattr(t, "clock") and getattr(t, "clock", 5) == 5
        assert not hasattr(t.laneid, "shape") and copy.copy(t.laneid).bits is t.laneid.bits

    run(kernel)
