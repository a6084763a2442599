"""Execution: registers in, registers out; matrices in, matrices out."""

from .checks import Undefined, check_legal
from .matrices import load, mma, store
from .registers import evidence, execute

__all__ = ["Undefined", "check_legal", "evidence", "execute", "load", "mma", "store"]
