"""Bit-exact simulation of NVIDIA's warp-level matrix instructions.

`load` fills registers from matrices, `execute` computes what an `mma` instruction computes from them on a target,
`store` collects the result, and `mma` does all three. `evidence` says how a result is known.
"""

from ._engines import engines
from ._evidence import Evidence
from .choice import Choice, choose
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
from .finding import find
from .formats import FORMATS
from .instructions import TARGETS, Instruction, instructions, parse
from .matmul import matmul
from .registers import RegisterFile

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
