"""Read, check and launch hostile PTX texts: `python -m lab.fuzz.ptx --texts 10000`.

Every text must run, be rejected with a line and a column, or end at a limit; memory must stay below 1 GB. The number of
a text reproduces it: `--first 1234 --texts 1 --show`.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections import Counter

from lab.fuzz.outcomes import outcome
from lab.fuzz.texts import grid_of, hostile

MOST = 1 << 30
"""Bytes of memory."""


def main() -> int:
    """Try texts; print those with bad outcomes, and a summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first text")
    parser.add_argument("--show", action="store_true", help="print each text and what became of it")
    given = parser.parse_args()
    ends: Counter[str] = Counter()
    slowest = (0.0, -1)
    for number in range(given.first, given.first + given.texts):
        text, begun = hostile(number), time.process_time()
        found = outcome(text, grid_of(number))
        ends[found.kind] += 1
        slowest = max(slowest, (time.process_time() - begun, number))
        if found.kind == "bad" or given.show:
            print(f"text {number}: {found.kind}: {found.text}", flush=True)
        if given.show:
            print(text)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    how = ", ".join(f"{n} {kind}" for kind, n in sorted(ends.items()))
    print(f"{how}; at most {memory >> 20} MiB; the slowest, {slowest[1]}, took {slowest[0]:.1f} s")
    return int(ends["bad"] > 0 or memory > MOST)


if __name__ == "__main__":
    sys.exit(main())
