"""A batch of blocks: grid, lanes, special registers, and the state spaces that addresses lie in."""

from .batch import Batch, Results
from .grid import Grid
from .places import touches
from .register_file import RegisterFile
from .spaces import parts
from .special import SPECIAL, special_bits, special_kind
