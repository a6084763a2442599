"""Execution: registers in, registers out; matrices in, matrices out."""

from .loading import load, mma, store
from .refusals import Undefined
from .running import evidence, execute

__all__ = ["Undefined", "evidence", "execute", "load", "mma", "store"]
