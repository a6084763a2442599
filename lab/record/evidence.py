"""Make rows of evidence from a report of `warpmma compare`: `python -m lab.record.evidence REPORT.json`.

Prints the rows of `EVIDENCE` (src/warpmma/arithmetic/recipes/evidence.py) that the report supports, and which rows of
today they replace on its target; the table with them is built and checked. Then it prints the answers of experiments.

1. A row speaks of a group of instructions on a target, dense or sparse. The report supports it if it has all of these
   instructions, with at least `--outputs` outputs each and no difference.
2. A row of today loses the target where all that it covers there is covered by new rows, and there is one of its own
   for what is left where new rows cover only what is dense, or sparse. The new ones come first.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from warpmma.arithmetic import Evidence, group
from warpmma.arithmetic.recipes.evidence import EVIDENCE, EvidenceRow
from warpmma.arithmetic.recipes.scopes import ScopedTable
from warpmma.errors import TableError, WarpmmaError
from warpmma.hardware import Report
from warpmma.isa import MatrixInstruction, instructions, warpgroup_instructions

LEAST = 10**6
"""Outputs of an instruction that make evidence."""


def device(report: Report) -> str:
    """Name GPU, driver and CUDA, as evidence does."""
    about = report.device
    return f"{about['gpu']}, driver {about['driver']}, CUDA {about['cuda']}"


def supported(report: Report, least: int = LEAST) -> tuple[list[EvidenceRow], list[str]]:
    """Return the rows that a report supports, and what is missing for others (rule 1)."""
    target = report.device["target"]
    counts = {name: x for kind in ("mma", "wgmma") for name, x in report.counts.get(kind, {}).items()}
    families: dict[tuple[str, bool], list[MatrixInstruction]] = {}
    for record in (*instructions(target), *warpgroup_instructions(target)):
        families.setdefault((group(record), record.sparse), []).append(record)
    rows, missing = [], []
    for (name, sparse), some in families.items():
        what = f"{'sparse ' * sparse}{name}"
        here = [counts[str(x)] for x in some if str(x) in counts]
        if any(x.differences or x.wrong for x in here):
            missing.append(f"{what}: {sum(x.differences + x.wrong for x in here):,} differences")
        elif few := [x for x in some if str(x) not in counts or counts[str(x)].outputs < least]:
            missing.append(f"{what}: {len(few)} of {len(some)} instructions have less than {least:,} outputs")
        else:
            compared = f"{min(x.outputs for x in here):,} outputs, 0 differences"
            evidence = Evidence(kind="measured", source="this project", device=device(report), compared=compared)
            shapes = tuple(dict.fromkeys(x.shape for x in some))
            only = (("sparse", (sparse,)),)
            rows.append(EvidenceRow(group=name, places=(target,), only=only, evidence=evidence, shapes=shapes))
    return rows, missing


def merged(rows: Iterable[EvidenceRow]) -> tuple[list[EvidenceRow], list[EvidenceRow]]:
    """Return the table with new rows first, and the rows of today that lose the target (rule 2)."""
    new = list(rows)
    covered = {(row.group, row.places[0], value) for row in new for _, (value,) in row.only}
    targets = {target for _, target, _ in covered}
    table, replaced = list(new), []
    for row in EVIDENCE:
        kinds = dict(row.only).get("sparse", (False, True))
        here = [t for t in row.places if t in targets]
        gone = tuple(t for t in here if all((row.group, t, x) in covered or not has(row, t, x) for x in kinds))
        if gone:
            replaced.append(replace(row, places=gone))
        partly = {
            t: x for t in here if t not in gone and "sparse" not in dict(row.only)
            if (x := tuple(x for x in kinds if (row.group, t, x) not in covered)) != kinds
        }  # fmt: skip
        for target, x in partly.items():
            table.append(replace(row, places=(target,), only=(*row.only, ("sparse", x))))
        if left := tuple(t for t in row.places if t not in gone and t not in partly):
            table.append(replace(row, places=left))
    return table, replaced


def has(row: EvidenceRow, target: str, sparse: object) -> bool:
    """Say whether a row covers a dense or a sparse instruction of a target."""
    every = (*instructions(target), *warpgroup_instructions(target))
    return any(x.sparse == sparse and row.fits(x, target) for x in every)


def checked(table: Iterable[EvidenceRow]) -> None:
    """Raise `TableError` unless rows make a table."""
    rows = tuple(table)
    named = {target for row in rows for target in row.places}
    found = ScopedTable("EVIDENCE", rows, lambda record: tuple(t for t in record.targets if t in named))
    for kind in (type(instructions()[0]), type(warpgroup_instructions()[0])):
        found.check_complete(kind)


def written(row: EvidenceRow) -> str:
    """Write a row as `evidence.py` has them."""
    x = row.evidence
    made = f'Evidence(kind="{x.kind}", source="{x.source}", device="{x.device}", compared="{x.compared}")'
    return (
        f'EvidenceRow(group="{row.group}", places={row.places!r}, only={row.only!r}, shapes={row.shapes!r}, '
        f"evidence={made}),"
    )


def main(arguments: list[str] | None = None) -> int:
    """Print rows; 1 if there is none, 2 for what is no report, or rows that make no table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("report", type=Path)
    parser.add_argument("--outputs", type=float, default=LEAST, help="of each instruction, at least")
    options = parser.parse_args(arguments)
    try:
        report = Report.read(options.report)
        rows, missing = supported(report, int(options.outputs))
        table, replaced = merged(rows)
        checked(table)
    except (TableError, WarpmmaError, KeyError) as error:
        print(f"{options.report}: {error}", file=sys.stderr)
        return 2
    print(f"# {device(report)}, warpmma {report.made_by}: {report.summary()}")
    print("\n".join(written(row) for row in rows))
    for row in replaced:
        print(f"# replaces, there: {row}: {row.evidence.kind}; {row.evidence.assumption or row.evidence.source}")
    for text in missing:
        print(f"# not yet: {text}")
    for name, found in sorted(report.experiments.items()):
        print(f"# experiment {name}: {found.get('answer')}")
    return int(not rows)


if __name__ == "__main__":
    sys.exit(main())
