"""Control flow and liveness of a function."""

from .basic_blocks import ENDS, BasicBlock, cut
from .block_order import placed
from .regions import Flow, traced
from .registers_used import Register, Uses, registers_of, symbols_of, uses
