"""Store launches of public kernels with more turns than the recorded ones: `python -m lab.mutate.public_longer`.

Mistakes that add up, or that the first use of a buffer hides, need more tiles for a block and more steps for a tile.
These launches are for mutants alone and were recorded on no GPU. They are stored as those of
`lab.programs.hopper_cases`, from host programs that are compiled again, as by `python -m lab.record.hopper --compile`:
it needs nvcc 13.0, the headers of the package nvidia-cutlass, and `--include` of more folders of headers.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lab.programs.cutlass_cases import headers, text_hash
from lab.programs.hopper_cases import LAUNCHES, compiled, described, run_of
from lab.programs.launches import Run
from lab.programs.texts import keep, kept_path, read_text

__all__ = ["LONGER", "Longer", "longer_run", "main"]

_STORED = "hopper_longer.json"


@dataclass(frozen=True)
class Longer:
    """A launch with more turns.

    Attributes
    ----------
    size : tuple of int
        The arguments of the kernel's host program, as in `lab.programs.hopper_kernels`.
    limit : int
        Instructions of a launch that is taken for endless: four times what the kernel takes.
    """

    size: tuple[int, ...]
    limit: int


LONGER: dict[str, Longer] = {
    "flash_f16": Longer((1, 400, 800, 1, 1, 1), 800_000),
    "cooperative_f16_cluster_2x2": Longer((512, 256, 576, 1, 4, 1), 320_000),
    # tiles are announced 8 ahead
    "grouped_pingpong_e4m3_cluster_2x1": Longer((320, 288, 256, 5, 2, 1), 600_000),
    "deepgemm_bf16": Longer((512, 256, 704, 1), 400_000),
    "kittens_ring_bf16": Longer((512, 512, 640, 2), 400_000),
    "streamk_f16": Longer((384, 256, 512, 1, 2, 1), 320_000),
}
"""The launches, by the names of the kernels."""


@cache
def _launches() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(read_text(_STORED)) if kept_path(_STORED).exists() else {}
    return found


def longer_run(title: str) -> Run | None:
    """Return a launch of a kernel with more turns, None if there is none."""
    return run_of(_launches()[title]["launch"]) if title in _launches() else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Store the launches that are missing or of another size; return 1 if nvcc makes other PTX than before."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--include", type=Path, action="append", default=[], help="a folder of headers")
    options = parser.parse_args(arguments)
    package = headers()
    if package is None:
        parser.error("no headers of CUTLASS: pip install nvidia-cutlass")
    examples = package.parent / "examples"
    includes = [package, package.parent / "tools" / "util" / "include", examples, examples / "common", *options.include]
    hashes = {name: kernel["sha256"] for name, kernel in json.loads(read_text(LAUNCHES)).items()}
    launches, others = dict(_launches()), []
    for name, longer in LONGER.items():
        if launches.get(name, {}).get("size") == list(longer.size):
            continue
        with tempfile.TemporaryDirectory() as place:
            text, program = compiled(name, includes, Path(place))
            if text_hash(text) == hashes[name]:
                launches[name] = {"size": list(longer.size), "launch": described(program, text, longer.size)}
            else:
                others.append(name)
    keep(_STORED, json.dumps({name: launches[name] for name in LONGER if name in launches}) + "\n")
    print("\n".join(f"{name}: nvcc makes other PTX than the recorded one" for name in others) or "stored")
    return int(bool(others))


if __name__ == "__main__":
    sys.exit(main())
