"""Execution: registers in, registers out; matrices in, matrices out."""

from .loading import load, mma, mma_call, store
from .refusals import Ids as Ids
from .refusals import Undefined
from .running import Execution as Execution
from .running import evidence, execute
from .shared_operands import SharedOperand

__all__ = ["SharedOperand", "Undefined", "evidence", "execute", "load", "mma", "mma_call", "store"]
