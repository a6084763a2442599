"""The public surface: every callable that a user may reach, by name.

Public are the modules directly below `warpmma`, the faces of its packages, and those modules of packages that the
documentation names. Of a module it is what `__all__` lists; of a class its constructor, and the methods, operators and
properties that are written in the package.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from functools import cache, cached_property
from types import ModuleType
from typing import Any

import warpmma

__all__ = ["callables", "classes", "modules", "properties", "public_functions"]

NAMED = ("warpmma.arithmetic.recipes", "warpmma.testing.strategies")
"""Modules inside of packages that the documentation sends users to."""


def modules() -> list[ModuleType]:
    """List the public modules."""
    names = [m.name for m in pkgutil.iter_modules(warpmma.__path__) if not m.name.startswith("_")]
    return [
        warpmma,
        *(importlib.import_module(f"warpmma.{name}") for name in names),
        *map(importlib.import_module, NAMED),
    ]


@cache
def _exported() -> dict[str, Any]:
    """Return what is exported, by the first home that it has and its own name there; of one thing, once."""
    found: dict[int, tuple[str, Any]] = {}
    for module in modules():
        for name in getattr(module, "__all__", ()):  # a package may have no face
            x = getattr(module, name)
            found.setdefault(id(x), (f"{module.__name__}:{name}", x))
    return dict(found.values())


def classes() -> dict[str, type]:
    """Return the public classes that are the package's own, errors and warnings aside."""
    return {
        name: x
        for name, x in _exported().items()
        if inspect.isclass(x) and x.__module__.startswith("warpmma") and not issubclass(x, BaseException)
    }


def callables() -> dict[str, Any]:
    """Return functions, constructors, methods and operators."""
    kinds = classes()
    found = {name: x for name, x in _exported().items() if _function(x)} | kinds
    for name, kind in kinds.items():
        found |= {f"{name}.{member}": x for member, x in _members(kind).items() if callable(x)}
    return found


def _function(x: Any) -> bool:
    ours = getattr(x, "__module__", "").startswith("warpmma")
    return ours and (inspect.isfunction(x) or isinstance(x, functools._lru_cache_wrapper))


def properties(kind: type) -> list[str]:
    """List the properties of a class, computed once or every time."""
    return [member for member, x in _members(kind).items() if isinstance(x, property | cached_property)]


def public_functions(kind: type) -> list[str]:
    """List the methods and operators of a class."""
    return [member for member, x in _members(kind).items() if callable(x)]


def _members(kind: type) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for home in reversed(kind.__mro__):
        if home.__module__.startswith("warpmma"):
            found |= {member: x for member, x in vars(home).items() if _public(member, x)}
    return found


def _public(member: str, x: Any) -> bool:
    if isinstance(x, property | cached_property):
        return not member.startswith("_")
    if not inspect.isfunction(x) or "warpmma" not in x.__code__.co_filename:  # dataclass has written it
        return False
    return not member.startswith("_") or (member.endswith("__") and member not in ("__init__", "__post_init__"))
