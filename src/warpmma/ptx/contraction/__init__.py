"""Which multiplications and additions ptxas fuses, and a body in which they are fused."""

from .alternatives import ALTERNATIVE, FACTORS
from .fusing import contracted
from .product_uses import HiddenRegisters, is_hidden
