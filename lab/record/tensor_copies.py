"""Compare tensor copies of the machine with a GPU: `python -m lab.record.tensor_copies --help`.

Random copies in PTX, one for each block: loads, stores and reductions of every operation and type, of 1 to 5
dimensions, tiled and im2col, with swizzle, interleave, fill and steps; a third of the maps have a wrong field, which
the kernel replaces. The same PTX runs on the GPU and in warpmma, at the same addresses: tensors, shared memory, maps,
and whether each wait ends are compared. What traps, or should not, runs in a process of its own with a time limit.
Needs the driver and a GPU of sm_90a. Counts go to `tensor_copies.json` under --out.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.generators.tensor_program_cases import ROOM, in_warpmma, random_cases, written
from lab.gpu.driver import Driver, DriverError
from lab.gpu.tensor_copy_kernels import REGION
from lab.gpu.tensor_program_kernels import WAYS, program_text
from lab.record.pipelines import digest
from warpmma.errors import WarpmmaError
from warpmma.hardware import tensor_bytes
from warpmma.machine import HazardError

__all__ = ["BATCH", "SEED", "digest", "fault_cases"]

Array = npt.NDArray[Any]
Case = dict[str, Any]

BATCH, SEED = 100, 26
_SECONDS = 60


def _arrays(cases: list[Case], seed: int) -> list[Array]:
    """Return the tensors and the regions of cases."""
    rooms = np.resize(tensor_bytes(seed, 1 << 20), len(cases) * ROOM)
    return [rooms, np.resize(tensor_bytes(seed + 1, 1 << 20), (len(cases), REGION))]


def _on_both(cases: list[Case], seed: int) -> Iterator[tuple[str, Array, Array]]:
    """Yield what the GPU and warpmma made of tensors, regions, maps and results."""
    driver = Driver()
    (function,) = driver.load(program_text(), ["copies"]).values()
    rooms, regions = _arrays(cases, seed)
    base = driver.place(rooms)
    maps, orders = written(cases, base)
    given = {"maps": maps, "orders": orders, "regions": regions, "results": np.zeros((len(cases), 2), np.uint32)}
    places = {name: driver.place(x) for name, x in given.items()}
    arguments = [x.to_bytes(8, "little") for x in places.values()]
    driver.launch(function, [len(cases)], [128], arguments, shared=REGION)
    driver.synchronise(30)
    mine = in_warpmma({base: rooms, **{places[x]: given[x] for x in given}}, len(cases), list(places.values()))
    for name, place, array in [("tensors", base, rooms), *((x, places[x], given[x]) for x in given)]:
        theirs, ours = driver.fetch(place, array), mine[place]
        if name == "results":  # the region's address is the GPU's own
            theirs, ours = theirs[:, 0], ours[:, 0]
        yield name, theirs.reshape(len(cases), -1), ours.reshape(len(cases), -1)


def compare(count: int, seed: int) -> dict[str, Any]:
    """Run random copies on both."""
    rng = np.random.default_rng(seed)
    cases, counts, shown, digests = random_cases(rng, count), Counter[str](), [], list[str]()
    for start in range(0, count, BATCH):
        batch = cases[start : start + BATCH]
        for name, theirs, ours in _on_both(batch, seed + start):
            if name in ("tensors", "regions"):  # maps have addresses
                digests.append(digest(theirs))
            for i in np.flatnonzero((theirs != ours).any(axis=1)).tolist():
                counts[f"different {name}, {batch[i]['way']}"] += 1
                at = int(np.argmax(theirs[i] != ours[i]))
                shown.append({**batch[i], "what": name, "first": at, "theirs": theirs[i, at : at + 8].tolist(),
                              "ours": ours[i, at : at + 8].tolist()})  # fmt: skip
        for case in batch:
            mode, replaced = "tiled" if "box" in case else "im2col", case["replaced"] is not None
            counts.update(["copies", case["way"], f"{mode} {len(case['dims'])}d"])
            counts.update(["replaced"] * replaced + ["interleaved"] * bool(case["interleave"]))
    return {"counts": counts, "shown": shown[:40], "digests": digests}


# Copies that trap, or should not


def _plain(way: str, kind: int = 6, **more: Any) -> Case:
    made = {
        "type": kind, "dims": [64, 32], "strides": [512], "address": 0, "interleave": 0, "swizzle": 0, "l2": 0,
        "fill": 0, "steps": [1, 1], "box": [16, 8], "start": [0, 0], "at": 0, "offsets": [], "way": way,
        "replaced": None,
    }  # fmt: skip
    return {**made, **more}


def fault_cases() -> list[tuple[str, Case]]:
    """List copies by name: each reduction of each type, misaligned maps, boxes that reach beyond shared memory."""
    names = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32.ftz", "tf32", "tf32.ftz")
    found = [(f"{way} on {name}", _plain(way, n)) for way in WAYS[2:] for n, name in enumerate(names)]
    found += [(f"map at {x}", _plain("load", map_at=x)) for x in (8, 16, 32, 64)]
    found += [(f"box at {x}", _plain("load", at=x)) for x in (16, 64, 128, REGION - 128, REGION, 1 << 20)]
    found += [(f"rank word {x}", _plain("load", rank=x)) for x in (1, 3, 13)]
    found += [(f"{way} from {x}", _plain(way, start=x)) for way in ("load", "store", "add")
              for x in ([4, 0], [0, -1], [-8, 0], [1 << 20, 0])]  # fmt: skip
    found += [(f"bits of word 1: {x:#x}", _plain("load", bits=x)) for x in (3 << 11, 1 << 22, 15 << 7, 5 << 4, 1)]
    return found


def fault(number: int) -> dict[str, Any]:
    """Run one copy on both; a GPU that traps cannot be used any more."""
    name, case = fault_cases()[number]
    driver = Driver()
    (function,) = driver.load(program_text(), ["copies"]).values()
    rooms, regions = _arrays([case], 7)
    base = driver.place(rooms)
    maps, orders = written([case], base)
    orders[0, 0] = case.get("rank", orders[0, 0])
    words = maps.reshape(-1).view(np.uint64).copy()
    words[1] ^= np.uint64(case.get("bits", 0))
    shifted, at = np.zeros(256, np.uint8), case.get("map_at", 0)
    shifted[at : at + 128] = words.view(np.uint8)
    given = [shifted, orders, regions, np.zeros((1, 2), np.uint32)]
    places = [driver.place(x) for x in given]
    parameters = [places[0] + at, *places[1:]]
    try:
        mine = in_warpmma({base: rooms, **dict(zip(places, given, strict=True))}, 1, parameters)
        ours = "no trap"
    except HazardError as error:
        mine, ours = {}, str(error.hazard)
    except WarpmmaError as error:
        mine, ours = {}, f"not simulated: {error}"
    try:
        driver.launch(function, [1], [128], [x.to_bytes(8, "little") for x in parameters], shared=REGION)
        driver.synchronise(10)
        theirs = "no trap"
    except DriverError as error:
        return {"name": name, "gpu": str(error), "warpmma": ours, "agree": ours != "no trap"}
    same = all((driver.fetch(x, a) == mine[x]).all() for x, a in ((base, rooms), (places[2], regions)) if mine)
    return {"name": name, "gpu": theirs, "warpmma": ours, "agree": ours == "no trap" and same}


def main() -> None:
    """Compare everything, or run one part in this process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=800, help="random copies")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument("--fault", type=int, help="run this case of those that may trap, alone")
    parser.add_argument("--no-faults", action="store_true", help="run none of them")
    asked = parser.parse_args()
    if asked.fault is not None:
        print(json.dumps(fault(asked.fault)))
        return
    found: dict[str, Any] = {**Driver.about(), "copies": compare(asked.count, asked.seed), "faults": []}
    for number, (name, _) in enumerate(() if asked.no_faults else fault_cases()):
        command = [sys.executable, "-m", "lab.record.tensor_copies", "--fault", str(number)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
            found["faults"].append(json.loads(done.stdout.splitlines()[-1]))
        except (subprocess.TimeoutExpired, IndexError, ValueError) as error:
            found["faults"].append({"name": name, "agree": False, "gpu": f"{type(error).__name__}: {error}"})
    asked.out.mkdir(parents=True, exist_ok=True)
    (asked.out / "tensor_copies.json").write_text(json.dumps(found, indent=1))
    print(json.dumps(found["copies"]["counts"], indent=1))
    for each in found["faults"]:
        if not each["agree"]:
            print(json.dumps(each))


if __name__ == "__main__":
    main()
