"""Cached results that callers share are read-only."""

from __future__ import annotations

import copy
import functools
import gc
import importlib
import pickle
import pkgutil
import types
from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any

import numpy as np
import pytest
from arrays import Array

import warpmma as wm
from warpmma import scaling
from warpmma.arithmetic import Engine
from warpmma.layouts import Layout, Operand
from warpmma.machine.base import SPARE

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
OPERANDS: tuple[Operand, ...] = ("A", "B", "C", "D")


def modules() -> list[types.ModuleType]:
    names = [m.name for m in pkgutil.walk_packages(wm.__path__, "warpmma.") if not m.name.endswith("__main__")]
    return [wm, *map(importlib.import_module, names)]


def use_everything() -> None:
    """Fill the caches: every instruction once, with the functions that have tables of their own."""
    for i in wm.instructions():
        a, b, c = (np.zeros((i.layout(x).registers, 32), i.layout(x).packing.dtype) for x in OPERANDS[:3])
        more: dict[str, Any] = {}
        if i.sparse:
            more["metadata"] = np.full(32, 0x44444444, np.uint32)  # (0, 1), which all take
        if i.block_scale:
            more |= {f"scale_{x}": np.zeros(32, np.uint32) for x in "ab"}
            scaling.scale_place(i, "A", 0, 0)
        engines: tuple[Engine, ...] = ("numpy", "auto")
        for engine in engines:
            wm.store(i, "D", wm.execute(i, a, b, c, target=i.targets[-1], engine=engine, **more))
    for fmt in wm.FORMATS.values():
        fmt.decode(fmt.encode([0.0, 1.0]))


def ours(x: object) -> bool:
    return type(x).__module__.startswith("warpmma")


def inside(x: Any) -> Iterator[tuple[str, Any]]:
    """What an object holds."""
    if isinstance(x, Mapping):
        yield from ((f"[{key!r}]", value) for key, value in x.items())
    elif isinstance(x, list | tuple | set | frozenset):
        yield from ((f"[{n}]", value) for n, value in enumerate(x))
    elif isinstance(x, functools._lru_cache_wrapper):
        yield from ((".cache", value) for value in gc.get_referents(x) if isinstance(value, dict))
    elif isinstance(x, types.FunctionType) and x.__module__.startswith("warpmma"):
        yield from ((f".{n}", cell.cell_contents) for n, cell in enumerate(x.__closure__ or ()))
    elif not isinstance(x, type) and ours(x) and hasattr(x, "__dict__"):
        for name, member in vars(type(x)).items():
            if isinstance(member, functools.cached_property) and not name.startswith("_"):
                getattr(x, name)
        yield from ((f".{name}", value) for name, value in vars(x).items())


def reachable() -> Iterator[tuple[str, Any]]:
    """Every object that a module's names lead to, and how."""
    seen: dict[int, Any] = {}
    stack = [(f"{m.__name__}.{name}", x) for m in modules() for name, x in vars(m).items() if not name.startswith("__")]
    while stack:
        path, x = stack.pop()
        if id(x) in seen or isinstance(x, types.ModuleType):
            continue
        seen[id(x)] = x
        yield path, x
        stack += [(path + step, value) for step, value in inside(x)]


def test_no_cached_array_can_be_written() -> None:
    use_everything()
    arrays = {path: x for path, x in reachable() if isinstance(x, np.ndarray)}
    assert len(arrays) > 1000  # it does find them
    spare = {id(x) for x in SPARE._free}  # memory for launches to come, whose contents nothing reads
    assert not [path for path, x in arrays.items() if x.flags.writeable and id(x) not in spare]


def test_no_public_table_can_be_changed() -> None:
    tables = {f"{m.__name__}.{name}": getattr(m, name) for m in modules() for name in getattr(m, "__all__", ())}
    assert not [path for path, x in tables.items() if isinstance(x, dict | list | set | bytearray)]
    records = [x for x in tables.values() if is_dataclass(x) and not isinstance(x, type)]
    assert all(type(x).__dataclass_params__.frozen for x in records)  # type: ignore[attr-defined]


def derived(layout: Layout) -> list[Array]:
    return [layout.flat, *layout.slots, *layout.places, layout.packing.shifts]


@pytest.mark.parametrize("number", range(7))
def test_what_a_layout_derives_is_read_only(number: int) -> None:
    x = derived(wm.parse(F16).layout("A"))[number]
    with pytest.raises(ValueError, match="read-only"):
        x[...] += 1
    with pytest.raises(ValueError, match="cannot set WRITEABLE flag to True"):
        x.flags.writeable = True  # it is no array's own memory


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_records_bring_no_arrays_of_their_own(copied: Any) -> None:
    i = wm.parse(F16)
    fresh = copied(i)
    assert fresh == i and vars(fresh).keys() <= set(i.__dataclass_fields__)
    assert not [x for x in derived(fresh.layout("D")) if x.flags.writeable]
    layout = copied(i.layout("D"))
    assert layout == i.layout("D") and not [x for x in derived(layout) if x.flags.writeable]
    e4m3 = copied(wm.FORMATS["e4m3"])
    assert e4m3 == wm.FORMATS["e4m3"] and e4m3.decode([0x38]) == 1


def test_formats_can_be_read_only() -> None:
    assert not hasattr(wm.FORMATS, "__setitem__") and not hasattr(wm.FORMATS, "pop")
    with pytest.raises(
        wm.OperandError, match=r"^no format 'f17'; expected one of f64, f32, .*; did you mean 'f16'"
    ) as e:
        wm.FORMATS["f17"]
    assert isinstance(e.value, KeyError) and wm.FORMATS.get("f17") is None and "f17" not in wm.FORMATS
