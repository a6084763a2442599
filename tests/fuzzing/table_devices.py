"""Devices: memory that lives between launches."""

from __future__ import annotations

from typing import Any

import numpy as np

import warpmma as wm
from warpmma.machine import Device, DeviceArray

from . import legal
from .calls import Entry
from .hostile import Rng, pick

__all__ = ["ENTRIES", "array", "device"]

_MOST = 1 << 16


def device(rng: Rng) -> Device:
    """Make a device that holds something."""
    made = Device(legal.target(rng))
    made.array(np.arange(5, dtype=np.uint8))
    return made


def array(rng: Rng) -> DeviceArray:
    """Make an array of a device."""
    made = device(rng)
    shapes: tuple[Any, ...] = (0, 3, (2, 3), ())
    dtypes: tuple[Any, ...] = ("f4", "u1", np.int64)
    return pick(rng, (made.empty, made.zeros))(pick(rng, shapes), pick(rng, dtypes))


def _new(kind: str) -> Any:
    def make(self: Any, shape: Any, dtype: Any = "f4") -> Any:
        return getattr(self, kind)(legal.modest(shape, _MOST, 3), dtype)

    return make


def _array(rng: Rng) -> dict[str, Any]:
    return {"self": device(rng), "x": pick(rng, (rng.random(3), [1, 2], 1.5, np.zeros((2, 3), "f2")))}


def _mapped(rng: Rng) -> dict[str, Any]:
    given = np.zeros(pick(rng, (3, 8)), "u4")
    return {
        "self": device(rng), "array": given, "address": pick(rng, (None, given.ctypes.data, 0x1000, 7)),
        "written": pick(rng, (True, False)),
    }  # fmt: skip


def _marked(rng: Rng) -> dict[str, Any]:
    made = device(rng)
    x = made.empty(pick(rng, (0, 3, 40)), "u1")
    where = pick(rng, (x, x.address, x.address + 1))
    return {"self": made, "where": where, "size": pick(rng, (None, 0, 1, 2) if where is x else (0, 1, 2))}


def _address(rng: Rng) -> dict[str, Any]:
    made = device(rng)
    return {"self": made, "address": made.allocate(pick(rng, (1, 40)))}


def _written(rng: Rng) -> dict[str, Any]:
    made = device(rng)
    x = made.empty(40, "u1")
    return {"self": made, "where": pick(rng, (x, x.address, x.address + 1)), "data": pick(rng, (b"", b"123"))}


def _allocate(self: Any, nbytes: Any) -> Any:
    return self.allocate(legal.modest(nbytes, _MOST, 1))


def _set(rng: Rng) -> dict[str, Any]:
    made = array(rng)
    return {"self": made, "values": np.ones(made.shape, made.dtype)}


_D = "warpmma:Device"
_A = "warpmma.machine:DeviceArray"

ENTRIES = (
    Entry(name=_D, call=wm.Device, make=lambda rng: {"target": legal.target(rng)}, weight=2, pure=False),
    Entry(name=f"{_D}.array", call=Device.array, make=_array, weight=3, writes=("self",), pure=False),
    *(
        Entry(
            name=f"{_D}.{x}", call=_new(x), weight=2, writes=("self",), pure=False,
            make=lambda rng: {"self": device(rng), "shape": pick(rng, (3, (2, 3), [])), "dtype": "f4"},
        )
        for x in ("empty", "zeros")
    ),
    Entry(name=f"{_D}.map", call=Device.map, make=_mapped, weight=3, writes=("self",), pure=False),
    *(
        Entry(name=f"{_D}.{x}", call=getattr(Device, x), make=_marked, weight=2, writes=("self",), pure=False)
        for x in ("mark_written", "mark_unwritten")
    ),
    Entry(name=f"{_D}.read", call=Device.read, make=_marked, weight=2),
    Entry(name=f"{_D}.write", call=Device.write, make=_written, weight=2, writes=("self",), pure=False),
    Entry(name=f"{_D}.free", call=Device.free, make=_address, weight=2, writes=("self",), pure=False),
    Entry(
        name=f"{_D}.allocate", call=_allocate, weight=2, writes=("self",), pure=False,
        make=lambda rng: {"self": device(rng), "nbytes": pick(rng, (1, 40))},
    ),
    Entry(name=f"{_D}.__repr__", call=Device.__repr__, make=lambda rng: {"self": device(rng)}, weight=0.1),
    *(
        Entry(name=f"{_A}.{x}", call=getattr(DeviceArray, x), make=lambda rng: {"self": array(rng)}, weight=0.2)
        for x in ("data_ptr", "numpy", "__repr__")
    ),
    Entry(
        name=f"{_A}.free", call=DeviceArray.free, make=lambda rng: {"self": array(rng)}, weight=0.2, pure=False,
        writes=("self",),
    ),
    Entry(name=f"{_A}.set", call=DeviceArray.set, make=_set, weight=2, pure=False, writes=("self",)),
)  # fmt: skip
