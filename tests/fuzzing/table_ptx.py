"""PTX text: modules that are loaded, checked and launched."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

import warpmma as wm
from warpmma.machine import Device
from warpmma.ptx import PtxEntry, PtxModule, load, numba_arguments, read

from . import legal
from .calls import Entry
from .hostile import Rng, pick

__all__ = ["ENTRIES", "entry", "module"]

TEXT = """.version 8.0
.target sm_70
.address_size 64
.global .align 4 .u32 counter = 7;
.visible .entry add(.param .u64 x, .param .u32 n)
{
.reg .pred %p<2>; .reg .b32 %r<6>; .reg .b64 %rd<4>;
ld.param.u64 %rd1, [x];
ld.param.u32 %r1, [n];
mov.u32 %r2, %tid.x;
setp.ge.u32 %p1, %r2, %r1;
@%p1 bra DONE;
mul.wide.u32 %rd2, %r2, 4;
add.s64 %rd1, %rd1, %rd2;
ld.global.u32 %r3, [%rd1];
add.u32 %r3, %r3, 1;
st.global.u32 [%rd1], %r3;
DONE: ret;
}
"""


def module(rng: Rng) -> PtxModule:
    """Make a module."""
    return load(TEXT)


def entry(rng: Rng) -> PtxEntry:
    """Make an entry of a module."""
    return module(rng)["add"]


def _launch(
    self: PtxEntry, device: Any, grid: Any, block: Any, args: Any = (), *, shared: Any = 0, hazards: Any = "error",
    contract: Any = "ptxas", engine: Any = "auto", threads: Any = None, resident: Any = None, limit: Any = None,
    seed: Any = 0, progress: Any = None, params: Any = None, cluster: Any = None, cooperative: Any = False,
) -> Any:  # fmt: skip
    """Launch few blocks."""
    return self.launch(
        device, legal.modest(grid, 8, 1), block, args, shared=shared, hazards=hazards, contract=contract,
        engine=engine, threads=threads, resident=resident, limit=limit, seed=seed, progress=progress,
        params=params, cluster=cluster, cooperative=cooperative,
    )  # fmt: skip


def _launched(rng: Rng) -> dict[str, Any]:
    x, n = np.zeros(64, np.uint32), pick(rng, (0, 8, 64))
    if pick(rng, (False, False, True)):
        made = Device(legal.target(rng))
        params = struct.pack("<QI", made.array(x).address, n)
        return {"self": entry(rng), "device": made, "grid": 1, "block": 64, "params": params, "cluster": 1}
    return {
        "self": entry(rng), "device": Device(legal.target(rng)), "grid": 1, "block": pick(rng, (32, 64, (8, 4))),
        "args": pick(rng, ([x, n], {"n": n, "x": x})), "contract": pick(rng, ("ptxas", "off")),
    }  # fmt: skip


_M = "warpmma.ptx:PtxModule"
_E = "warpmma.ptx:PtxEntry"

ENTRIES = (
    Entry(name="warpmma.ptx:load", call=load, make=lambda rng: {"path_or_text": TEXT, "name": "k.ptx"}, weight=3,
          pure=False),
    Entry(name="warpmma.ptx:read", call=read, make=lambda rng: {"text": TEXT, "name": "k.ptx"}, weight=3, pure=False),
    Entry(name="warpmma.ptx:numba_arguments", call=numba_arguments,
          make=lambda rng: {"*args": [np.zeros((2, 3), np.float32), 2.5, (1, np.zeros(4))]}, pure=False),
    Entry(name=f"{_M}.__getitem__", call=PtxModule.__getitem__, make=lambda rng: {"self": module(rng), "name": "add"},
          pure=False),
    *(
        Entry(name=f"{_M}.{x}", call=getattr(PtxModule, x), make=lambda rng: {"self": module(rng)}, weight=0.2)
        for x in ("__len__", "__repr__")
    ),
    Entry(name=f"{_M}.__iter__", call=lambda self: list(self), make=lambda rng: {"self": module(rng)}, weight=0.2),
    Entry(name=f"{_M}.check", call=PtxModule.check, pure=False,
          make=lambda rng: {"self": module(rng), "target": pick(rng, (None, legal.target(rng)))}),
    Entry(name=f"{_M}.parameters", call=PtxModule.parameters, make=lambda rng: {"self": module(rng), "name": "add"},
          weight=0.2),
    Entry(name=f"{_M}.variable", call=PtxModule.variable, pure=False, writes=("device",),
          make=lambda rng: {"self": module(rng), "name": "counter", "device": wm.Device(legal.target(rng))}),
    Entry(name=f"{_M}.variables", call=PtxModule.variables, pure=False, writes=("device",),
          make=lambda rng: {"self": module(rng), "device": wm.Device(legal.target(rng))}),
    Entry(name=f"{_E}.__repr__", call=PtxEntry.__repr__, make=lambda rng: {"self": entry(rng)}, weight=0.2),
    Entry(name=f"{_E}.launch", call=_launch, make=_launched, weight=6, pure=False, writes=("device", "args"),
          engines=True),
)  # fmt: skip
