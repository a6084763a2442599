"""Change each parameter of each recipe: which operands show it, and how soon? `python -m lab.mutate.recipes --help`.

For every recipe of `mma` and `wgmma`, every mutant of it (`recipe_changes`) and every style of operands, outputs are
computed with both until enough differ, or 10,000 of the style are the same. What no style notices is looked for in
100,000 of each, unless `harmless_recipes` argues that there is nothing to notice.

Ctrl-C stops, and prints what was found until then. Results are kept in the file of `--json`, and what it has is not
computed again; delete it after a change of a style. The exit status is 1 if a mutant is neither noticed nor argued, or
if one that is argued is noticed; 130 if stopped before that was known.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Generator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import closing
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from lab.generators import styles
from lab.generators.power import PATH

from .harmless_recipes import argument
from .recipe_changes import mutants, subjects
from .recipe_power import counts, more
from .recipe_tables import Finding, choice, findings, markdown
from .tables import replaced

__all__ = ["judged", "main"]

Found = dict[str, Any]


def judged(index: int, seed: int, outputs: int) -> Found:
    """Judge all mutants of a recipe.

    Parameters
    ----------
    index : int
        Of `subjects()`.
    seed : int
    outputs : int
        How many of each style are made for a mutant that is not noticed in 10,000.

    Returns
    -------
    dict
        "mutants": by name, "why" (the argument, or empty) and "counts": by style, how many of how many outputs differ.
    """
    subject = subjects()[index]
    those, names = list(mutants(subject)), styles(subject.recipe)
    why = {m.name: argument(subject, m) for m in those}
    found = counts(subject, those, names, seed)
    left = [m for m in those if not why[m.name] and not any(c.differ for c in found[m.name].values())]
    more(subject, left, found, seed, outputs)
    by_mutant = {
        name: {"why": why[name], "counts": {style: [c.differ, c.outputs] for style, c in by_style.items()}}
        for name, by_style in found.items()
    }
    return {"of": _fingerprint(index), "mutants": by_mutant}


def _fingerprint(index: int) -> str:
    """Return what results in a file have to agree with."""
    subject = subjects()[index]
    return f"{subject.recipe}, {', '.join(styles(subject.recipe))}"


def _results(todo: Sequence[int], jobs: int, seed: int, outputs: int) -> Generator[tuple[int, Found]]:
    judge = partial(judged, seed=seed, outputs=outputs)
    if jobs == 1:
        yield from ((index, judge(index)) for index in todo)
        return
    pool = ProcessPoolExecutor(
        jobs, get_context("spawn"), initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)
    )
    try:
        asked = {pool.submit(judge, index): index for index in todo}
        for future in as_completed(asked):
            yield asked[future], future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _kept(path: Path, about: Found) -> dict[str, Found]:
    """Read the results of a file that are of this campaign."""
    if not path.is_file():
        return {}
    there = json.loads(path.read_text())
    if {name: there.get(name) for name in about} != about:
        return {}
    fingerprints = {subject.name: _fingerprint(i) for i, subject in enumerate(subjects())}
    return {name: x for name, x in there["recipes"].items() if fingerprints.get(name) == x["of"]}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; see `--help`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--only", default="", metavar="TEXT", help="recipes alone whose target, instruction or unit contains this")
    add("--outputs", type=int, default=100_000, help="of a style, for what 10,000 do not show (default: 100000)")
    add("--seed", type=int, default=0)
    add("--jobs", type=int, default=1, help="processes (default: 1)")
    add("--json", type=Path, default=Path("build/recipes.json"), help="where results are kept")
    add("--choose", action="store_true", help=f"write lab/generators/{PATH.name}, by which campaigns choose styles")
    options = parser.parse_args(arguments)
    if options.jobs < 1 or options.outputs < 0:
        parser.error("--jobs is positive, and --outputs is not negative")
    todo = [i for i, subject in enumerate(subjects()) if options.only in f"{subject.name} {subject.unit}"]
    if not todo:
        parser.error(f"no recipe's name contains {options.only!r}")
    if options.choose and options.only:
        parser.error("--choose needs all recipes: leave --only out")
    done, stopped = _run(todo, options)
    every = findings(done)
    print(markdown(every))
    if options.choose and not stopped:
        replaced(PATH, json.dumps(choice(every), indent=1) + "\n")
    return 1 if any(x.bad for x in every) else 130 if stopped else 0


def _run(todo: Sequence[int], options: argparse.Namespace) -> tuple[dict[str, Found], bool]:
    """Judge what the file does not have; return results by the name of the recipe, and whether Ctrl-C came."""
    about = {"seed": options.seed, "outputs": options.outputs}
    kept = _kept(options.json, about)
    names = {i: subjects()[i].name for i in todo}
    done = {name: kept[name] for name in names.values() if name in kept}
    start = written = time.monotonic()
    stopped = False
    try:
        left = [i for i in todo if names[i] not in done]
        with closing(_results(left, options.jobs, options.seed, options.outputs)) as results:
            for index, found in results:
                done[names[index]] = kept[names[index]] = found
                now = time.monotonic()
                _show(done, len(todo), now - start)
                if now - written > 5:
                    written = now
                    _write(options.json, about, kept)
    except KeyboardInterrupt:
        stopped = True
        print("\nstopped; so far:", file=sys.stderr)
    _show(done, len(todo), time.monotonic() - start)
    print(file=sys.stderr)
    _write(options.json, about, kept)
    return {name: done[name] for name in names.values() if name in done}, stopped


def _write(path: Path, about: Found, found: dict[str, Found]) -> None:
    replaced(path, json.dumps({**about, "recipes": found}) + "\n")


def _show(done: dict[str, Found], total: int, seconds: float) -> None:
    every: list[Finding] = findings(done)
    bad = sum(x.bad for x in every)
    text = f"{len(done)} of {total} recipes in {seconds:.0f} s: {len(every):,} mutants, {bad} missed"
    print(f"\r{text}   ", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
