"""Bit-exact simulator (emulator) of NVIDIA's tensor-core instructions, and of the GPU kernels that use them.

`load` fills registers from matrices, `execute` computes what an `mma` instruction computes from them on a target,
`store` collects the result, and `mma` does all three. `evidence` says how a result is known. `matmul` multiplies whole
matrices. On simulated blocks, `kernel.launch` runs kernels that are written in Python, and `ptx.load` reads those that
a compiler made: `ptx.load("kernel.ptx")["name"].launch(Device("sm_90"), grid, block, args)`.

Every name, and every submodule such as `warpmma.kernel`, is loaded when it is first used.

PYTEST_DONT_REWRITE: this is a pytest plugin that may be imported before pytest starts, which would be a warning.
"""

from typing import TYPE_CHECKING

from ._lazy import on_demand as _on_demand
from ._version import __version__ as __version__

if TYPE_CHECKING:  # what `_ORIGINS` says
    from . import analysis as analysis
    from . import arithmetic as arithmetic
    from . import cli as cli
    from . import cuda as cuda
    from . import cute as cute
    from . import errors as errors
    from . import execution as execution
    from . import formats as formats
    from . import hardware as hardware
    from . import isa as isa
    from . import kernel as kernel
    from . import layouts as layouts
    from . import lookup as lookup
    from . import machine as machine
    from . import operations as operations
    from . import products as products
    from . import ptx as ptx
    from . import registers as registers
    from . import scaling as scaling
    from . import show as show
    from . import sparsity as sparsity
    from . import testing as testing
    from . import torch as torch
    from . import triton as triton
    from .analysis import error, explain, explain_launch
    from .arithmetic import Evidence, engines
    from .errors import (
        ArchiveError,
        CompilationError,
        KernelError,
        LimitError,
        MetadataError,
        MnemonicError,
        OperandError,
        PtxError,
        RegisterError,
        ScaleError,
        TargetError,
        UnknownNameError,
        UnsupportedError,
        WarpmmaError,
    )
    from .execution import SharedOperand, evidence, execute, load, mma, store
    from .formats import FORMATS
    from .isa import TARGET_NAMES as TARGETS
    from .isa import Instruction, find, instructions, parse
    from .layouts import MatrixDescriptor, SharedTile, TensorMap
    from .lookup import diagnose_descriptor, what, where
    from .machine import Device, RegisterFile
    from .products import Choice, choose, matmul

__all__ = [
    "FORMATS",
    "TARGETS",
    "ArchiveError",
    "Choice",
    "CompilationError",
    "Device",
    "Evidence",
    "Instruction",
    "KernelError",
    "LimitError",
    "MatrixDescriptor",
    "MetadataError",
    "MnemonicError",
    "OperandError",
    "PtxError",
    "RegisterError",
    "RegisterFile",
    "ScaleError",
    "SharedOperand",
    "SharedTile",
    "TargetError",
    "TensorMap",
    "UnknownNameError",
    "UnsupportedError",
    "WarpmmaError",
    "choose",
    "diagnose_descriptor",
    "engines",
    "error",
    "evidence",
    "execute",
    "explain",
    "explain_launch",
    "find",
    "instructions",
    "load",
    "matmul",
    "mma",
    "parse",
    "store",
    "what",
    "where",
]

_ORIGINS = {
    ".": (
        "analysis", "arithmetic", "cli", "cuda", "cute", "errors", "execution", "formats", "hardware", "isa", "kernel",
        "layouts", "lookup", "machine", "operations", "products", "ptx", "registers", "scaling", "show", "sparsity",
        "testing", "torch", "triton",
    ),
    ".analysis": ("error", "explain", "explain_launch"),
    ".arithmetic": ("Evidence", "engines"),
    ".errors": (
        "ArchiveError", "CompilationError", "KernelError", "LimitError", "MetadataError", "MnemonicError",
        "OperandError", "PtxError", "RegisterError", "ScaleError", "TargetError", "UnknownNameError",
        "UnsupportedError", "WarpmmaError",
    ),
    ".execution": ("SharedOperand", "evidence", "execute", "load", "mma", "store"),
    ".formats": ("FORMATS",),
    ".isa": ("Instruction", "TARGET_NAMES as TARGETS", "find", "instructions", "parse"),
    ".layouts": ("MatrixDescriptor", "SharedTile", "TensorMap"),
    ".lookup": ("diagnose_descriptor", "what", "where"),
    ".machine": ("Device", "RegisterFile"),
    ".products": ("Choice", "choose", "matmul"),
}  # fmt: skip

if not TYPE_CHECKING:  # to which every name would be one
    __getattr__, __dir__ = _on_demand(__name__, _ORIGINS)
