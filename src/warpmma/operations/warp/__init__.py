"""Instructions that a warp's lanes execute together."""

from . import collectives, elections, fragments, wmma
from .fragments import MatrixMove
from .wmma import WmmaMove, WmmaMultiply

FORMS = (*elections.FORMS, *collectives.FORMS, *fragments.FORMS, *wmma.FORMS)
