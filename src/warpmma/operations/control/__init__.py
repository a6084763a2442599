"""Instructions on threads and the order of memory: barriers, fences, exits, mbarriers, stacks."""

from . import barriers_and_exits, fences, phases, stacks
from .fences import Control, Fence, Hint, Trap
from .phases import Mbarrier
from .stacks import Stack

FORMS = (*barriers_and_exits.FORMS, *fences.FORMS, *phases.FORMS, *stacks.FORMS)
