"""Repeat a GPU's launches of compiled models on the simulator: `python -m lab.compare.torch_launches LAUNCHES.npz`.

`python -m lab.record.torch_launches` records them on a GPU: what PyTorch's own `torch.compile` launches there. Each is
repeated from its PTX, arguments and memory, at the same addresses, with hazards as errors, and all memory after it is
compared. Prints the launches that leave other bytes, and how many of each model leave the same; needs no PyTorch and
no GPU. Bytes may differ where `report.order` says that the order of atomics decides.

`--sample` stores a varied part for the tests, with what it was recorded on.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import warpmma as wm
from lab.programs.archive import RECORDED
from lab.programs.launches import Array
from lab.programs.texts import keep, read_text
from lab.triton_programs.snapshots import Snapshot, about, digest, parsed, read
from warpmma import ptx

__all__ = ["MEMORY", "Repeated", "repeat", "sample", "stored"]

KEPT = "torch_launches.json"
MEMORY = RECORDED.with_name("h200_torch_launches.npz")
_SMALL = 16_000  # bytes of memory


@dataclass(frozen=True, kw_only=True)
class Repeated:
    """A launch that was repeated: its report, and the addresses of allocations with other bytes than on the GPU."""

    different: tuple[int, ...]
    report: Any

    @property
    def explained(self) -> bool:
        """Whether other bytes are allowed, since the order of atomics decides."""
        return bool(self.report.order)


@lru_cache(maxsize=16)
def _entry(text: str, name: str) -> Any:
    return ptx.load(text)[name]


def repeat(one: Snapshot, text: str, before: Mapping[str, Array]) -> Repeated:
    """Repeat a launch, for the target of its text; a hazard is raised."""
    entry = _entry(text, one.entry)
    device = wm.Device(entry.module.source.target)
    memory = {piece.start: np.array(before[piece.before]) for piece in one.pieces}
    for start, data in memory.items():
        device.map(data, start)
    report = entry.launch(
        device, tuple(one.grid), tuple(one.block), [x for _, x in one.arguments], shared=one.shared,
        cluster=one.cluster, hazards="error",
    )  # fmt: skip
    different = tuple(piece.start for piece in one.pieces if digest(memory[piece.start]) != piece.after)
    return Repeated(different=different, report=report)


def _changes(one: Snapshot) -> bool:
    """Whether a launch changes memory: one that is repeated may write the bytes that are there."""
    return any(x.before != x.after for x in one.pieces)


def sample(launches: Sequence[Snapshot], texts: Mapping[str, str], most: int) -> list[Snapshot]:
    """Choose up to `most` launches: each time the one whose text has most mnemonics that no other chosen one has.

    Of equals that of a model chosen least often is taken, then the one with least memory, then the first. Launches that
    change no memory, because they are repeated, and those with more than `_SMALL` bytes are not for a test.
    """
    launches = [one for one in launches if sum(x.size for x in one.pieces) <= _SMALL and _changes(one)]
    mnemonics = {name: frozenset(re.findall(r"^\s+(?:@!?%\w+ )?([a-z][\w.:]*)", x, re.M)) for name, x in texts.items()}
    left, chosen = {one.text: one for one in reversed(launches)}, list[Snapshot]()
    known, models = set[str](), Counter[str]()
    while left and len(chosen) < most:
        best = min(left.values(), key=lambda one: (
            -len(mnemonics[one.text] - known), models[one.name], sum(x.size for x in one.pieces),
        ))  # fmt: skip
        chosen.append(left.pop(best.text))
        known |= mnemonics[best.text]
        models[best.name] += 1
    return chosen


def store(launches: Sequence[Snapshot], texts: Mapping[str, str], before: Mapping[str, Array], of: Any) -> None:
    """Store launches for the tests: their texts compressed, and the memory before them."""
    used = {one.text: texts[one.text] for one in launches}
    keep(KEPT, json.dumps({"about": of, "texts": used, "launches": [asdict(one) for one in launches]}))
    arrays = {piece.before: before[piece.before] for one in launches for piece in one.pieces}
    np.savez_compressed(MEMORY, allow_pickle=False, **arrays)


def stored() -> tuple[list[Snapshot], dict[str, str], Any]:
    """Return the stored launches, their texts by hash, and the memory before them by hash."""
    return *parsed(json.loads(read_text(KEPT))), np.load(MEMORY)


def main(arguments: list[str] | None = None) -> int:
    """Repeat launches; 1 if memory differs without a reason, or if one is an error."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("launches", type=Path, nargs="?", help="what a GPU recorded (default: the part that is stored)")
    parser.add_argument("--only", default="", metavar="TEXT", help="models with this in their names")
    parser.add_argument("--sample", type=int, metavar="N", help="store N launches for the tests, and no more")
    options = parser.parse_args(arguments)
    if options.sample and not options.launches:
        parser.error("--sample needs what a GPU recorded")
    launches, texts, before = read(options.launches) if options.launches else stored()
    if options.sample:
        store(sample(launches, texts, options.sample), texts, before, about(options.launches))
        return 0
    every, same, wrong, changed, seconds = Counter[str](), Counter[str](), 0, 0, list[float]()
    for i, one in enumerate(launches):
        if options.only not in one.name:
            continue
        every[one.name] += 1
        changed += _changes(one)
        start = time.process_time()
        try:
            found = repeat(one, texts[one.text], before)
        except wm.WarpmmaError as error:
            print(f"{i} {one.name}, {one.entry}: {error}", flush=True)
            wrong += 1
            continue
        seconds.append(time.process_time() - start)
        same[one.name] += not found.different
        if found.different:
            why = f": {', '.join(map(str, found.report.order))}" if found.explained else ", NOT EXPLAINED"
            print(f"{i} {one.name}, {one.entry}: {len(found.different)} of {len(one.pieces)} pieces differ{why}")
            wrong += not found.explained
    for name, count in every.items():
        print(f"{name}: {same[name]} of {count}")
    median = f", median {np.median(seconds):.3f} s" if seconds else ""
    print(f"{same.total()} of {every.total()} launches leave the GPU's bytes; {changed} change memory{median}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
