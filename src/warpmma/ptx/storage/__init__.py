"""Storage of variables, parameters and registers."""

from .call_graph import Reach, callee, reach
from .slots import Declared, Slots, register_class
from .symbols import (
    EntryPlaces,
    FrameLayout,
    Key,
    ModuleMemory,
    SharedVariables,
    function_addresses,
    laid_out,
    local_variables,
    size_of,
)
