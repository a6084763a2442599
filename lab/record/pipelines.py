"""Record the results of a GPU for random pipelines of copies: `python -m lab.record.pipelines --help`.

A seed makes a kernel in PTX that is correct and deterministic: one warp brings parts of an array into the stages of a
ring in shared memory, others read them when an mbarrier says that they are there, and release the stage by another
mbarrier. Random are the stages, iterations and bytes; how copies are cut, and by whom each part is issued; copies in
bulk or `cp.async` that arrive; who arrives, and with which form; waits by parity or by state, `try_wait` or
`test_wait`; and how results leave: stores, copies in bulk, or reductions. `arrays` makes the inputs. Needs the driver,
and a GPU of sm_90 or later.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lab.gpu.driver import Driver, DriverError, argument_bytes

Array = npt.NDArray[Any]

WARP = 32
TOO_LONG = 20.0
"""Seconds after which a launch counts as hung."""
_HEAD = """.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y) {{
.reg .pred %p, %q, %first;
.reg .b32 %t, %l, %w, %at, %from, %v, %acc, %n;
.reg .b64 %x, %y, %src, %out, %token;
.shared .align 128 .b8 ring[{ring}];
.shared .align 128 .b8 result[{result}];
.shared .align 8 .b64 full[{stages}];
.shared .align 8 .b64 empty[{stages}];
ld.param.u64 %x, [x]; ld.param.u64 %y, [y];
mov.u32 %t, %tid.x; and.b32 %l, %t, 31; shr.u32 %w, %t, 5;
mov.u32 %n, %ctaid.x; mul.lo.u32 %at, %n, {bytes_in}; cvt.u64.u32 %src, %at; add.u64 %x, %x, %src;
mul.lo.u32 %at, %n, {bytes_out}; cvt.u64.u32 %out, %at; add.u64 %y, %y, %out;
setp.eq.u32 %first, %t, 0; mov.u32 %acc, 17;
"""


class Pipeline(NamedTuple):
    """The parameters of one kernel."""

    stages: int
    rounds: int
    consumers: int
    size: int  # bytes of a stage
    parts: tuple[int, ...]  # bytes of each copy
    loads: str  # "bulk", "lanes" (each lane copies a part), or "cp.async"
    noinc: bool
    expects: str  # "at once", "first", "by part"
    releases: str  # "all", "one", "count", "relaxed fence"
    waits: str  # "try", "test", "state"
    leaves: str  # "st", "bulk", "add", "max"
    drops: bool
    blocks: int


def drawn(seed: int) -> Pipeline:
    """Draw the parameters of a seed."""
    r = random.Random(seed)
    loads = r.choice(["bulk", "bulk", "lanes", "cp.async"])
    if loads == "bulk":
        parts = tuple(16 * r.choice([1, 2, 3, 5, 8, 16, 31]) for _ in range(r.randint(1, 4)))
    else:
        parts = (r.choice([16, 16, 32] if loads == "lanes" else [4, 8, 16]),) * WARP
    size = -(-sum(parts) // 128) * 128
    return Pipeline(
        stages=r.randint(1, 4), rounds=r.randint(1, 9), consumers=r.randint(1, 3), size=size, parts=parts, loads=loads,
        noinc=r.random() < 0.5, expects=r.choice(["at once", "first", "by part"]),
        releases=r.choice(["all", "one", "count", "relaxed fence"]), waits=r.choice(["try", "test", "state"]),
        leaves=r.choice(["st", "bulk", "add", "max"]), drops=r.random() < 0.2, blocks=r.choice([1, 2, 5]),
    )  # fmt: skip


def text(p: Pipeline) -> str:
    """Return the kernel."""
    threads = WARP * (1 + p.consumers)
    arrivals = {"all": WARP, "one": 1, "count": 2, "relaxed fence": WARP}[p.releases] * p.consumers
    in_full = 1 if p.loads != "cp.async" else WARP + (0 if p.noinc else 1)
    sizes = {"ring": p.stages * p.size, "result": 4 * threads, "bytes_in": p.rounds * p.size}
    lines = [_HEAD.format(stages=p.stages, bytes_out=4 * (threads + WARP), **sizes)]
    lines += [
        f"@%first mbarrier.init.shared.b64 [full+{8 * s}], {in_full if p.loads == 'cp.async' else 1};\n"
        f"@%first mbarrier.init.shared.b64 [empty+{8 * s}], {arrivals};"
        for s in range(p.stages)
    ]
    lines.append("fence.proxy.async.shared::cta; bar.sync 0; setp.ne.u32 %p, %w, 0; @%p bra CONSUME;")
    for i in range(p.rounds):
        lines += _produced(p, i)
    lines.append("bra END;\nCONSUME:")
    for i in range(p.rounds):
        lines += _consumed(p, i)
    lines.append("END:\nbar.sync 0;")
    lines += _left(p, threads)
    return "\n".join([*lines, "ret;", "}", ""])


def _produced(p: Pipeline, i: int) -> list[str]:
    stage, turn = i % p.stages, i // p.stages
    full, empty, ring = f"[full+{8 * stage}]", f"[empty+{8 * stage}]", stage * p.size
    lines = [
        f"PW{i}: mbarrier.try_wait.parity.shared.b64 %q, {empty}, {(turn & 1) ^ 1}; @!%q bra PW{i};",
        f"add.u64 %src, %x, {i * p.size};",
    ]
    if p.loads == "cp.async":
        part = p.parts[0]
        kind = "cg" if part == 16 else "ca"
        lines += [
            f"mov.u32 %at, ring; add.u32 %at, %at, {ring}; mad.lo.u32 %at, %l, {part}, %at;",
            f"mad.wide.u32 %src, %l, {part}, %src;",
            f"cp.async.{kind}.shared.global [%at], [%src], {part};",
            f"cp.async.mbarrier.arrive{'.noinc' * p.noinc}.shared.b64 {full};",
        ]
        # Without .noinc the phase expects what arrives: it needs arrivals of its own.
        if not p.noinc:
            lines += [f"mbarrier.arrive.shared.b64 %token, {full};", f"@%first mbarrier.arrive.shared.b64 _, {full};"]
        return lines
    total = sum(p.parts)
    expect = f"@%first mbarrier.arrive.expect_tx.shared.b64 _, {full}, {total};"
    if p.expects == "at once":
        lines.append(expect)
    if p.loads == "lanes":
        part = p.parts[0]
        if p.expects == "by part":
            lines += [f"mbarrier.expect_tx.relaxed.cta.shared.b64 {full}, {part};", "bar.warp.sync -1;"]
        if p.expects != "first":
            lines.append("bar.warp.sync -1;")
        lines += [
            f"mov.u32 %at, ring; add.u32 %at, %at, {ring}; mad.lo.u32 %at, %l, {part}, %at;",
            f"mad.wide.u32 %src, %l, {part}, %src;",
            f"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%at], [%src], {part}, {full};",
        ]
    else:
        place = 0
        for part in p.parts:
            if p.expects == "by part":
                lines.append(f"@%first mbarrier.expect_tx.relaxed.cta.shared.b64 {full}, {part};")
            lines.append(
                "@%first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                f"[ring+{ring + place}], [%src+{place}], {part}, {full};"
            )
            place += part
    if p.expects == "by part":
        lines.append(f"bar.warp.sync -1; @%first mbarrier.arrive.shared.b64 _, {full};")
    elif p.expects == "first":
        lines.append(expect)
    return lines


def _consumed(p: Pipeline, i: int) -> list[str]:
    stage, turn = i % p.stages, i // p.stages
    full, empty, ring = f"[full+{8 * stage}]", f"[empty+{8 * stage}]", stage * p.size
    words = sum(p.parts) // 4
    wait = "test_wait" if p.waits == "test" else "try_wait"
    lines = [
        f"CW{i}: mbarrier.{wait}.parity.shared.b64 %q, {full}, {turn & 1}; @!%q bra CW{i};",
        f"mad.lo.u32 %at, %t, 7, {i}; rem.u32 %at, %at, {words}; shl.b32 %at, %at, 2;",
        f"mov.u32 %from, ring; add.u32 %from, %from, %at; ld.shared.u32 %v, [%from+{ring}];",
        "mad.lo.u32 %acc, %acc, 31, %v;",
    ]
    if p.releases == "all":
        lines.append(f"mbarrier.arrive.shared.b64 %token, {empty};")
    elif p.releases == "one":
        lines.append(f"bar.warp.sync -1; setp.eq.u32 %q, %l, 0; @%q mbarrier.arrive.shared.b64 %token, {empty};")
    elif p.releases == "count":
        lines.append(
            f"bar.warp.sync -1; setp.eq.u32 %q, %l, 5;\n@%q mbarrier.arrive.release.cta.shared.b64 %token, {empty}, 2;"
        )
    else:
        lines.append(f"fence.acq_rel.cta; mbarrier.arrive.relaxed.cta.shared.b64 %token, {empty};")
    if p.waits == "state" and p.releases == "all":
        # A second look, at the phase that its own arrival belongs to: it ends when the others have arrived.
        lines.append(f"CS{i}: mbarrier.test_wait.shared.b64 %q, {empty}, %token; @!%q bra CS{i};")
    return lines


def _left(p: Pipeline, threads: int) -> list[str]:
    """Return how results leave."""
    lines = ["mad.wide.u32 %out, %t, 4, %y;"]
    if p.drops:  # a phase of its own, whose arrivals are dropped one by one
        lines += [
            "@%first mbarrier.inval.shared.b64 [full]; bar.sync 0;",
            f"@%first mbarrier.init.shared.b64 [full], {threads}; bar.sync 0;",
            "setp.ne.u32 %q, %w, 0;",
            "@%q mbarrier.arrive_drop.shared.b64 %token, [full]; @!%q mbarrier.arrive.shared.b64 %token, [full];",
            "DW: mbarrier.test_wait.parity.shared.b64 %q, [full], 0; @!%q bra DW;",
            "setp.ne.u32 %q, %w, 0; @%q bra DROPPED;",
            "mbarrier.arrive.shared.b64 %token, [full];",
            "DV: mbarrier.test_wait.parity.shared.b64 %q, [full], 1; @!%q bra DV;",
            "add.u32 %acc, %acc, 1;",
            "DROPPED:",
        ]
    if p.leaves == "st":
        return [*lines, "st.global.u32 [%out], %acc;"]
    size = 4 * threads
    how = {"bulk": "", "add": ".add.u32", "max": ".max.u32"}[p.leaves]
    name = "cp.async.bulk" if p.leaves == "bulk" else "cp.reduce.async.bulk"
    return [
        *lines,
        "mov.u32 %at, result; mad.lo.u32 %at, %t, 4, %at; st.shared.u32 [%at], %acc;",
        "fence.proxy.async.shared::cta; bar.sync 0;",
        f"@%first {name}.global.shared::cta.bulk_group{how} [%y], [result], {size};",
        "@%first cp.async.bulk.commit_group;",
        "@%first cp.async.bulk.wait_group 0;",
    ]


def arrays(p: Pipeline, seed: int) -> tuple[Array, Array]:
    """Return what a kernel reads and what it changes."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 1 << 32, p.blocks * p.rounds * p.size // 4, np.uint32)
    return x, rng.integers(0, 1 << 32, p.blocks * (p.consumers + 2) * WARP, np.uint32)


def digest(array: Array) -> str:
    """Return what stands for an array in the recording."""
    return hashlib.sha256(array.tobytes()).hexdigest()[:16]


@cache
def _driver() -> Driver:
    return Driver()


def on_gpu(number: int) -> Array:
    """Return what the GPU leaves."""
    p = drawn(number)
    x, y = arrays(p, number)
    driver = _driver()
    place = {"x": driver.place(x), "y": driver.place(y)}
    function = driver.load(text(p), ["k"])["k"]
    driver.launch(function, [p.blocks], [WARP * (1 + p.consumers)], [argument_bytes(place, name) for name in "xy"])
    driver.synchronise(TOO_LONG)
    found = driver.fetch(place["y"], y)
    for address in place.values():
        driver.free(address)
    return found


def simulated(number: int, **options: Any) -> Array:
    """Return what warpmma leaves; the options are those of a launch."""
    import warpmma as wm

    p = drawn(number)
    x, y = arrays(p, number)
    wm.ptx.load(text(p))["k"].launch(wm.Device("sm_90"), p.blocks, WARP * (1 + p.consumers), [x, y], **options)
    return y


def main(arguments: list[str] | None = None) -> int:
    """Record digests of seeds; 1 if a result differs from warpmma's."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=600, help="how many (default: %(default)s)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="digests, JSON")
    options = parser.parse_args(arguments)
    found, differ = [], []
    for seed in range(options.seeds):
        try:
            y = on_gpu(seed)
        except DriverError as error:
            print(f"seed {seed}: {error}: {drawn(seed)}", flush=True)
            return 1
        found.append(digest(y))
        if (simulated(seed, hazards="off") != y).any():
            differ.append(seed)
            print(f"seed {seed}: differs: {drawn(seed)}", flush=True)
        if seed % 100 == 99:
            print(f"{seed + 1} of {options.seeds}, {len(differ)} differ", flush=True)
    if options.out:
        about = {**Driver.about(), "source": "python -m lab.record.pipelines"}
        options.out.write_text(json.dumps({**about, "digests": found}, indent=0))
    return int(bool(differ))


if __name__ == "__main__":
    sys.exit(main())
