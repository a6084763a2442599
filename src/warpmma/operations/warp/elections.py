"""`elect`: one lane of a group.

The rule (PTX ISA 9.1: `elect.sync`): every lane of the group, as defined in module `collectives`, gets the number of
the leader; only the leader gets true. PTX leaves the choice undefined; here it is the lowest lane.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._arrays import Array, frozen
from ...registers import LANES
from ..elements import operands
from ..forms import Form
from ..measurements import OPERATIONS, measured
from ..records import Operation
from .collectives import no_group

_LANE = frozen(np.arange(LANES))


def _elect(mask: Array, active: Array) -> tuple[Array, Array]:
    lowest = mask & (~mask + np.uint32(1))
    leader = np.bitwise_count(lowest - np.uint32(1)).astype(np.uint32)
    return leader, leader == _LANE


def _fields(words: tuple[str, ...]) -> dict[str, Any]:
    given = operands("u32 -> b32 pred", words)
    more = {"lanes": True, "masked": True, "sinks": (0,), "both": True}
    return {**given, "compute": _elect, "undefined": no_group, **more}


_LEADER = "which lane is elected,"
FORMS = (
    Form(
        spelling="elect .sync", kind=Operation, fields=_fields, evidence=measured("elect.sync", OPERATIONS),
        left_open=_LEADER, since="sm_90", ptx=(8, 0),
    ),
)  # fmt: skip
"""Every form of this module."""
