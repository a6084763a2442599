"""Compare the twins of the Hopper examples with a GPU: `python -m lab.compare.hopper_twins --help`.

Prints for each case whether the simulator's output is what an H100 left (`tests/data/h100_hopper_twins.json`).
`--jobs FILE` compiles the twins with nvcc and writes their launches for `python -m lab.record.twin_outputs`, which
repeats them on a GPU; `--record FILE...` takes what that has written, and keeps the hashes of outputs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lab.gpu.tensor_jobs import Array, TensorJob, digest, write
from lab.programs.examples import example

__all__ = ["CASES", "EXAMPLES", "RECORDED", "recorded"]

FOLDER = Path(__file__).parents[2]
EXAMPLES = ("hopper_product", "hopper_cluster", "hopper_fp8", "hopper_attention")
RECORDED = FOLDER / "tests" / "data" / "h100_hopper_twins.json"
_SEEDS = range(11, 15)  # of more inputs, for two sizes of each example


def _cases() -> dict[str, tuple[str, Any]]:
    """Return the example and the case of each launch, by its name."""
    found: dict[str, tuple[str, Any]] = {}
    for name in EXAMPLES:
        given: Any = example(name).CASES
        more = [replace(case, seed=seed) for case in (given[1], given[-2]) for seed in _SEEDS]
        found |= {f"{name} {case.name}": (name, case) for case in (*given, *more)}
    return found


CASES = _cases()


def recorded() -> dict[str, str]:
    """Return the hash of each output on the GPU, by the name of its launch."""
    found: dict[str, str] = json.loads(RECORDED.read_text())["outputs"]
    return found


def job(name: str, code: str) -> tuple[TensorJob, tuple[Array, ...]]:
    """Return a launch for a GPU, and its inputs."""
    of, case = CASES[name]
    call: Any = example(of).call(case)
    *inputs, output = call.arrays
    numbers = [np.float32(x) if isinstance(x, float) else np.int32(x) for x in call.numbers.values()]
    made = TensorJob(
        name=name, code=code, entry=call.twin, grid=call.grid, block=call.threads, shared=call.shared,
        inputs=[digest(x) for x in inputs], output=(output.shape, output.dtype.str),
        maps=[bytes(x).hex() for x in call.maps(call.placed()[0].array(x) for x in call.arrays)],
        numbers=[x.tobytes().hex() for x in numbers],
    )  # fmt: skip
    return made, tuple(inputs)


def write_jobs(path: Path) -> None:
    """Compile the twins, and write all launches."""
    arrays: dict[str, Array] = {}
    codes = {}
    for name in EXAMPLES:
        code = np.frombuffer(_compiled(FOLDER / "examples" / "cuda" / f"{name}.cu"), np.uint8)
        codes[name] = digest(code)
        arrays[digest(code)] = code
    jobs = []
    for name, (of, _) in CASES.items():
        made, inputs = job(name, codes[of])
        jobs.append(made)
        arrays |= {digest(x): x for x in inputs}
    write(path, jobs, list(arrays.values()))


def _compiled(source: Path) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "made.cubin"
        subprocess.run(["nvcc", "-cubin", "-arch=sm_90a", "-O3", str(source), "-o", str(made)], check=True)
        return made.read_bytes()


def main(arguments: list[str] | None = None) -> int:
    """Compare; 1 if an output is not the GPU's."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=Path, metavar="FILE", help="write the launches")
    parser.add_argument("--record", type=Path, nargs="+", metavar="FILE", help="keep the hashes that a GPU has left")
    parser.add_argument("--only", default="", help="launches whose name begins so")
    options = parser.parse_args(arguments)
    if options.jobs:
        write_jobs(options.jobs)
        return 0
    if options.record:
        parts = [json.loads(path.read_text()) for path in options.record]
        kept = {"gpu": parts[0]["gpu"], "driver": parts[0]["driver"]}
        outputs = {name: x for part in parts for name, x in part["outputs"].items()}
        RECORDED.write_text(json.dumps({**kept, "outputs": outputs}, indent=1) + "\n")
    hopper: Any = example("hopper")
    there, failed = recorded(), 0
    for name, (of, case) in CASES.items():
        if name.startswith(options.only):
            found, _ = hopper.simulate_twin(example(of).call(case))
            failed += (other := digest(found) != there.get(name))
            print(f"{name}: {'DIFFERS' if other else 'as on the GPU'}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
