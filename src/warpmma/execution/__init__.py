"""Execution: registers in, registers out; matrices in, matrices out."""

from .loading import load, mma, mma_call, store
from .refusals import Ids as Ids
from .refusals import Undefined
from .running import Execution as Execution
from .running import evidence, execute
from .shared_operands import SharedOperand
from .warpgroups import WarpgroupExecution as WarpgroupExecution
from .warpgroups import WarpgroupOptions as WarpgroupOptions
from .warpgroups import codes_in_registers as codes_in_registers
from .warpgroups import in_registers as in_registers
from .warpgroups import signed as signed

__all__ = ["SharedOperand", "Undefined", "evidence", "execute", "load", "mma", "mma_call", "store"]
