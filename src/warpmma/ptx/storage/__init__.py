"""Where variables, parameters and registers lie."""

from .frames import FrameLayout, laid_out, size_of
from .reaching import Reach, callee, reach
from .slots import Declared, Slots, register_class
from .symbols import EntryPlaces, ModuleMemory, SharedVariables, function_addresses, local_variables
