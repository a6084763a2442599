"""Measure whether atomics on shared memory of a cluster lose updates: `python -m lab.measure.remote_atomics --help`.

Threads of both blocks of many clusters of two change one word in the shared memory of their own block, or of the
other: 1, 32 or 128 threads of a block, each with another value. The word has to be what all updates in any order make.
Sums of floats by one thread show what becomes of NaN and of subnormals there.
Needs the driver, and a GPU of sm_90 or later.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from lab.gpu.driver import Driver, argument_bytes

__all__ = ["CASES", "FLOATS", "WAYS", "expected", "sum_text", "text"]

OPERATIONS: dict[str, tuple[str, ...]] = {
    "add": ("u32", "s32", "u64"), "min": ("u32", "s32", "u64", "s64"), "max": ("u32", "s32", "u64", "s64"),
    "and": ("b32", "b64"), "or": ("b32", "b64"), "xor": ("b32", "b64"), "inc": ("u32",), "dec": ("u32",),
}  # fmt: skip
CASES = [
    (name, f"{operation}.{type_}", other, threads)
    for name in ("atom", "red")
    for operation, types in OPERATIONS.items()
    for type_ in types
    for other in (False, True)
    for threads in (1, 32, 128)
]
"""The instruction, what it does, whether to the other block, and how many threads of a block do."""
FLOATS: dict[str, tuple[tuple[int, int], ...]] = {
    "add.f32": ((0, 1), (0x00400000, 0x00400000), (0x80000001, 0x80000001), (0x7F812345, 0x3F800000),
                (0x3F800000, 0x7FC54321), (0x7F812345, 0x7FC54321), (0x7F800000, 0xFF800000)),
    "add.f64": ((0, 1), (0x0008 << 48, 0x0008 << 48), (0x7FF0 << 48 | 5, 0x3FF0 << 48),
                (0x3FF0 << 48, 0x7FF8 << 48 | 7), (0x7FF0 << 48 | 5, 0x7FF8 << 48 | 7), (0x7FF0 << 48, 0xFFF0 << 48),
                (0x7FF8 << 48 | 7, 0x7FF0 << 48 | 5), (0x7FF8 << 48 | 7, 0x7FF8 << 48 | 5),
                (0x7FF0 << 48 | 7, 0x7FF0 << 48 | 5)),
    "add.noftz.f16x2": ((0x00010001, 0x00010400), (0x7C01_3C00, 0x3C00_7E05), (0x7C00_7C01, 0xFC00_7E05)),
    "add.noftz.f16": ((1, 0x400), (0x7C01, 0x3C00), (0x7C01, 0x7E05), (0x7C00, 0xFC00), (0x3C01, 0x1400)),
    "add.noftz.bf16": ((1, 0x80), (0x7F81, 0x3F80), (0x7F81, 0x7FC5), (0x7F80, 0xFF80), (0x3F81, 0x3B80)),
    "add.noftz.bf16x2": ((0x00010001, 0x00010080), (0x7F81_3F80, 0x3F80_7FC5), (0x7F80_7F81, 0xFF80_7FC5)),
}  # fmt: skip
"""Of each sum of floats, elements and operands."""
WAYS = {
    "the own block, .shared": (".shared", False), "the own block, generic": ("", False),
    "the own block, .shared::cluster": (".shared::cluster", False), "the other block, generic": ("", True),
    "the other block, .shared::cluster": (".shared::cluster", True),
}  # fmt: skip
"""How a sum reaches an element: the space, and whether it is in the other block."""
BLOCKS = 264
_KERNEL = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 y) {{
.reg .b32 %t, %a, %r<4>; .reg .b64 %y, %v, %o, %w; .reg .pred %p;
.shared .align 8 .b64 word;
ld.param.u64 %y, [y]; mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, {threads};
mov.b64 %w, {start}; setp.eq.u32 %p, %t, 0; @%p st.shared.u64 [word], %w; setp.lt.u32 %p, %t, {threads};
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
mov.u32 %r0, %cluster_ctarank; xor.b32 %r0, %r0, {other}; mov.u32 %a, word; mapa.shared::cluster.u32 %a, %a, %r0;
cvt.u64.u32 %v, %t; {value} cvt.u32.u64 %r1, %v;
@%p {mnemonic};
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
ld.shared.u64 %w, [word]; mov.u32 %r2, %ctaid.x; mad.wide.u32 %y, %r2, 8, %y;
setp.eq.u32 %p, %t, 0; @%p st.global.u64 [%y], %w; ret; }}
"""
_MOST = (1 << 64) - 1
_BIT = "and.b64 %o, %v, 31; cvt.u32.u64 %r1, %o; mov.b64 %o, 1; shl.b64 %v, %o, %r1;"
_VALUES: dict[str, tuple[int, str, Callable[[int, int], int]]] = {
    "add": (0, "", lambda n, bits: n * (n - 1) // 2),
    "min": ((1 << 31) - 1, "sub.s64 %v, 1000, %v;", lambda n, bits: 1001 - n),
    "max": (0, "", lambda n, bits: n - 1),
    "and": (_MOST, f"{_BIT} not.b64 %v, %v;", lambda n, bits: _MOST & ~((1 << min(n, 32)) - 1)),
    "or": (0, _BIT, lambda n, bits: (1 << min(n, 32)) - 1),
    "xor": (0, f"shr.u64 %w, %v, 5; {_BIT} shl.b64 %v, %v, %w;", lambda n, bits: -1),
    "inc": (0, "mov.b64 %v, 1000;", lambda n, bits: n),
    "dec": (1000, "mov.b64 %v, 2000;", lambda n, bits: 1000 - n),
}
"""Of each operation: the word before, what makes a thread's value of its number, and the word after."""


def text(case: tuple[str, str, bool, int]) -> str:
    """Return the kernel of a case."""
    name, what, other, threads = case
    operation, type_ = what.split(".")
    start, value, _ = _VALUES[operation]
    wide = type_.endswith("64")
    result = ("%o, " if wide else "%r3, ") if name == "atom" else ""
    mnemonic = f"{name}.relaxed.cluster.shared::cluster.{what} {result}[%a], {'%v' if wide else '%r1'}"
    shift = value.replace("shl.b64 %v, %v, %w", "cvt.u32.u64 %r1, %w; shl.b64 %v, %v, %r1")
    return _KERNEL.format(threads=threads, start=start, other=int(other), value=shift, mnemonic=mnemonic)


def sum_text(what: str, element: int, operand: int, way: str) -> str:
    """Return the kernel in which one thread of each block adds an operand to an element, by one of `WAYS`."""
    space, other = WAYS[way]
    values = {"f64": "%v", "f32": "%r1", "f16x2": "%r1", "bf16x2": "%r1", "f16": "%h", "bf16": "%h"}
    value = f"mov.b64 %v, {operand}; .reg .b16 %h; cvt.u16.u64 %h, %v;"
    address = "[%a]" if space else "[%o]"
    if not space:
        value += " cvt.u64.u32 %o, %a; cvta.shared.u64 %o, %o;"
    mnemonic = f"red.relaxed.cluster{space}.{what} {address}, {values[what.split('.')[-1]]}"
    return _KERNEL.format(threads=1, start=element, other=int(other), value=value, mnemonic=mnemonic)


def expected(case: tuple[str, str, bool, int]) -> int:
    """Return the word that all updates make, of the bits that the type has."""
    _, what, _, threads = case
    operation, type_ = what.split(".")
    bits = int(type_[1:])
    made = _VALUES[operation][2](threads, bits)
    if operation == "xor":
        made = 0
        for t in range(threads):
            made ^= (1 << t % 32) << t // 32
    return made & ((1 << bits) - 1)


def main(arguments: list[str] | None = None) -> int:
    """Count the words that differ, by case; 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--launches", type=int, default=100, help="of each case (default: %(default)s)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="counts by case, JSON")
    options = parser.parse_args(arguments)
    driver, found = Driver(), dict[str, list[int]]()
    like = np.zeros(BLOCKS, np.uint64)
    place = {"y": driver.place(like)}
    for case in CASES:
        (function,) = driver.load(text(case), ["k"]).values()
        name, what, other, threads = case
        mask, wanted, wrong = np.uint64((1 << int(what.split(".")[1][1:])) - 1), np.uint64(expected(case)), 0
        for _ in range(options.launches):
            driver.launch(function, [BLOCKS], [128], [argument_bytes(place, "y")], cluster=2)
            driver.synchronise(20)
            wrong += int((driver.fetch(place["y"], like) & mask != wanted).sum())
        key = f"{name}.{what} on {'the other block' if other else 'the own block'}, {threads} threads"
        found[key] = [wrong, options.launches * BLOCKS]
        if wrong:
            print(f"{key}: {wrong} of {options.launches * BLOCKS} words are wrong", flush=True)
    sums = {}
    for what, pairs in FLOATS.items():
        for (element, operand), way in ((pair, way) for pair in pairs for way in WAYS):
            (function,) = driver.load(sum_text(what, element, operand, way), ["k"]).values()
            driver.launch(function, [BLOCKS], [128], [argument_bytes(place, "y")], cluster=2)
            driver.synchronise(20)
            (made,) = set(driver.fetch(place["y"], like).tolist())
            sums[f"{what} {element:#x} {operand:#x} {way}"] = made
    print(f"{len(CASES)} cases, {sum(x > 0 for x, _ in found.values())} with wrong words")
    if options.out:
        about = {**Driver.about(), "source": "python -m lab.measure.remote_atomics"}
        options.out.write_text(json.dumps({**about, "found": found, "sums": sums}, indent=0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
