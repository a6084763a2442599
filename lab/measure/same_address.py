"""Measure which lane's data remain if lanes of a warp store to one address in one instruction.

PTX leaves it undefined. Each block is one warp; random lanes store their number, in every byte, to random cells.
`python -m lab.measure.same_address --help`. Needs only the driver.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.gpu.driver import Driver, argument_bytes

Array = npt.NDArray[Any]
LANES, IDLE, ROOM = 32, 0xFFFFFFFF, 512
FORMS = {"b8": 1, "b16": 2, "b32": 4, "b64": 8, "v2.b32": 8, "v4.b32": 16, "v2.b64": 16}
"""Bytes of an access by its type."""
SPACES = ("shared", "global")
_CELL = """ld.param.u64 %rd1, [store_cells];
ld.param.u64 %rd2, [store_y];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mad.lo.u32 %r3, %r2, 32, %r1;
mul.wide.u32 %rd3, %r3, 4;
add.u64 %rd3, %rd1, %rd3;
ld.global.u32 %r4, [%rd3];"""
_TEXT = (
    """.version 8.0
.target sm_80
.address_size 64
.visible .entry store(.param .u64 store_cells, .param .u64 store_y) {{
.reg .pred %p<2>; .reg .b16 %h<2>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
.shared .align 16 .b8 room[512];
"""
    + _CELL
    + """
mul.wide.u32 %rd4, %r2, 512;
add.u64 %rd2, %rd2, %rd4;
mul.lo.u32 %r5, %r1, 16843009;
cvt.u16.u32 %h1, %r5;
mov.b64 %rd5, {{%r5, %r5}};
setp.ne.u32 %p1, %r4, -1;
mul.wide.u32 %rd6, %r4, {size};
{body}
ret;
}}
"""
)
_BODIES = {
    "global": "add.u64 %rd6, %rd2, %rd6;\n@%p1 st.global.{type} [%rd6], {value};",
    "shared": """mov.u64 %rd7, room;
mul.wide.u32 %rd8, %r1, 16;
add.u64 %rd4, %rd7, %rd8;
st.shared.v4.b32 [%rd4], {{-1, -1, -1, -1}};
bar.warp.sync -1;
add.u64 %rd6, %rd7, %rd6;
@%p1 st.shared.{type} [%rd6], {value};
bar.warp.sync -1;
ld.shared.v4.b32 {{%r5, %r6, %r7, %r8}}, [%rd4];
add.u64 %rd8, %rd2, %rd8;
st.global.v4.b32 [%rd8], {{%r5, %r6, %r7, %r8}};""",
}
_STMATRIX = (
    """.version 8.0
.target sm_90
.address_size 64
.visible .entry store(.param .u64 store_cells, .param .u64 store_y) {{
.reg .b32 %r<16>; .reg .b64 %rd<9>;
.shared .align 16 .b8 room[512];
"""
    + _CELL
    + """
and.b32 %r4, %r4, 31;
mul.wide.u32 %rd4, %r2, 512;
add.u64 %rd2, %rd2, %rd4;
mov.u64 %rd7, room;
mul.wide.u32 %rd8, %r1, 16;
add.u64 %rd4, %rd7, %rd8;
st.shared.v4.b32 [%rd4], {{-1, -1, -1, -1}};
bar.warp.sync -1;
mul.wide.u32 %rd6, %r4, 16;
add.u64 %rd6, %rd7, %rd6;
shr.u32 %r9, %r1, 2;
mul.lo.u32 %r10, %r9, 16843009;
add.u32 %r11, %r10, 134744072;
add.u32 %r12, %r11, 134744072;
add.u32 %r13, %r12, 134744072;
stmatrix.sync.aligned.m8n8.x{count}.shared.b16 [%rd6], {{{values}}};
bar.warp.sync -1;
ld.shared.v4.b32 {{%r5, %r6, %r7, %r8}}, [%rd4];
add.u64 %rd8, %rd2, %rd8;
st.global.v4.b32 [%rd8], {{%r5, %r6, %r7, %r8}};
ret;
}}
"""
)
_VALUES = {
    "b8": "%h1", "b16": "%h1", "b32": "%r5", "b64": "%rd5", "v2.b32": "{%r5, %r5}", "v4.b32": "{%r5, %r5, %r5, %r5}",
    "v2.b64": "{%rd5, %rd5}",
}  # fmt: skip


def kernels() -> dict[str, str]:
    """Every kernel's text by space and type, or name; the entry is named `store`."""
    stores = {
        f"{space} {form}": _TEXT.format(size=size, body=_BODIES[space].format(type=form, value=_VALUES[form]))
        for space in SPACES
        for form, size in FORMS.items()
    }
    values = ["%r10", "%r11", "%r12", "%r13"]  # row r of all matrices, whose address is lane r's, has r in every byte
    matrices = {f"stmatrix x{n}": _STMATRIX.format(count=n, values=", ".join(values[:n])) for n in (1, 2, 4)}
    return stores | matrices


def cells(blocks: int, seed: int = 0) -> Array:
    """Return the cell that each lane stores to, uint32 `[block, lane]`; `IDLE` where it stores nothing."""
    rng = np.random.default_rng(seed)
    many = rng.choice([1, 2, 3, 4, 8, 16, 32], (blocks, 1))
    found = rng.integers(0, LANES, (blocks, LANES)) % many
    idle = rng.random((blocks, LANES)) < rng.choice([0, 0.2, 0.8], (blocks, 1))
    return np.where(idle, IDLE, found).astype(np.uint32)


def expected(name: str, given: Array) -> Array:
    """Return the memory of each block by the rule, uint8 `[block, 512]`: the lowest lane of the last part."""
    what, form = name.split()
    size = FORMS.get(form, 16)
    if what == "stmatrix":
        given = np.where(np.arange(LANES) < 8 * int(form[1]), given & 31, IDLE)
    made = np.full((len(given), ROOM), 0xFF, np.uint8)
    for lane in np.arange(LANES).reshape(max(1, size // 4), -1)[:, ::-1].reshape(-1):
        at = np.flatnonzero(given[:, lane] != IDLE)
        made[at[:, None], given[at, lane, None] * size + np.arange(size)] = lane
    return made


def main(arguments: list[str] | None = None) -> int:
    """Run every kernel; 1 if a byte is not as expected."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=1 << 16, help="random warps of a kernel (default: %(default)s)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="GPU, driver, and counts by kernel, JSON")
    options = parser.parse_args(arguments)
    driver, given, counts = Driver(), cells(options.blocks), {}
    for name, text in kernels().items():
        function = driver.load(text, ["store"])["store"]
        y = np.full((options.blocks, ROOM), 0xFF, np.uint8)
        addresses = {"cells": driver.place(given), "y": driver.place(y)}
        passed = [argument_bytes(addresses, x) for x in ("cells", "y")]
        driver.launch(function, (options.blocks,), (LANES,), passed)
        driver.synchronise(10)
        y = driver.fetch(addresses["y"], y)
        other = y != expected(name, given)
        counts[name] = {"bytes": int((y != 0xFF).sum()), "unexpected": int(other.sum())}
        print(f"{name}: {counts[name]}")
        for x in addresses.values():
            driver.free(x)
    if options.out:
        options.out.write_text(json.dumps({"about": driver.about(), "counts": counts}, indent=1) + "\n")
    return int(any(x["unexpected"] for x in counts.values()))


if __name__ == "__main__":
    sys.exit(main())
