"""Happens-before: vector clocks, fences, releases and acquires."""

from .access_words import BLOCK_BIT, THREAD_BIT, WARP_BIT, Who, block_of, thread_of
from .causality import Signals
from .happens_before import Clocks, History
from .vector_clock import Known, joined
