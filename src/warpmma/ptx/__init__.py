"""Front end: PTX text, as nvcc, NVRTC, Triton and Numba emit it.

`load` reads a module; `module["name"].launch(device, grid, block, args)` runs an entry on a device.
"""

from .launch import EntryNeeds, ModuleNeeds, Parameter, PtxEntry, PtxModule, load, numba_arguments
from .names import entries_meant, source_name
from .text import Function, Module, declared, read

__all__ = [
    "EntryNeeds",
    "Function",
    "Module",
    "ModuleNeeds",
    "Parameter",
    "PtxEntry",
    "PtxModule",
    "declared",
    "entries_meant",
    "load",
    "numba_arguments",
    "read",
    "source_name",
]
