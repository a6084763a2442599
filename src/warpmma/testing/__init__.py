"""Tests of kernels: comparison bit for bit, reports of differing bits, a pytest plugin, hypothesis strategies.

None of it needs pytest; with pytest, `warpmma.testing.plugin` adds the fixture `gpu`. `warpmma.testing.strategies`
needs hypothesis.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what `__getattr__` below finds
    from . import plugin as plugin
    from . import strategies as strategies
    from .assertions import assert_same_bits, ulps
    from .simulated import Gpu
    from .written import array_with

__all__ = ["Gpu", "array_with", "assert_same_bits", "ulps"]

# pytest loads the plugin at every start, whoever uses it: so its package loads what is asked for, and no more.
_HOMES = {"Gpu": "simulated", "array_with": "written", "assert_same_bits": "assertions", "ulps": "assertions"}
_SUBMODULES = ("plugin", "strategies")


if not TYPE_CHECKING:  # to which every name would be one

    def __getattr__(name: str) -> object:
        try:
            if name in _HOMES:
                return getattr(_import_module(f".{_HOMES[name]}", __name__), name)
            if name in _SUBMODULES:
                return _import_module(f".{name}", __name__)
        except ImportError as error:  # strategies, without hypothesis
            raise AttributeError(f"module {__name__!r} cannot load {name!r}: {error}") from error
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_SUBMODULES})
