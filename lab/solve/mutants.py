"""Operands that reveal a table with one mistake, and a GPU's results for them.

    python -m lab.solve.mutants FILE             # finds operands, with results of our own rules
    python -m lab.solve.mutants FILE --record    # finds operands, with this machine's GPU's results
    python -m lab.solve.mutants FILE --keep --record    # the same, at the operands that FILE has

A mutant is a table with one of its integers off by one, or whose squarer has one partial product more or less. An
operand reveals it if it moves V out of the interval that gives the result (`View.bracket`). From every segment two
operands are taken whose V is next to either end; then, for each mutant that these do not reveal, one that does, if
there is any. FILE also receives operands for the rules around the tables: every exponent field, and where a rule
begins. `--record` needs an sm_90 GPU, `ptxas` on the PATH and CuPy.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lab.solve.positions import (
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
NEAR = 64  # operands per segment and end, from which the most revealing one is taken
COEFFICIENTS: tuple[Part, ...] = ("C0", "C1", "C2")
RULES = "rules of "


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A table with one mistake.

    Attributes
    ----------
    table : str
    part : {"C0", "C1", "C2", "K", "product"}
        The part that is off by one; for the squarer, a partial product.
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
        """Return the excess of V over the table's at some positions, in units of 2^-(41 + FINE)."""
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
        """The mutant as a table for the rules."""
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


def distances(view: View, segment: int) -> tuple[Int, Int]:
    """Return how far the V of each x of a segment can move before the result changes.

    Returns
    -------
    up, down : ndarray of int64
        With so much more, and with anything more than so much less, in units of 2^-41.
    """
    x, q = inputs(view.interpolator.bits)
    a, b, d = view.interpolator.scaled_rows(POINT)[segment].tolist()
    value = a + b * x + d * q
    least, greatest = view.window(value)
    up, down = greatest + 1 - value, value - least
    if segment == 0:
        up[: view.first_told], down[: view.first_told] = FAR, FAR
    return up, down


def noticed(more: Int | int, up: Int, down: Int) -> Bool:
    """Return where a change of V, in units of 2^-(41 + FINE), changes the result."""
    result: Bool = (more >= up << FINE) | (more < -(down << FINE))
    return result


def places(view: View, those: Sequence[Mutant]) -> dict[Mutant, int]:
    """Return, for each mutant that is noticed at any position of a view, one: of the first segment the last.

    Of all x, the last has the greatest change of V, whatever is changed; only positions so near to an end are tried.
    """
    bits, found = view.interpolator.bits, {}
    last = np.array([(1 << bits) - 1])
    for segment in range(view.segments):
        left = [m for m in those if m not in found and (m.part not in COEFFICIENTS or m.segment == segment)]
        if not left:
            continue
        up, down = distances(view, segment)
        most = max(abs(int(mutant.more(segment, last)[0])) for mutant in left)
        near = np.flatnonzero(noticed(most, up, down) | noticed(-most, up, down))
        up, down = up[near], down[near]
        for mutant in left:
            at = near[noticed(mutant.more(segment, near), up, down)]
            if len(at):
                found[mutant] = segment << bits | int(at[-1])
    return found


def unnoticed(table: str, those: Iterable[Mutant] | None = None) -> list[Mutant]:
    """Return the mutants of a table (all, or some) that no operand tells from it: all its positions are tried."""
    left = list(mutants(table) if those is None else those)
    for view in VIEWS:
        if view.table == table:
            found = places(view, left)
            left = [mutant for mutant in left if mutant not in found]
    return left


def find(table: str) -> dict[str, Int]:
    """Return, by the name of a view, positions at which all mutants are noticed that are noticed at any."""
    left, taken = list(mutants(table)), {}
    for view in VIEWS:
        if view.table != table:
            continue
        bits = view.interpolator.bits
        positions = []
        for segment in range(view.segments):
            up, down = distances(view, segment)
            for end in (up, down):
                x = _best(end, up, down, segment, left)
                left = [m for m in left if not noticed(m.more(segment, x), up[x], down[x]).any()]
                positions.append(segment << bits | int(x[0]))
        positions += (found := places(view, left)).values()
        left = [mutant for mutant in left if mutant not in found]
        taken[view.name] = np.unique(positions)
    counts = {name: len(positions) for name, positions in taken.items()}
    print(f"{table}: operands {counts}; noticed at none: {len(left)}", flush=True)
    return taken


def _best(end: Int, up: Int, down: Int, segment: int, left: Sequence[Mutant]) -> Int:
    """Return the x, of those in the upper half that are nearest to an end, that notices the most partial products."""
    half = len(end) // 2
    x = half + np.argsort(end[half:], kind="stable")[:NEAR]  # the first of equal ones, on every processor
    count = np.zeros(len(x))
    for mutant in left:
        if mutant.part == "product":
            count += noticed(mutant.more(segment, x), up[x], down[x])
    return x[np.lexsort((end[x], -count))[:1]]


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
    if options.keep and not options.file.is_file():
        parser.error(f"no {options.file}, whose operands --keep takes")
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
