"""Make kernels wrong, one thing at a time; does the simulator notice? `python -m lab.mutate.kernels --help`.

Mutants are made of the kernels in `examples/`: each barrier, wait, commit, mask, store, copy and lane of a membermask
dropped, each address shifted, lanes, stages and the order of neighbours swapped, loops and comparisons off by one. A
mutant must be found (a hazard or an error names it), or its output must be wrong; one that does neither is harmless,
if `lab/mutate/harmless.py` says why, and else it is unnoticed.

Ctrl-C stops, and writes the table of what was done until then. The exit status is 1 if a mutant was unnoticed, the
package broke, a kernel does not run unchanged, or an argument in the table of harmless mutants is of no use any more.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from lab.mutate.campaign import Names, campaign, command_line, parsed, sampled
from lab.mutate.harmless import stale
from lab.mutate.subjects import Mutant, mutants, subjects
from lab.mutate.verdicts import BAD, Verdict, judge, original


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; see `--help`."""
    parser = command_line(__doc__, "kernel", Path("build/mutants"))
    parser.add_argument("--seed", type=int, default=0, help="another seed takes another sample (default: 0)")
    options = parsed(parser, arguments)
    those = [m for s in subjects() for m in mutants(s) if options.only in f"{s.name}: {m.name}"]
    if not those:
        parser.error(f"no mutant's name contains {options.only!r}")
    whole = options.sample is None and not options.only
    those = sampled(those, options.sample, options.seed)
    if options.list:
        print("\n".join(f"{m.subject.name}: {m.name}" for m in those))
        return 0
    return _campaign(those, options.jobs, options.out, {"only": options.only, "sample": options.sample}, whole)


def _campaign(those: list[Mutant], jobs: int, out: Path, about: dict[str, object], whole: bool) -> int:
    still = {m.subject.name: why for m in those if isinstance(why := original(m.subject), str)}
    for name, why in still.items():
        print(f"{name} does not run unchanged: {why}", file=sys.stderr)
    names = [(m.subject.name, m.name) for m in those if m.subject.name not in still]
    done, stopped = campaign(_one, names, jobs, out, about)
    complete = whole and not still and not stopped
    useless = stale((v.subject, v.mutation) for v in done if v.what == "harmless") if complete else []
    for kernel, mutation in useless:
        print(f"no mutant is harmless as the table says any more: {kernel}: {mutation}")
    return int(bool(still or useless or any(v.what in BAD for v in done)))


@cache
def _mutants(name: str) -> dict[str, Mutant]:
    return {m.name: m for subject in subjects() if subject.name == name for m in mutants(subject)}


def _one(names: Names) -> Verdict:
    """Judge a mutant, which each process makes itself: syntax trees do not travel."""
    return judge(_mutants(names[0])[names[1]])


if __name__ == "__main__":
    sys.exit(main())
