"""Measure what an arrival at another block's mbarrier says: `python -m lab.measure.remote_releases --help`.

Rank 0 of each cluster of two multicasts a buffer again and again. All threads of both blocks read a word of it, and
arrive at the mbarrier of rank 0, which waits there before it overwrites the buffer. A word that is not the one of its
turn was overwritten before it was read. The arrival has the scope .cta or .cluster, is .relaxed or not, or is left
out; the value is used before the arrival or after it. Readers come late, and their loads have bank conflicts. Without
arrivals rank 0 runs ahead until the bytes of an mbarrier overflow, and the GPU traps.

Needs the driver, and a GPU of sm_90 or later.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from lab.gpu.driver import Driver, DriverError, argument_bytes

__all__ = ["CASES", "text"]

BLOCKS, THREADS, TURNS, BYTES = 132, 256, 4000, 1024
ORDERS = (".release.cta", ".release.cluster", ".relaxed.cta", ".relaxed.cluster")
CASES = [*((order, used) for order in ORDERS for used in ("before", "after")), ("", "before")]
"""The order of the arrival, "" for none, and when the value is used."""
_KERNEL = """.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y) {{
.reg .b16 %h; .reg .b32 %t, %n, %v, %w, %bad, %far, %turn, %a, %i; .reg .b64 %x, %y, %g; .reg .pred %p, %q, %z, %lead;
.shared .align 128 .b8 buffer[{bytes}]; .shared .align 8 .b64 full; .shared .align 8 .b64 empty;
ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; mov.u32 %t, %tid.x; mov.u32 %a, %cluster_ctarank;
setp.eq.u32 %lead, %t, 0; setp.eq.and.u32 %z, %a, 0, %lead; mov.b16 %h, 3; mov.u32 %bad, 0; mov.u32 %n, 0;
@%lead mbarrier.init.shared.b64 [full], 1; @%lead mbarrier.init.shared.b64 [empty], {all};
@%lead fence.mbarrier_init.release.cluster; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
and.b32 %i, %t, 31; shr.u32 %a, %t, 5; mad.lo.u32 %i, %i, 8, %a;  // 8 lanes of a bank
mov.u32 %far, empty; mapa.shared::cluster.u32 %far, %far, 0;
TURN: and.b32 %turn, %n, 1;
@%lead mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], {bytes};
@!%z bra READ;
setp.eq.u32 %p, %n, 0; @%p bra COPY; xor.b32 %w, %turn, 1;
EMPTY: {waits}
COPY: and.b32 %w, %n, 15; mul.lo.u32 %w, %w, {bytes}; cvt.u64.u32 %g, %w; add.u64 %g, %x, %g;
mov.u32 %a, buffer; mov.u32 %w, full;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%a], [%g], {bytes}, [%w], %h;
READ: mbarrier.try_wait.parity.shared::cta.b64 %q, [full], %turn; @!%q bra READ;
and.b32 %w, %n, 3; mul.lo.u32 %w, %w, 200; @!%z nanosleep.u32 %w;
mov.u32 %a, buffer; mad.lo.u32 %a, %i, 4, %a; and.b32 %w, %n, 15; mad.lo.u32 %w, %w, 1000, %i;
ld.shared.u32 %v, [%a];
{first}
{second}
add.u32 %n, %n, 1; setp.lt.u32 %p, %n, {turns}; @%p bra TURN;
mov.u32 %a, %ctaid.x; mad.lo.u32 %a, %a, {threads}, %t; mad.wide.u32 %y, %a, 4, %y; st.global.u32 [%y], %bad;
barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned; ret; }}
"""


def text(case: tuple[str, str], turns: int = TURNS) -> str:
    """Return the kernel of a case."""
    order, used = case
    use = "setp.ne.u32 %q, %v, %w; @%q add.u32 %bad, %bad, 1;"
    arrive = f"mbarrier.arrive{order}.shared::cluster.b64 _, [%far];" if order else ""
    waits = "mbarrier.try_wait.parity.shared::cta.b64 %q, [empty], %w; @!%q bra EMPTY;" if order else ""
    first, second = (use, arrive) if used == "before" else (arrive, use)
    return _KERNEL.format(
        bytes=BYTES, all=2 * THREADS, waits=waits, first=first, second=second, turns=turns, threads=THREADS
    )


def main(arguments: list[str] | None = None) -> int:
    """Count the words that are not those of their turn, by case; 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--launches", type=int, default=20, help="of each case (default: %(default)s)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="counts by case, JSON")
    options = parser.parse_args(arguments)
    driver, found = Driver(), dict[str, list[int] | str]()
    x = np.arange(16, dtype=np.uint32)[:, None] * 1000 + np.arange(THREADS, dtype=np.uint32)
    like = np.zeros(BLOCKS * THREADS, np.uint32)
    place = {"x": driver.place(x), "y": driver.place(like)}
    for case in CASES:
        (function,) = driver.load(text(case), ["k"]).values()
        key = f"{case[0] or 'no arrival'}, used {case[1]}"
        wrong = 0
        try:
            for _ in range(options.launches):
                driver.launch(function, [BLOCKS], [THREADS], [argument_bytes(place, n) for n in "xy"], cluster=2)
                driver.synchronise(20)
                wrong += int(driver.fetch(place["y"], like).sum())
            found[key] = [wrong, options.launches * BLOCKS * THREADS * TURNS]
            print(f"{key}: {wrong} of {found[key][1]} words are of another turn", flush=True)
        except DriverError as error:  # without an arrival, a phase may be missed
            found[key] = str(error)
            print(f"{key}: {error}", flush=True)
            break
    if options.out:
        about = {**Driver.about(), "source": "python -m lab.measure.remote_releases"}
        options.out.write_text(json.dumps({**about, "found": found}, indent=0))
    return 0


if __name__ == "__main__":
    sys.exit(main())
