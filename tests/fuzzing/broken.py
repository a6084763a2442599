"""Objects that fail where an argument may be touched: each raises `Sabotage` from one method, and works elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["BROKEN", "Sabotage", "broken"]


class Sabotage(Exception):  # noqa: N818 - named for what it is
    """What broken objects raise: no error of Python's or of the package, so that it cannot pass for one."""


def _fail(*_: Any, **__: Any) -> Any:
    raise Sabotage("a broken object was touched")


def _type(name: str, **methods: Any) -> Callable[[], Any]:
    shown = {"__repr__": lambda self: f"{name}()", **methods}
    return type(name, (), shown)


def _subclass(name: str) -> Callable[[], Any]:
    """An array whose operations all fail."""
    kind = type(name, (np.ndarray,), {"__array_ufunc__": _fail, "__array_function__": _fail})
    return lambda: np.zeros((16, 16), np.uint32).view(kind)


_METHODS: dict[str, dict[str, Any]] = {
    "RaisingArray": {"__array__": _fail},
    "WrongArray": {"__array__": lambda self, dtype=None, copy=None: "no array"},
    "RaisingInterface": {"__array_interface__": property(_fail)},
    "WrongInterface": {"__array_interface__": {"shape": (2,), "typestr": "<f4", "version": 3}},
    "RaisingDlpack": {"__dlpack__": _fail, "__dlpack_device__": lambda self: (1, 0)},
    "WrongDlpack": {"__dlpack__": lambda self, **_: 5, "__dlpack_device__": lambda self: (1, 0)},
    "RaisingEq": {"__eq__": _fail, "__ne__": _fail, "__hash__": lambda self: 1},
    "RaisingHash": {"__hash__": _fail},
    "Unhashable": {"__hash__": None},
    "RaisingLen": {"__len__": _fail, "__getitem__": _fail},
    "NegativeLen": {"__len__": lambda self: -1, "__getitem__": lambda self, i: i},
    "RaisingRepr": {"__repr__": _fail, "__str__": _fail},
    "WrongRepr": {"__repr__": lambda self: 5, "__str__": lambda self: 5},
    "RaisingIndex": {"__index__": _fail, "__int__": _fail, "__float__": _fail},
    "WrongIndex": {"__index__": lambda self: "3"},
    "ThreeByIndex": {"__index__": lambda self: 3},
    "RaisingBool": {"__bool__": _fail},
    "RaisingIter": {"__iter__": _fail},
    "RaisingFormat": {"__format__": _fail},
    "RaisingGetattr": {"__getattr__": _fail},
    "RaisingOrder": {"__lt__": _fail, "__gt__": _fail, "__le__": _fail, "__ge__": _fail},
    "RaisingCall": {"__call__": _fail},
}

BROKEN: dict[str, Callable[[], Any]] = {
    **{name: _type(name, **methods) for name, methods in _METHODS.items()},
    "RaisingUfunc": _subclass("RaisingUfunc"),
}
"""Makers of such objects, by name."""


def broken(rng: np.random.Generator) -> Any:
    """Make one of them."""
    names = list(BROKEN)
    return BROKEN[names[rng.integers(len(names))]]()
