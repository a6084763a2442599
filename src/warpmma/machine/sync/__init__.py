"""Barriers, mbarriers and asynchronous operations."""

from .async_operations import AsyncOperations, Groups, Pending, Touched
from .barriers import Awaited, Barriers
from .cluster_barriers import ClusterBarrier
from .mbarrier_phases import MOST, PHASE_BIT, VALID_BIT, MbarrierPhases, MbarrierState
