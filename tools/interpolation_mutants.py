"""Operands at which a table with one mistake is noticed, and a GPU's results of them.

    python tools/interpolation_mutants.py FILE             # finds operands, with the law's own results
    python tools/interpolation_mutants.py FILE --record    # finds operands, with this machine's GPU's results

A mutant is a table with one of its integers off by one, or whose squarer has one partial product more or less. It is
noticed at an operand where it carries V out of what gives the result (`View.bracket`). From every segment two operands
are taken whose V lies next to either end; then, for each mutant that is not noticed there, one where it is, if there is
any. FILE also gets operands for the rules around the tables: every exponent field, and where a rule begins. `--record`
needs an sm_90 GPU, `ptxas` on the PATH and CuPy.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from function_positions import (
    MNEMONICS,
    POINT,
    VIEWS,
    Codes,
    FunctionGpu,
    Run,
    View,
    inputs,
    save_archive,
    simulated,
    turns,
)

from warpmma.arithmetic import Interpolator, interpolators, squarer

__all__ = ["VIEWS", "Mutant", "mutants", "noticed", "read", "rule_operands", "turns", "unnoticed"]

Int = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]
Part = Literal["C0", "C1", "C2", "K", "product"]

FINE = 18
"""V of a mutant is in units of 2^-(41 + FINE), of which partial products of the least weight are multiples."""
FAR = 1 << 30
NEAR = 64  # operands of a segment and an end, of which the one that notices most is taken
COEFFICIENTS: tuple[Part, ...] = ("C0", "C1", "C2")
RULES = "rules of "


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A table with one mistake.

    Attributes
    ----------
    table : str
    part : {"C0", "C1", "C2", "K", "product"}
        What is off by one; of the squarer, a partial product.
    change : {1, -1}
        One more or less.
    segment : int
        Of C0, C1 and C2.
    pair : tuple of int
        The partial product.
    """

    table: str
    part: Part
    change: int
    segment: int = 0
    pair: tuple[int, int] = (0, 0)

    @property
    def weight(self) -> int:
        """Return w of the partial product's 2^-w."""
        i, j = self.pair
        return 2 * i if i == j else i + j - 1

    def more(self, segment: Int | int, x: Int) -> Int:
        """Return how much more V is than the table's, at each of some places, in units of 2^-(41 + FINE)."""
        table = interpolators()[self.table]
        unit = self.change << POINT - table.point + FINE
        if self.part == "K":
            return np.full(len(x), unit)
        if self.part == "product":
            c2 = np.array([row[2] for row in table.rows])[segment]
            i, j = (table.bits - n for n in self.pair)
            return np.where(x >> i & x >> j & 1, c2 * ((2 * unit << 19) >> self.weight + 4), 0)
        s0, s1 = table.shifts
        q = table.squarer.table.astype(np.int64)[x]
        factor = {"C0": np.full(len(x), 1 << s0), "C1": x << s1, "C2": 2 * q}[self.part]
        return np.where(segment == self.segment, unit * factor, 0)

    @property
    def interpolator(self) -> Interpolator:
        """The mutant, as the rules have it."""
        table = interpolators()[self.table]
        if self.part == "K":
            return replace(table, constant=table.constant + self.change)
        if self.part == "product":
            if self.change > 0:
                return _OneMore(**vars(table) | {"point": table.point + FINE}, pair=self.pair, weight=self.weight)
            rest = tuple(pair for pair in table.squarer.products if pair != self.pair)
            return replace(table, squarer=replace(table.squarer, products=rest))
        rows = [list(row) for row in table.rows]
        rows[self.segment][COEFFICIENTS.index(self.part)] += self.change
        return replace(table, rows=tuple((c0, c1, c2) for c0, c1, c2 in rows))


@dataclass(frozen=True, kw_only=True)
class _OneMore(Interpolator):
    """A table whose squarer has one partial product more, of a weight below 2^-15: V is in finer units."""

    pair: tuple[int, int]
    weight: int

    def sum(self, position: int) -> int:
        i, j = (self.bits - n for n in self.pair)
        c2 = self.rows[position >> self.bits][2] if position >> i & position >> j & 1 else 0
        return (super().sum(position) << FINE) + (c2 << FINE + 16 - self.weight)


def mutants(name: str) -> Iterator[Mutant]:
    """Yield every mutant of a table."""
    table = interpolators()[name]
    for change in (1, -1):
        yield Mutant(table=name, part="K", change=change)
        for segment in range(len(table.rows)):
            for part in COEFFICIENTS:
                yield Mutant(table=name, part=part, change=change, segment=segment)
    there = set(squarer(table.bits).products)
    for i in range(1, table.bits + 1):
        for j in range(i, table.bits + 1):
            yield Mutant(table=name, part="product", change=-1 if (i, j) in there else 1, pair=(i, j))


@dataclass(frozen=True, kw_only=True)
class Distances:
    """How far V may be moved until the result is another.

    Attributes
    ----------
    up, down : ndarray of int32
        `[segment, x]`: with so much more, and with anything more than so much less, in units of 2^-41.
    """

    up: npt.NDArray[np.int32]
    down: npt.NDArray[np.int32]

    @classmethod
    def of(cls, view: View) -> Distances:
        """Return those of every position of a view."""
        table = view.interpolator
        x, q = inputs(table.bits)
        a, b, d = (column[:, None] for column in table.scaled_rows(POINT).T)
        value = a + b * x + d * q
        least, greatest = view.bracket(simulated(view.function, view.operands()))
        up, down = greatest.reshape(value.shape) + 1 - value, value - least.reshape(value.shape)
        up[0, : view.first_told], down[0, : view.first_told] = FAR, FAR
        if up.min() < 1 or down.min() < 0:
            raise ValueError(f"{view.name}: results that are not those of the table")
        return cls(up=up.astype(np.int32), down=down.astype(np.int32))


def noticed(more: Int, up: npt.NDArray[Any], down: npt.NDArray[Any]) -> Bool:
    """Say where a change of V, in units of 2^-(41 + FINE), changes the result."""
    result: Bool = (more >= up.astype(np.int64) << FINE) | (more < -(down.astype(np.int64) << FINE))
    return result


def least_with(distances: npt.NDArray[np.int32], bits: int) -> npt.NDArray[np.int32]:
    """Return `[segment, i, j]`: the least distance of all x that have bits i and j, counted from 1 at the highest."""
    least = distances.copy()  # of each x, of all x that have its bits and more
    for bit in range(bits):
        halves = least.reshape(len(least), -1, 2, 1 << bit)
        np.minimum(halves[:, :, 0], halves[:, :, 1], out=halves[:, :, 0])
    powers = np.array([0, *(1 << bits - i for i in range(1, bits + 1))])
    return least[:, powers[:, None] | powers]


class Nearest:
    """What of a view's distances tells whether a mutant is noticed anywhere."""

    def __init__(self, view: View) -> None:
        self.distances = Distances.of(view)
        bits = view.interpolator.bits
        self._up, self._down = (least_with(x, bits) for x in (self.distances.up, self.distances.down))

    def notices(self, mutant: Mutant) -> tuple[int, int] | None:
        """Return a segment and an x at which a mutant is noticed, or None if it is at no position."""
        up, down = self.distances.up, self.distances.down
        segments = np.array([mutant.segment])
        if mutant.part == "K" or mutant.part == "product":
            i, j = mutant.pair
            all_bits = np.full(len(up), -1)  # what the change is where it is not zero
            segments = np.arange(len(up))
            segments = segments[noticed(mutant.more(segments, all_bits), self._up[:, i, j], self._down[:, i, j])]
        x = np.arange(up.shape[1])
        for segment in segments.tolist():
            places = np.flatnonzero(noticed(mutant.more(segment, x), up[segment], down[segment]))
            if len(places):
                return segment, int(places[-1])
        return None


def unnoticed(table: str) -> list[Mutant]:
    """Return the mutants of a table that no operand tells from it: all its positions are tried."""
    nearest = [Nearest(view) for view in VIEWS if view.table == table]
    return [mutant for mutant in mutants(table) if not any(x.notices(mutant) for x in nearest)]


def find(table: str) -> dict[str, Int]:
    """Return, by the name of a view, positions at which all mutants are noticed that are noticed at any."""
    views = [view for view in VIEWS if view.table == table]
    left, taken = list(mutants(table)), {}
    for view in views:
        nearest = Nearest(view)
        bits = view.interpolator.bits
        positions = []
        for segment in range(view.segments):
            for end in (nearest.distances.up, nearest.distances.down):
                position = segment << bits | _best(nearest.distances, end, segment, left)
                left = _left(nearest.distances, np.array([position]), bits, left)
                positions.append(position)
        for mutant in list(left):
            place = nearest.notices(mutant)
            if place:
                positions.append(place[0] << bits | place[1])
                left = _left(nearest.distances, np.array(positions[-1:]), bits, left)
        taken[view.name] = np.unique(positions)
    counts = {name: len(positions) for name, positions in taken.items()}
    print(f"{table}: operands {counts}; noticed at none: {len(left)}", flush=True)
    return taken


def _best(distances: Distances, end: npt.NDArray[np.int32], segment: int, left: Sequence[Mutant]) -> int:
    """Return the x, of those in the upper half that are nearest to an end, that notices the most partial products."""
    half = end.shape[1] // 2
    x = half + np.argpartition(end[segment, half:], NEAR)[:NEAR]
    count = np.zeros(len(x))
    for mutant in left:
        if mutant.part == "product":
            count += noticed(mutant.more(segment, x), distances.up[segment, x], distances.down[segment, x])
    return int(x[np.lexsort((end[segment, x], -count))[0]])


def _left(distances: Distances, positions: Int, bits: int, left: Sequence[Mutant]) -> list[Mutant]:
    """Return the mutants that are not noticed at positions."""
    segment, x = positions >> bits, positions & (1 << bits) - 1
    up, down = distances.up[segment, x], distances.down[segment, x]
    return [mutant for mutant in left if not noticed(mutant.more(segment, x), up, down).any()]


def rule_operands(function: str) -> Codes:
    """Return operands of a function for the rules around its tables."""
    rng = np.random.default_rng(11)
    field, sign = np.arange(256) << 23, np.array([0, 1 << 31])
    fractions = [np.zeros(256, int), np.full(256, (1 << 23) - 1), rng.integers(1, 1 << 23, 256)]
    parts = [(field + fraction | s).ravel() for fraction in fractions for s in sign]
    near = np.concatenate([np.arange(-4, 5), *(s * rng.integers(0, 1 << 12, 64) for s in (1, -1))])
    one = 0x3F800000
    if function == "lg2":
        parts += [one + near, one + rng.integers(0, 1 << 9, 64)]
    if function == "ex2":
        numbers = np.concatenate([np.arange(-130.0, 130.0), rng.uniform(-127, 128, 256), rng.uniform(-1, 0, 64)])
        parts += [numbers.astype(np.float32).view(np.uint32)]
    if function in ("sin", "cos"):
        borders = (np.arange(1, 33) * (np.pi / 2)).astype(np.float32).view(np.uint32)
        numbers = rng.uniform(-40, 40, 256).astype(np.float32).view(np.uint32)
        parts += [(borders[:, None] + np.arange(-2, 3) | s).ravel() for s in sign] + [numbers]
    if function == "tanh":
        edges = np.arange(117, 132) << 23
        parts += [(edges[:, None] + rng.integers(0, 1 << 23, (15, 8)) | s).ravel() for s in sign]
        parts += [(edges[:, None] + np.arange(-2, 3) | s).ravel() for s in sign]
    return np.unique(np.concatenate([np.asarray(part).astype(np.uint32) for part in parts]))


def read(path: Path) -> tuple[str, Mapping[str, tuple[str, Codes, Codes]]]:
    """Read the device, and by the name of a view or of rules: the function, operands and results."""
    functions = {view.name: view.function for view in VIEWS} | {f"{RULES}{x}": x for x in MNEMONICS}
    with np.load(path, allow_pickle=False) as archive:
        found = {
            name: (function, archive[f"{name}|operands"], archive[f"{name}|results"])
            for name, function in functions.items()
        }
        return str(archive["device"]), found


def main(arguments: list[str] | None = None) -> int:
    """Find operands, and record their results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--record", action="store_true", help="take the results of this machine's GPU")
    parser.add_argument("--keep", action="store_true", help="take FILE's operands, and find none")
    parser.add_argument("--target", default="sm_90")
    options = parser.parse_args(arguments)
    start = time.monotonic()
    run: Run = simulated
    device = "simulated"
    if options.record:
        gpu = FunctionGpu(options.target)
        run, device = gpu, gpu.device
    operands: dict[str, tuple[str, Codes]] = {}
    if options.keep:
        operands = {name: (function, codes) for name, (function, codes, _) in read(options.file)[1].items()}
    else:
        for table in interpolators():
            for name, positions in find(table).items():
                view = next(view for view in VIEWS if view.name == name)
                operands[name] = view.function, view.operands()[positions]
        operands |= {f"{RULES}{function}": (function, rule_operands(function)) for function in MNEMONICS}
    arrays: dict[str, npt.NDArray[Any]] = {"device": np.array(device)}
    count = different = 0
    for name, (function, codes) in operands.items():
        results = run(function, codes)
        arrays |= {f"{name}|operands": codes, f"{name}|results": results}
        count, different = count + len(codes), different + int((results != simulated(function, codes)).sum())
    save_archive(options.file, arrays)
    print(f"{device}: {count} operands, {different} results differ from ours, {time.monotonic() - start:.0f} s")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
