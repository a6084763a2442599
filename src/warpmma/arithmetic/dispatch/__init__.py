"""The choice of engine, and calls into the native one."""

from .engine import Engine, EngineWarning, Resolved, engine_text, engines, resolve, warn_of_numpy
from .evaluation import compute, dot, dot_chain, product
from .functions import special_function
from .native import Registers as NativeRegisters
from .native import code_fields
from .native import product as native_product
from .native_elements import ElementForm, run_elements, runs_elements
from .sequence_arrays import approximate, quotient_factors
