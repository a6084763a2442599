"""Repeat launches on a GPU and compare all memory: `python -m lab.compare.launches LAUNCHES.npz --out FOLDER`.

`python -m lab.compare.triton_tutorials --launches` writes such a file: PTX, arguments, memory before each launch, and
hashes of the memory after it on the simulator. Needs NumPy and an sm_90 GPU with its driver, which assembles the PTX.
Repeats each launch twice, and prints how many allocations differ from the simulator's, and whether the GPU gives the
same twice. FOLDER receives `replay.json`, and the GPU's memory where it differs, as `memory.npz`.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from lab.gpu.driver import Driver, Function
from lab.programs.launches import Array
from lab.programs.pointers import moved
from lab.triton_programs.snapshots import Snapshot, digest, left_there, read

_TYPES = {"u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64, "f16": np.float16, "f32": np.float32,
          "f64": np.float64}  # fmt: skip


def replayed(driver: Driver, function: Function, one: Snapshot, before: Any) -> dict[int, Array]:
    """Run a launch on the GPU; return its memory, with addresses as they were recorded."""
    data = {piece.start: before[piece.before] for piece in one.pieces}
    placed = {start: driver.place(x) for start, x in data.items()}
    for start, x in data.items():
        driver.put(placed[start], moved(x, one.pieces, placed))
    arguments = []
    for type_, x in one.arguments:
        given = _bytes_of(type_, x)
        arguments.append((moved(given, one.pieces, placed) if type_ in ("u64", "bytes") else given).tobytes())
    driver.launch(function, one.grid, one.block, arguments, one.shared, one.cluster)
    driver.synchronise()
    after = {start: driver.fetch(placed[start], x) for start, x in data.items()}
    for start, x in data.items():
        words, there = (y[: y.size // 8 * 8].view(np.uint64) for y in (x, moved(x, one.pieces, placed)))
        now = after[start][: x.size // 8 * 8].view(np.uint64)
        same = (words != there) & (now == there)
        now[same] = words[same]
    for address in placed.values():
        driver.free(address)
    return after


def _bytes_of(type_: str, x: int | float | str) -> Array:
    if type_ == "bytes":
        return np.frombuffer(bytes.fromhex(str(x)), np.uint8)
    return np.array([x], _TYPES[type_]).view(np.uint8)


def main(arguments: list[str] | None = None) -> int:
    """Repeat launches; 1 if memory differs from the simulator's."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("launches", type=Path, help="what was recorded")
    parser.add_argument("--out", type=Path, default=Path(), help="folder for what came")
    options = parser.parse_args(arguments)
    launches, texts, before = read(options.launches)
    driver = Driver()
    functions: dict[tuple[str, str], Function] = {}
    shown: list[dict[str, Any]] = []
    kept: dict[str, Array] = {}
    for i, one in enumerate(launches):
        key = one.text, one.entry
        if key not in functions:
            functions[key] = driver.load(texts[one.text], [one.entry])[one.entry]
        first, second = (replayed(driver, functions[key], one, before) for _ in range(2))
        different = [piece.start for piece in one.pieces if digest(first[piece.start]) != piece.after]
        twice = all(first[start].tobytes() == second[start].tobytes() for start in first)
        kept |= {f"{i}|{start}": first[start] for start in different}
        shown.append({
            "name": one.name, "text": one.text[:20], "different": [first[start].size for start in different],
            "repeatable": twice, "left": left_there(first),
        })  # fmt: skip
        how = "" if twice else ", NOT REPEATABLE"
        print(f"{i} {one.name}: {len(different)} of {len(one.pieces)} pieces differ{how}", flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(f"  {json.dumps(one)}" for one in shown)
    about = json.dumps(driver.about())[:-1]
    (options.out / "replay.json").write_text(f'{about}, "launches": [\n{lines}\n]}}\n')
    np.savez_compressed(options.out / "memory.npz", allow_pickle=False, **kept)
    wrong = sum(bool(one["different"]) for one in shown)
    print(f"{len(launches)} launches, {wrong} with other bits")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
