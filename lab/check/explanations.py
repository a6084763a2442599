"""Check explanations against the engines: bits, losses and bounds of random dot products, for every recipe.

    python -m lab.check.explanations [--rows 10000] [--chains 5000] [--only WORD] [--part 0:137] [--seed 0]

For every recipe of `mma` and `wgmma`, dot products are drawn in all applicable styles: cancellations, subnormals, wide
exponents, special values. Each trace must end in the bits that every engine gives, its losses must sum to the exact
error, and no bound may be exceeded. The same holds for chains of `matmul`, split and promoted, with epilogues, block
scales and tensor scales; there the bounds of whole products must not be below those of elements either. Ctrl-C stops
and prints the results so far. The exit status is 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Iterator, Sequence

from lab.check.chains import chain_faults
from lab.check.recipes import Faults, cases, recipe_faults


def main(arguments: Sequence[str] | None = None) -> int:
    """Check, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000, help="dot products of every recipe")
    parser.add_argument("--chains", type=int, default=5_000, help="elements of whole products")
    parser.add_argument("--only", default="", help="recipes of whose instruction the name holds this")
    parser.add_argument("--part", default=":", help="which recipes, counted from 0: to share work among processes")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell makes background processes ignore it
    units: dict[str, Faults] = {}
    started = time.perf_counter()
    try:
        for name, found in _found(options):
            units.setdefault(name, Faults()).add(found)
            for fault in found.faults[:3]:
                print(f"\n{fault}", flush=True)
    except KeyboardInterrupt:
        print("\nstopped")
    print(f"\n{time.perf_counter() - started:.0f} s")
    print(f"{'':16} {'rows':>9} {'finite':>9} {'bounded':>9} {'bound 0':>9} {'error/bound':>12} {'faults':>7}")
    for name, row in units.items():
        print(
            f"{name:16} {row.rows:9,} {row.finite:9,} {row.bounded:9,} {row.exact:9,} {float(row.tightest):12.4f} "
            f"{len(row.faults):7,}"
        )
    return int(any(row.faults for row in units.values()))


def _found(options: argparse.Namespace) -> Iterator[tuple[str, Faults]]:
    start, _, stop = options.part.partition(":")
    mine = [x for x in cases() if options.only in str(x)][int(start or 0) : int(stop) if stop else None]
    for number, case in enumerate(mine):
        print(f"\r{number:4} of {len(mine)} recipes: {str(case)[:90]:90}", end="", flush=True)
        yield type(case.recipe.unit).__name__, recipe_faults(case, options.rows, options.seed)
    if options.chains and not options.only:
        yield from (("chains", found) for found in chain_faults(options.chains, options.seed))


if __name__ == "__main__":
    sys.exit(main())
