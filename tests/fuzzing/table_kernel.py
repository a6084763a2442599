"""Kernels: launches, rows of operations by themselves, what a launch has found, swizzles."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from functools import cache, partial
from typing import Any

import numpy as np

from warpmma import kernel
from warpmma.kernel import Hazard, Launch, MatrixMove, Operation, Output, Register, Site, Swizzle, Threads

from . import legal
from .calls import Entry
from .hostile import Rng, chance, pick
from .table_threads import DTYPES, rows

__all__ = ["ENTRIES"]


def _double(t: Threads, x: Any = None, *_: Any) -> None:
    if not isinstance(x, Register):
        return
    at = x + (t.ctaid[0] * t.ntid[0] + t.tid[0]) * 4
    t("st.global.b32", at, t("ld.global.b32", at) * 2)


def _read(t: Threads, *args: Any) -> None:
    for x in args:
        t("ld.global.b8", x)


def _through_shared(t: Threads, *_: Any) -> None:
    t("st.shared.b32", t.tid[0] * 4, t.tid[0])
    t("ld.shared.b32", t.tid[0] * 4)


def _nothing(t: Threads, *_: Any) -> None:
    pass


def _launched(rng: Rng) -> dict[str, Any]:
    body = pick(rng, (_double, _read, _through_shared, _nothing))
    grid, block = pick(rng, (1, 2, (1, 1), (2, 1, 2))), pick(rng, (32, 64, (8, 4), (4, 4, 2), 33))
    args: list[Any] = [np.arange(1024, dtype=np.uint32)]
    if body is _nothing:
        args = [Output(np.empty(3, "f4")), 5, 1.5, "text", np.zeros(4, "f2")]
    given: dict[str, Any] = {"kernel": body, "grid": grid, "block": block, "args": args, "target": legal.target(rng),
                             "shared": 4096 if body is _through_shared else pick(rng, (0, 1024))}  # fmt: skip
    if chance(rng, 0.4):
        given["hazards"] = pick(rng, ("error", "warn", {"race": "warn", "unwritten": "error"}))
    return given


def _launch(**given: Any) -> Any:
    """Launch a kernel, and return what it wrote."""
    done = kernel.launch(**{name: legal.modest(x, 64, 2) if name == "grid" else x for name, x in given.items()})
    args = given["args"]
    return [done.text(), *(x.copy() for x in args if isinstance(x, np.ndarray))]


_launch.__signature__ = inspect.signature(kernel.launch)  # type: ignore[attr-defined]


@cache
def _report() -> Launch:
    def run(t: Threads) -> None:
        t("st.shared.b32", t.tid[0] * 128, t.tid[0])
        t("ld.shared.b32", t.tid[0] * 128)

    return kernel.launch(run, 1, 32, [], target="sm_90", shared=4096)


def _site() -> Site:
    return next(iter(_report().costs.advice()))


def _arrays_of(rng: Rng) -> dict[str, Any]:
    row = pick(rng, rows()["sm_90a"])
    given: list[Any] = []
    lead = legal.batch(rng)
    for kind in row.inputs:
        if kind == "imm":
            given.append(int(rng.integers(256)))
            continue
        dtype = np.dtype(DTYPES[kind])
        shape = (*lead, 32)
        bits = np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), f"u{dtype.itemsize}").reshape(shape)
        given.append((bits & 1).astype(bool) if kind == "pred" else bits.copy())
    return {"self": row, "*operands": given}


def _called(rng: Rng) -> dict[str, Any]:
    more: dict[str, Any] = {"undefined": pick(rng, ("zero", "error"))} if chance(rng, 0.5) else {}
    return {**_arrays_of(rng), **more}


def _moved(name: str, rng: Rng) -> dict[str, Any]:
    wanted = {"distribute": ("load",), "collect": ("store",)}.get(name, ("load", "store"))
    row = pick(rng, [x for x in kernel.matrix_moves() if x.direction in wanted])
    lead = legal.batch(rng)
    if name == "distribute":
        return {"self": row, "data": rng.integers(0, 256, (*lead, row.matrices, row.rows_per_matrix, 16), np.uint8)}
    if name == "collect":
        return {"self": row, "registers": rng.integers(0, 1 << 32, (*lead, row.registers, 32), np.uint32)}
    return {"self": row, "addresses": 16 * rng.integers(0, 64, (*lead, 32))}


def _fields(x: Any) -> dict[str, Any]:
    return {f.name: getattr(x, f.name) for f in fields(x) if f.init}


def _named(rng: Rng, table: Callable[[], tuple[Any, ...]]) -> dict[str, Any]:
    row = pick(rng, table())
    return {"mnemonic": str(row), **({"target": pick(rng, row.targets)} if chance(rng, 0.5) else {})}


def _shown(make: Callable[[], Any], rng: Rng) -> dict[str, Any]:
    return {"object": make()}


def _text(object: Any) -> str:
    return str(object)


_K = "warpmma.kernel"

ENTRIES = (
    Entry(name=f"{_K}:launch", call=_launch, make=_launched, weight=14, writes=("args",), pure=False),
    Entry(name=f"{_K}:operation", call=kernel.operation, weight=2, make=lambda rng: _named(rng, kernel.operations)),
    Entry(
        name=f"{_K}:matrix_move", call=kernel.matrix_move, weight=2,
        make=lambda rng: _named(rng, kernel.matrix_moves),
    ),
    *(
        Entry(name=name, call=call, make=lambda rng: {"target": legal.target(rng)})
        for name, call in (
            (f"{_K}:operations", kernel.operations), (f"{_K}:matrix_moves", kernel.matrix_moves),
        )
    ),
    Entry(name=f"{_K}:Operation.__call__", call=Operation.__call__, make=_called, weight=10),
    Entry(name=f"{_K}:Operation.undefined_lanes", call=Operation.undefined_lanes, make=_arrays_of, weight=3),
    Entry(
        name=f"{_K}:Operation", call=Operation, make=lambda rng: _fields(pick(rng, kernel.operations())),
        weight=0.3,
    ),
    Entry(
        name=f"{_K}:MatrixMove", call=MatrixMove, make=lambda rng: _fields(pick(rng, kernel.matrix_moves())),
        weight=0.3,
    ),
    *(
        Entry(name=f"{_K}:MatrixMove.{x}", call=getattr(MatrixMove, x), weight=3,
              make=partial(_moved, x))
        for x in ("rows", "distribute", "collect")
    ),
    *(
        Entry(name=f"{name}.__str__", call=_text, make=partial(_shown, f), weight=0.1, fixed=("object",))
        for name, f in (
            (f"{_K}:Operation", lambda: kernel.operations()[0]),
            (f"{_K}:MatrixMove", lambda: kernel.matrix_moves()[0]), (f"{_K}:Site", _site),
            (f"{_K}:Hazard", lambda: Hazard(kind="race", site=_site(), block=0, warp=0, lane=0)),
        )
    ),
    Entry(name=f"{_K}:Site", call=Site, make=lambda rng: _fields(_site()), weight=0.1),
    Entry(
        name=f"{_K}:Hazard", call=Hazard, weight=0.1,
        make=lambda rng: {"kind": "race", "site": _site(), "block": 0, "warp": 0, "lane": 0},
    ),
    Entry(name=f"{_K}:Swizzle", call=Swizzle, make=lambda rng: {"bits": 3, "base": 4, "shift": 3}),
    Entry(
        name=f"{_K}:Swizzle.__call__", call=Swizzle.__call__, weight=2,
        make=lambda rng: {"self": Swizzle(3, 4, 3), "address": pick(rng, (0x190, rng.integers(0, 4096, 32)))},
    ),
    Entry(name=f"{_K}:Swizzle.__str__", call=Swizzle.__str__, make=lambda rng: {"self": Swizzle(3, 4, 3)}, weight=0.1),
    Entry(name=f"{_K}:Costs.advice", call=lambda: _report().costs.advice(), make=lambda rng: {}, weight=0.2),
    Entry(
        name=f"{_K}:Costs.together", call=lambda site: _report().costs.together(site),
        make=lambda rng: {"site": _site()},
    ),
    *(
        Entry(name=f"{_K}:Launch.{x}", call=getattr(Launch, x), make=lambda rng: {"self": _report()}, weight=0.2)
        for x in ("text", "json")
    ),
    Entry(
        name=f"{_K}:Launch.svg", call=Launch.svg, weight=0.5,
        make=lambda rng: {"self": _report(), "site": pick(rng, (_site(), _site().line))},
    ),
    Entry(
        name=f"{_K}:Launch", call=Launch, weight=0.1, fixed=("costs",),
        make=lambda rng: {"hazards": [], "costs": _report().costs},
    ),
    Entry(name=f"{_K}:Output", call=Output, make=lambda rng: {"array": np.zeros(4)}, weight=0.3, pure=False),
)  # fmt: skip
