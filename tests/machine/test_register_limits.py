"""`setmaxnreg`: all threads of a warpgroup execute the same ones."""

from __future__ import annotations

from typing import Any

import pytest

import warpmma as wm
from warpmma.errors import WarpmmaError
from warpmma.machine import HazardError

KERNEL = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k() {{ .reg .b32 %t; .reg .pred %p;
mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, {threads};
{body}
ret; }}"""
DEC, INC = "setmaxnreg.dec.sync.aligned.u32 {};", "setmaxnreg.inc.sync.aligned.u32 {};"
BRANCH = "@%p bra A; {} bra B; A: {} B:"


def run(body: str, threads: int, block: int = 256) -> Any:
    kernel = wm.ptx.load(KERNEL.format(body=body, threads=threads))["k"]
    try:
        kernel.launch(wm.Device("sm_90a"), 2, block, [])
    except HazardError as error:
        return error.hazard
    return None


@pytest.mark.parametrize("body", [
    DEC.format(40),
    BRANCH.format(INC.format(240), DEC.format(24)),
    BRANCH.format("", DEC.format(40)),
    f"@%p {DEC.format(40)} @!%p {INC.format(232)}",
])  # fmt: skip
def test_whole_warpgroups_may_differ(body: str) -> None:
    assert run(body, 128) is None


@pytest.mark.parametrize(("body", "threads", "block", "warp", "says"), [
    (f"@%p {DEC.format(40)}", 5, 128, 0, "all 32 lanes"),
    (f"@%p {DEC.format(40)}", 64, 128, 2, "warp 2 executes none, and warp 0 of its warpgroup setmaxnreg.dec"),
    (BRANCH.format(DEC.format(40), ""), 160, 256, 5, "warp 5 executes setmaxnreg.dec.sync.aligned.u32 40, and warp 4"),
    (BRANCH.format(DEC.format(40), DEC.format(48)), 96, 128, 3, "u32 40, and warp 0 of its warpgroup setmaxnreg.dec"),
    (BRANCH.format(DEC.format(40), INC.format(40)), 32, 128, 1, "executes setmaxnreg.dec"),
    (f"{DEC.format(40)} @%p {INC.format(80)}", 64, 128, 2, "warp 2 executes none"),
])  # fmt: skip
def test_parts_of_a_warpgroup_are_reported(body: str, threads: int, block: int, warp: int, says: str) -> None:
    found = run(body, threads, block)
    assert (found.kind, found.block, found.warp) == ("divergent", 0, warp) and says in found.detail
    assert "setmaxnreg" in found.site.mnemonic


POOL = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k() {directives} {{ .reg .b32 %t; .reg .pred %p, %q;
mov.u32 %t, %tid.x; setp.lt.u32 %p, %t, 256; setp.lt.u32 %q, %t, 128;
{body}
ret; }}"""
BOUNDS = ".maxntid 384 .minnctapersm 1"  # 168 registers a thread
THIRD = "@!%p " + DEC


def pool(body: str, directives: str = BOUNDS) -> Any:
    """Return the hazard of three warpgroups, or None; %p are the first two, %q the first."""
    kernel = wm.ptx.load(POOL.format(directives=directives, body=body))["k"]
    try:
        kernel.launch(wm.Device("sm_90a"), 2, 384, [])
    except HazardError as error:
        return error.hazard
    return None


@pytest.mark.parametrize("body", [
    f"@%p {INC.format(240)} {THIRD.format(24)}",
    f"{THIRD.format(24)} @%p {INC.format(240)}",
    f"@%q {INC.format(224)} {THIRD.format(80)}",
    f"@%q {INC.format(224)} @%q {DEC.format(80)} bar.sync 0; {THIRD.format(112)}",
    f"@%p {INC.format(168)}",
    f"@%p {DEC.format(40)} @%p {INC.format(168)}",
])  # fmt: skip
def test_a_pool_that_has_enough(body: str) -> None:
    assert pool(body) is None


@pytest.mark.parametrize(("body", "warp"), [
    (f"@%p {INC.format(224)} {THIRD.format(80)}", 4),  # 2 x 56 are asked for, and 88 given
    (f"@%p {INC.format(240)}", 0),
    (f"@%q {INC.format(240)} {THIRD.format(104)}", 0),  # 72 are asked for, and 64 given in each quarter
    (f"@%q {INC.format(224)} @%q {DEC.format(24)} {THIRD.format(120)}", 0),  # nor do two warps take for all, in turn
    (f"@%q {INC.format(240)} @%q {DEC.format(24)}", 0),
])  # fmt: skip
def test_warps_that_wait_for_registers_without_end(body: str, warp: int) -> None:
    found = pool(body)
    assert (found.kind, found.warp) == ("deadlock", warp) and "setmaxnreg.inc" in found.site.mnemonic
    assert "has 168 registers a thread and waits for 2" in found.detail
    assert pool(body, ".maxntid 384") is None  # ptxas ignores it
    assert pool(body, ".maxnreg 168") is not None


@pytest.mark.parametrize("number", [16, 20, 264])
def test_numbers_are_24_to_256_in_steps_of_8(number: int) -> None:
    with pytest.raises(WarpmmaError, match="expected 24 to 256, a multiple of 8"):
        run(DEC.format(number), 0)
