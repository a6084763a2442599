"""Instructions on threads and the order of memory: barriers, fences, exits, mbarriers, stacks."""

from . import barriers_and_exits, fences, mbarrier_forms, stacks
from .fences import Control, Fence, Hint, Trap
from .mbarrier_forms import Mbarrier
from .stacks import Stack

FORMS = (*barriers_and_exits.FORMS, *fences.FORMS, *mbarrier_forms.FORMS, *stacks.FORMS)
