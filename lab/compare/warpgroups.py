"""Compare the arithmetic of every `wgmma` with an H200: `python -m lab.compare.warpgroups --help`.

Needs the GPU, `ptxas` on the PATH, CuPy and the native engine. One base of each mnemonic, n = 256 with A in registers,
is compared with the simulator; the GPU compares the others with it, output for output, on operands that are changed
likewise: n = 8, A in shared memory, signs flipped by `imm-scale`, every selector, `scale-d` false on a C of any bits.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lab.generators import operands, styles
from lab.gpu.runner import KernelGpu
from lab.gpu.warpgroup_kernels import Source, product_kernel
from warpmma.arithmetic import Recipe, dot_chain, engines, recipe
from warpmma.execution import load
from warpmma.formats import FloatFormat
from warpmma.isa import WarpgroupInstruction, warpgroup_instructions
from warpmma.sparsity import legal_codes, pack_metadata, pattern, positions, selectors

Array = npt.NDArray[Any]
TARGET = "sm_90a"
_BLOCK = 64 * 256  # outputs of a pair
_WORKERS = 16


class Variant(NamedTuple):
    """What one kernel executes."""

    instruction: WarpgroupInstruction
    source: Source
    signs: tuple[int, int]
    selector: int


def bases() -> list[WarpgroupInstruction]:
    """List the instructions with n = 256."""
    return [i for i in warpgroup_instructions(TARGET) if i.n == 256]


def variants(base: WarpgroupInstruction) -> Iterator[Variant]:
    """Give the base's own first, then all others with n = 256 and n = 8."""
    floating = isinstance(base.format("A"), FloatFormat)
    signs = [(1, 1), (-1, 1), (1, -1), (-1, -1)] if floating else [(1, 1)]
    every = {i.n: i for i in warpgroup_instructions(TARGET) if str(i).replace(f"n{i.n}k", "n256k") == str(base)}
    sources: tuple[Source, ...] = ("registers", "memory")
    for n, source, sign, selector in product((256, 8), sources, signs, selectors(base) if base.sparse else (0,)):
        yield Variant(every[n], source, sign, selector)


class Inputs(NamedTuple):
    """Operands of a base: codes, and the blocks of A and of B that are multiplied.

    A is `[block, 64, k]` (k/2 of a sparse one; b1 as 32-bit words), B `[block, 256, k]`, C `[block, 64, 256]`, nibbles
    of metadata `[block, 64, groups]`; of each style the pairs of all its blocks.
    """

    a: Array
    b: Array
    c: Array
    nibbles: Array | None
    pairs: Array


def inputs(base: WarpgroupInstruction, outputs: int, rng: np.random.Generator) -> Inputs:
    """Draw at least so many outputs, evenly from all styles of the recipe."""
    own = recipe(base, TARGET)
    names = styles(own) if base.a_type != "b1" else ["bits", "few", "many"]
    each = math.ceil(math.sqrt(outputs / _BLOCK / len(names)))
    k = base.k // 2 if base.sparse else base.k
    found = [_block(base, own, k, name, rng) for name in names for _ in range(each)]
    a, b, c = (np.stack(x) for x in zip(*found, strict=True))
    nibbles = None
    if base.sparse:  # the hardware reads all sixteen by the one rule, except of tf32, where they mix halves
        width = pattern(base).width
        codes = sorted(legal_codes(base)) if base.a_type == "tf32" else list(range(16))
        nibbles = rng.choice(np.array(codes, np.uint8), (len(a), 64, base.k // width))
    groups = np.arange(len(names))[:, None, None] * each
    first, second = np.broadcast_arrays(groups + np.arange(each)[:, None], groups + np.arange(each))
    return Inputs(a, b, c, nibbles, np.stack([first.ravel(), second.ravel()], axis=1).astype(np.uint32))


def _block(base: WarpgroupInstruction, own: Recipe, k: int, style: str, rng: np.random.Generator) -> tuple[Array, ...]:
    if base.a_type == "b1":
        ones = {"bits": 1, "few": 3, "many": 1}[style]
        words = [
            np.bitwise_and.reduce(rng.integers(0, 1 << 32, (ones, rows, 8), np.uint64)).astype(np.uint32)
            for rows in (64, 256)
        ]
        a, b = (~x if style == "many" and i else x for i, x in enumerate(words))
        return a, b, rng.integers(0, 1 << 32, (64, 256), np.uint64).astype(np.uint32)
    codes = operands(own, k, 256, style, rng)
    wide = codes["b"].T
    if base.sparse:  # the twins of a row of B differ, so that the metadata matter
        wide = np.repeat(wide, 2, axis=1)
        wide[:, 1::2] = np.roll(wide[:, 1::2], 1, axis=0)
    c = np.where(np.arange(256) % 2, codes["c"][None], codes["c"][:64, None])
    return np.ascontiguousarray(codes["a"].T[:64]), np.ascontiguousarray(wide), c


def simulated(base: WarpgroupInstruction, given: Inputs, block_b: int) -> Array:
    """Compute D of a block of B with all blocks of A that it is multiplied by: codes `[block, 64, 256]`."""
    blocks = given.pairs[given.pairs[:, 1] == block_b, 0]
    k = given.a.shape[2]
    chosen = None
    if given.nibbles is not None:
        words = metadata(base, given, 0)[blocks]
        chosen = positions(words, base).astype(np.uint8)
    b = given.b[block_b].T[None]
    return dot_chain(
        recipe(base, TARGET),
        given.a[blocks],
        np.ascontiguousarray(b),
        given.c[blocks],
        k=k,
        engine="native",
        chosen=chosen,
    )


def metadata(base: WarpgroupInstruction, given: Inputs, selector: int) -> Array:
    """Pack metadata for a selector; the other lanes have any bits."""
    assert given.nibbles is not None
    garbage = np.random.default_rng(selector).integers(0, 1 << 32, (len(given.a), 128), np.uint64).astype(np.uint32)
    indices = np.stack([given.nibbles & 3, given.nibbles >> 2], axis=-1)
    return pack_metadata(indices, base, selector=selector, into=garbage)


def _flipped(codes: Array, base: WarpgroupInstruction, operand: Any, sign: int) -> Array:
    fmt = base.format(operand)
    return codes ^ codes.dtype.type(fmt.sign_bit) if sign == -1 and isinstance(fmt, FloatFormat) else codes


class WarpgroupGpu(KernelGpu[Variant]):
    """The kernels of all variants, and the operands of one base on the GPU."""

    def __init__(self, every: list[Variant]) -> None:
        kernels = {v: partial(_written, v) for v in every}
        super().__init__(kernels, TARGET, (8, 4))
        import cupy

        self.cupy = cupy

    def place(self, base: WarpgroupInstruction, given: Inputs) -> None:
        """Copy the operands of a base to the GPU."""
        cp = self.cupy
        self.base, self.given = base, given
        self.a = {sign: cp.asarray(_flipped(given.a, base, "A", sign)) for sign in (1, -1)}
        self.b = {sign: cp.asarray(_flipped(given.b, base, "B", sign)) for sign in (1, -1)}
        self.pairs = cp.asarray(given.pairs)
        self.c = cp.asarray(load(base, "C", given.c))
        self.metadata = {s: cp.asarray(metadata(base, given, s)) for s in (selectors(base) if base.sparse else ())} or {
            0: self.pairs
        }

    def multiply(self, variant: Variant, *, c: Any = None, scale_d: int = 1) -> Any:
        """Return registers of D of n = 256, `[pair, register, 128]`, on the GPU."""
        cp = self.cupy
        d = cp.full((len(self.pairs), *self.c.shape[1:]), 0xDEADBEEF, cp.uint32)
        blocks = len(self.pairs) * 256 // variant.instruction.n
        operands = (
            self.a[variant.signs[0]], self.b[variant.signs[1]], self.c if c is None else c,
            self.metadata[variant.selector], self.pairs, d, np.uint64(scale_d),
        )  # fmt: skip
        self._functions[variant]((blocks,), (128,), operands)
        return d


def _written(variant: Variant, name: str) -> str:
    i, source, signs, selector = variant
    return product_kernel(i, name, source=source, signs=signs, selector=selector)


def differences(gpu: WarpgroupGpu, base: WarpgroupInstruction, given: Inputs, d: Any, pool: ThreadPoolExecutor) -> int:
    """Compare D of the base with the simulator; count the outputs that differ, and print the first."""
    cp, layout = gpu.cupy, base.layout("D")
    order, dtype = cp.asarray(layout.order), base.format("D").code_dtype
    rows = {int(b): np.flatnonzero(given.pairs[:, 1] == b) for b in np.unique(given.pairs[:, 1])}
    jobs = {b: pool.submit(simulated, base, given, b) for b in rows}
    wrong = 0
    for b, job in jobs.items():
        expected = job.result()
        got = d[cp.asarray(rows[b])].reshape(len(expected), -1).view(dtype).take(order, axis=1)
        unequal = got != cp.asarray(expected)
        count = int(unequal.sum())
        if count and not wrong:
            block, m, n = (int(x[0]) for x in cp.nonzero(unequal))
            a = int(given.pairs[rows[b][block], 0])
            print(
                f"  A {a}, B {b}, D[{m}, {n}]: gpu {int(got[block, m, n]):#x}, ours {int(expected[block, m, n]):#x}",
                flush=True,
            )
        wrong += count
    return wrong


def compare(
    gpu: WarpgroupGpu,
    base: WarpgroupInstruction,
    outputs: int,
    seed: int,
    pool: ThreadPoolExecutor,
    vectors: dict[str, Array],
) -> dict[str, Any]:
    """Compare one mnemonic; return counts."""
    begun = time.monotonic()
    given = inputs(base, outputs, np.random.default_rng([seed, *str(base).encode()]))
    gpu.place(base, given)
    first, *others = variants(base)
    d = gpu.multiply(first)
    found: dict[str, Any] = {"outputs": len(given.pairs) * _BLOCK, "simulator": differences(gpu, base, given, d, pool)}
    kept = [int(x) for x in np.linspace(0, len(given.pairs) - 1, 3)]
    vectors |= _vector(base, given, d[kept].get(), kept)
    wrong = {}
    for variant in others:
        i = variant.instruction
        name = f"n{i.n} {variant.source} {variant.signs} {variant.selector}"
        wrong[name] = int((gpu.multiply(variant) != d).sum())
    zero = gpu.multiply(first, c=gpu.cupy.zeros_like(gpu.c))
    garbage = gpu.cupy.asarray(
        np.random.default_rng(seed).integers(0, 1 << 32, gpu.c.shape, np.uint64).astype(np.uint32)
    )
    for variant in (first, others[-1]):
        own = variant._replace(signs=(1, 1), selector=0)
        name = f"n{own.instruction.n} {own.source} scale-d false"
        wrong[name] = int((gpu.multiply(own, c=garbage, scale_d=0) != zero).sum())
    found["registers that differ"] = {name: count for name, count in wrong.items() if count}
    found["variants"] = len(wrong)
    found["seconds"] = round(time.monotonic() - begun, 1)
    return found


def _vector(base: WarpgroupInstruction, given: Inputs, d: Array, kept: list[int]) -> dict[str, Array]:
    """Keep the first 8 columns of some pairs: codes of A, B, C and D, and nibbles."""
    a, b = given.pairs[kept].T
    columns, layout = slice(0, 8), base.layout("D")
    codes = d.reshape(len(kept), -1).view(base.format("D").code_dtype).take(layout.order, axis=1)
    found = {"a": given.a[a], "b": given.b[b][:, columns], "c": given.c[a][..., columns], "d": codes[..., columns]}
    if given.nibbles is not None:
        found["nibbles"] = given.nibbles[a]
    return {f"{base}|{name}": x for name, x in found.items()}


def main(arguments: list[str] | None = None) -> int:
    """Run the comparison; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="counts (JSON) and vectors (NPZ)")
    parser.add_argument("--outputs", type=int, default=10**8, help="of each mnemonic, n, source and immediates")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=300, help="begin no other mnemonic after this time")
    parser.add_argument("--only", nargs="*", default=[], metavar="TEXT", help="mnemonics that contain one of these")
    options = parser.parse_args(arguments)
    begun, file = time.monotonic(), options.out / "wgmma_arithmetic.json"
    if "native" not in engines():
        parser.error("the native engine is not built")
    done: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"counts": {}}
    every = [i for i in bases() if not options.only or any(text in str(i) for text in options.only)]
    every = [i for i in every if str(i) not in done["counts"]]
    gpu = WarpgroupGpu([v for base in every for v in variants(base)])
    done["device"] = gpu.device
    print(f"{gpu.device}: {len(every)} mnemonics, kernels in {time.monotonic() - begun:.0f} s", flush=True)
    vectors: dict[str, Array] = {}
    with ThreadPoolExecutor(_WORKERS) as pool:
        for base in every:
            if time.monotonic() - begun > options.seconds:
                print("out of time")
                break
            found = done["counts"][str(base)] = compare(gpu, base, options.outputs, options.seed, pool, vectors)
            print(f"{base}: {found}", flush=True)
            file.write_text(json.dumps(done, indent=1) + "\n")
    _saved(options.out / "wgmma_arithmetic.npz", vectors)
    return int(not _clean(done["counts"]))


def _saved(file: Path, vectors: Mapping[str, Array]) -> None:
    kept = dict(np.load(file)) if file.exists() else {}
    np.savez_compressed(file, **(kept | dict(vectors)))


def _clean(counts: Mapping[str, Any]) -> bool:
    wrong = sum(x["simulator"] + sum(x["registers that differ"].values()) for x in counts.values())
    outputs = sum(x["outputs"] * (x["variants"] + 1) for x in counts.values())
    print(f"{len(counts)} mnemonics, {outputs} outputs, {wrong} wrong")
    return bool(wrong == 0)


if __name__ == "__main__":
    sys.exit(main())
