"""A batch of blocks: grid, lanes, special registers, and the state spaces of addresses."""

from .batch import Batch, Carried, Results
from .grid import Grid, plain_sizes, sizes_of
from .register_file import RegisterFile
from .special import MULTIPROCESSORS, SPECIAL, special_bits, special_kind
from .state_spaces import in_global, load, own, store, touches
