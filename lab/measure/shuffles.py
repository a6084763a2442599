"""Measure what `shfl.sync` returns where PTX leaves it undefined: `python -m lab.measure.shuffles --help`.

Warps run kernels in which lanes read from lanes that are outside their membermask, have exited, or are elsewhere.
Needs only the driver.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from lab.gpu.driver import Driver, argument_bytes

_LANES = 32
_HEAD = """.version 8.0
.target sm_80
.address_size 64
"""
_KERNEL = """.visible .entry {name}(.param .u64 {name}_y) {{
.reg .pred %p<9>; .reg .b32 %r<30>; .reg .b64 %y;
ld.param.u64 %y, [{name}_y];
mov.u32 %r1, %laneid;
mad.wide.u32 %y, %r1, 8, %y;
mul.lo.u32 %r2, %r1, 3;
add.u32 %r2, %r2, 1000;
mov.u32 %r3, 77;
setp.lt.u32 %p1, %r1, 16;
{body}
st.global.u32 [%y], %r3;
selp.u32 %r4, 1, 0, %p2;
st.global.u32 [%y+4], %r4;
ret;
}}
"""
_MODES = {"up": ("8", "0"), "down": ("8", "31"), "bfly": ("16", "31"), "idx": ("20", "31")}
_PLACES = {
    # lanes 0 to 15 execute it with their own mask, the others ...
    "branched": "@!%p1 bra {o}; shfl.sync.{s} %r3|%p2, %r2, {a}, {c}, 0xffff; {o}:",
    "exited": "@!%p1 exit; shfl.sync.{s} %r3|%p2, %r2, {a}, {c}, 0xffff;",
    "guarded": "@%p1 shfl.sync.{s} %r3|%p2, %r2, {a}, {c}, 0xffff;",
    # ... execute it too, at the same place, with the rest of the lanes as their mask
    "halves": "selp.b32 %r5, 0xffff, 0xffff0000, %p1; shfl.sync.{s} %r3|%p2, %r2, {a}, {c}, %r5;",
    # ... have exited, and the mask names them
    "exited_named": "@!%p1 exit; shfl.sync.{s} %r3|%p2, %r2, {a}, {c}, 0xffffffff;",
    # ... are in no mask, and execute it with the mask of the first
    "unnamed": "shfl.sync.{s} %r3|%p2, %r2, {a}, {c}, 0xffff;",
}


def kernels() -> dict[str, str]:
    """Every kernel's text by its name."""
    found = {}
    for place, body in _PLACES.items():
        for mode, (amount, clamp) in _MODES.items():
            name = f"{place}_{mode}"
            text = body.format(s=f"{mode}.b32", a=amount, c=clamp, o=f"O_{name}")
            found[name] = _HEAD + _KERNEL.format(name=name, body=text)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run every kernel on one warp; 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, metavar="FILE", help="values and predicates by kernel, JSON")
    options = parser.parse_args(arguments)
    driver, found = Driver(), {}
    for name, text in kernels().items():
        function = driver.load(text, [name])[name]
        y = np.full((_LANES, 2), 0xFFFF, np.uint32)
        addresses = {"y": driver.place(y)}
        driver.launch(function, (1,), (_LANES,), [argument_bytes(addresses, "y")])
        driver.synchronise(10)
        y = driver.fetch(addresses["y"], y)
        found[name] = {"value": y[:, 0].tolist(), "predicate": y[:, 1].tolist()}
        print(f"{name}: {' '.join(map(str, y[:, 0]))} | {''.join(map(str, y[:, 1] & 1))}")
    if options.out:
        options.out.write_text("{" + ",\n".join(f'"{k}": {json.dumps(x)}' for k, x in found.items()) + "}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
