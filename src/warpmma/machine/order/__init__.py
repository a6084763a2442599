"""Happens-before: scopes, vector clocks, fences, releases and acquires."""

from .access_words import (
    AFTER_ALL,
    BLOCK_BIT,
    STRONG,
    THREAD_BIT,
    THREADS,
    WARP_BIT,
    Agents,
    Completes,
    asynchronous,
    at_time,
    block_of,
    blocks_of,
    completed_by,
    outside_scopes,
    thread_of,
    time_of,
)
from .acquired_clocks import AcquiredClocks
from .causality import SyncCells
from .cluster_clocks import Passed
from .happens_before import History, VectorClocks
from .late_writes import Key, LateWrites
from .thread_scopes import ThreadScope, ThreadScopes
from .vector_clock import RETURNED, VectorClock, joined
