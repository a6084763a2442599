"""Compare the native engine with NumPy and the reference: `python -m lab.check.engines --help`.

Cycles through every recipe of `mma` and `wgmma`, every style of operands and, for units that have them, sparse
products, until enough outputs are compared. Every build of the engine that this machine can run computes all of them,
NumPy computes them once, and the reference a sample. Operands are outer products, which give a million outputs in NumPy
in a tenth of a second, plus a few matching rows and columns for each, as styles such as "cancel" require.

With `--gpu` the kernels of `engine="cuda"` are compared with the native engine, on this machine's GPU and on larger
products; with `--hardware` the GPU's own instructions as well. See `gpu_engines`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.check import gpu_engines
from lab.generators import by_reference, operands, recipe_cases, styles
from warpmma._text import table
from warpmma.arithmetic import FusedDotAdd, GroupedDotAdd, IntegerSum, Recipe, compute, recipe
from warpmma.arithmetic.dispatch import native
from warpmma.gpu import why_no_gpu
from warpmma.isa import warpgroup_instructions

Array = npt.NDArray[Any]
Rng = np.random.Generator

ROWS, COLUMNS, PAIRS = 96, 160, 1024
OUTPUTS = ROWS * COLUMNS + PAIRS  # of one job
SAMPLE = 8  # outputs of each part of a job that the reference computes


@dataclass(frozen=True)
class Job:
    """One recipe over k products with so many block scales, in one style; `number` is part of the seed.

    Attributes
    ----------
    recipe : Recipe
    k, scales : int
    sparse : bool
    style : str
    number : int
    """

    recipe: Recipe
    k: int
    scales: int
    sparse: bool
    style: str
    number: int

    @property
    def unit(self) -> str:
        """Name of the unit, for the table."""
        return type(self.recipe.unit).__name__ + (", sparse" if self.sparse else "")


@dataclass
class Row:
    """Results of the comparison for one unit.

    Attributes
    ----------
    outputs, differences : int
        How many outputs were compared with NumPy, at every level; how many differ at one level or more.
    sampled, wrong : int
        Compared with the reference as well.
    recipes : set of Recipe
    """

    outputs: int = 0
    differences: int = 0
    sampled: int = 0
    wrong: int = 0
    recipes: set[Recipe] = field(default_factory=set)


@dataclass(frozen=True)
class Outcome:
    """Outputs of a job that differ from NumPy, outputs sampled, those that differ from the reference; and the first."""

    differences: int
    sampled: int
    wrong: int
    first: str


def jobs(seed: int) -> Iterator[Job]:
    """Yield every recipe, style and kind of product in random order, endlessly."""
    found = {(case.recipe, case.k, case.blocks): None for case in recipe_cases()}
    for i in warpgroup_instructions():
        for target in i.targets:
            found[recipe(i, target), i.k // 2 if i.sparse else i.k, 0] = None
    every = [
        (how, k, scales, sparse, style)
        for how, k, scales in found
        for sparse in ((False, True) if isinstance(how.unit, FusedDotAdd | GroupedDotAdd | IntegerSum) else (False,))
        for style in styles(how)
    ]
    numbers, rng = count(), np.random.default_rng(seed)
    while True:
        for index in rng.permutation(len(every)):
            yield Job(*every[int(index)], next(numbers))


def outer(job: Job, rng: Rng) -> dict[str, Array]:
    """Codes of one product as `native.product` takes them: of all rows with all columns."""
    rows, columns = ROWS, COLUMNS
    of_a, of_b, of_c = (
        operands(job.recipe, job.k, each, job.style, rng, job.scales) for each in (rows, columns, max(rows, columns))
    )
    place = (np.arange(columns) - np.arange(rows)[:, None]) % max(rows, columns)
    given = {"a": of_a["a"].T[None], "b": of_b["b"][None], "c": of_c["c"][place][None]}
    if job.scales:
        given |= {"scale_a": of_a["scale_a"].T[None], "scale_b": of_b["scale_b"][None]}
    return given


def paired(job: Job, rng: Rng) -> dict[str, Array]:
    """Codes of many products of one row with one matching column."""
    x = operands(job.recipe, job.k, PAIRS, job.style, rng, job.scales)
    given = {"a": x["a"].T[:, None], "b": x["b"].T[..., None], "c": x["c"][:, None, None]}
    if job.scales:
        given |= {"scale_a": x["scale_a"].T[:, None], "scale_b": x["scale_b"].T[..., None]}
    return given


def scatter(given: dict[str, Array], job: Job, rng: Rng) -> None:
    """Make a product sparse: every row of B becomes two, and A selects one of them or of their neighbours."""
    given["b"] = np.repeat(given["b"], 2, axis=1)
    strangers = rng.random(given["b"].shape) < 0.05
    given["b"] = np.where(strangers, rng.permuted(given["b"], axis=1), given["b"])
    batch, m, k = given["a"].shape
    first = 4 * (np.arange(k) // 2)  # of four columns
    index = np.where(np.arange(k) % 2, 2, 0) + rng.integers(0, 2, (batch, m, k))
    given["chosen"] = (first + np.where(rng.random((batch, m, 1)) < 0.1, 3 - index, index)).astype(np.uint8)


def numpy_form(job: Job, given: dict[str, Array]) -> Array:
    """Compute the same by NumPy: k first, the other dimensions broadcast."""
    x: dict[str, Any] = {
        name: np.moveaxis(given[name], -1, 0)[..., None] for name in ("a", "scale_a", "chosen") if name in given
    }
    x |= {name: np.moveaxis(given[name], 1, 0)[:, :, None] for name in ("b", "scale_b") if name in given}
    if job.sparse:
        x["chosen"] = x["chosen"].astype(np.intp)
    return compute(job.recipe, x.pop("a"), x.pop("b"), given["c"], **x)


def slow(job: Job, given: dict[str, Array], places: Array) -> Array:
    """Compute some outputs by the reference."""
    w, m, n = places
    columns = given["chosen"][w, m] if job.sparse else np.arange(job.k)[None]
    x = {"a": given["a"][w, m].T, "b": given["b"][w[:, None], columns, n[:, None]].T, "c": given["c"][w, m, n]}
    if job.scales:
        x |= {"scale_a": given["scale_a"][w, m].T, "scale_b": given["scale_b"][w, :, n].T}
    return by_reference(job.recipe, **x)


def compare(job: Job, seed: int) -> Outcome:
    """Run one job.

    Parameters
    ----------
    job : Job
    seed : int

    Returns
    -------
    Outcome
    """
    rng = np.random.default_rng([seed, job.number])
    differences = sampled = wrong = 0
    first = ""
    for make in (outer, paired):
        given = make(job, rng)
        if job.sparse:
            scatter(given, job, rng)
        expected = numpy_form(job, given)
        unequal = np.zeros(expected.shape, bool)
        for level in dict.fromkeys(level.name for level in native.levels()):
            got = native.product(job.recipe, k=job.k, scales=job.scales, ends=(), level=level, **given)
            differs = got != expected
            unequal |= differs
            if differs.any() and not first:
                place = tuple(int(x) for x in np.argwhere(differs)[0])
                values = f"native {int(got[place]):#x}, NumPy {int(expected[place]):#x}"
                first = f"{job}, {make.__name__}, seed {seed}, {level}, {place}: {values}"
        places = rng.integers(0, np.array(expected.shape)[:, None], (3, SAMPLE))
        sample = slow(job, given, places)
        wrong += int((sample != expected[tuple(places)]).sum())
        differences += int(unequal.sum())
        sampled += SAMPLE
    return Outcome(differences, sampled, wrong, first)


def report(rows: dict[str, Row]) -> list[tuple[str, ...]]:
    """Return the results as cells of a table."""
    header = ("unit", "recipes", "outputs", "differ", "of them with the reference", "differ")
    return [header, *(
        (name, f"{len(r.recipes)}", f"{r.outputs:,}", f"{r.differences:,}", f"{r.sampled:,}", f"{r.wrong:,}")
        for name, r in sorted(rows.items())
    )]  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Run the comparison.

    Parameters
    ----------
    arguments : list of str, optional

    Returns
    -------
    int
        0 if nothing differs, 1 if anything does, 2 without a native engine, 130 if interrupted before that was known.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--outputs", type=float, default=1e8, help="how many to compare; default 1e8")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--gpu", action="store_true", help="compare kernels on a GPU with the native engine")
    of_gpu = parser.add_argument_group("with --gpu")
    of_gpu.add_argument("--hardware", action="store_true", help="compare the GPU's own instructions as well")
    of_gpu.add_argument("--state", type=Path, help="a file with what was compared: go on from there, and write it")
    of_gpu.add_argument("--minutes", type=float, help="stop after so long")
    options = parser.parse_args(arguments)
    if not options.gpu and (options.hardware or options.state or options.minutes):
        parser.error("--hardware, --state and --minutes need --gpu")
    if not native.levels():
        print("the native engine is not built: there is nothing to compare", file=sys.stderr)
        return 2
    if options.gpu:
        if why := why_no_gpu():
            print(why, file=sys.stderr)
            return 2
        return gpu_engines.run(gpu_engines.Options(**{x: y for x, y in vars(options).items() if x != "gpu"}))
    levels = list(dict.fromkeys(level.name for level in native.levels()))
    rows: dict[str, Row] = {}
    done = 0
    interrupted = False
    start = time.monotonic()
    todo = jobs(options.seed)
    with ThreadPoolExecutor(options.threads) as pool:
        try:
            while done < options.outputs:
                some = list(islice(todo, min(8 * options.threads, -int(-(options.outputs - done) // OUTPUTS))))
                for job, outcome in zip(some, pool.map(compare, some, [options.seed] * len(some)), strict=True):
                    row = rows.setdefault(job.unit, Row())
                    row.recipes.add(job.recipe)
                    row.outputs, row.differences = row.outputs + OUTPUTS, row.differences + outcome.differences
                    row.sampled, row.wrong = row.sampled + outcome.sampled, row.wrong + outcome.wrong
                    done += OUTPUTS
                    if outcome.first:
                        print(f"\n{outcome.first}", flush=True)
                bad = sum(row.differences + row.wrong for row in rows.values())
                text = f"{done:,} of {int(options.outputs):,} outputs, {bad:,} differ, {time.monotonic() - start:.0f} s"
                print(f"\r{text}", end="", file=sys.stderr, flush=True)
        except KeyboardInterrupt:
            interrupted = True
            pool.shutdown(cancel_futures=True)
    print(file=sys.stderr)
    if interrupted:
        print("interrupted; so far:")
    print("\n".join(table(report(rows), left=[0])))
    outputs, sampled = sum(row.outputs for row in rows.values()), sum(row.sampled for row in rows.values())
    bad = sum(row.differences + row.wrong for row in rows.values())
    print(
        f"{outputs:,} outputs of {len(levels)} levels ({', '.join(levels)}) compared with NumPy, {sampled:,} of them "
        f"({sampled / max(1, outputs):.4%}) NumPy's with the reference: {bad:,} differences"
    )
    return 1 if bad else 130 if interrupted else 0


if __name__ == "__main__":
    sys.exit(main())
