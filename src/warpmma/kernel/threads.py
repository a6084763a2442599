"""Threads: what a kernel written in Python computes with.

All warps of a batch of blocks go through the kernel together, instruction by instruction. Divergence is a mask: inside
`with t.where(p)` only lanes with p act. Python's own loops and ifs are the same for all threads.
"""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import machine
from .._arguments import is_integer
from .._arrays import Array, as_array
from ..errors import MnemonicError, OperandError, UnknownNameError, UnsupportedError, WarpmmaError, shown
from ..machine import Batch, Grid, HazardError, Site, fits
from ..operations import DTYPES, row
from ..registers import LANES
from .blocks import check_entry
from .bytecode import left_early
from .call_sites import caller
from .values import Register, settle

_NAMES = ("tid", "ntid", "ctaid", "nctaid", "laneid", "warpid", "target", "where", "any", "update", "constant",
          "register", "shape", "exists", "active", "cluster_ctarank", "cluster_nctarank", "shared")  # fmt: skip
_CUDA = {
    "threadIdx": "t.tid", "blockIdx": "t.ctaid", "blockDim": "t.ntid", "gridDim": "t.nctaid",
    "syncthreads": 't("bar.sync")', "syncwarp": 't("bar.warp.sync", membermask)',
}  # fmt: skip
_SPECIAL = (
    "clock", "clock_hi", "clock64", "globaltimer", "globaltimer_lo", "globaltimer_hi", "smid", "nsmid", "gridid",
    "nwarpid", "lanemask_eq", "lanemask_le", "lanemask_lt", "lanemask_ge", "lanemask_gt", "clusterid", "nclusterid",
    "cluster_ctaid", "cluster_nctaid", "is_explicit_cluster",
    "dynamic_smem_size", "total_smem_size", "aggr_smem_size",
)  # fmt: skip


class _Mask(AbstractContextManager[None]):
    """Which lanes act inside of a block, and outside again when it has ended."""

    def __init__(self, threads: Threads, inside: Array) -> None:
        self._threads, self._inside = threads, inside
        self._outside: list[tuple[Array | None, CodeType | None, int]] = []

    def __enter__(self) -> None:
        frame = sys._getframe(1)
        unread = None if check_entry(frame) else frame.f_code
        self._outside.append((self._threads._let(self._inside), unread, frame.f_lasti))

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        outside, unread, entered = self._outside.pop()
        self._threads._let(outside)
        frame = sys._getframe(1)
        if kind is None and unread is not None and left_early(frame, unread, entered):
            raise UnsupportedError(
                f"{Path(frame.f_code.co_filename).name}: `return`, `break` or `continue` inside the block "
                f"`with t.where(...)` of line {frame.f_lineno} acts for all lanes, also those that are masked off. "
                "Leave the block at its end, and mask what follows with the opposite predicate"
            )


class Threads:
    """The threads of a batch of blocks.

    `t(mnemonic, operands...)` executes an instruction, and returns its results: a register, or a tuple of them.
    Operands are registers, or Python numbers where PTX takes immediates; those of an `mma` are sequences of registers,
    one for each fragment, and then what PTX writes after C.

    Attributes
    ----------
    tid, ntid, ctaid, nctaid : tuple of Register
        PTX's special registers, x, y and z.
    laneid, warpid, cluster_ctarank, cluster_nctarank : Register
        PTX's special registers.
    shared : Register
    """

    def __init__(self, batch: Batch, grid: Grid, blocks: range) -> None:
        self._batch, self.target = batch, batch.target
        self._mask: Array | None = None
        self._active = self._alive = batch.lanes.alive
        self._grid, self._blocks = grid, blocks

    # Special registers, which many kernels do not read

    @cached_property
    def tid(self) -> tuple[Register, ...]:
        """The thread's index in its block: x, y and z."""
        return tuple(self._filled(x, "b32") for x in self._grid.tid())

    @cached_property
    def ctaid(self) -> tuple[Register, ...]:
        """The block's index in the grid: x, y and z."""
        return tuple(self._filled(x, "b32") for x in self._grid.ctaid(self._blocks))

    @cached_property
    def ntid(self) -> tuple[Register, ...]:
        """Threads of a block along x, y and z."""
        return tuple(self._filled(n, "b32") for n in self._grid.threads)

    @cached_property
    def nctaid(self) -> tuple[Register, ...]:
        """Blocks of the grid along x, y and z."""
        return tuple(self._filled(n, "b32") for n in self._grid.blocks)

    @cached_property
    def cluster_ctarank(self) -> Register:
        """The block's rank in its cluster."""
        return self._filled(self._grid.rank(self._blocks), "b32")

    @cached_property
    def cluster_nctarank(self) -> Register:
        """Blocks of a cluster."""
        return self._filled(self._grid.ranks, "b32")

    @cached_property
    def shared(self) -> Register:
        """Where the block's shared memory begins: its rank in the cluster times 2**24, so 0 without clusters."""
        return self._filled(self._batch.shared.starts, "b32")

    @cached_property
    def laneid(self) -> Register:
        """The thread's lane in its warp."""
        return self._filled(np.arange(LANES), "b32")

    @cached_property
    def warpid(self) -> Register:
        """The warp's index in its block."""
        return self._filled(np.arange(self.shape[1])[:, None], "b32")

    def __repr__(self) -> str:
        blocks, warps, _ = self.shape
        return f"<threads of {blocks} x {warps} warps on {self.target}>"

    def __getattr__(self, name: str) -> Any:
        hint = f": CUDA's {name} is {_CUDA[name]} here." if name in _CUDA else ""
        if name in _SPECIAL:
            hint = f": PTX's special register %{name} is not simulated."
        raise UnknownNameError.of("Threads", name, _NAMES, hint)

    # Lanes

    @property
    def shape(self) -> tuple[int, int, int]:
        """Blocks, warps of each and lanes."""
        return self._batch.shape

    @property
    def exists(self) -> Array:
        """Lanes that are threads, bool `[block, warp, lane]`: the last of a warp may not be."""
        return self._batch.lanes.exists

    @property
    def active(self) -> Array:
        """Lanes that act: threads that have not exited and are not masked off, bool `[block, warp, lane]`."""
        alive = self._batch.lanes.alive
        if self._alive is not alive:
            self._alive, self._active = alive, alive if self._mask is None else self._mask & alive
        return self._active

    def _let(self, lanes: Array | None) -> Array | None:
        """Let some lanes act, None for all; return those that did."""
        before, self._mask = self._mask, lanes
        self._alive = self._batch.lanes.alive
        self._active = self._alive if lanes is None else lanes & self._alive
        return before

    def where(self, predicate: Register) -> AbstractContextManager[None]:
        """Mask lanes off: only those with the predicate act inside, and write their lanes of registers alone.

        The block is left at its end: `return`, `break` and `continue` in it would act for all lanes, and are refused.
        """
        return _Mask(self, self.active & self._predicate("where", predicate))

    def any(self, predicate: Register) -> bool:
        """Whether any active lane has the predicate: `while t.any(p): with t.where(p): ...` loops until none has."""
        return bool((self.active & self._predicate("any", predicate)).any())

    def _predicate(self, name: str, predicate: Register) -> Array:
        if not isinstance(predicate, Register) or predicate.kind != "pred":
            raise OperandError(f"{name} takes a predicate, such as t.laneid < 16; got {shown(predicate)}")
        self._check_mine(predicate)
        return self._batch.read(caller(name), [predicate], [self.active])[0]

    # Instructions

    def __call__(self, mnemonic: str, *operands: Any) -> Any:
        """Execute an instruction.

        Raises
        ------
        WarpmmaError
            No such instruction, operands that do not fit it, or a hazard (`HazardError`). A note says where.
        """
        if not isinstance(mnemonic, str):
            raise MnemonicError(f"a mnemonic is a string such as 'ld.shared.b32'; got {shown(mnemonic)}")
        site = caller(mnemonic)
        try:
            return self._perform(site, row(mnemonic, self.target), operands)
        except HazardError:
            raise
        except WarpmmaError as error:
            error.add_note(f"executing {mnemonic} at {site.place} on {self.target}")
            raise

    def _perform(self, site: Site, instruction: Any, operands: Any) -> Any:
        """Execute a row."""
        for x in operands:
            self._check_mine(x)
        results = machine.execute(self._batch, site, instruction, operands, self.active)
        made = tuple(Register(self, x) for x in results)
        return made[0] if len(made) == 1 else made or None

    def _check_mine(self, x: Any) -> None:
        """Refuse registers of others, in fragments too; those that a `wgmma` has completed are values now."""
        if isinstance(x, Register):
            if x.threads is not self:
                raise OperandError("a register of another launch, or of other blocks: kernels keep none between calls")
            settle(x)
        elif isinstance(x, list | tuple):
            for each in x:
                if isinstance(each, Register):
                    self._check_mine(each)

    # Registers

    def register(self, values: npt.ArrayLike, dtype: npt.DTypeLike = np.uint32) -> Register:
        """Return a register that all lanes have written.

        Parameters
        ----------
        values : array_like of int or bool
            Integers that fit, signed or not, and bools for predicates; they broadcast to `[block, warp, lane]`. Bits of
            floats are `x.view(np.uint32)`.
        dtype : dtype
            uint16, uint32, uint64 or bool.

        Raises
        ------
        OperandError
            What is or fits none of these.
        """
        array, made = as_array(values, "register: the values"), _dtype(dtype)
        bits, pred = 8 * made.itemsize, made == np.bool_
        if array.dtype.kind not in ("b" if pred else "iu"):
            expected = "bools" if pred else "integers; bits of floats are x.view(np.uint32)"
            raise OperandError(f"register: the values are {array.dtype}; expected {expected}")
        if not pred and not all(fits(int(x), bits) for x in (array.min(initial=0), array.max(initial=0))):
            raise OperandError(f"register: the values are {array.min()} to {array.max()}, beyond {bits} bits")
        try:
            np.broadcast_to(array, self.shape)
        except ValueError:
            raise OperandError(
                f"register: the values are {array.shape}; expected what broadcasts to {self.shape}"
            ) from None
        return Register(self, machine.WarpRegister(np.broadcast_to(array.astype(made), self.shape)))

    def _filled(self, values: Any, kind: str) -> Register:
        return Register(self, self._batch.filled(values, kind))

    def constant(self, value: int | float, kind: str = "b32") -> Register:
        """Return a register with one value in every lane.

        Parameters
        ----------
        value : int, float or bool
            An integer that fits, signed or not; a float as f32 ("b32") or f64 ("b64"); a bool for "pred".

        Raises
        ------
        OperandError
            What does not fit.
        """
        if not isinstance(kind, str) or kind not in DTYPES:
            raise OperandError(f"a register is of {', '.join(DTYPES)}; got {shown(kind)}")
        bits = 8 * np.dtype(DTYPES[kind]).itemsize
        if isinstance(value, bool | np.bool_) and kind == "pred":
            return self._filled(value, kind)
        if isinstance(value, float | np.floating) and kind in ("b32", "b64"):
            with np.errstate(all="ignore"):  # rounding is the caller's wish, to infinity and below the least number too
                return self._filled(np.asarray(value, f"f{bits // 8}").view(f"u{bits // 8}"), kind)
        if not is_integer(value) or kind == "pred" or not fits(int(value), bits):
            raise OperandError(f"{shown(value)} is not a value of a {kind} register")
        return self._filled(np.asarray(int(value) & ((1 << bits) - 1), np.uint64), kind)

    def update(self, old: Register, new: Register) -> Register:
        """Return the register that keeps `old` in lanes that are masked off and has `new` in the others."""
        before, after = (self._number(x, "b32", "update: an operand") for x in (old, new))
        if before.kind != after.kind:
            raise OperandError(f"update of a {before.kind} register with a {after.kind} one")
        return Register(self, machine.merged(before, after, self.active))

    def _number(self, x: Any, kind: str, who: str) -> machine.WarpRegister:
        """Return a register of ours as it is, or one with a number in every lane."""
        self._check_mine(x)
        return self._batch.operand(x, kind, kind, who)


def _dtype(given: npt.DTypeLike) -> np.dtype[Any]:
    """Return the type of a register's bits."""
    with suppress(Exception):  # for an invalid type NumPy raises many kinds of exceptions and warnings
        dtype: np.dtype[Any] = np.dtype(given)
        if dtype in map(np.dtype, DTYPES.values()):
            return dtype
    raise OperandError(f"register: the type of bits is {shown(given)}; expected uint16, uint32, uint64 or bool")
