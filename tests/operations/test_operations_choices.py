"""`setp` and `selp` against Python's own comparisons."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arrays import Array

from warpmma.formats import FORMATS
from warpmma.operations import Operation, operation, operations
from warpmma.operations.arithmetic.comparisons import FORMS
from warpmma.registers import LANES

pytestmark = pytest.mark.quick

WORDS: dict[str, Callable[[Any, Any], bool]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
} | {"lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge}  # fmt: skip
OPERATIONS = [operation(mnemonic) for form in FORMS for mnemonic in form.mnemonics]
SETP = [row for row in OPERATIONS if row.mnemonic.startswith("setp")]


def codes(bits: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Random bits, half of the pairs close together or of opposite sign, and what is special."""
    dtype = np.dtype(f"uint{bits}")
    a = rng.integers(0, 2**bits, (300, LANES), dtype=dtype)
    near = (a ^ rng.choice(np.array([0, 1, 1 << (bits - 1)], dtype), a.shape)).astype(dtype)
    b = np.where(rng.random(a.shape) < 0.5, near, rng.integers(0, 2**bits, a.shape, dtype=dtype)).astype(dtype)
    top = 1 << (bits - 1)
    ones = {16: (0x7C00, 0x7F80, 0x3C00), 32: (0x7F800000, 0x7FC00000, 0x3F800000), 64: (0x7FF << 52, 0x7FF8 << 48, 1)}
    hard = np.array([0, 1, top, top | 1, top - 1, 2 * top - 1, *ones[bits]], dtype)
    for x in (a, b):
        where = np.asarray(rng.random(x.shape) < 0.3)
        x[where] = rng.choice(hard, int(where.sum()))
    return a, b


def expected(row: Operation, a: Array, b: Array) -> Array:
    _, name, *rest = row.mnemonic.split(".")
    type_ = rest[-1]
    if type_[0] in "bsu" and not type_.startswith("bf"):
        x, y = (v.view(f"int{type_[1:]}") if type_[0] == "s" else v for v in (a, b))
        pairs = zip(x.ravel().tolist(), y.ravel().tolist(), strict=True)
        return np.array([WORDS[name](p, q) for p, q in pairs]).reshape(a.shape)
    fmt = FORMATS[type_]
    values = [fmt.decode(v).ravel().tolist() for v in (a, b)]
    if "ftz" in rest:
        values = [[0.0 if abs(x) < 2.0**-126 else x for x in v] for v in values]
    results = []
    for p, q in zip(*values, strict=True):
        unordered = p != p or q != q
        if name in ("num", "nan"):
            results.append(unordered == (name == "nan"))
        elif name.endswith("u"):
            results.append(unordered or WORDS[name[:-1]](p, q))
        else:
            results.append(not unordered and WORDS[name](p, q))
    return np.array(results).reshape(a.shape)


@pytest.mark.parametrize("row", SETP, ids=lambda row: row.mnemonic)
def test_setp(row: Operation) -> None:
    a, b = codes(int(row.inputs[0][1:]), np.random.default_rng(1))
    (p,) = row(a, b)
    assert p.dtype == np.bool_
    assert np.array_equal(p, expected(row, a, b))
    assert p.any() and not p.all()


@pytest.mark.parametrize("row", [row for row in OPERATIONS if row not in SETP], ids=lambda row: row.mnemonic)
def test_selp(row: Operation) -> None:
    a, b = codes(int(row.inputs[0][1:]), np.random.default_rng(2))
    p = np.random.default_rng(3).random(a.shape) < 0.5
    (d,) = row(a, b, p)
    assert np.array_equal(d[p], a[p]) and np.array_equal(d[~p], b[~p])


def test_every_comparison_is_there() -> None:
    names = {row.mnemonic for row in OPERATIONS}
    assert len(names) == len(OPERATIONS) == 135
    assert {"setp.lt.s32", "setp.hs.u64", "setp.neu.ftz.f32", "setp.num.bf16", "selp.f64"} <= names
    assert "setp.lt.b32" not in names  # bits have no order
    assert operation("setp.lt.bf16").since == "sm_90"


def test_what_a_lane_did_not_write_counts_where_it_is_chosen() -> None:
    for row in OPERATIONS:
        assert (row.needed is not None) == row.mnemonic.startswith("selp.")
    p = np.arange(LANES) < 5
    a = np.zeros(LANES, np.uint32)
    selp = operation("selp.b32")
    assert selp.needed is not None
    first, second, chosen = selp.needed(a, a, p)
    assert first.tolist() == p.tolist() and second.tolist() == (~p).tolist() and chosen.all()
    assert {row.mnemonic.split(".")[0] for row in operations() if row.travels} == {"mov"}
