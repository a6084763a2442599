"""Compare what `wgmma` reads by random descriptors with an H200: `python -m lab.compare.descriptors --help`.

Needs the GPU, `ptxas` on the PATH and CuPy. Shared memory has random bytes whose elements are finite. Of B, rows of A
with a single one show every element that is read (of single bits, the sums of random rows do); of A, columns of B with
a single one. Every n, type, major-ness, swizzle and source; no descriptor leaves the memory, so nothing faults.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from lab.gpu.runner import KernelGpu
from lab.gpu.warpgroup_kernels import descriptor_kernel
from warpmma.execution import load
from warpmma.formats import FORMATS, FloatFormat
from warpmma.isa import WarpgroupInstruction, warpgroup_instructions
from warpmma.layouts import MatrixDescriptor
from warpmma.sparsity import pack_metadata, pattern, positions

Array = npt.NDArray[Any]
TARGET = "sm_90a"
WINDOW = 160 << 10  # bytes of the image
AT = 1024  # where dynamic shared memory begins on Hopper; the kernel says
_FIXED = 8 << 10  # bytes at the end of the image for the operand that is not looked at
TYPES = ("f32.f16.f16", "f32.tf32.tf32", "f32.e4m3.e4m3", "s32.u8.u8", "s32.b1.b1.and.popc")


class Case(NamedTuple):
    """One kernel."""

    instruction: WarpgroupInstruction
    of: Literal["A", "B"]
    transposed: bool


def cases() -> list[Case]:
    """List B of every n, and A with one n: n changes nothing of it."""
    found = []
    for i in warpgroup_instructions(TARGET):
        if not str(i).endswith(TYPES):
            continue
        for transposed in (False, True)[: 1 + (i.a_type == "f16")]:
            found.append(Case(i, "B", transposed))
            if i.n == 64:
                found.append(Case(i, "A", transposed))
    return found


def image(case: Case, rng: np.random.Generator) -> Array:
    """Draw bytes of shared memory whose elements are finite numbers other than zero."""
    fmt = case.instruction.format("A")
    codes = (
        rng.integers(0, 1 << 32, WINDOW // 4, np.uint64)
        .astype(np.uint32)
        .view(fmt.code_dtype if fmt.bits > 1 else "u1")
    )
    if isinstance(fmt, FloatFormat):  # exponents near 1: products with 1 are exact in every format of D
        low = (fmt.bias if hasattr(fmt, "bias") else 1 - fmt.emin) - 3
        shift = fmt.fraction_bits + fmt.padding
        exponent = (codes >> shift & 7) + low
        codes = ((codes & codes.dtype.type(fmt.sign_bit)) | (codes & codes.dtype.type((1 << shift) - 1))
                 | (exponent.astype(codes.dtype) << codes.dtype.type(shift)))  # fmt: skip
    return np.ascontiguousarray(codes).view(np.uint8)


def shape(case: Case) -> tuple[int, int]:
    """Rows and columns of what is read."""
    i = case.instruction
    if case.of == "B":
        return i.n, i.k
    return 64, i.k // 2 if i.sparse else i.k


def descriptors(case: Case, count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Draw words that read inside of the image, with any bits where none count; and what they read, as byte addresses.

    Half of them are tiles as kernels lay them out, at any start; the others have any offsets.
    """
    rows, columns = shape(case)
    bits, major = case.instruction.format("A").bits, "MN" if case.transposed else "K"
    words: list[int] = []
    addresses: list[Array] = []
    while len(words) < count:
        swizzle = (0, 32, 64, 128)[len(words) % 4]
        start = AT + 16 * int(rng.integers(0, WINDOW // 16))
        if len(words) // 4 % 2:
            span = int(rng.choice([512, 2048, 8192, 1 << 16]))
            leading, stride = (16 * int(x) for x in rng.integers(0, span // 16, 2))
        else:
            width = max(16, swizzle)
            leading, stride = int(rng.choice([128, 1024, rows * width, columns * width])), 8 * width
        own = MatrixDescriptor(
            start=start,
            leading=leading % (1 << 18),
            stride=stride,
            swizzle=swizzle,
            base_offset=int(rng.integers(0, 8)),
        )
        read = own.addresses(rows, columns, bits=bits, major=major)  # type: ignore[arg-type]
        if read.min() < AT or read.max() + max(1, bits // 8) > AT + WINDOW - _FIXED:
            continue
        ignored = sum(int(rng.integers(0, 2)) << b for b in (14, 15, 30, 31, 46, 47, 48, *range(52, 62)))
        words.append(own.word | ignored)
        addresses.append(read)
    return np.array(words, np.uint64), np.array(addresses)


def values(fmt_name: str, memory: Array, addresses: Array) -> Array:
    """Read numbers at byte addresses of the image; tf32 without the bits that are ignored."""
    fmt = FORMATS[fmt_name]
    size = fmt.bits // 8
    octets = memory[(addresses - AT)[..., None] + np.arange(size)]
    codes = np.ascontiguousarray(octets).view(fmt.code_dtype)[..., 0]
    return codes.astype(np.float64) if not isinstance(fmt, FloatFormat) else fmt.decode(codes)


def expected(case: Case, memory: Array, addresses: Array, a_bits: Array) -> Array:
    """Compute D `[count, 64, n]` as numbers."""
    i = case.instruction
    if i.a_type == "b1":
        rows, k = shape(case)
        octets = memory[addresses[:, :, ::8] - AT]
        read = np.unpackbits(octets, axis=-1, bitorder="little").reshape(len(addresses), rows, k).astype(np.float32)
        other = a_bits.astype(np.float32)
        return read @ other.T if case.of == "A" else (read @ other.T).swapaxes(1, 2)
    read = values(i.a_type, memory, addresses)
    d = np.zeros((len(addresses), 64, i.n))
    if case.of == "B":
        k = min(64, i.k)
        d[:, :k] = read.swapaxes(1, 2)[:, :k]
    else:
        n = min(i.n, read.shape[2])
        d[:, :, :n] = read[:, :, :n]
    return d


def others(case: Case, memory: Array, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Make the operand that is not looked at: registers of A or one descriptor; metadata; bits of a b1 operand."""
    i = case.instruction
    stored = i.k // 2 if i.sparse else i.k
    one = 1 if i.a_type in ("u8", "b1") else int(FORMATS[i.a_type].encode(1.0))
    dtype = i.format("A").code_dtype
    words = np.zeros(128, np.uint32)
    bits = rng.integers(0, 2, (64 if case.of == "B" else i.n, 256)).astype(np.uint8)
    a = np.zeros((64, stored), dtype)
    where = np.arange(stored)
    if i.sparse:
        law = pattern(i)
        groups = i.k // law.width
        if case.of == "B":  # row m has a one for k = m
            indices = np.tile(np.array([0, 1], np.uint8), (64, groups, 1))
            for m in range(min(64, i.k)):
                group, place = divmod(m, law.width)
                if law.width == 2:
                    indices[m, group] = (0, 1) if place == 0 else (2, 3)
                else:
                    indices[m, group] = (place, (place + 1) % 4)
                a[m, group * law.kept] = one
        else:
            indices = np.tile(np.array([0, 1], np.uint8), (64, groups, 1))
        words = pack_metadata(indices, i)
        where = positions(words, i)[0]
    elif i.a_type != "b1":
        a[np.arange(min(64, i.k)), np.arange(min(64, i.k))] = one
    if case.of == "B":
        return load(i, "A", bits if i.a_type == "b1" else a), words, bits
    b = np.zeros((i.k, i.n), dtype)
    b[where[: i.n], np.arange(min(i.n, stored))] = one
    fixed = load(i, "B", bits.T if i.a_type == "b1" else b, swizzle=0)
    at = WINDOW - _FIXED
    memory[at : at + fixed.memory.size] = fixed.memory
    assert fixed.memory.size <= _FIXED
    word = fixed.descriptor.advanced(AT + at).word
    return np.array([word], np.uint64), words, bits


class DescriptorGpu(KernelGpu[Case]):
    """The kernels of all cases."""

    def __init__(self, every: list[Case]) -> None:
        super().__init__({c: partial(_written, c) for c in every}, TARGET, (8, 4))
        import cupy

        self.cupy = cupy

    def read(self, case: Case, memory: Array, words: Array, other: Array, metadata: Array) -> Array:
        """Return registers of D, `[count, register, 128]`."""
        cp, kernel = self.cupy, self._functions[case]
        kernel.max_dynamic_shared_size_bytes = WINDOW
        d = cp.full((len(words), case.instruction.layout("D").registers, 128), 0xDEADBEEF, cp.uint32)
        at = cp.zeros(1, cp.uint32)
        placed = (cp.asarray(memory), np.uint64(WINDOW), cp.asarray(words), np.uint64(len(words)))
        last = cp.asarray(other) if case.of == "B" else np.uint64(other[0])
        kernel((min(len(words), 132),), (128,), (*placed, last, cp.asarray(metadata), d, at), shared_mem=WINDOW)
        if int(at[0]) != AT:
            raise RuntimeError(f"shared memory begins at {int(at[0])}; expected {AT}")
        return d.get()  # type: ignore[no-any-return]


def _written(case: Case, name: str) -> str:
    return descriptor_kernel(case.instruction, name, of=case.of, transposed=case.transposed)


def main(arguments: list[str] | None = None) -> int:
    """Run the comparison; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="counts and digests of D (JSON)")
    parser.add_argument("--each", type=int, default=32, help="descriptors for each kernel, a multiple of 8")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=180, help="begin no other kernel after this time")
    options = parser.parse_args(arguments)
    begun, file = time.monotonic(), options.out / "wgmma_descriptors.json"
    done: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {"counts": {}}
    every = [c for c in cases() if _named(c) not in done["counts"]]
    gpu = DescriptorGpu(every)
    done["device"] = gpu.device
    print(f"{gpu.device}: {len(every)} kernels in {time.monotonic() - begun:.0f} s", flush=True)
    for number, case in enumerate(every):
        if time.monotonic() - begun > options.seconds:
            print("out of time")
            break
        rng = np.random.default_rng([options.seed, *_named(case).encode()])
        memory = image(case, rng)
        other, metadata, bits = others(case, memory, rng)
        words, addresses = descriptors(case, options.each, rng)
        got = numbers(case, gpu.read(case, memory, words, other, metadata))
        wrong = got != expected(case, memory, addresses, bits)
        bad = wrong.any(axis=(1, 2))
        done["counts"][_named(case)] = {
            "descriptors": len(words), "elements": wrong.size, "wrong": int(bad.sum()), "digest": digest(got),
        }  # fmt: skip
        for word in words[bad][:2]:
            print(f"  {_named(case)}: {MatrixDescriptor.from_word(int(word))}", flush=True)
        if number % 50 == 0 or bad.any():
            print(f"{number}: {_named(case)}: {done['counts'][_named(case)]}", flush=True)
            file.write_text(json.dumps(done, indent=1) + "\n")
    file.write_text(json.dumps(done, indent=1) + "\n")
    counts = done["counts"].values()
    total = {name: sum(x[name] for x in counts) for name in ("descriptors", "elements", "wrong")}
    print(f"{len(counts)} kernels, {total}, {time.monotonic() - begun:.0f} s")
    return int(total["wrong"] > 0)


def digest(d: Array) -> str:
    """Return a digest of D's numbers, which tests compute again from the seed."""
    return hashlib.blake2b(np.ascontiguousarray(d, "<f8").tobytes(), digest_size=8).hexdigest()


def numbers(case: Case, registers: Array) -> Array:
    """Collect D from registers, as numbers `[count, 64, n]`."""
    layout = case.instruction.layout("D")
    flat = registers.reshape(len(registers), -1).take(layout.order, axis=1)
    return flat.view(np.float32 if case.instruction.d_type == "f32" else np.int32).astype(np.float64)


def _named(case: Case) -> str:
    return f"{case.instruction} {case.of}{' transposed' * case.transposed}"


if __name__ == "__main__":
    sys.exit(main())
