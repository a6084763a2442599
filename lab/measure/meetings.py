"""Measure which `.sync` instructions at two places of a program converge: `python -m lab.measure.meetings --help`.

The lanes of a warp are in different arms of a branch, and each arm executes one instruction. Each kernel, compiled by
ptxas at -O0 and at -O3, runs in a separate process, which is ended if the lanes deadlock. Needs the driver, and `ptxas`
on the PATH.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from lab.gpu.driver import Driver, DriverError, argument_bytes

_LANES, _LEVELS, _SECONDS = 32, ("O0", "O3"), 4
_KERNEL = """.version 8.0
.target sm_90
.address_size 64
.shared .align 4 .b8 words[128];
.func (.reg .b32 %d) exchange(.reg .b32 %a) {{
shfl.sync.bfly.b32 %d, %a, 16, 31, 0xffffffff;
ret;
}}
.visible .entry {name}(.param .u64 {name}_y) {{
.reg .pred %p<9>; .reg .b32 %r<30>; .reg .b64 %y, %x;
ld.param.u64 %y, [{name}_y];
mov.u32 %r1, %laneid;
mad.wide.u32 %y, %r1, 8, %y;
mul.lo.u32 %r2, %r1, 3;
add.u32 %r2, %r2, 1000;
mov.u32 %r3, 77;
mov.u32 %r4, 0;
mov.b32 %r9, 0xffffffff;
ld.global.u32 %r8, [%y];  // all ones, which ptxas cannot know
cvt.u64.u32 %x, %r2;
mov.u32 %r6, words;
mad.lo.u32 %r5, %r1, 4, %r6;
xor.b32 %r6, %r1, 16;
mov.u32 %r7, words;
mad.lo.u32 %r6, %r6, 4, %r7;
setp.lt.u32 %p1, %r1, 16;
setp.lt.u32 %p3, %r1, 8;
and.b32 %r7, %r1, 1;
setp.eq.u32 %p4, %r7, 0;
setp.gt.u32 %p5, %r1, 20;
{body}
st.global.u32 [%y], %r3;
st.global.u32 [%y+4], %r4;
ret;
}}
"""
_ARMS = "@%p1 bra LOW_{name};\n{high}\nbra.uni END_{name};\nLOW_{name}: {low}\nEND_{name}:"
_BFLY = "shfl.sync.bfly.b32 %r3, %r2, 16, 31, 0xffffffff;"
_VOTE = "vote.sync.{}.pred %p2, %p5, 0xffffffff; selp.u32 %r3, 1, 0, %p2;"
_REDUX = "redux.sync.{} %r3, %r2, 0xffffffff;"
_MASKED = "selp.b32 %r7, 0x55555555, 0xaaaaaaaa, %p4; shfl.sync.bfly.b32 %r3, %r2, 16, 31, %r7;"
_FENCED = "st.shared.u32 [%r5], %r2; {sync} ld.shared.u32 %r3, [%r6];"
_WARP = "bar.warp.sync 0xffffffff;"
_BALLOT = "vote.sync.ballot.b32 %r3, %p5, 0xffffffff;"
_MATCH = "match.any.sync.b32 %r3, %r7, 0xffffffff;"
_MOVED = "movmatrix.sync.aligned.m8n8.trans.b16 %r3, %r2;"

# What lanes 0 to 15 execute, and what lanes 16 to 31 do.
_PAIRS = {
    "bar_warp": (_FENCED.format(sync=_WARP),) * 2,
    "shfl": (_BFLY, _BFLY),
    "ballot": (_BALLOT, _BALLOT),
    "redux": (_REDUX.format("add.u32"),) * 2,
    "match": (_MATCH, _MATCH),
    "elect": ("elect.sync %r3|%p2, 0xffffffff; selp.u32 %r4, 1, 0, %p2;",) * 2,
    "register_mask": (_BFLY, _BFLY.replace("0xffffffff", "%r8")),
    "two_results": (_BFLY, "shfl.sync.bfly.b32 %r3|%p2, %r2, 16, 31, 0xffffffff; selp.u32 %r4, 1, 0, %p2;"),
    "immediates": (_BFLY, _BFLY.replace("16", "17", 1)),
    "function": ("call (%r3), exchange, (%r2);",) * 2,
    "masks_across": (_MASKED, _MASKED),
    "part_of_the_warp": (
        "@!%p3 bra END_{name}; shfl.sync.bfly.b32 %r3, %r2, 16, 31, 0x00ff00ff;",
        "setp.lt.u32 %p6, %r1, 24; @!%p6 bra END_{name}; shfl.sync.bfly.b32 %r3, %r2, 16, 31, 0x00ff00ff;",
    ),
    "three_places": (
        f"@%p3 bra LOWEST_{{name}};\n{_BFLY} bra.uni END_{{name}};\nLOWEST_{{name}}: {_BFLY} add.u32 %r4, %r4, 1;",
        f"{_BFLY} add.u32 %r4, %r4, 2;",
    ),
    "other_arm_exits": (_BFLY.replace("16", "1", 1), "exit;"),
    "other_masks": (_BFLY.replace("16", "1", 1), _BFLY.replace("16", "1", 1).replace("0xffffffff", "0xffff0000")),
    "bfly_idx": (_BFLY, "shfl.sync.idx.b32 %r3, %r2, 16, 31, 0xffffffff;"),
    "up_down": (
        "shfl.sync.up.b32 %r3, %r2, 16, 0, 0xffffffff;", "shfl.sync.down.b32 %r3, %r2, 16, 31, 0xffffffff;",
    ),
    "shfl_ballot": (_BFLY, _BALLOT),
    "bar_warp_shfl": (_WARP, _BFLY),
    "any_all": (_VOTE.format("any"), _VOTE.format("all")),
    "redux_add_max": (_REDUX.format("add.u32"), _REDUX.format("max.u32")),
    "redux_signs": (_REDUX.format("min.u32"), _REDUX.format("min.s32")),
    "match_sizes": ("match.any.sync.b32 %r3, %r2, 0xffffffff;", "match.any.sync.b64 %r3, %x, 0xffffffff;"),
    "match_modes": ("match.any.sync.b32 %r3, %r2, 0xffffffff;", "match.all.sync.b32 %r3, %r2, 0xffffffff;"),
    "movmatrix": (_MOVED, _MOVED),
}  # fmt: skip
_BODIES = {
    "guards": f"@%p1 {_BFLY}\n@!%p1 {_BFLY}",
    # The lower half iterates three times, the upper half twice; their last exchange is after the loop.
    "loop_and_after": f"""
        selp.u32 %r10, 3, 2, %p1; mov.u32 %r11, 0;
        AGAIN: {_BFLY} add.u32 %r2, %r3, 1; add.u32 %r11, %r11, 1; setp.lt.u32 %p6, %r11, %r10; @%p6 bra AGAIN;
        @%p1 bra DONE;
        {_BFLY}
        DONE:""",
    "masks_at_one_place": "selp.b32 %r7, 0xffffffff, 0xffff0000, %p1; shfl.sync.bfly.b32 %r3, %r2, 1, 31, %r7;",
}


def kernels() -> dict[str, str]:
    """Every kernel's text by its name."""
    pairs = {name: _ARMS.format(name=name, low=low, high=high) for name, (low, high) in _PAIRS.items()}
    bodies = {**{name: body.format(name=name) for name, body in pairs.items()}, **_BODIES}
    return {name: _KERNEL.format(name=name, body=body) for name, body in bodies.items()}


def _run(name: str, level: str) -> list[list[int]]:
    """Assemble and run a kernel on one warp; return both words of every lane."""
    with tempfile.TemporaryDirectory() as folder:
        text, code = Path(folder) / "text.ptx", Path(folder) / "code.cubin"
        text.write_text(kernels()[name])
        subprocess.run(["ptxas", f"-{level}", "-arch=sm_90", "-o", code, text], check=True, capture_output=True)
        driver = Driver()
        function = driver.load(code.read_bytes(), [name])[name]
    y = np.full((_LANES, 2), 0xFFFFFFFF, np.uint32)
    addresses = {"y": driver.place(y)}
    driver.launch(function, (1,), (_LANES,), [argument_bytes(addresses, "y")])
    driver.synchronise(_SECONDS)
    words: list[list[int]] = driver.fetch(addresses["y"], y).T.tolist()
    return words


def _apart(name: str, level: str) -> dict[str, object]:
    """Run a kernel in a separate process."""
    command = [sys.executable, "-m", "lab.measure.meetings", "--one", name, level]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10 * _SECONDS)
    except subprocess.TimeoutExpired:
        return {"error": "the process did not end"}
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1] if done.stderr else str(done.returncode)}
    found: dict[str, object] = json.loads(done.stdout)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run every kernel at both levels; 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, metavar="FILE", help="words of all lanes by kernel and level, JSON")
    parser.add_argument("--one", nargs=2, metavar=("KERNEL", "LEVEL"), help="run one, in this process")
    options = parser.parse_args(arguments)
    if options.one:
        try:
            print(json.dumps({"words": _run(*options.one)}))
        except DriverError as error:
            print(json.dumps({"hangs": str(error)} if "has not ended" in str(error) else {"error": str(error)}))
        sys.stdout.flush()
        os._exit(0)  # destroying a context whose kernel is running never returns
    outputs = {name: {level: _apart(name, level) for level in _LEVELS} for name in kernels()}
    for name, found in outputs.items():
        print(name, *(f"{level}: {json.dumps(x)[:200]}" for level, x in found.items()), sep="\n    ")
    if options.out:
        kept = {**Driver.about(), "outputs": outputs}
        options.out.write_text(json.dumps(kept, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
