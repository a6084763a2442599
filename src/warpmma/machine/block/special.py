"""Special registers: one table of what PTX lets a program read, and its values here.

The rules (PTX ISA 9.1, chapter 10):

1. What a launch determines is as on a GPU: %tid, %ntid, %ctaid, %nctaid, %laneid, %lanemask_*; %warpid is the number of
   the warp in its block. Components w are 0. Without clusters each block is one of its own.
2. What depends on a GPU and on what else runs there is invented, monotone and deterministic. %clock64 counts `_CYCLES`
   for every instruction that the machine has executed for any lanes of this batch of blocks; %globaltimer counts as
   many nanoseconds. Both continue over the batches of a launch if its `Limit` is passed on. %smid is the number of the
   block modulo %nsmid, which is 132, as on an H200. %pm and %envreg are 0; a front end may put the memory where the
   blocks of a grid meet in place of %envreg.
3. %total_smem_size is rounded up to 128 bytes; %aggr_smem_size adds what the system reserves, 1 KiB from sm_80 on. The
   offsets of that part are 0: none of it lies in a program's window.
4. A register may be read with fewer or more bits than it has: it is truncated or zero-extended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from ..._arrays import Array
from ...errors import RegisterError, UnknownNameError
from ...isa import TARGETS
from ...operations import DTYPES, RegisterType
from ...registers import LANES
from .batch import Batch
from .grid import Grid

_CYCLES = 16
MULTIPROCESSORS = 132
"""Of every simulated GPU: those of an H200."""
_UNIT, _RESERVED = 128, 1024  # bytes of shared memory


@dataclass(frozen=True, kw_only=True)
class Special:
    """A special register."""

    name: str  # without its %
    bits: int  # its width; 1 for a predicate
    value: Callable[[_Launch], Any]  # from a `_Launch` to an array that broadcasts to `[block, warp, lane]`
    moves: bool = False  # whether its value changes while a program runs


@dataclass(frozen=True)
class _Launch:
    """The launch that special registers describe: executed `steps`, and `static` bytes of declared variables."""

    batch: Batch
    grid: Grid
    static: int
    steps: int

    @property
    def lane(self) -> Array:
        return np.arange(LANES)

    @property
    def block(self) -> Array:
        return np.array(self.batch.blocks).reshape(-1, 1, 1)

    @property
    def shared(self) -> int:
        return -(-self.grid.shared // _UNIT) * _UNIT


def _vectors() -> dict[str, Special]:
    made: dict[str, Callable[[_Launch, int], Any]] = {
        "tid": lambda x, i: x.grid.tid()[i],
        "ntid": lambda x, i: x.grid.threads[i],
        "ctaid": lambda x, i: x.grid.ctaid(x.batch.blocks)[i],
        "nctaid": lambda x, i: x.grid.blocks[i],
        "clusterid": lambda x, i: x.grid.clusterid(x.batch.blocks)[i],
        "nclusterid": lambda x, i: x.grid.clusters[i],
        "cluster_ctaid": lambda x, i: x.grid.cluster_ctaid(x.batch.blocks)[i],
        "cluster_nctaid": lambda x, i: (x.grid.cluster or (1, 1, 1))[i],
    }
    parts = [_one(f"{name}.{'xyz'[i]}", partial(_part, value, i)) for name, value in made.items() for i in range(3)]
    return {x.name: x for x in (*parts, *(_zero(f"{name}.w") for name in made))}


def _part(value: Callable[[_Launch, int], Any], i: int, launch: _Launch) -> Any:
    return value(launch, i)


def _time(shift: int = 0) -> Callable[[_Launch], int]:
    return lambda x: x.steps * _CYCLES >> shift


def _masks() -> dict[str, Special]:
    made: dict[str, Callable[[Array], Array]] = {
        "eq": lambda lane: 1 << lane,
        "le": lambda lane: (2 << lane) - 1,
        "lt": lambda lane: (1 << lane) - 1,
        "ge": lambda lane: 0xFFFFFFFF & ~((1 << lane) - 1),
        "gt": lambda lane: 0xFFFFFFFF & ~((2 << lane) - 1),
    }
    return {f"lanemask_{x}": _one(f"lanemask_{x}", partial(_mask, f)) for x, f in made.items()}


def _mask(mask: Callable[[Array], Array], launch: _Launch) -> Array:
    return mask(launch.lane)


def _zero(name: str, bits: int = 32) -> Special:
    return Special(name=name, bits=bits, value=lambda x: 0)


def _one(name: str, value: Callable[[_Launch], Any], bits: int = 32, moves: bool = False) -> Special:
    return Special(name=name, bits=bits, value=value, moves=moves)


SPECIAL: Mapping[str, Special] = MappingProxyType(
    {
        **_vectors(),
        **_masks(),
        **{
            x.name: x
            for x in (
                _one("laneid", lambda x: x.lane),
                _one("warpid", lambda x: np.arange(x.batch.shape[1]).reshape(1, -1, 1)),
                _one("nwarpid", lambda x: TARGETS[x.batch.target].threads_per_sm // LANES),
                _one("smid", lambda x: x.block % MULTIPROCESSORS),
                _one("nsmid", lambda x: MULTIPROCESSORS),
                _one("gridid", lambda x: 1, 64),
                _one("clock", _time(), moves=True),
                _one("clock_hi", _time(32), moves=True),
                _one("clock64", _time(), 64, moves=True),
                _one("globaltimer", _time(), 64, moves=True),
                _one("globaltimer_lo", _time(), moves=True),
                _one("globaltimer_hi", _time(32), moves=True),
                _one("is_explicit_cluster", lambda x: x.grid.cluster is not None, 1),
                _one("cluster_ctarank", lambda x: x.grid.rank(x.batch.blocks)),
                _one("cluster_nctarank", lambda x: x.grid.ranks),
                _one("total_smem_size", lambda x: x.shared),
                _one("dynamic_smem_size", lambda x: max(0, x.grid.shared - x.static)),
                _one("aggr_smem_size", lambda x: x.shared + _RESERVED * (TARGETS[x.batch.target].capability >= (8, 0))),
                *(_zero(f"reserved_smem_offset_{x}") for x in ("begin", "end", "cap", "0", "1")),
                _zero("current_graph_exec", 64),
                *(_zero(f"envreg{i}") for i in range(32)),
                *(_zero(f"pm{i}") for i in range(8)),
                *(_zero(f"pm{i}_64", 64) for i in range(8)),
            )
        },
    }
)
"""All that there are, by name."""


def special_bits(name: str, kind: str, batch: Batch, grid: Grid, static: int, steps: int) -> Array:
    """Return the bits of a special register in all lanes, as a register of a class.

    Parameters
    ----------
    name : str
        Without its %: "tid.x".
    kind : {"b16", "b32", "b64", "pred"}
    batch, grid : Batch, Grid
    static : int
        Bytes of shared memory that are declared variables.
    steps : int
        Instructions that were executed before.

    Raises
    ------
    UnknownNameError
        An unknown special register.
    RegisterError
        A predicate that is read as bits, or the reverse.
    """
    if name not in SPECIAL:
        raise UnknownNameError.of("PTX's special registers", name, sorted(SPECIAL))
    found = SPECIAL[name]
    if (kind == "pred") != (found.bits == 1):
        has = "a predicate" if found.bits == 1 else f"{found.bits} bits"
        raise RegisterError(f"%{name} has {has}; it is read as {kind}")
    value = np.asarray(found.value(_Launch(batch, grid, static, steps)))
    cut = value.astype(np.uint64) & np.uint64((1 << found.bits) - 1)
    return np.broadcast_to(cut.astype(DTYPES[kind]), batch.shape)


def special_kind(name: str) -> RegisterType | None:
    """Return the class of registers that hold all bits of a special register; None for an unknown one.

    Examples
    --------
    >>> special_kind("tid.x"), special_kind("clock64"), special_kind("is_explicit_cluster"), special_kind("r1")
    ('b32', 'b64', 'pred', None)
    """
    found = SPECIAL.get(name)
    return None if found is None else _KINDS[found.bits]


_KINDS: dict[int, RegisterType] = {1: "pred", 32: "b32", 64: "b64"}
