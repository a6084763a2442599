"""Instructions that a warp's lanes execute together."""

from . import collectives, elections, fragments, warpgroups, wmma
from .fragments import MatrixMove
from .warpgroups import WarpgroupGroup, WarpgroupMultiply, warpgroup_multiply
from .wmma import WmmaMove, WmmaMultiply

FORMS = (*elections.FORMS, *collectives.FORMS, *fragments.FORMS, *warpgroups.FORMS, *wmma.FORMS)
