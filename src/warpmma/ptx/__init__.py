"""Front end: PTX text, as nvcc, NVRTC, Triton and Numba emit it.

`load` reads a module; `module["name"].launch(device, grid, block, args)` runs an entry on a device.
"""

from .checking import EntryNeeds, ModuleNeeds
from .module_text import read
from .modules import PtxEntry, PtxModule, load
from .name_scopes import declared
from .numba_layout import numba_arguments
from .syntax import Function, Module
from .template_names import entries_meant, source_name

__all__ = [
    "EntryNeeds",
    "Function",
    "Module",
    "ModuleNeeds",
    "PtxEntry",
    "PtxModule",
    "declared",
    "entries_meant",
    "load",
    "numba_arguments",
    "read",
    "source_name",
]
