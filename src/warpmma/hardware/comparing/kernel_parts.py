"""Parts of the PTX kernels of `launched_cases`: parameters, places of blocks and lanes, memory that is copied.

Every kernel has `%lane` and `%block`, of 32 bits, and `%at`, of 64, which `pointed` sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...registers import LANES
from .launched_cases import ENTRY

__all__ = [
    "CHUNK", "CLUSTER_SYNC", "POLICY", "barrier_made", "barrier_waited", "dumped", "entry", "expected", "filled",
    "loaded", "pointed", "stored",
]  # fmt: skip

CHUNK = 16 * LANES
"""Bytes that a warp moves at once between global and shared memory."""

POLICY = "createpolicy.fractional.L2::evict_last.b64 %policy, 1.0;"
"""Makes the cache policy of an instruction that takes one."""

CLUSTER_SYNC = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
"""Waits for all threads of the cluster."""

_FOUR = "{%v0, %v1, %v2, %v3}"


def entry(
    parameters: Iterable[str], declared: Iterable[str], lines: Iterable[str], *, pairs: bool = False, structure: int = 0
) -> str:  # fmt: skip
    """Return an entry.

    Parameters
    ----------
    parameters : iterable of str
        Names of arrays, whose addresses they are.
    declared, lines : iterable of str
        Declarations, and the body.
    pairs : bool
        Whether blocks are in clusters of two.
    structure : int
        Bytes of one parameter `given` that has the addresses instead, if not 0.
    """
    names = list(parameters)
    given = ", ".join(f".param .u64 p_{x}" for x in names)
    body = "\n".join([*lines, "ret;", "}"])
    if structure:
        given = f".param .align 16 .b8 given[{structure}]"
        for i, x in enumerate(names):
            body = body.replace(f"[p_{x}]", f"[given+{8 * i}]")
    return "\n".join([
        f".visible .entry {ENTRY}({given}){' .reqnctapercluster 2' * pairs} {{",
        ".reg .b32 %lane, %block, %v<4>; .reg .b64 %at;", *declared,
        "mov.u32 %lane, %tid.x; mov.u32 %block, %ctaid.x;", body,
    ])  # fmt: skip


def pointed(parameter: str, block: int, lane: int = 0) -> str:
    """Point `%at` to this block's part of an array, and in it to this lane's; both in bytes."""
    more = f" mad.wide.u32 %at, %lane, {lane}, %at;" if lane else ""
    return f"ld.param.u64 %at, [p_{parameter}]; mad.wide.u32 %at, %block, {block}, %at;{more}"


def loaded(parameter: str, registers: Sequence[str], bits: int) -> list[str]:
    """Load a lane's registers from an array `[block, register, lane]`."""
    size = bits // 8
    return [
        pointed(parameter, len(registers) * LANES * size, size),
        *(f"ld.global.b{bits} {x}, [%at+{i * LANES * size}];" for i, x in enumerate(registers)),
    ]


def stored(parameter: str, registers: Sequence[str], bits: int) -> list[str]:
    """Store a lane's registers to an array `[block, register, lane]`."""
    size = bits // 8
    return [
        pointed(parameter, len(registers) * LANES * size, size),
        *(f"st.global.b{bits} [%at+{i * LANES * size}], {x};" for i, x in enumerate(registers)),
    ]


def filled(parameter: str, here: str, size: int) -> list[str]:
    """Fill shared memory at a register's address from an array `[block, size]`: multiples of `CHUNK`, by a warp."""
    lines = [pointed(parameter, size, 16)]
    for offset in range(0, size, CHUNK):
        lines += [f"ld.global.v4.b32 {_FOUR}, [%at+{offset}];", f"st.shared.v4.b32 [{here}+{offset}], {_FOUR};"]
    return lines


def dumped(parameter: str, here: str, size: int) -> list[str]:
    """Do the opposite of `filled`."""
    lines = [pointed(parameter, size, 16)]
    for offset in range(0, size, CHUNK):
        lines += [f"ld.shared.v4.b32 {_FOUR}, [{here}+{offset}];", f"st.global.v4.b32 [%at+{offset}], {_FOUR};"]
    return lines


_TRIES = 1 << 16  # of a wait that may not end


def barrier_made(*, pairs: bool = False) -> list[str]:
    """Make an mbarrier at `%bar`; copies see it, and what was written to shared memory. `%first` is lane 0."""
    return [
        ".shared .align 8 .b64 barrier; .reg .b32 %bar, %tries; .reg .pred %first, %ended;",
        "mov.u32 %bar, barrier; setp.eq.u32 %first, %lane, 0;",
        "@%first mbarrier.init.shared.b64 [%bar], 1;",
        f"fence.mbarrier_init.release.cluster; fence.proxy.async; {CLUSTER_SYNC if pairs else 'bar.sync 0;'}",
    ]


def expected(parameter: str, *, pairs: bool = False) -> list[str]:
    """Tell `%bar` to expect bytes, from an array `[block, lane]`."""
    return [
        ".reg .b32 %total;", *loaded(parameter, ["%total"], 32),
        "@%first mbarrier.arrive.expect_tx.shared.b64 _, [%bar], %total;", CLUSTER_SYNC if pairs else "bar.sync 0;",
    ]  # fmt: skip


def barrier_waited(parameter: str, *, pairs: bool = False, test: bool = False) -> list[str]:
    """Wait for the first phase of `%bar`, a limited time, and store whether it ended to an array `[block, lane]`.

    With `test` it spins, as GPUs before sm_90 must.
    """
    wait = "test_wait" if test else "try_wait"
    return [
        "mov.u32 %tries, 0;", "again:", f"mbarrier.{wait}.parity.shared.b64 %ended, [%bar], 0;",
        "@%ended bra done;", f"add.u32 %tries, %tries, 1; setp.lt.u32 %ended, %tries, {_TRIES}; @%ended bra again;",
        "done:", "selp.u32 %tries, 1, 0, %ended;",
        *stored(parameter, ["%tries"], 32), CLUSTER_SYNC if pairs else "bar.sync 0;",
    ]  # fmt: skip
