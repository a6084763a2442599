"""Make programs in PTX wrong, one statement at a time; is it reported? `python -m lab.mutate.programs --help`.

Mutants are made of PTX that nvcc and Triton compiled: barriers, waits, commits and fences dropped, a wait that leaves
one more group pending, lanes missing in membermasks, guards dropped or negated, orders weakened. A mutant runs with
every hazard an error; if nothing is reported, it runs without looking for hazards under each of the seeds:

* found: a hazard or an error of the package names it;
* wrong: the outputs differ from the program's, and are the same under each seed;
* harmless: the outputs are the program's under each seed;
* unnoticed: the outputs depend on the seed, so that a race was missed. The exit status is then 1.

Ctrl-C stops, and writes the table of what was done until then.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import warpmma as wm
from lab.mutate.campaign import Names, campaign, command_line, parsed, sampled
from lab.mutate.verdicts import BAD, Verdict
from warpmma.errors import WarpmmaError
from warpmma.kernel import HazardError

PROGRAMS = (
    "twin_gemm_f16 77x200x40 f16 1", "twin_gemm_sparse 128x64x128 f32 1", "twin_attention 1x64 f16 1",
    "twin_rowwise rmsnorm 5x77 f32 1", "reduce rows 5x1000x128", "reduce last block 3000x4", "radix sort 300",
    "lookback volatile 9", "lookback warp 3", "histogram agreed 1000", "splitk serial 16x16x40x2",
    "splitk stream 16x16x96x3", "product f16, 3 stages", "attention f16", "layer norm f32", "gathers", "scans",
    "persistent",
)  # fmt: skip
"""Cases of `lab.programs` and `lab.triton_programs`, by name; small ones."""

_LIMIT = 2_000_000  # instructions of a launch: many times what one of the programs takes
_GUARD = re.compile(r"^(\s*)@(!?)(%\w+)\s+(.*)$")
_DROPPED = {
    "barrier": r"(bar|barrier)(\.cta)?\.(sync|red|arrive)\b|bar\.warp\.sync\b|barrier\.cluster\b",
    "wait": r"cp\.async\.(bulk\.)?wait|mbarrier\.(try_wait|test_wait)\b",
    "commit": r"cp\.async\.(bulk\.)?commit_group\b",
    "fence": r"(fence|membar)\b",
}
_MASKED = re.compile(r"^(\s*(?:@!?%\w+\s+)?(?:shfl|vote|match|redux|bar\.warp)\.\S+.*\s)(-1|0xffffffff)\s*;")
_ORDER = re.compile(r"\.(volatile|(?:acquire|release|acq_rel|relaxed)(?:\.(?:cta|gpu|sys))?)(?=\.)")


@dataclass(frozen=True)
class Mutation:
    """One changed line of a text: its number from 1, and what stands there instead."""

    name: str
    line: int
    text: str


def mutations(text: str) -> Iterator[Mutation]:
    """Yield every mutation of a text, in the order of its lines."""
    for number, line in enumerate(text.splitlines(), 1):
        for change, made in _changes(line):
            yield Mutation(f"{change}: line {number}: {' '.join(line.split('//')[0].split())}", number, made)


def _changes(line: str) -> Iterator[tuple[str, str]]:
    guard = _GUARD.match(line)
    statement = guard[4] if guard else line.strip()
    for what, opcode in _DROPPED.items():
        if re.match(opcode, statement):
            yield f"{what} dropped", ""
    if found := re.match(r"(\s*cp\.async\.wait_group\s+)(\d+)", line):
        yield "wait weaker", f"{found[1]}{int(found[2]) + 1};"
    if found := _MASKED.match(line):
        for lane in (0, 31):
            yield f"lane {lane} not in the mask", f"{found[1]}{0xFFFFFFFF ^ 1 << lane:#x};"
    if guard:
        space, sign, predicate, rest = guard.groups()
        yield "guard negated", f"{space}@{'' if sign else '!'}{predicate} {rest}"
        if not rest.startswith(("bra", "ret", "exit")):
            yield "guard dropped", f"{space}{rest}"
    if found := _ORDER.search(statement):
        weak = ".relaxed.gpu" if statement.startswith(("atom", "red")) else ""
        made = line.replace(found[0], weak, 1)
        if made != line:
            yield "order weaker", made


@cache
def _cases() -> dict[str, Any]:
    from lab.programs.cases import CASES
    from lab.triton_programs.kept import kept_cases

    return {str(x): x for x in CASES} | {x.program: x for x in kept_cases()}


@cache
def text_of(program: str) -> str:
    """Return the PTX of a case."""
    from lab.programs.texts import read_text
    from lab.triton_programs.kept import kept_texts

    case = _cases()[program]
    return kept_texts()[program] if case.program == program else read_text(f"{case.program}.ptx")


@cache
def _mutations(program: str) -> dict[str, Mutation]:
    entries = {step.entry for step in _cases()[program].make().steps}
    spans = _bodies(text_of(program), entries)
    return {x.name: x for x in mutations(text_of(program)) if any(a <= x.line <= b for a, b in spans)}


def _bodies(text: str, entries: set[str]) -> list[tuple[int, int]]:
    """Return the first and the last line of the entries that a case launches, and of all functions."""
    found, first = [], 0
    for number, line in enumerate(text.splitlines(), 1):
        if named := re.search(r"\.(entry|func)\b.*?([\w$]+)\s*\(\s*$|\.entry\s+([\w$]+)", line):
            name = named[2] or named[3]
            first = number if ".func" in line or name in entries else 0
        if line.startswith("}") and first:
            found.append((first, number))
            first = 0
    return found


def _outputs(program: str, text: str, **options: Any) -> list[bytes]:
    from lab.programs.simulating import simulate

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outputs, printed, _ = simulate(wm.ptx.load(text), _cases()[program].make(), limit=_LIMIT, **options)
    return [*(x.tobytes() for x in outputs.values()), "\n".join(printed).encode()]


@cache
def _right(program: str) -> list[bytes]:
    return _outputs(program, text_of(program), hazards="error")


def judge(names: Names, *, seeds: int) -> Verdict:
    """Run a mutant."""
    program, mutation = names
    change = _mutations(program)[mutation]
    lines = text_of(program).splitlines()
    lines[change.line - 1] = change.text
    text = "\n".join(lines) + "\n"
    made = partial(Verdict, subject=program, mutation=mutation, line=f"line {change.line}")
    try:
        _outputs(program, text, hazards="error")
    except HazardError as error:
        return made(what="found", why=error.hazard.kind, detail=str(error))
    except WarpmmaError as error:
        return made(what="found", why="error", detail=str(error))
    except Exception as error:  # whatever comes out of the package is what is looked for
        return made(what="broken", why=type(error).__name__, detail=str(error))
    found = {tuple(_ended(program, text, seed)) for seed in range(seeds)}
    if len(found) > 1:
        return made(what="unnoticed", detail=f"{len(found)} outputs under {seeds} seeds")
    if found == {tuple(_right(program))}:
        return made(what="harmless", why=f"the outputs of the program under {seeds} seeds")
    return made(what="wrong")


def _ended(program: str, text: str, seed: int) -> list[bytes]:
    try:
        return _outputs(program, text, hazards="off", seed=seed)
    except WarpmmaError as error:
        return [type(error).__name__.encode()]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; see `--help`."""
    parser = command_line(__doc__, "program", Path("build/program_mutants"))
    parser.add_argument("--seeds", type=int, default=20, help="of the runs without hazards (default: 20)")
    options = parsed(parser, arguments)
    if options.seeds < 1:
        parser.error("--seeds is positive")
    names = [(p, m) for p in PROGRAMS for m in _mutations(p) if options.only in f"{p}: {m}"]
    if not names:
        parser.error(f"no mutant's name contains {options.only!r}")
    names = sampled(names, options.sample)
    if options.list:
        print("\n".join(f"{p}: {m}" for p, m in names))
        return 0
    for program in dict.fromkeys(program for program, _ in names):
        _right(program)  # a program that does not run unchanged ends here: each of its mutants would be found
    about = {"only": options.only, "sample": options.sample, "seeds": options.seeds}
    done, _ = campaign(partial(judge, seeds=options.seeds), names, options.jobs, options.out, about)
    return int(any(v.what in BAD for v in done))


if __name__ == "__main__":
    sys.exit(main())
