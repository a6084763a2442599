"""Compare from which version of PTX on ptxas and the tables have an instruction: `python -m lab.compare.versions`.

Each row is asked about once: in a text of the last version before its own, for the lowest target that has the row and
takes such a text. ptxas (13.0) should refuse it; `operations.versions` has the rows that it takes.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from random import Random

from lab.compare.statements import HEAD, legal, refused
from warpmma.isa import PtxInstruction
from warpmma.operations import lowest_version, rows

__all__ = ["asked", "main", "taken"]

Version = tuple[int, int]
VERSIONS: tuple[Version, ...] = (
    (6, 3), (6, 4), (6, 5), *((7, x) for x in range(9)), *((8, x) for x in range(9)), (9, 0),
)  # fmt: skip
FIRST: Mapping[str, Version] = {
    "sm_75": (6, 3), "sm_80": (7, 0), "sm_90": (7, 8), "sm_90a": (8, 0), "sm_100a": (8, 6), "sm_120a": (8, 7),
}  # fmt: skip
"""Targets, and the first version whose texts name them."""

_WIDE = " .reg .b128 %q<9>;"  # since PTX 8.3


def asked(all_rows: Iterable[PtxInstruction]) -> dict[tuple[str, Version], list[PtxInstruction]]:
    """Return the rows that can be asked about, by target and the version of the text."""
    found: dict[tuple[str, Version], list[PtxInstruction]] = defaultdict(list)
    for row in all_rows:
        for target, first in FIRST.items():
            before = [x for x in VERSIONS if first <= x < lowest_version(row)]
            if target in row.targets and before:
                found[target, before[-1]].append(row)
                break
    return found


def taken(random: Random, given: Iterable[PtxInstruction], target: str, version: Version) -> tuple[list[str], int]:
    """Return the statements of rows that ptxas takes in a text of a version, and how many it was asked about."""
    head = HEAD.replace(".version 9.0", ".version {}.{}".format(*version))
    assert _WIDE in head
    statements = [str(legal(random, row)) for row in given]
    if version < (8, 3):
        head, statements = head.replace(_WIDE, ""), [x for x in statements if "%q" not in x]
    bad = refused(statements, target, head)
    return [x for i, x in enumerate(statements) if i not in bad], len(statements)


def main(arguments: list[str] | None = None) -> int:
    """Ask ptxas about every row; 1 if it takes one in a text that is too old."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0, help="draws the operands (default: %(default)s)")
    random, found, total = Random(parser.parse_args(arguments).seed), 0, 0
    for (target, version), given in sorted(asked(rows()).items()):
        some, number = taken(random, given, target, version)
        found, total = found + len(some), total + number
        print(f"{target}, PTX {version[0]}.{version[1]}: {number} rows of later versions; ptxas takes {len(some)}")
        print(*(f"  {x}\n" for x in some), sep="", end="")
    print(f"{total} rows; {found} differ")
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
