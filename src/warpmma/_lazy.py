"""Imports on first use: names of a package, and modules such as NumPy.

A package lists the origins of its names as its imports would: `{".isa": ("find", "TARGET_NAMES as TARGETS")}` stands
for `from .isa import find, TARGET_NAMES as TARGETS`, and `{".": ("isa",)}` for `from . import isa`. It writes these
statements too, for type checkers, and a test compares the two.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def on_demand(
    package: str, origins: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Make `__getattr__` and `__dir__` of a package from its names, by the module that they come from.

    A module of the package that cannot be imported, because a dependency is missing, is not an attribute:
    so the package can be looked through without it, as `help` does. Any other name then raises the `ImportError`.
    """
    module = sys.modules[package]
    sources: dict[str, tuple[str, str]] = {}
    for origin, names in origins.items():
        for written in names:
            there, _, here = written.partition(" as ")
            sources[here or there] = origin, there

    def __getattr__(name: str) -> object:  # noqa: N807
        if name not in sources:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=module)
        origin, there = sources[name]
        if origin != ".":
            value: object = getattr(import_module(origin, package), there)
        else:
            try:
                value = import_module(f".{there}", package)
            except ImportError as error:
                raise AttributeError(f"module {package!r} cannot load {name!r}: {error}") from error
        setattr(module, name, value)  # Python asks no second time
        return value

    def __dir__() -> list[str]:  # noqa: N807
        return sorted({*vars(module), *sources})

    return __getattr__, __dir__


class _Later:
    """A proxy for a module. A name becomes an attribute on first access: later look-ups are as fast as in a module."""

    def __init__(self, name: str, package: str | None) -> None:
        self.__name__, self.__package__ = name, package

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self.__name__, self.__package__), name)
        setattr(self, name, value)
        return value


def renamed(package: str, names: Mapping[str, str]) -> Callable[[str], object]:
    """Make `__getattr__` of a package for former names: each gives the object of its new name, with a warning."""
    module = sys.modules[package]

    def __getattr__(name: str) -> object:  # noqa: N807
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=module)
        warnings.warn(f"{package}.{name} is named {names[name]} now", DeprecationWarning, stacklevel=2)
        return getattr(module, names[name])

    return __getattr__


def later(name: str, package: str | None = None) -> Any:
    """Return a stand-in for a module, which is imported when one of its names is first used.

    Examples
    --------
    >>> later("math").gcd(12, 18)
    6
    """
    return _Later(name, package)
