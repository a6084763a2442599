"""Control flow and liveness of a function."""

from .block_order import components, placed
from .control_flow import ENDS, JUMPS, BasicBlock, cut, graph
from .fusion_regions import Flow, traced
from .registers_used import Register, Uses, registers_of, symbols_of, uses
