"""Record the results of a GPU for random programs of clusters: `python -m lab.record.cluster_programs --help`.

A seed makes a kernel in PTX. Its rules make it correct, free of races and deterministic:

1. Every phase has bytes of shared memory (`area`) and mbarriers (`bars`) of its own. All are initialised before a
   barrier of the cluster, with a proxy fence, and no block exits before the last barrier of the cluster.
2. Peers permute the ranks, for each thread by itself: each byte has one writer. Counters have many, who commute.
3. What a thread of another block reads or writes is ordered by a barrier of the cluster that releases and acquires, by
   a release and an acquire of scope .cluster, or by a transaction on which a thread waits with acquire.cluster.
4. A producer overwrites a stage after all readers used what they read and arrived (release.cluster) at its mbarrier.

At the end each block writes its threads' registers and its shared memory. Needs the driver and a GPU of sm_90 or later.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
from functools import cache
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lab.gpu.driver import Driver, DriverError, argument_bytes

Array = npt.NDArray[Any]
Lines = list[str]

WARP = 32
TOO_LONG = 20.0
"""Seconds after which a launch counts as hung."""
WORDS = 1 << 12
"""Words of the array that is read."""
_SHAPES = (
    (1, 1, 1), (2, 1, 1), (2, 1, 1), (3, 1, 1), (4, 1, 1), (5, 1, 1), (8, 1, 1), (1, 2, 1), (2, 2, 1), (2, 3, 1),
    (4, 2, 1), (2, 2, 2), (1, 1, 3), (1, 2, 3), (1, 4, 2), (3, 1, 2),
)  # fmt: skip
_SPECIAL = (
    *(f"%{name}.{axis}" for name in ("cluster_ctaid", "cluster_nctaid", "clusterid", "nclusterid", "ctaid", "nctaid")
      for axis in "xyz"), "%cluster_ctarank", "%cluster_nctarank",
)  # fmt: skip
_HEAD = """.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x_, .param .u64 y_) {declared} {{
.reg .pred %p, %q, %first, %lead;
.reg .b16 %s<4>;
.reg .b32 %t, %l, %w, %n, %rank, %peer, %a, %b, %c, %m, %i, %v, %acc, %r<8>;
.reg .b64 %x, %y, %g, %h, %mg, %src, %out, %token, %d<4>;
.shared .align 128 .b8 area[{area}];
.shared .align 8 .b64 bars[{bars}];
ld.param.u64 %x, [x_]; ld.param.u64 %y, [y_];
mov.u32 %t, %tid.x; and.b32 %l, %t, 31; shr.u32 %w, %t, 5;
mov.u32 %n, %ctaid.z; mov.u32 %a, %nctaid.y; mov.u32 %b, %ctaid.y; mad.lo.u32 %n, %n, %a, %b;
mov.u32 %a, %nctaid.x; mov.u32 %b, %ctaid.x; mad.lo.u32 %n, %n, %a, %b;
mov.u32 %rank, %cluster_ctarank;
mul.lo.u32 %a, %n, {row}; cvt.u64.u32 %out, %a; add.u64 %y, %y, %out;
setp.eq.u32 %first, %t, 0; setp.eq.u32 %lead, %l, 0; mad.lo.u32 %acc, %n, 977, %t;
mov.u32 %i, %t; mov.u32 %a, area; mad.lo.u32 %a, %t, 4, %a;
FILL: mad.lo.u32 %v, %n, {words}, %i; mul.lo.u32 %v, %v, 2654435761; st.shared.u32 [%a], %v;
add.u32 %i, %i, {threads}; add.u32 %a, %a, {step}; setp.lt.u32 %p, %i, {words}; @%p bra FILL;
"""
_TAIL = """mad.wide.u32 %out, %t, 4, %y; st.global.u32 [%out], %acc;
mov.u32 %i, %t; mov.u32 %a, area; mad.lo.u32 %a, %t, 4, %a;
LEFT: ld.shared.u32 %v, [%a]; add.u64 %out, %out, {step}; st.global.u32 [%out], %v;
add.u32 %i, %i, {threads}; add.u32 %a, %a, {step}; setp.lt.u32 %p, %i, {words}; @%p bra LEFT;
ret;
}}
"""


class Program(NamedTuple):
    """The parameters of one kernel."""

    shape: tuple[int, int, int]  # of a cluster, in blocks
    clusters: tuple[int, int, int]
    warps: int
    declared: bool  # the kernel says the shape, or the launch does
    phases: tuple[str, ...]
    seed: int

    @property
    def grid(self) -> tuple[int, ...]:
        """Blocks along each axis."""
        return tuple(a * b for a, b in zip(self.shape, self.clusters, strict=True))

    @property
    def ranks(self) -> int:
        """Blocks of a cluster."""
        return prod(self.shape)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return WARP * self.warps


def drawn(seed: int) -> Program:
    """Draw the parameters of a seed."""
    r = random.Random(seed)
    shape = r.choice(_SHAPES)
    clusters = r.choice([(1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2), (2, 2, 1) if prod(shape) < 5 else (1, 1, 1)])
    phases = tuple(r.choice(list(_PHASES)) for _ in range(r.randint(2, 5)))
    # Driver.launch requests clusters along x; the kernel declares others.
    return Program(shape, clusters, r.randint(1, 4), shape[1:] != (1, 1) or r.random() < 0.3, phases, seed)


class _Kernel:
    """A kernel in work: its lines, and what it has of shared memory."""

    def __init__(self, p: Program) -> None:
        self.p, self.r, self.lines = p, random.Random(p.seed + 1_000_003), list[str]()
        self.size, self.counts, self.labels = 0, list[int](), 0

    def add(self, *lines: str) -> None:
        """Append lines."""
        self.lines += lines

    def area(self, size: int) -> int:
        """Return the offset of new bytes in `area`."""
        at = self.size
        self.size += -(-size // 128) * 128
        return at

    def bar(self, count: int) -> int:
        """Return the offset of a new mbarrier in `bars`."""
        self.counts.append(count)
        return 8 * len(self.counts) - 8

    def label(self) -> str:
        """Return a new label."""
        self.labels += 1
        return f"L{self.labels}"

    def mix(self, *registers: str) -> None:
        """Make registers of 32 bits part of the result."""
        self.add(*(f"mad.lo.u32 %acc, %acc, 31, {x};" for x in registers))

    def mix64(self, *registers: str) -> None:
        """Make registers of 64 bits part of the result."""
        for x in registers:
            self.add(f"mov.b64 {{%r6, %r7}}, {x};")
            self.mix("%r6", "%r7")

    def peer(self, by: str | None = None) -> None:
        """Set %peer to another rank, one for each of this rank's threads, warps or none."""
        by = by or self.r.choice(["", "%t", "%w"])
        self.add(f"add.u32 %peer, %rank, {self.r.randrange(self.p.ranks)};")
        if by.strip():
            self.add(f"add.u32 %peer, %peer, {by};")
        self.add(f"rem.u32 %peer, %peer, {self.p.ranks};")

    def remote(self, at: int, stride: int, index: str = "%t", generic: bool = True) -> tuple[str, str]:
        """Return the state space and register of an address in `area` of %peer."""
        self.add(f"mov.u32 %a, area; add.u32 %a, %a, {at}; mad.lo.u32 %a, {index}, {stride}, %a;")
        return self._mapped("%a", "%b", "%h", generic)

    def remote_bar(self, at: int, generic: bool = False) -> tuple[str, str]:
        """Return the state space and register of the address of an mbarrier of %peer."""
        self.add(f"mov.u32 %m, bars; add.u32 %m, %m, {at};")
        return self._mapped("%m", "%m", "%mg", generic)

    def _mapped(self, own: str, to: str, wide: str, generic: bool) -> tuple[str, str]:
        how = self.r.choice(["u32", "u32", "u64", "back", *(["generic"] * 3 if generic else [])])
        if how == "u32":
            self.add(f"mapa.shared::cluster.u32 {to}, {own}, %peer;")
            return ".shared::cluster", to
        self.add(f"cvt.u64.u32 {wide}, {own};")
        if how == "u64":
            self.add(f"mapa.shared::cluster.u64 {wide}, {wide}, %peer;")
            return ".shared::cluster", wide
        self.add(f"cvta.shared.u64 {wide}, {wide}; mapa.u64 {wide}, {wide}, %peer;")
        if how == "generic":
            return "", wide
        self.add(f"cvta.to.shared::cluster.u64 {wide}, {wide};")
        return ".shared::cluster", wide

    def value(self) -> None:
        """Set %v, %r0 to %r3 and %d0 to %d3 to values of this thread."""
        self.add(f"mad.lo.u32 %v, %n, 1031, %t; mad.lo.u32 %v, %v, {self.r.getrandbits(31) | 1}, %acc;")
        self.add(*(f"mad.lo.u32 %r{i}, %v, {self.r.getrandbits(31) | 1}, {i};" for i in range(4)))
        self.add(*(f"mov.b64 %d{i}, {{%r{i}, %r{(i + 1) % 4}}}; xor.b64 %d{i}, %d{i}, {i + 5};" for i in range(4)))

    def sync(self) -> None:
        """Let the cluster meet: what came before in any block is visible after, in all."""
        r = self.r
        aligned = ".aligned" * (r.random() < 0.5)
        how = r.choice(["", "release", "fence", "split"])
        if how == "split":  # lanes of a warp arrive at two places
            one, two = self.label(), self.label()
            self.add(f"and.b32 %c, %t, {r.choice([1, 4, 16])}; setp.ne.u32 %p, %c, 0; @%p bra {one};")
            self.add("barrier.cluster.arrive;", f"bra {two};", f"{one}:", "barrier.cluster.arrive.release;", f"{two}:")
            aligned = ""
        elif how == "fence":
            self.add("fence.acq_rel.cluster;", f"barrier.cluster.arrive.relaxed{aligned};")
        else:
            self.add(f"barrier.cluster.arrive{'.release' if how else ''}{aligned};")
        work = r.choice(["", "", "count", "global", "shared"])
        if work == "count":
            self.add(*(f"mad.lo.u32 %acc, %acc, {r.getrandbits(20) | 1}, %t;" for _ in range(r.randint(1, 20))))
        elif work == "global":
            self.add(f"mad.wide.u32 %src, %t, 4, %x; ld.global.u32 %c, [%src+{4 * r.randrange(1024)}];")
            self.mix("%c")
        elif work == "shared":
            at = self.area(4 * self.p.threads)
            self.add(f"mov.u32 %c, area; mad.lo.u32 %c, %t, 4, %c; st.shared.u32 [%c+{at}], %acc;")
        self.add(f"barrier.cluster.wait{r.choice(['', '.acquire'])}{aligned};")

    def wait(self, at: int, parity: int = 0, all_blocks: bool = True) -> None:
        """Wait for a phase of this block's mbarrier; acquire.cluster."""
        label, how = self.label(), self.r.choice(["try", "try", "test"])
        order = ".acquire.cluster" if all_blocks else ""
        self.add(f"{label}: mbarrier.{how}_wait.parity{order}.shared::cta.b64 %q, [bars+{at}], {parity};")
        self.add(f"@!%q bra {label};")

    def own(self, at: int, stride: int) -> None:
        """Set %a to this thread's place in this block's `area`."""
        self.add(f"mov.u32 %a, area; add.u32 %a, %a, {at}; mad.lo.u32 %a, %t, {stride}, %a;")

    def own16(self, at: int) -> None:
        """Make this thread's 16 bytes of this block part of the result."""
        self.own(at, 16)
        self.add("ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [%a];")
        self.mix("%r0", "%r1", "%r2", "%r3")


_ACCESSES = {
    "b8": "%r0", "b16": "%s0", "b32": "%r0", "b64": "%d0", "v2.b8": "{%s0, %s1}", "v4.b8": "{%s0, %s1, %s2, %s3}",
    "v2.b16": "{%s0, %s1}", "v4.b16": "{%s0, %s1, %s2, %s3}", "v2.b32": "{%r0, %r1}",
    "v4.b32": "{%r0, %r1, %r2, %r3}", "v2.b64": "{%d0, %d1}",
}  # fmt: skip


def _store(k: _Kernel) -> None:
    at = k.area(16 * k.p.threads)
    k.value()
    k.add(*(f"cvt.u16.u32 %s{i}, %r{i};" for i in range(4)))
    k.peer()
    space, to = k.remote(at, 16)
    form = k.r.choice(list(_ACCESSES))
    strong = k.r.choice(["", "", ".weak", ".relaxed.cluster"]) if "v" not in form else ""
    k.add(f"st{strong}{space}.{form} [{to}], {_ACCESSES[form]};")
    k.sync()
    k.own16(at)


def _load(k: _Kernel) -> None:
    at = k.area(16 * k.p.threads)
    k.value()
    k.own(at, 16)
    k.add("st.shared.v4.u32 [%a], {%r0, %r1, %r2, %r3};")
    k.sync()
    for _ in range(k.r.randint(1, 2)):
        k.peer()
        space, to = k.remote(at, 16)
        form = k.r.choice(list(_ACCESSES))
        strong = k.r.choice(["", "", ".weak", ".relaxed.cluster"]) if "v" not in form else ""
        k.add(f"ld{strong}{space}.{form} {_ACCESSES[form]}, [{to}];")
        for x in _ACCESSES[form].strip("{}").split(", "):
            if x[1] == "d":
                k.mix64(x)
            else:
                k.add(f"cvt.u32.u16 %c, {x};" if x[1] == "s" else f"mov.u32 %c, {x};")
                k.mix("%c")


_REDUCTIONS = (
    "min.u32", "min.s32", "max.u32", "max.s32", "add.u32", "add.s32", "add.u64", "inc.u32", "dec.u32", "and.b32",
    "or.b32", "xor.b32",
)  # fmt: skip
"""Others of 64 bits are not atomic in another block (`lab.measure.remote_atomics`)."""


def _counted(k: _Kernel, at: int, places: int) -> None:
    """Make this block's counters part of the result."""
    k.add(f"rem.u32 %c, %t, {places}; mov.u32 %a, area; add.u32 %a, %a, {at}; mad.lo.u32 %a, %c, 8, %a;")
    k.add("ld.shared.u64 %d0, [%a];")
    k.mix64("%d0")


def _reduce(k: _Kernel) -> None:
    places, op = k.r.choice([1, 3, 8, 32]), k.r.choice(_REDUCTIONS)
    at = k.area(8 * places)
    k.value()
    k.peer()
    k.add(f"rem.u32 %c, %t, {places};")
    space, to = k.remote(at, 8, "%c")
    value = "%d0" if "64" in op else "%r0"
    if op[:3] in {"inc", "dec"}:  # one bound: they commute
        k.add(f"mov.u32 %r0, {k.r.choice([5, 100, 0xFFFFFFFF])};")
    order = k.r.choice([".relaxed", ".release", ".acquire", ".acq_rel", ""])
    if k.r.random() < 0.5 and order in {"", ".relaxed", ".release"}:
        k.add(f"red{order}.cluster{space}.{op} [{to}], {value};")
    else:
        into = "%d3" if "64" in op else "%r3"
        k.add(f"atom{order}.cluster{space}.{op} {into}, [{to}], {value};")
    k.sync()
    _counted(k, at, places)


def _swap(k: _Kernel) -> None:
    """Swap words that only one thread uses, and add by a loop of `cas` where all do."""
    at, sum_at = k.area(8 * k.p.threads), k.area(8)
    k.value()
    k.peer()
    space, to = k.remote(at, 8)
    if k.r.random() < 0.5:
        wide = k.r.random() < 0.5
        old, new, kind = ("%d1", "%d2", "b64") if wide else ("%r1", "%r2", "b32")
        k.add(f"ld{space}.{kind} {old}, [{to}]; and.b32 %c, %t, 1;")
        k.add("cvt.u64.u32 %d3, %c; add.u64 %d1, %d1, %d3;" if wide else "add.u32 %r1, %r1, %c;")
        k.add(f"atom.cluster{space}.cas.{kind} {old}, [{to}], {old}, {new};")
    else:
        wide = k.r.random() < 0.5
        old, new, kind = ("%d1", "%d2", "b64") if wide else ("%r1", "%r2", "b32")
        k.add(f"atom.cluster{space}.exch.{kind} {old}, [{to}], {new};")
    (k.mix64 if wide else k.mix)(old)
    k.peer("%w")
    space, to = k.remote(sum_at, 0)
    out, again = k.label(), k.label()
    k.add(f"@!%lead bra {out};", f"{again}: ld.relaxed.cluster{space}.u32 %r1, [{to}]; add.u32 %r2, %r1, %r0;")
    k.add(f"atom.acq_rel.cluster{space}.cas.b32 %r3, [{to}], %r1, %r2; setp.ne.u32 %p, %r1, %r3; @%p bra {again};")
    k.add(f"{out}:")
    k.sync()
    _counted(k, sum_at, 1)


def _special(k: _Kernel) -> None:
    for name in _SPECIAL:
        k.add(f"mov.u32 %c, {name};")
        k.mix("%c")
    k.add("mov.pred %p, %is_explicit_cluster; selp.u32 %c, 3, 7, %p;")
    k.mix("%c")
    k.peer()
    space, to = k.remote(0, 4)
    k.add(f"getctarank{space}.{'u32' if to == '%b' else 'u64'} %c, {to};")
    k.mix("%c")
    k.add("mov.u64 %g, area; cvta.shared.u64 %g, %g; getctarank.u64 %c, %g;")
    k.mix("%c")
    k.add("isspacep.shared::cluster %p, %g; isspacep.shared::cta %q, %g; selp.u32 %c, 3, 7, %p;")
    k.mix("%c")


def _arrive(k: _Kernel) -> None:
    """Store, and arrive at the peer's mbarrier."""
    how = k.r.choice(["all", "count", "lead", "fence"])
    times = k.r.choice([2, 3, 7]) if how == "count" else 1
    at, bar = k.area(16 * k.p.threads), k.bar((k.p.warps if how == "lead" else k.p.threads) * times)
    k.value()
    k.peer("%w" if how == "lead" else None)
    space, to = k.remote(at, 16)
    k.add(f"st{space}.v4.u32 [{to}], {{%r0, %r1, %r2, %r3}};")
    space, to = k.remote_bar(bar)
    order, guard = ".release.cluster", ""
    if how == "lead":
        k.add("bar.warp.sync -1;")
        guard = "@%lead "
    elif how == "fence":
        k.add("fence.acq_rel.cluster;")
        order = ".relaxed.cluster"
    count = f", {times}" if how == "count" else ""
    k.add(f"{guard}mbarrier.arrive{order}{space}.b64 _, [{to}]{count};")
    k.wait(bar)
    k.own16(at)


def _flag(k: _Kernel) -> None:
    """Store, and release a flag of the peer's."""
    at, flag = k.area(16 * k.p.threads), k.area(4 * k.p.threads)
    k.own(flag, 4)
    k.add("st.shared.u32 [%a], 0;")
    k.sync()
    k.value()
    k.peer()
    space, to = k.remote(at, 16)
    k.add(f"st{space}.v2.u64 [{to}], {{%d0, %d1}};")
    space, to = k.remote(flag, 4)
    k.add(f"st.release.cluster{space}.u32 [{to}], 1;")
    k.own(flag, 4)
    label = k.label()
    k.add(f"{label}: ld.acquire.cluster.shared.u32 %c, [%a]; setp.ne.u32 %p, %c, 1; @%p bra {label};")
    k.own16(at)


_ASYNC = {
    "b32": (4, "%r0"), "u32": (4, "%r0"), "b64": (8, "%d0"), "s64": (8, "%d0"), "v2.b32": (8, "{%r0, %r1}"),
    "v4.b32": (16, "{%r0, %r1, %r2, %r3}"), "v2.b64": (16, "{%d0, %d1}"), "v2.u32": (8, "{%r0, %r1}"),
}  # fmt: skip


def _expect(k: _Kernel, size: int, how: str, bar: int, space: str, to: str) -> None:
    """Expect bytes: of this thread at the peer's mbarrier, or of all threads at this block's."""
    if how == "remote":
        k.add(f"mbarrier.arrive.expect_tx.release.cluster{space}.b64 _, [{to}], {size};")
    elif how == "two":
        k.add(f"mbarrier.expect_tx.relaxed.cluster{space}.b64 [{to}], {size};")
    else:
        k.add(f"@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars+{bar}], {size * k.p.threads};")


def _store_async(k: _Kernel) -> None:
    how, form = k.r.choice(["remote", "own", "two"]), k.r.choice(list(_ASYNC))
    size, value = _ASYNC[form]
    at, bar = k.area(16 * k.p.threads), k.bar(1 if how == "own" else k.p.threads)
    k.value()
    k.peer()
    space, to = k.remote(at, 16, generic=False)
    wide = to == "%h"
    k.add(f"mov.u32 %m, bars; add.u32 %m, %m, {bar};")
    # Both addresses have one width.
    k.add(
        "cvt.u64.u32 %mg, %m; mapa.shared::cluster.u64 %mg, %mg, %peer;"
        if wide
        else "mapa.shared::cluster.u32 %m, %m, %peer;"
    )
    signal = "%mg" if wide else "%m"
    _expect(k, size, how, bar, space, signal)
    k.add(f"st.async.shared::cluster.mbarrier::complete_tx::bytes.{form} [{to}], {value}, [{signal}];")
    if how == "two":
        k.add(f"mbarrier.arrive.release.cluster.shared::cluster.b64 _, [{signal}];")
    k.wait(bar)
    k.own16(at)


_ASYNC_REDUCTIONS = (
    "inc.u32", "dec.u32", "min.u32", "min.s32", "max.u32", "max.s32", "and.b32", "or.b32", "xor.b32", "add.u32",
    "add.s32", "add.u64",
)  # fmt: skip


def _reduce_async(k: _Kernel) -> None:
    how, op, places = k.r.choice(["remote", "own", "two"]), k.r.choice(_ASYNC_REDUCTIONS), k.r.choice([1, 3, 8, 32])
    size = 8 if "64" in op else 4
    at, bar = k.area(8 * places), k.bar(1 if how == "own" else k.p.threads)
    k.value()
    k.peer()
    k.add(f"rem.u32 %c, %t, {places}; mov.u32 %a, area; add.u32 %a, %a, {at}; mad.lo.u32 %a, %c, 8, %a;")
    k.add(f"mapa.shared::cluster.u32 %b, %a, %peer; mov.u32 %m, bars; add.u32 %m, %m, {bar};")
    k.add("mapa.shared::cluster.u32 %m, %m, %peer;")
    if op[:3] in {"inc", "dec"}:
        k.add(f"mov.u32 %r0, {k.r.choice([5, 100, 0xFFFFFFFF])};")
    _expect(k, size, how, bar, ".shared::cluster", "%m")
    k.add(
        f"red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.{op} "
        f"[%b], {'%d0' if size == 8 else '%r0'}, [%m];"
    )
    if how == "two":
        k.add("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%m];")
    k.wait(bar)
    _counted(k, at, places)


def _bulk(k: _Kernel) -> None:
    """Copy a part of this block's memory to the peer's."""
    parts = [16 * k.r.randint(1, k.p.threads // 4) for _ in range(k.r.randint(1, 3))]
    size = sum(parts)
    source, at, bar = k.area(16 * k.p.threads), k.area(max(size, 16 * k.p.threads)), k.bar(1)
    k.value()
    k.own(source, 16)
    k.add("st.shared.v4.u32 [%a], {%r0, %r1, %r2, %r3};", "fence.proxy.async.shared::cta;", "bar.sync 0;")
    k.add(f"@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars+{bar}], {size};")
    k.peer(" ")
    k.add(f"mov.u32 %a, area; mapa.shared::cluster.u32 %b, %a, %peer; mov.u32 %m, bars; add.u32 %m, %m, {bar};")
    k.add("mapa.shared::cluster.u32 %m, %m, %peer;")
    place = 0
    for part in parts:
        first = 16 * k.r.randint(0, k.p.threads - part // 16)
        k.add(
            "@%first cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
            f"[%b+{at + place}], [%a+{source + first}], {part}, [%m];"
        )
        place += part
    k.wait(bar)
    k.own16(at)


def _multicast(k: _Kernel) -> None:
    """Let some blocks copy a part of the array to some blocks."""
    size = 16 * k.r.choice([1, 2, 5, 8, 16])
    at, bar = k.area(max(size * k.p.ranks, 16 * k.p.threads)), k.bar(1)
    masks = [k.r.randrange(1 << k.p.ranks) if k.r.random() < 0.8 else 0 for _ in range(k.p.ranks)]
    for rank in range(k.p.ranks):
        total = size * sum(mask >> rank & 1 for mask in masks)
        k.add(f"setp.eq.and.u32 %p, %rank, {rank}, %first;")
        k.add(f"@%p mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars+{bar}], {total};")
        if masks[rank]:
            k.add(
                f"mul.wide.u32 %src, %n, 256; add.u64 %src, %src, %x; mov.u16 %s0, {masks[rank]};",
                "@%p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                f"[area+{at + size * rank}], [%src+{16 * k.r.randrange(64)}], {size}, [bars+{bar}], %s0;",
            )
    k.wait(bar)
    k.own16(at)


def _ring(k: _Kernel) -> None:
    """Let one block bring parts of the array to all, who release each stage to it."""
    r, p = k.r, k.p
    producer, stages, rounds = r.randrange(p.ranks), r.randint(1, 3), r.randint(2, 7)
    size, by_lead, fenced = 16 * r.choice([1, 4, 8, 16]), r.random() < 0.5, r.random() < 0.3
    at = k.area(size * stages)
    full = [k.bar(1) for _ in range(stages)]
    empty = [k.bar(p.ranks * (p.warps if by_lead else p.threads)) for _ in range(stages)]
    every = (1 << p.ranks) - 1

    def produce(i: int) -> None:
        k.add(
            f"setp.eq.and.u32 %p, %rank, {producer}, %first; mov.u16 %s0, {every};",
            f"mul.wide.u32 %src, %n, 64; add.u64 %src, %src, %x; add.u64 %src, %src, {i * 256};",
            "@%p cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
            f"[area+{at + i % stages * size}], [%src], {size}, [bars+{full[i % stages]}], %s0;",
        )

    for i in range(min(stages, rounds)):
        produce(i)
    k.add(f"mov.u32 %peer, {producer};")
    for i in range(rounds):
        stage, parity = i % stages, i // stages & 1
        k.add(f"@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [bars+{full[stage]}], {size};")
        k.wait(full[stage], parity, r.random() < 0.5)
        k.add(f"mad.lo.u32 %c, %t, 7, {i}; rem.u32 %c, %c, {size // 4}; mov.u32 %a, area; mad.lo.u32 %a, %c, 4, %a;")
        k.add(f"ld.shared.u32 %v, [%a+{at + stage * size}];")
        k.mix("%v")
        if fenced:
            k.add("fence.proxy.async.shared::cta;")
        space, to = k.remote_bar(empty[stage])
        if by_lead:
            k.add("bar.warp.sync -1;", f"@%lead mbarrier.arrive.release.cluster{space}.b64 _, [{to}];")
        else:
            k.add(f"mbarrier.arrive.release.cluster{space}.b64 _, [{to}];")
        if i + stages < rounds:
            out = k.label()
            k.add(f"setp.ne.u32 %p, %rank, {producer}; @%p bra {out}; setp.ne.u32 %p, %w, 0; @%p bra {out};")
            k.wait(empty[stage], parity)
            produce(i + stages)
            k.add(f"{out}:")


_PHASES = {
    "store": _store, "load": _load, "reduce": _reduce, "swap": _swap, "special": _special, "arrive": _arrive,
    "flag": _flag, "store_async": _store_async, "reduce_async": _reduce_async, "bulk": _bulk,
    "multicast": _multicast, "ring": _ring,
}  # fmt: skip
"""Families of phases."""


def _made(p: Program) -> _Kernel:
    k = _Kernel(p)
    k.sync()
    for name in p.phases:
        k.add(f"// {name}")
        _PHASES[name](k)
    k.sync()
    k.add("bar.sync 0;")  # what `sync` stores between arrival and wait
    return k


def _words(p: Program) -> int:
    """Words of shared memory that are part of the result, a multiple of the threads."""
    return max(-(-_made(p).size // (4 * p.threads)), 1) * p.threads


def text(p: Program) -> str:
    """Return the kernel."""
    k, words = _made(p), _words(p)
    x, y, z = p.shape
    sizes = {"words": words, "threads": p.threads, "step": 4 * p.threads}
    head = _HEAD.format(
        declared=f".reqnctapercluster {x}, {y}, {z}" if p.declared else "", area=4 * words,
        bars=max(len(k.counts), 1), row=4 * (words + p.threads), **sizes,
    )  # fmt: skip
    inits = [f"@%first mbarrier.init.shared.b64 [bars+{8 * i}], {count};" for i, count in enumerate(k.counts)]
    inits += ["fence.mbarrier_init.release.cluster;", "fence.proxy.async;"]
    return "\n".join([head + "\n".join(inits), *k.lines, _TAIL.format(**sizes)])


def arrays(p: Program, seed: int) -> tuple[Array, Array]:
    """Return what a kernel reads and what it changes."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 1 << 32, WORDS, np.uint32)
    return x, rng.integers(0, 1 << 32, (prod(p.grid), _words(p) + p.threads), np.uint32)


def digest(array: Array) -> str:
    """Return what stands for an array in the recording."""
    return hashlib.sha256(array.tobytes()).hexdigest()[:16]


@cache
def _driver() -> Driver:
    return Driver()


def on_gpu(seed: int) -> Array:
    """Return what the GPU leaves."""
    p = drawn(seed)
    x, y = arrays(p, seed)
    driver = _driver()
    place = {"x": driver.place(x), "y": driver.place(y)}
    function = driver.load(text(p), ["k"])["k"]
    arguments = [argument_bytes(place, name) for name in "xy"]
    driver.launch(function, p.grid, [p.threads], arguments, cluster=None if p.declared else p.ranks)
    driver.synchronise(TOO_LONG)
    found = driver.fetch(place["y"], y)
    for address in place.values():
        driver.free(address)
    return found


def simulated(seed: int, **options: Any) -> Array:
    """Return what warpmma leaves; the options are those of a launch."""
    import warpmma as wm

    p = drawn(seed)
    x, y = arrays(p, seed)
    cluster = None if p.declared else p.shape
    wm.ptx.load(text(p))["k"].launch(wm.Device("sm_90"), p.grid, p.threads, [x, y], cluster=cluster, **options)
    return y


def main(arguments: list[str] | None = None) -> int:
    """Record digests of seeds; 1 if a result differs from warpmma's."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0, help="seed (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=800, help="how many (default: %(default)s)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="digests, JSON")
    parser.add_argument("--compare", action="store_true", help="run warpmma, too")
    options = parser.parse_args(arguments)
    found, differ = [], []
    for seed in range(options.first, options.first + options.seeds):
        try:
            y = on_gpu(seed)
        except DriverError as error:
            print(f"seed {seed}: {error}: {drawn(seed)}", flush=True)
            return 1
        found.append(digest(y))
        if options.compare and (simulated(seed, hazards="off") != y).any():
            differ.append(seed)
            print(f"seed {seed}: differs: {drawn(seed)}", flush=True)
        if len(found) % 100 == 0:
            print(f"{len(found)} of {options.seeds}, {len(differ)} differ", flush=True)
    if options.out:
        about = {**Driver.about(), "source": "python -m lab.record.cluster_programs", "first": options.first}
        options.out.write_text(json.dumps({**about, "digests": found}, indent=0))
    return int(bool(differ))


if __name__ == "__main__":
    sys.exit(main())
