"""Modules, entries, arguments and launches."""

from .arguments import Parameter
from .checking import EntryNeeds, ModuleNeeds
from .modules import PtxEntry, PtxModule, load
from .numba_layout import numba_arguments
