"""Instructions that a warp's lanes execute together."""

from . import collectives, elections, fragments, warpgroup_rows, wmma
from .fragments import MatrixMove
from .warpgroup_rows import WarpgroupGroup, WarpgroupMultiply, warpgroup_multiply
from .wmma import WmmaMove, WmmaMultiply

FORMS = (*elections.FORMS, *collectives.FORMS, *fragments.FORMS, *warpgroup_rows.FORMS, *wmma.FORMS)
