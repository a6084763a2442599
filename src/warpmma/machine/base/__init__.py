"""What the rest of the machine stands on: sites, lanes, registers of a warp, and the two engines of memory."""

from .grain_engine import GrainRuns, all_set, count_readers, fill, none, note, ordered
from .lanes import Lanes
from .literals import fits, is_number, literal
from .memory_engine import acting, alike, flat, joined, locate, split
from .site import Site
from .swizzles import CANDIDATES, Swizzle
from .transfers import get, put
from .turns import in_turns
from .warp_register import WarpRegister, merged
