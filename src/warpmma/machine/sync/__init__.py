"""Barriers, mbarriers and asynchronous operations."""

from .async_operations import AsyncOperation, AsyncOperations, Combine, Groups, Signal, Touched
from .barriers import Awaited, Barriers
from .cluster_barriers import ClusterBarrier
from .late_reads import LateReads
from .map_reads import MapReads
from .mbarrier_phases import MbarrierPhases
from .mbarrier_state import (
    FAULTS,
    MOST,
    PENDING_BIT,
    PHASE_BIT,
    VALID_BIT,
    Event,
    Events,
    MbarrierState,
    applied,
    applied_to_all,
    bytes_of,
    expected_of,
    pending_of,
)
from .product_times import ProductTimes
from .register_limits import RegisterLimits
from .timeline_recorder import TimelineRecorder, groups_of
from .warpgroup_products import WarpgroupProducts
