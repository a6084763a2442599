"""Functions of rows, [rows, columns]: softmax, RMSNorm, and GELU by tanh: `python examples/rowwise.py`.

A thread takes four elements at once where their number in a row is a multiple of four, and else one. Elements in f16
and bf16 become f32, and a result is rounded at the end. What they take from the special-function unit, as kernels in
use do:

* softmax, a warp a row of at most 1,024 elements, kept in registers; their maximum m and their sum go through the warp
  by butterflies of `shfl`: `ex2.approx.ftz.f32` of log2(e) (x - m), and `div.full.f32` by the sum.
* RMSNorm, x w / sqrt(mean of x^2 + 1e-6), a block a row; the sums of its warps meet in shared memory: `div.rn.f32` by
  the number of columns, which is IEEE's, and `rsqrt.approx.ftz.f32`.
* GELU, x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), elements alone: `tanh.approx.f32`.

Softmax and GELU take pairs of 16-bit elements too, and compute on them in 16 bits, but for the sum of a softmax:
`ex2.approx.f16x2` and `ex2.approx.ftz.bf16x2`, then `rcp.approx.ftz.f32` of the sum; `tanh.approx` of both.

The twin, with the same instructions in the same order, is `cuda/rowwise.cu`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from twins import Array, Call, report, simulate, spread, words

THREADS, WARP = 128, 32
MOST = 1024  # elements of a row of softmax, or pairs
EVERY = 0xFFFFFFFF
EPSILON = 1e-6
LOG2E = math.log2(math.e)
LINEAR = math.sqrt(2 / math.pi)
CUBIC = 0.044715 * LINEAR
DTYPES = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
EX2 = {"f16x2": "ex2.approx.f16x2", "bf16x2": "ex2.approx.ftz.bf16x2"}


class Place(NamedTuple):
    """What a thread takes at once: so many elements of a row from the first on, where that is inside of the row."""

    first: Any
    inside: Any
    elements: int


def softmax(t: Any, x: Any, y: Any, *, rows: int, columns: int, kind: str) -> None:
    """Take the softmax of rows, one a warp."""
    row = _row_of_warp(t, rows)
    places = _places(columns, t.laneid, WARP)
    values = [_loaded(t, kind, x, row * columns, place, t.constant(-math.inf)) for place in places]
    most = _over_warp(t, "max.f32", _folded(t, "max.f32", t.constant(-math.inf), values))
    powers = [
        [t("ex2.approx.ftz.f32", t("mul.rn.f32", t("sub.rn.f32", v, most), LOG2E)) for v in each] for each in values
    ]
    total = _over_warp(t, "add.rn.f32", _folded(t, "add.rn.f32", t.constant(0.0), powers))
    for place, each in zip(places, powers, strict=True):
        _store(t, kind, y, row * columns, place, [t("div.full.f32", p, total) for p in each])


def softmax_of_pairs(t: Any, x: Any, y: Any, *, rows: int, columns: int, kind: str) -> None:
    """Take the softmax of rows, one a warp; columns, and what is loaded, are pairs."""
    row, both, least = _row_of_warp(t, rows), f"{kind}x2", _pair(t, kind, -math.inf)
    places, log2e = _places(columns, t.laneid, WARP), _pair(t, kind, LOG2E)
    values = [_loaded(t, both, x, row * columns, place, least) for place in places]
    most = _over_warp(t, f"max.{both}", _folded(t, f"max.{both}", least, values))
    most = t(f"max.{both}", most, t("prmt.b32", most, 0, 0x1032))  # of both halves, in both
    powers = [[t(EX2[both], t(f"mul.rn.{both}", t(f"sub.rn.{both}", v, most), log2e)) for v in each] for each in values]
    halves = [[half for p in each for half in _halves(t, kind, p)] for each in powers]
    total = _over_warp(t, "add.rn.f32", _folded(t, "add.rn.f32", t.constant(0.0), halves))
    factor = t("rcp.approx.ftz.f32", total)
    for place, each in zip(places, halves, strict=True):
        scaled = [t("mul.rn.f32", half, factor) for half in each]
        pairs = [t(f"cvt.rn.{both}.f32", scaled[i + 1], scaled[i]) for i in range(0, len(scaled), 2)]
        _store(t, both, y, row * columns, place, pairs)


def rmsnorm(t: Any, x: Any, weights: Any, y: Any, *, columns: int, kind: str) -> None:
    """Divide rows, one a block, by the root of their mean square, and multiply columns by weights."""
    start, places = t.ctaid[0] * columns, _places(columns, t.tid[0], THREADS)
    total = zero = t.constant(0.0)
    for place in places:
        for v in _loaded(t, kind, x, start, place, zero):
            total = t("fma.rn.f32", v, v, total)
    total = _over_warp(t, "add.rn.f32", total)
    with t.where(t.laneid == 0):
        t("st.shared.f32", t.warpid * 4, total)
    t("bar.sync")
    total, *others = t("ld.shared.v4.f32", 0)
    for other in others:
        total = t("add.rn.f32", total, other)
    mean = t("div.rn.f32", total, float(columns))
    factor = t("rsqrt.approx.ftz.f32", t("add.rn.f32", mean, EPSILON))
    for place in places:
        values = [t("mul.rn.f32", v, factor) for v in _loaded(t, kind, x, start, place, zero)]
        those = _loaded(t, kind, weights, 0, place, zero)
        _store(t, kind, y, start, place, [t("mul.rn.f32", v, w) for v, w in zip(values, those, strict=True)])


def gelu(t: Any, x: Any, y: Any, *, count: int, kind: str) -> None:
    """Apply GELU to so many elements, a grid of threads."""
    (place,) = _places(count, t.ctaid[0] * THREADS + t.tid[0], count)
    results = []
    for v in _loaded(t, kind, x, 0, place, t.constant(0.0)):
        inner = t("mul.rn.f32", v, t("fma.rn.f32", t("mul.rn.f32", v, v), CUBIC, LINEAR))
        half = t("mul.rn.f32", v, 0.5)
        results.append(t("fma.rn.f32", half, t("tanh.approx.f32", inner), half))
    _store(t, kind, y, 0, place, results)


def gelu_of_pairs(t: Any, x: Any, y: Any, *, count: int, kind: str) -> None:
    """Apply GELU to so many pairs, a grid of threads."""
    mul, fma, tanh = (f"{name}.{kind}x2" for name in ("mul.rn", "fma.rn", "tanh.approx"))
    cubic, linear, one_half = (_pair(t, kind, c) for c in (CUBIC, LINEAR, 0.5))
    (place,) = _places(count, t.ctaid[0] * THREADS + t.tid[0], count)
    results = []
    for v in _loaded(t, f"{kind}x2", x, 0, place, t.constant(0)):
        inner = t(mul, v, t(fma, t(mul, v, v), cubic, linear))
        half = t(mul, v, one_half)
        results.append(t(fma, half, t(tanh, inner), half))
    _store(t, f"{kind}x2", y, 0, place, results)


def _row_of_warp(t: Any, rows: int) -> Any:
    """Return each warp's row; warps beyond the last one end."""
    row = t.ctaid[0] * (THREADS // WARP) + t.warpid
    with t.where(row >= rows):
        t("exit")
    return row


def _places(columns: int, thread: Any, threads: int) -> list[Place]:
    """Share a row out among threads, in turns."""
    elements = 1 if columns % 4 else 4
    starts = [thread * elements + turn for turn in range(0, columns, threads * elements)]
    return [Place(start, start < columns, elements) for start in starts]


def _loaded(t: Any, kind: str, source: Any, start: Any, place: Place, missing: Any) -> list[Any]:
    """Load elements, as f32 but for pairs; those outside are `missing`."""
    mnemonic, size = _access("ld.global", kind, place)
    with t.where(place.inside):
        found = t(mnemonic, source + (start + place.first) * size)
        those = [found] if place.elements == 1 else found
        if kind in ("f16", "bf16"):
            those = [t(f"cvt.f32.{kind}", x) for x in those]
        return [t.update(missing, x) for x in those]


def _store(t: Any, kind: str, to: Any, start: Any, place: Place, results: list[Any]) -> None:
    """Round elements to their format, and store them."""
    mnemonic, size = _access("st.global", kind, place)
    if kind in ("f16", "bf16"):
        results = [t(f"cvt.rn.{kind}.f32", x) for x in results]
    with t.where(place.inside):
        t(mnemonic, to + (start + place.first) * size, *results)


def _access(name: str, kind: str, place: Place) -> tuple[str, int]:
    """Name the instruction that moves some elements, and the bytes of one."""
    size = 2 if kind in ("f16", "bf16") else 4
    return f"{name}{'.v4' * (place.elements == 4)}.b{8 * size}", size


def _folded(t: Any, operation: str, start: Any, values: Iterable[Iterable[Any]]) -> Any:
    """Combine a thread's values, one after the other."""
    for each in values:
        for value in each:
            start = t(operation, start, value)
    return start


def _over_warp(t: Any, operation: str, x: Any) -> Any:
    """Combine the values of a warp's lanes, in all of them."""
    for distance in (16, 8, 4, 2, 1):
        other, _ = t("shfl.sync.bfly.b32", x, distance, 31, EVERY)
        x = t(operation, x, other)
    return x


def _pair(t: Any, kind: str, value: float) -> Any:
    """Return a number, rounded to 16 bits, twice."""
    return t.constant(int(np.asarray(value, DTYPES[kind]).view(np.uint16)) * 0x10001)


def _halves(t: Any, kind: str, pair: Any) -> list[Any]:
    """Return both elements of a pair as f32, the lower one first."""
    return [t(f"cvt.f32.{kind}", t("cvt.u16.u32", x)) for x in (pair, pair >> 16)]


# Cases


@dataclass(frozen=True)
class Case:
    """A function of rows; magnitudes of x are from 2^(shift - 7) to 2^(shift + 3), and `seed` makes them."""

    function: str
    rows: int
    columns: int
    kind: str
    shift: int = 0
    seed: int = 1

    @property
    def name(self) -> str:
        """As it is called in recordings and tests."""
        shift = f" x2^{self.shift}" if self.shift else ""
        return f"{self.function} {self.rows}x{self.columns} {self.kind}{shift} {self.seed}"

    @property
    def format(self) -> str:
        """That of the elements."""
        return self.kind.removesuffix("x2")


KINDS = ("f32", "f16", "bf16")
PAIRS = ("f16x2", "bf16x2")
CASES = (
    *(Case("softmax", *shape, kind) for kind in KINDS for shape in ((1, 1), (7, 77), (6, 1000), (3, 1023))),
    *(Case("softmax", *shape, kind) for kind in PAIRS for shape in ((1, 2), (7, 74), (6, 1000))),
    *(Case("softmax", 5, 128, kind, shift=4) for kind in (*KINDS, *PAIRS)),  # most become 0
    *(Case("rmsnorm", *shape, kind) for kind in KINDS for shape in ((1, 1), (5, 77), (2, 4096), (3, 2047))),
    *(Case("rmsnorm", 2, 384, kind, shift=-8) for kind in KINDS),  # of f16 subnormal ones too; epsilon counts
    *(Case("gelu", *shape, kind) for kind in KINDS for shape in ((1, 1), (7, 77), (5, 1000))),
    *(Case("gelu", *shape, kind) for kind in PAIRS for shape in ((1, 2), (7, 74), (5, 1000))),
    *(Case("gelu", 5, 100, kind, shift=-6) for kind in (*KINDS, *PAIRS)),
)


def numbers(case: Case) -> tuple[Array, ...]:
    """Make x, and the weights of RMSNorm."""
    x = spread(words(case.seed, case.rows, case.columns), case.format, case.shift - 7)
    return (x, spread(words(case.seed + 1, case.columns), case.format, -7)) if case.function == "rmsnorm" else (x,)


def call(case: Case) -> Call:
    """Make the launch of a case; pairs need an even number of columns, and softmax not too many."""
    pairs = case.kind != case.format
    if pairs and case.columns % 2:
        raise ValueError(f"rows of {case.kind} have {case.columns} columns; expected an even number")
    columns = case.columns // (1 + pairs)
    if case.function == "softmax" and columns > MOST:
        raise ValueError(f"rows of softmax have {case.columns} columns; expected at most {MOST * (1 + pairs)}")
    x, *weights = numbers(case)
    kernel: Callable[..., None]
    match case.function:
        case "softmax":
            kernel, sizes = softmax_of_pairs if pairs else softmax, {"rows": case.rows, "columns": columns}
            blocks = -(-case.rows // (THREADS // WARP))
        case "rmsnorm":
            kernel, sizes, blocks = rmsnorm, {"columns": columns}, case.rows
        case _:
            count = case.rows * columns
            kernel, sizes = gelu_of_pairs if pairs else gelu, {"count": count}
            blocks = -(-count // (THREADS * (1 if count % 4 else 4)))
    return Call(
        kernel=partial(kernel, kind=case.format), twin=f"{case.function}_{case.kind}",
        grid=(blocks,), block=THREADS, shared=4 * THREADS // WARP if case.function == "rmsnorm" else 0,
        arrays=(x, *weights, np.empty_like(x)), sizes=sizes,
    )  # fmt: skip


def exact(case: Case) -> Array:
    """Compute a case in float64."""
    x, *weights = (array.astype(np.float64) for array in numbers(case))
    match case.function:
        case "softmax":
            powers = np.exp(x - x.max(axis=-1, keepdims=True))
            return np.asarray(powers / powers.sum(axis=-1, keepdims=True))
        case "rmsnorm":
            return np.asarray(x * weights[0] / np.sqrt((x * x).mean(axis=-1, keepdims=True) + EPSILON))
        case _:
            return np.asarray(x / 2 * (1 + np.tanh(LINEAR * x + CUBIC * x**3)))


def main() -> None:
    """Run the largest case of each function and kind, and print how far it is from float64, and what RMSNorm cost."""
    for case in CASES:
        if case.columns >= 1000 and case.columns % 8 == 0:
            of = call(case)
            result = simulate(of)
            error = np.abs(of.output.astype(np.float64) - exact(case)).max()
            print(f"{case.name}: within {error:.1e} of float64")
            if case.function == "rmsnorm":
                print(f"{report(result)}\n")


if __name__ == "__main__":
    main()
