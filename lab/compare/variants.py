"""Compare operations that their mnemonics alone do not determine with the GPU: `python -m lab.compare.variants --help`.

Needs the GPU, `ptxas` on the PATH and CuPy. These are `setp` with two destinations, `mov` of vectors, and video
instructions with bytes and halves of registers. `lab.compare.operations` compares the others.
"""

from __future__ import annotations

import argparse
import sys
import time
import zlib
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.generators import operation_inputs
from lab.gpu.row_jobs import different_lanes, lane_shown
from lab.gpu.row_kernels import row_kernel
from lab.gpu.runner import KernelGpu
from warpmma.errors import MnemonicError
from warpmma.operations import DTYPES, Operation, operations, packing, unpacking, with_complement, with_selectors
from warpmma.registers import LANES

Array = npt.NDArray[Any]

_VECTORS = (("b16", 2), ("b32", 2), ("b32", 4), ("b64", 2), ("b64", 4))
_BLOCK = 256


def variants(target: str) -> Iterator[tuple[str, Operation]]:
    """Name what is compared, and its row."""
    for row in operations(target):
        if row.mnemonic.startswith("setp.") and len(row.outputs) == 1 and row.mnemonic.split(".")[-1] not in _SINGLE:
            yield f"{row.mnemonic} p|q", with_complement(row.mnemonic)
        opcode = row.mnemonic.partition(".")[0]
        for selectors in _SELECTORS.get(
            opcode[-1] if opcode[-1] in "24" else opcode, _BYTES if opcode in _VIDEO else ()
        ):
            try:
                chosen = with_selectors(row.mnemonic, selectors)
            except MnemonicError:  # with .add, .min and .max the destination has none
                continue
            yield f"{row.mnemonic} {' '.join(x or '.' for x in selectors)}", chosen
    for type_, count in _VECTORS:
        yield f"mov.{type_} of {count}", packing(type_, count)
        yield f"mov of {count} of {type_}", unpacking(type_, count)


_SINGLE = ("f16", "bf16")
_VIDEO = ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vset")
_BYTES = (("", "b1", "h1", ""), ("b2", "", "h0", ""), ("h1", "b3", "", ""))
_SELECTORS = {
    "vmad": (("", "b0", "h1", ""), ("", "-h0", "b1", ""), ("", "", "-", ""), ("", "-", "-b2", ""), ("", "h1", "", "-")),
    "2": (("h1", "h03", "h31", ""), ("h0", "", "h22", "")),
    "4": (("b20", "b7531", "b0426", ""), ("b3", "b1111", "", "")),
}


def inputs(name: str, row: Operation, lanes: int, seed: int) -> tuple[Array, ...]:
    """Make operands, hard ones if the mnemonic determines their types."""
    if not any(row.vectors):
        given = operation_inputs(row.mnemonic, lanes, seed)
        return (*given, *(x[::-1].copy() for x in given[: len(row.inputs) - len(given)]))
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    shape, dtypes = (lanes // LANES, LANES), [np.dtype(DTYPES[kind]) for kind in row.inputs]
    return tuple(rng.integers(0, 1 << (8 * x.itemsize), shape, np.uint64).astype(x) for x in dtypes)


def main(arguments: list[str] | None = None) -> int:
    """Run the comparison; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--lanes", type=int, default=1 << 14, help="lanes for each of them, a multiple of 256")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    start, rows = time.monotonic(), dict(variants(options.target))
    gpu: Any = KernelGpu({name: partial(row_kernel, row) for name, row in rows.items()}, options.target, (8, 3))
    compared = differences = 0
    for name, row in rows.items():
        given = inputs(name, row, options.lanes, options.seed)
        empty = [np.zeros((options.lanes // LANES, LANES), DTYPES[kind]) for kind in row.outputs]
        written = range(len(given), len(given) + len(empty))
        got = gpu.launch(name, options.lanes // _BLOCK, _BLOCK, (*given, *empty), written)
        expected = row(*given)
        bad = different_lanes(np.ones((1, LANES), bool), got, expected)
        compared, differences = compared + bad.size, differences + int(bad.sum())
        for place in np.argwhere(bad)[:1]:
            print(f"  {bad.sum():7d} {name}: {lane_shown(given, got, expected, place)}", flush=True)
    print(f"{gpu.device}: {len(rows)} variants, {compared} lanes, {differences} differences")
    print(f"{time.monotonic() - start:.0f} s")
    return int(differences > 0)


if __name__ == "__main__":
    sys.exit(main())
