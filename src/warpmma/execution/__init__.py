"""Execution: registers in, registers out; matrices in, matrices out."""

from .loading import load, mma, store
from .refusals import Undefined
from .running import evidence, execute
from .running import execute_checked as execute_checked

__all__ = ["Undefined", "evidence", "execute", "load", "mma", "store"]
