"""Bit-exact simulation of NVIDIA's warp-level matrix instructions.

`load` fills registers from matrices, `execute` computes what an `mma` instruction computes from them on a target,
`store` collects the result, and `mma` does all three. `evidence` says how a result is known.

Submodules, such as `warpmma.kernel`, `warpmma.sparsity` and `warpmma.testing`, are loaded when they are first used.
"""

import sys as _sys
from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from .arithmetic import Evidence, engines
from .errors import (
    ArchiveError,
    MetadataError,
    MnemonicError,
    OperandError,
    RegisterError,
    ScaleError,
    TargetError,
    UnknownNameError,
    UnsupportedError,
    WarpmmaError,
)
from .execution import evidence, execute, load, mma, store
from .formats import FORMATS
from .isa import TARGET_NAMES as TARGETS
from .isa import Instruction, find, instructions, parse
from .machine import RegisterFile
from .products import Choice, choose, matmul

if TYPE_CHECKING:  # what `__getattr__` below finds
    from . import arithmetic as arithmetic
    from . import cli as cli
    from . import errors as errors
    from . import execution as execution
    from . import formats as formats
    from . import hardware as hardware
    from . import isa as isa
    from . import kernel as kernel
    from . import layouts as layouts
    from . import machine as machine
    from . import operations as operations
    from . import products as products
    from . import registers as registers
    from . import scaling as scaling
    from . import show as show
    from . import sparsity as sparsity
    from . import testing as testing

__all__ = [
    "FORMATS",
    "TARGETS",
    "ArchiveError",
    "Choice",
    "Evidence",
    "Instruction",
    "MetadataError",
    "MnemonicError",
    "OperandError",
    "RegisterError",
    "RegisterFile",
    "ScaleError",
    "TargetError",
    "UnknownNameError",
    "UnsupportedError",
    "WarpmmaError",
    "choose",
    "engines",
    "evidence",
    "execute",
    "find",
    "instructions",
    "load",
    "matmul",
    "mma",
    "parse",
    "store",
]

__version__ = "0.1.0"

_SUBMODULES = (
    "arithmetic", "cli", "errors", "execution", "formats", "hardware", "isa", "kernel", "layouts", "machine",
    "operations", "products", "registers", "scaling", "show", "sparsity", "testing",
)  # fmt: skip


if not TYPE_CHECKING:  # to which every name would be one

    def __getattr__(name: str) -> object:
        if name not in _SUBMODULES:
            raise AttributeError(
                f"module {__name__!r} has no attribute {name!r}", name=name, obj=_sys.modules[__name__]
            )
        try:
            return _import_module(f".{name}", __name__)
        except ImportError as error:  # strategies, without hypothesis
            raise AttributeError(f"module {__name__!r} cannot load {name!r}: {error}") from error


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES})
