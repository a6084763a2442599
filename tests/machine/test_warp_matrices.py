"""`wmma` in kernels: memory to fragments to memory, and products, against `mma` a tile at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from arrays import Array, same

import warpmma as wm
from lab.generators import mixed
from warpmma.errors import OperandError
from warpmma.formats import FORMATS
from warpmma.kernel import HazardError, launch
from warpmma.operations import WINDOWS, WmmaMove, WmmaMultiply, operation, row, rows

MULTIPLIES = [x for x in rows(opcode="wmma") if isinstance(x, WmmaMultiply)]
MOVES = [x for x in rows(opcode="wmma") if isinstance(x, WmmaMove) and not x.mnemonic.count("::")]
TARGETS = ("sm_70", "sm_72", "sm_75", "sm_80", "sm_90")
SLACK = 32  # elements between the end of a line and the next


def stored(codes: Array, order: str, bits: int, slack: int = 0) -> Array:
    """Bytes of a matrix of codes in memory."""
    lines = codes if order == "row" else codes.T
    lines = np.concatenate([lines, np.zeros((len(lines), slack), lines.dtype)], axis=1)
    if bits >= 8:
        return lines.astype(f"u{bits // 8}").view(np.uint8).reshape(-1)
    picked = (lines[..., None].astype(np.uint8) >> np.arange(bits)) & 1
    return np.packbits(picked.reshape(-1), bitorder="little")


def fetched(data: Array, order: str, bits: int, shape: tuple[int, int], slack: int = 0) -> Array:
    """Codes of a matrix in memory."""
    lines = shape if order == "row" else shape[::-1]
    codes = data.view(f"u{bits // 8}").reshape(lines[0], lines[1] + slack)[:, : lines[1]]
    return codes if order == "row" else codes.T


def codes_of(format_name: str, shape: tuple[int, int], seed: int) -> Array:
    rng = np.random.default_rng(seed)
    if format_name in ("s4", "u4", "b1"):
        return rng.integers(0, 1 << int(format_name[1:]), shape, np.uint8)
    return mixed(FORMATS[format_name], shape, rng)


def multiplied(given: WmmaMultiply, target: str, codes: dict[str, Array], slack: int, space: str) -> Array:
    """D of a kernel that loads A, B and C, multiplies and stores."""
    end = f"sync.aligned.{{}}.m{given.shape[0]}n{given.shape[1]}k{given.shape[2]}.global.{{}}"
    orders = {"A": given.a_layout, "B": given.b_layout, "C": "col", "D": "row"}
    moves: dict[str, Any] = {
        name: row(f"wmma.{'store' if name == 'D' else 'load'}.{name.lower()}." + end.format(order, given.type(name)))  # type: ignore[arg-type]
        for name, order in orders.items()
    }
    memory = {name: stored(x, orders[name], moves[name].bits, slack) for name, x in codes.items()}
    m, n, _ = given.shape
    out = np.zeros(m * (n + slack) * moves["D"].bits // 8, np.uint8)

    def kernel(t: Any, a: Any, b: Any, c: Any, d: Any) -> None:
        fragments = [
            t(str(moves[name]), at, *([moves[name].line + slack] if slack else []))
            for name, at in (("A", a), ("B", b), ("C", c))
        ]
        fragments = [x if isinstance(x, tuple) else (x,) for x in fragments]
        result = t(str(given), *fragments)
        t(str(moves["D"]), d, result, *([moves["D"].line + slack] if slack else []))

    launch(kernel, 1, 32, (memory["A"], memory["B"], memory["C"], out), target=target)
    return fetched(out, "row", moves["D"].bits, (m, n), slack)


def expected(given: WmmaMultiply, target: str, codes: dict[str, Array]) -> Array:
    """D by `mma`, 8 columns of it and its own k at a time."""
    c = codes["C"]
    steps = given.steps(target)
    if given.c_type == "f16" and steps[0].c_type == "f32":
        c = c.view(np.float16).astype(np.float32).view(np.uint32)
    m, n, _ = given.shape
    first = 0
    for step in steps:
        on = target if target in step.targets else step.targets[0]
        rows_, columns = (step.m, step.n) if step.m <= m else (step.n, step.m)  # m8n32k16 is transposed
        d = np.zeros((m, n), step.format("D").code_dtype)
        along = slice(first, first + step.k)
        for i in range(0, m, rows_):
            for j in range(0, n, columns):
                a, b = codes["A"][i : i + rows_, along], codes["B"][along, j : j + columns]
                part = c[i : i + rows_, j : j + columns]
                if step.m > m:
                    a, b, part = b.T, a.T, part.T
                if step.layout("D").matrix:  # m8n8k4 of f16 multiplies four
                    found = wm.mma(step, *(np.stack([x] * 4) for x in (a, b, part)), target=on)[0]
                else:
                    found = wm.mma(step, a, b, part, target=on)
                found = np.asarray(found).view(d.dtype)
                d[i : i + rows_, j : j + columns] = found.T if step.m > m else found
        c, first = d, first + step.k
    if given.d_type == "f16" and steps[-1].d_type == "f32":
        (halves,) = operation("cvt.rn.f16.f32").compute(c)
        c = np.asarray(halves)
    return c


@pytest.mark.parametrize("target", TARGETS)
def test_products_are_those_of_mma(target: str) -> None:
    """Every row, loaded from and stored to memory with and without a stride."""
    count = 0
    for seed, given in enumerate(x for x in MULTIPLIES if target in x.targets):
        m, n, k = given.shape
        shapes = {"A": (m, k), "B": (k, n), "C": (m, n)}
        codes = {name: codes_of(given.type(name), shape, seed) for name, shape in shapes.items()}  # type: ignore[arg-type]
        wanted = expected(given, target, codes)
        found = multiplied(given, target, codes, SLACK if seed % 2 and given.bit_op is None else 0, "global")
        np.testing.assert_array_equal(found, wanted, err_msg=f"{given} on {target}")
        count += 1
    assert count == {"sm_70": 48, "sm_72": 96, "sm_75": 101, "sm_80": 138, "sm_90": 138}[target]


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_loaded_is_stored_again(target: str) -> None:
    """Every element of C comes back from its fragment, through shared memory in the other order."""
    for move in (x for x in MOVES if x.operand == "D" and x.space == "shared" and target in x.targets):
        rng = np.random.default_rng(1)
        words = rng.integers(0, 1 << 32, int(np.prod(move.rows_columns)) * move.bits // 32, np.uint32)
        back = np.zeros_like(words)
        load = str(move).replace("store.d", "load.c").replace("shared", "global")
        other = str(move).replace(".row.", ".x.").replace(".col.", ".row.").replace(".x.", ".col.")

        def kernel(t: Any, a: Any, d: Any, load: str = load, move: Any = move, other: str = other) -> None:
            t(str(move), t.constant(0), t(load, a))
            again = t(str(move).replace("store.d", "load.c"), t.constant(0))
            t(other, t.constant(4096), again)
            again = t(other.replace("store.d", "load.c"), t.constant(4096))
            t(str(move).replace("shared", "global"), d, again)

        launch(kernel, 1, 32, (words, back), target=target, shared=8192)
        same(back, words)


def test_generic_addresses_find_shared_memory() -> None:
    """Of one kernel, half of the warps store to global and half to shared memory, at generic addresses."""
    out = np.zeros((2, 256), np.float32)
    window = WINDOWS["shared"].base
    load, store = (f"wmma.{x}.sync.aligned.row.m16n16k16.f32" for x in ("load.c", "store.d"))

    def kernel(t: Any, d: Any) -> None:
        value = t("mov.b32", t.warpid * 1000 + t.laneid)
        at = t("selp.b64", d, t.constant(window, "b64"), t.warpid == 0)
        t(store, at, [value] * 8)
        again = t(load, at)
        with t.where(t.warpid == 1):
            t(store, d + 1024, again)

    launch(kernel, 1, 64, (out.view(np.uint32),), target="sm_80", shared=1024)
    assert (out.view(np.uint32)[1] == out.view(np.uint32)[0] + 1000).all() and out.any()


def test_elements_that_are_held_more_than_once() -> None:
    """On sm_80 the upper four registers of an f16 A repeat the lower ones; on sm_70 lanes 8 apart hold the same."""
    matrix = np.arange(256, dtype=np.uint16)
    found: dict[str, Array] = {}

    def kernel(t: Any, a: Any) -> None:
        registers = t("wmma.load.a.sync.aligned.row.m16n16k16.f16", a)
        found[t.target] = np.stack([x.bits[0, 0] for x in registers])

    for target in ("sm_70", "sm_80"):
        launch(kernel, 1, 32, (matrix,), target=target)
    same(found["sm_80"][4:], found["sm_80"][:4])
    assert found["sm_80"][0, 5].item() == (16 + 2) | (16 + 3) << 16  # row 1, columns 2 and 3
    same(found["sm_70"][:, 8:16], found["sm_70"][:, :8])
    assert found["sm_70"][1, 5].item() == (9 * 16 + 2) | (9 * 16 + 3) << 16


# What is wrong

LOAD = "wmma.load.a.sync.aligned.row.m16n16k16.shared.f16"
MULTIPLY = "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t(LOAD), r"takes \[p\]\{, q\}; got 0 operands"),
        (lambda t: t(LOAD, t.constant(0), 16, 1), r"takes \[p\]\{, q\}; got 3 operands"),
        (lambda t: t(LOAD, t.constant(0), t.constant(16, "b64")), r"operand q .*is b64; expected b32"),
        (
            lambda t: t("wmma.store.d.sync.aligned.row.m16n16k16.shared.f32", t.constant(0), t.constant(1)),
            r"takes \[p\], \{a0, .*\}\{, q\}; got 2 operands",
        ),
        (
            lambda t: t("wmma.store.d.sync.aligned.row.m16n16k16.shared.f32", t.constant(0), [t.constant(1)] * 4),
            r"\{a0, .*\}: got 4 registers; expected 8",
        ),
        (lambda t: t(MULTIPLY, [t.constant(0)] * 8), r"takes \{a0, .*\{c0, .*; got 8 operands"),
        (
            lambda t: t(MULTIPLY, [t.constant(0)] * 8, [t.constant(0)] * 8, [t.constant(0)] * 4),
            r"\{c0, .*\}: got 4 registers; expected 8",
        ),
    ],
)
def test_operands_that_do_not_fit(call: Any, message: str) -> None:
    with pytest.raises(OperandError, match=message):
        launch(lambda t: call(t) and None, 1, 32, (), target="sm_80", shared=1024)


@pytest.mark.parametrize(
    ("call", "kind", "detail"),
    [
        (lambda t: t(LOAD, t.constant(8)), "misaligned", "16"),
        (lambda t: t(LOAD, t.constant(0), 20), "misaligned", "16"),
        (lambda t: t(LOAD, t.laneid * 16), "divergent", "lanes of a warp bring addresses of their own"),
        (lambda t: t(LOAD, t.constant(0), t.laneid * 8), "divergent", "lanes of a warp bring strides of their own"),
        (lambda t: t(LOAD, t.constant(768)), "bounds", "shared memory, which has 1024 bytes"),
        (
            lambda t: t(LOAD.replace(".shared", ""), t.constant(WINDOWS["local"].base, "b64")), "bounds",
            "a matrix in local memory",
        ),
        (
            lambda t: t(MULTIPLY, t(LOAD, t.constant(0)), [0.0] * 8, [0.0] * 8), "poison",
            "loading there memory that was never written",
        ),
    ],
)  # fmt: skip
def test_hazards(call: Any, kind: str, detail: str) -> None:
    def kernel(t: Any) -> None:
        if kind != "poison":
            for i in range(8):
                t("st.shared.b32", (t.tid[0] + 32 * i) * 4, t.laneid)
        else:
            t("st.shared.b16", t.tid[0] * 16, t.laneid)
        call(t)

    with pytest.raises(HazardError) as caught:
        launch(kernel, 1, 32, (), target="sm_80", shared=1024)
    assert caught.value.hazard.kind == kind and detail in caught.value.hazard.detail


def test_a_warp_that_is_not_whole() -> None:
    def kernel(t: Any) -> None:
        with t.where(t.laneid < 16):
            t(MULTIPLY, [0.0] * 8, [0.0] * 8, [0.0] * 8)

    with pytest.raises(HazardError, match="divergent"):
        launch(kernel, 1, 32, (), target="sm_80")
