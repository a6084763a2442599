"""Compare what ptxas fuses with what `warpmma.ptx` fuses: `python -m lab.compare.contraction --help`.

Needs `ptxas` on the PATH and `nvdisasm` (the PyPI package `nvidia-cuda-nvdisasm`). Compiles random kernels, runs the
machine code and the contracted body on formulas, for every choice of the predicates, and compares what they store.
Where ptxas is not predicted, it may give either of the alternatives in the body. A kernel whose machine code has
unknown instructions is counted and skipped.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator, Mapping

from lab.contraction.bodies_run import BodyRun
from lab.contraction.formulas import Formula, shown
from lab.contraction.kernels import OUTPUT, PREDICATES, drawn
from lab.contraction.machine_code import MachineRun, UnknownCodeError, assembled
from warpmma.ptx import read
from warpmma.ptx.contraction.fusing import contracted

MOST = 4
"""Sums that are not predicted and fused otherwise at once."""


def different(seed: int, type_: str, target: str, disassembler: str) -> str | None:
    """Describe how a kernel differs; "" if it does not, or equals an alternative of the body; None if unknown.

    It is unknown if the machine code is, or if it has several results of a sum that is not predicted.
    """
    kernel = drawn(seed, type_)
    lines = assembled(kernel.text, target, disassembler)
    found = contracted(read(kernel.text).functions["k"], target)
    function = found.function
    for choice in itertools.product((False, True), repeat=PREDICATES):
        chosen = {128 + 4 * i: holds for i, holds in enumerate(choice)}
        try:
            machine = MachineRun(lines, chosen).stored
        except UnknownCodeError as error:
            return None if "--unknown" not in sys.argv else f"unknown: {error}"
        run = BodyRun(function, chosen)
        place = _first(run, machine)
        if place is None or any(_first(BodyRun(function, chosen, x), machine) is None for x in _some(run.compared)):
            continue
        if found.open:
            return None
        return f"[{place}] with {choice}\n  ptxas   {shown(machine.get(place))}\n  warpmma {shown(run.stored[place])}"
    return ""


def _first(run: BodyRun, machine: Mapping[int, Formula]) -> int | None:
    """Find the first output that differs."""
    return next((x for x in sorted(run.stored) if x >= OUTPUT and run.stored[x] != machine.get(x)), None)


def _some(compared: int) -> Iterator[tuple[int, ...]]:
    """Yield all choices of the sums that ptxas may or may not fuse."""
    for number in range(1, min(compared, MOST) + 1):
        yield from itertools.combinations(range(compared), number)


def main() -> int:
    """Compare kernels; print those that differ and their number."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="number of the first kernel")
    parser.add_argument("--types", default="f32,f64,f16x2")
    parser.add_argument("--targets", default="sm_80,sm_90")
    parser.add_argument("--nvdisasm", default="nvdisasm")
    parser.add_argument("--unknown", action="store_true", help="say what is not known of machine code")
    parser.add_argument("--show", action="store_true", help="print the kernels that differ")
    given = parser.parse_args()
    bad = left_out = compared = 0
    for seed, type_, target in itertools.product(
        range(given.first, given.first + given.kernels), given.types.split(","), given.targets.split(",")
    ):
        found = different(seed, type_, target, given.nvdisasm)
        left_out += found is None
        compared += found is not None
        if found:
            bad += 1
            print(f"kernel {seed}, {type_}, {target}: {found}")
            if given.show:
                print(drawn(seed, type_).text)
    why = "have several results of a sum that is not predicted, or machine code that is not known here"
    print(f"{compared} compared, {bad} differ, {left_out} {why}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
