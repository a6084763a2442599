"""Run the CUDA C++ twins of examples on this machine's GPU, and record their outputs: `python run_twins.py --help`.

Needs `nvcc`, CuPy and an sm_90 GPU; the recordings are of an H200. The inputs are those of the Python examples.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import twins

TWINS = Path(__file__).parent / "cuda"
FLAGS = ["-cubin", "-arch=sm_90", "-std=c++17", "-O3", "-Xcompiler=-Wall,-Wextra", "--Werror=all-warnings"]


def compile_twin(name: str, folder: Path) -> Path:
    """Compile `cuda/NAME.cu`; a warning is an error."""
    cubin = folder / f"{name}.cubin"
    subprocess.run(["nvcc", *FLAGS, "-o", str(cubin), str(TWINS / f"{name}.cu")], check=True)
    return cubin


def about(cupy: Any) -> dict[str, str]:
    """GPU, driver and compiler."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    gpu, driver = subprocess.run(query, check=True, capture_output=True, text=True).stdout.splitlines()[0].split(", ")
    nvcc = subprocess.run(["nvcc", "--version"], check=True, capture_output=True, text=True).stdout
    release = next(line.strip() for line in nvcc.splitlines() if "release" in line)
    return {"gpu": gpu, "driver": driver, "nvcc": release, "cupy": str(cupy.__version__)}


def run(cupy: Any, module: Any, call: twins.Call) -> twins.Array:
    """Run a call's twin and return its output; bytes that it should have written and did not are 0xFF."""
    placed = [cupy.asarray(twins.codes(x)) for x in call.arrays]  # CuPy does not know all types
    placed[-1].view(np.uint8).fill(0xFF)
    module.get_function(call.twin)(call.grid, (call.block,), (*placed, *(np.int32(x) for x in call.sizes.values())))
    cupy.cuda.runtime.deviceSynchronize()
    output: twins.Array = placed[-1].get().view(call.output.dtype)
    return output


def main(arguments: list[str] | None = None) -> int:
    """Run and record; 1 if an output differs between two runs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("examples", nargs="+", metavar="NAME", help="such as gemm_f16")
    parser.add_argument("--out", type=Path, default=twins.RECORDED, help="folder of the recordings (%(default)s)")
    parser.add_argument("--compile-only", action="store_true", help="needs no GPU")
    options = parser.parse_args(arguments)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        cubins = {name: compile_twin(name, Path(folder)) for name in options.examples}
        if options.compile_only:
            return 0
        import cupy

        found = about(cupy)
        print(found, flush=True)
        for name, cubin in cubins.items():
            start, example, module = time.monotonic(), importlib.import_module(name), cupy.RawModule(path=str(cubin))
            outputs: dict[str, twins.Array] = {}
            for case in example.CASES:
                call = example.call(case)
                d = outputs[case.name] = run(cupy, module, call)
                same = np.array_equal(twins.codes(d), twins.codes(run(cupy, module, call)))
                failed += not same
                print(f"{name} {case.name}: {'repeatable' if same else 'NOT REPEATABLE'}", flush=True)
            options.out.mkdir(parents=True, exist_ok=True)
            path = options.out / f"{name}.npz"
            twins.write(path, outputs, found)
            print(f"{path}: {path.stat().st_size} bytes, {time.monotonic() - start:.1f} s", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
