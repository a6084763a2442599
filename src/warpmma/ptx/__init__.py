"""Front end: PTX text, as nvcc, NVRTC, Triton and Numba emit it.

`load` reads a module; `module["name"].launch(device, grid, block, args)` runs an entry on a device.
"""

from .checking import EntryNeeds as EntryNeeds
from .checking import ModuleNeeds as ModuleNeeds
from .module_text import read as read
from .modules import PtxEntry as PtxEntry
from .modules import PtxModule as PtxModule
from .modules import load as load
from .name_scopes import declared as declared
from .syntax import Function as Function
from .syntax import Module as Module
