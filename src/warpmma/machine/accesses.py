"""Instructions that touch memory: `ld`, `st`, `ldmatrix`, `stmatrix` and `cp.async`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arguments import is_integer
from ..errors import MnemonicError, OperandError, TargetError, shown
from ..isa import since
from ..kernel.literals import several
from ..kernel.values import DTYPES, Register
from ..operations import matrix_move
from ..registers import LANES
from .hazards import Site
from .memory import GlobalMemory, SharedMemory
from .warps import Warps

__all__ = ["Accesses"]

Array = npt.NDArray[Any]

_LOAD = re.compile(r"ld\.(global(?:\.nc)?|shared(?:::cta)?)(?:\.v([24]))?\.(?:([bsu])(8|16|32|64)|(f)(32|64))")
_STORE = re.compile(r"st\.(global|shared(?:::cta)?)(?:\.v([24]))?\.(?:([bsu])(8|16|32|64)|(f)(32|64))")
_COPY = re.compile(r"cp\.async\.(ca|cg)\.shared(?:::cta)?\.global(?:\.L2::(?:64|128|256)B)?")
_MOST_BYTES = 16
_WAITS = ("cp.async.wait_group", "cp.async.wait_all")


@dataclass
class _Copy:
    """A `cp.async` under way: where to, what, for which lanes; and how many groups its thread has committed since.

    Attributes
    ----------
    groups : ndarray of int
        Groups that the thread has committed since the copy's own; -1 while the copy is in no group.
    """

    site: Site
    address: Array
    data: Array
    active: Array
    groups: Array


class Accesses:
    """Executes them for the threads of a batch of blocks.

    Parameters
    ----------
    warps : Warps
    memory : GlobalMemory
    shared : SharedMemory
    """

    def __init__(self, warps: Warps, memory: GlobalMemory, shared: SharedMemory) -> None:
        self._warps, self._global, self._shared = warps, memory, shared
        self._copies: list[_Copy] = []

    def __call__(self, site: Site, operands: Sequence[Any]) -> Any:
        """Execute the instruction that a site names."""
        mnemonic = site.mnemonic
        if mnemonic.startswith("ldmatrix."):
            return self._load_matrix(site, *_exactly(site, operands, 1, "an address"))
        if mnemonic.startswith("stmatrix."):
            return self._store_matrix(site, operands)
        if mnemonic.startswith("cp.async"):
            return self._async(site, operands)
        access = (_LOAD if mnemonic.startswith("ld.") else _STORE).fullmatch(mnemonic)
        if access is None or int(access[2] or 1) * int(access[4] or access[6]) > 8 * _MOST_BYTES:
            raise MnemonicError(
                f"{mnemonic!r} is not simulated. Expected {mnemonic[:2]}.global or {mnemonic[:2]}.shared, "
                "then perhaps .v2 or .v4, then .b8 to .b64 (or .u8, .s8, .f32, ...); of 16 bytes at most"
            )
        space, count, type_, width = access[1][:6], int(access[2] or 1), access[3] or "f", int(access[4] or access[6])
        if mnemonic.startswith("ld."):
            return self._load(site, space, count, type_, width, *_exactly(site, operands, 1, "an address"))
        address, *values = _exactly(site, operands, 1 + count, f"an address and {count} value{'s' * (count > 1)}")
        return self._store(site, space, type_, width, address, values)

    def _load(self, site: Site, space: str, count: int, type_: str, width: int, address: Any) -> Any:
        where, size = self._address(site, space, address), count * width // 8
        self._count(site, space, where, size, self._warps.active)
        memory: Any = self._shared if space == "shared" else self._global
        data = memory.load(site, where, size, self._warps.active)
        words = data.view(f"{'i' if type_ == 's' else 'u'}{width // 8}")
        dtype = DTYPES[f"b{max(width, 16)}"]  # of 8 bits, 16 are made
        made = tuple(self._warps.made(np.ascontiguousarray(words[..., i]).astype(dtype)) for i in range(count))
        return made[0] if count == 1 else made

    def _store(self, site: Site, space: str, type_: str, width: int, address: Any, values: Sequence[Any]) -> None:
        warps, where = self._warps, self._address(site, space, address)
        kind = f"b{max(width, 16)}"
        registers = [
            _fits(site, warps.operand(x, f"{type_}{width}", kind, f"{site.mnemonic}: value {i}"), width)
            for i, x in enumerate(values)
        ]
        bits = warps.read(site, registers)
        data = np.stack([x.astype(f"u{width // 8}") for x in bits], axis=-1).view(np.uint8)
        self._count(site, space, where, data.shape[-1], warps.active)
        memory: Any = self._shared if space == "shared" else self._global
        memory.store(site, where, data, warps.active)

    def _address(self, site: Site, space: str, address: Any, lanes: Array | None = None) -> Array:
        width = 32 if space == "shared" else 64
        register = self._warps.operand(address, f"u{width}", f"b{width}", f"{site.mnemonic}: the address")
        if register.kind not in ("b32", "b64"):
            raise OperandError(f"{site.mnemonic}: an address is a b32 or b64 register; got {register.kind}")
        return self._warps.read(site, [register], lanes)[0]

    def _count(self, site: Site, space: str, address: Array, size: int, active: Array) -> None:
        if space == "shared":
            self._warps.costs.shared(site, address, size, active)
        else:
            self._warps.costs.moved(site, space, int(active.sum()) * size)

    # Matrices

    def _load_matrix(self, site: Site, address: Any) -> Any:
        move = matrix_move(site.mnemonic, self._warps.target)
        self._warps.check_whole(site)
        lanes = np.arange(LANES) < move.address_lanes
        where, active = self._address(site, "shared", address, lanes), self._warps.active & lanes
        self._count(site, "shared", where, move.row_bytes, active)
        data_bytes = (1 << len(move.layout.column)) * move.bits // 8  # the rest of a row is padding
        rows = self._shared.load(site, where, data_bytes, active, alignment=move.alignment)
        rows = rows[..., : move.address_lanes, :]
        if data_bytes < move.row_bytes:
            rows = np.concatenate([rows, np.zeros((*rows.shape[:-1], move.row_bytes - data_bytes), np.uint8)], axis=-1)
        matrices = rows.reshape(*rows.shape[:-2], move.matrices, move.rows_per_matrix, move.row_bytes)
        registers = move.distribute(matrices)
        made = tuple(self._warps.made(np.ascontiguousarray(registers[..., i, :])) for i in range(move.registers))
        return made[0] if len(made) == 1 else made

    def _store_matrix(self, site: Site, operands: Sequence[Any]) -> None:
        warps, move = self._warps, matrix_move(site.mnemonic, self._warps.target)
        warps.check_whole(site)
        number = move.registers
        address, *values = _exactly(site, operands, 1 + number, f"an address and {number} register{'s' * (number > 1)}")
        lanes = np.arange(LANES) < move.address_lanes
        where, active = self._address(site, "shared", address, lanes), warps.active & lanes
        packing = move.layout.packing
        type_ = several(f"b{packing.slot}", packing)
        registers = [warps.operand(x, type_, "b32", f"{site.mnemonic}: register {i}") for i, x in enumerate(values)]
        bits = warps.read(site, [_fits(site, x, 32, 32) for x in registers])
        rows = move.collect(np.stack(bits, axis=-2))
        data = np.zeros((*active.shape, move.row_bytes), np.uint8)
        data[..., : move.address_lanes, :] = rows.reshape(*active.shape[:-1], move.address_lanes, move.row_bytes)
        self._count(site, "shared", where, move.row_bytes, active)
        self._shared.store(site, where, data, active)

    # Asynchronous copies

    def _async(self, site: Site, operands: Sequence[Any]) -> None:
        if self._warps.target not in since("sm_80"):
            raise TargetError(f"{site.mnemonic} is not legal on {self._warps.target}; legal from sm_80 on")
        if site.mnemonic == "cp.async.commit_group":
            _exactly(site, operands, 0, "no operands")
            self._commit()
        elif site.mnemonic in _WAITS:
            of_group = site.mnemonic == _WAITS[0]
            (groups,) = _exactly(site, operands, 1, "a number of groups") if of_group else (
                *_exactly(site, operands, 0, "no operands"), -1
            )  # fmt: skip
            if not is_integer(groups) or (of_group and groups < 0):
                raise OperandError(f"{site.mnemonic} {shown(groups)}; expected a number of groups, a Python integer")
            self._wait(int(groups))
        elif _COPY.fullmatch(site.mnemonic) and len(operands) in (3, 4):
            self._copy(site, *operands)
        else:
            raise MnemonicError(
                f"{site.mnemonic} with {len(operands)} operands; expected cp.async.ca.shared.global or "
                "cp.async.cg.shared.global, with two addresses, the size and perhaps the size of the source; or "
                "cp.async.commit_group, .wait_group, .wait_all"
            )

    def _copy(self, site: Site, to: Any, source: Any, size: Any, source_size: Any = None) -> None:
        warps, active = self._warps, self._warps.active
        sizes = (16,) if ".cg." in site.mnemonic else (4, 8, 16)
        if not is_integer(size) or size not in sizes:
            raise OperandError(
                f"{site.mnemonic}: a copy of {shown(size)} bytes; expected {' or '.join(map(str, sizes))}"
            )
        size, where, start = int(size), self._address(site, "shared", to), self._address(site, "global", source)
        data = np.zeros((*active.shape, size), np.uint8)
        if source_size is None:
            data = self._global.load(site, start, size, active)
            moved = int(active.sum()) * size
        else:
            register = warps.operand(source_size, "u32", "b32", f"{site.mnemonic}: the size of the source")
            (given,) = warps.read(site, [_fits(site, register, 32, 32)])
            if (given[active] > size).any():
                raise OperandError(f"{site.mnemonic}: a source of {given[active].max()} bytes for a copy of {size}")
            moved = int(given[active].sum())
            for part in set(given[active].tolist()) - {0}:
                lanes = active & (given == part)
                data[..., :part] |= self._global.load(site, start, part, lanes, alignment=size)
        warps.costs.moved(site, "global", moved)
        warps.costs.shared(site, where, size, active)
        lanes = self._shared.reserve(site, where, size, active)
        self._copies.append(_Copy(site, where.astype(np.int64), data, lanes, np.full(active.shape, -1, np.int32)))

    def _commit(self) -> None:
        for copy in self._copies:
            copy.groups = copy.groups + self._warps.active  # copies in no group yet form one

    def _wait(self, groups: int) -> None:
        """Complete copies of all but the last so many groups of each active thread; -1 for all, committed or not."""
        for copy in self._copies:
            done = copy.active & self._warps.active & (copy.groups >= groups)
            if done.any():
                self._shared.complete(copy.site, copy.address, copy.data, done)
                copy.active = copy.active & ~done
        self._copies = [copy for copy in self._copies if copy.active.any()]


def _exactly(site: Site, operands: Sequence[Any], number: int, what: str) -> Sequence[Any]:
    """Check how many operands there are; a sequence of them counts as so many."""
    flat = [y for x in operands for y in (x if isinstance(x, list | tuple) else (x,))]
    if len(flat) != number:
        raise OperandError(f"{site.mnemonic} takes {what}; got {len(flat)} operand{'s' * (len(flat) != 1)}")
    return flat


def _fits(site: Site, register: Register, least: int, most: int = 64) -> Register:
    """Return a register whose width is right; a store may use the low bits of a wider one."""
    if register.kind == "pred" or not least <= int(register.kind[1:]) <= most:
        expected = f"b{least}" if least == most else f"{max(least, 16)} bits or more"
        raise OperandError(f"{site.mnemonic}: a register is {register.kind}; expected {expected}")
    return register
