"""Record what a GPU does with sequences of events at one mbarrier: `python -m lab.record.mbarriers --help`.

The rules:

1. A sequence is a list of events: a name of `EVENTS` and a number, of arrivals or bytes. The first is "init". One
   thread executes them, as one kernel in PTX. None of them is a fault, at which a GPU traps.
2. After each event the thread writes three words: the upper word of the token that it returned, 0 if it returns none;
   and what `mbarrier.test_wait.parity` of 0, then of 1, says: 1 if that phase is complete.
3. The sequences are those of a recording: they were drawn at random, and the generator was not kept. A new recording
   has the same sequences in the same order, so that all its other entries can be compared.

The results are compared with warpmma's and with the recording. Needs the driver, and a GPU of sm_90 or later.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.gpu.driver import Driver

__all__ = ["COLUMNS", "EVENTS", "RECORDED", "on_gpu", "read", "rows", "simulated", "text", "written"]

Array = npt.NDArray[Any]
Operations = Sequence[tuple[str, int]]

RECORDED = Path(__file__).parents[2] / "tests" / "data" / "h200_mbarriers.json.gz"
COLUMNS = ("upper", "even", "odd")
"""What a sequence records after each event (rule 2)."""
EVENTS: Mapping[str, str] = MappingProxyType({
    "init": "mbarrier.init.shared.b64 [barrier], {};",
    "arrive": "mbarrier.arrive.shared.b64 %token, [barrier];",
    "arriven": "mbarrier.arrive.shared.b64 %token, [barrier], {};",
    "nocomp": "mbarrier.arrive.noComplete.shared.b64 %token, [barrier], {};",
    "drop": "mbarrier.arrive_drop.shared.b64 %token, [barrier];",
    "arrexp": "mbarrier.arrive.expect_tx.shared.b64 %token, [barrier], {};",
    "expect": "mbarrier.expect_tx.relaxed.cta.shared.b64 [barrier], {};",
    "complete": "mbarrier.complete_tx.relaxed.cta.shared.b64 [barrier], {};",
})  # fmt: skip
"""The statement of each event, with its number: 1 for those that have none."""

_HEAD = """.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 y) {
.reg .pred %even, %odd;
.reg .b32 %low, %upper, %bit;
.reg .b64 %y, %token;
.shared .align 8 .b64 barrier;
ld.param.u64 %y, [y];
"""
_WHAT = "upper words of tokens (0 where there is none), and test_wait.parity of 0 and 1 after each operation"
_TOO_LONG = 20.0  # seconds after which a launch counts as hung


def text(operations: Operations) -> str:
    """Return the kernel of a sequence: `k` writes uint32 [event, column] to its parameter."""
    lines = []
    for i, (name, number) in enumerate(operations):
        statement, at = EVENTS[name], 4 * len(COLUMNS) * i
        token = "%token" in statement
        lines += [
            statement.format(number),
            "mov.b64 {%low, %upper}, %token;" if token else "mov.u32 %upper, 0;",
            "mbarrier.test_wait.parity.shared.b64 %even, [barrier], 0;",
            "mbarrier.test_wait.parity.shared.b64 %odd, [barrier], 1;",
            f"st.global.u32 [%y+{at}], %upper;",
            f"selp.u32 %bit, 1, 0, %even; st.global.u32 [%y+{at + 4}], %bit;",
            f"selp.u32 %bit, 1, 0, %odd; st.global.u32 [%y+{at + 8}], %bit;",
        ]
    return _HEAD + "\n".join([*lines, "ret;", "}", ""])


def on_gpu(driver: Driver, operations: Operations) -> Array:
    """Return what the GPU writes, uint32 [event, column]; `DriverError` if it traps or hangs."""
    y = _unwritten(operations)
    place = driver.place(y)
    function = driver.load(text(operations), ["k"])["k"]
    driver.launch(function, [1], [1], [place.to_bytes(8, "little")])
    driver.synchronise(_TOO_LONG)
    found = driver.fetch(place, y)
    driver.free(place)
    return found


def simulated(operations: Operations, **options: Any) -> Array:
    """Return what warpmma writes, uint32 [event, column]; the options are those of a launch."""
    import warpmma as wm

    y = _unwritten(operations)
    wm.ptx.load(text(operations))["k"].launch(wm.Device("sm_90"), 1, 1, [y], **options)
    return y


def _unwritten(operations: Operations) -> Array:
    return np.full((len(operations), len(COLUMNS)), 0xDEADBEEF, np.uint32)


def rows(sequence: Mapping[str, Any]) -> Array:
    """Return what a sequence of a recording says, uint32 [event, column]."""
    return np.array([sequence[name] for name in COLUMNS], np.uint32).T


def read(path: Path = RECORDED) -> dict[str, Any]:
    """Return a recording: GPU, driver, and "sequences", each with "ops" and a list of each of `COLUMNS`."""
    with gzip.open(path, "rt") as file:
        found: dict[str, Any] = json.load(file)
    return found


def written(about: Mapping[str, str], found: Iterable[tuple[Operations, Array]]) -> str:
    """Return the text of a recording: of each sequence its operations, and the words that came."""
    sequences = [
        {"ops": operations, **dict(zip(COLUMNS, words.T.tolist(), strict=True))} for operations, words in found
    ]
    return json.dumps({**about, "what": _WHAT, "sequences": sequences})


def main(arguments: list[str] | None = None) -> int:
    """Run all sequences; 1 if a result differs from warpmma's or from the recording."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sequences", type=Path, default=RECORDED, metavar="FILE", help="recording that has them")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the new recording, compressed JSON")
    options = parser.parse_args(arguments)
    driver, found, differ = Driver(), [], 0
    for number, sequence in enumerate(read(options.sequences)["sequences"]):
        words = on_gpu(driver, sequence["ops"])
        found.append((sequence["ops"], words))
        others = {"warpmma": simulated(sequence["ops"], hazards="off"), "the recording": rows(sequence)}
        for name, other in others.items():
            if (words != other).any():
                differ += 1
                event = int(np.argmax((words != other).any(axis=1)))
                print(f"sequence {number} differs from {name} first after event {event}, {sequence['ops'][event]}: "
                      f"GPU {words[event].tolist()}, {name} {other[event].tolist()}", flush=True)  # fmt: skip
    print(f"{len(found)} sequences, {sum(len(words) for _, words in found)} events, {differ} differences")
    if options.out:
        options.out.write_bytes(gzip.compress(written(Driver.about(), found).encode(), mtime=0))
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())
