"""Barriers, and copies that go on beside threads."""

from .arrivals import MOST, PHASE_BIT, VALID_BIT, MbarrierState, Phases
from .barriers import Awaited, Barriers
from .cluster_barriers import ClusterBarrier
from .copies import Bound, Copies, Kind
