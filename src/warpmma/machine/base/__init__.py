"""The base of the machine: sites, lanes, registers of a warp, and the two engines of memory."""

from .atomic_order import in_turns
from .grain_engine import (
    WARPGROUP_BITS,
    Bits,
    GrainRuns,
    GrainTable,
    KnownRows,
    alike_in_blocks,
    all_set,
    count_readers,
    ends_reads,
    fill,
    none,
    note,
    ordered,
    ordered_by,
    repeats,
    set_flags,
    words_at,
)
from .lanes import Lanes, of_warpgroups
from .literals import fits, is_number, literal
from .memory_engine import (
    acting,
    alike,
    bounds,
    flat,
    get,
    in_blocks,
    joined,
    locate,
    move,
    new_pages,
    put,
    split,
    spread,
    store,
    store_order,
    words_of_lanes,
)
from .poison import Origin, Poison, PoisonBytes
from .site import Site
from .spare import LARGEST, SPARE
from .warp_register import (
    Fragment,
    FragmentRegister,
    RegisterShadow,
    WarpRegister,
    merged,
    merged_shadow,
    settled,
    with_shadow,
)
