"""The launcher that Triton's compiled kernel calls: it packs the arguments and launches the PTX."""

from __future__ import annotations

import operator
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..errors import OperandError, PtxError, shown
from ..machine import Hazard, HazardError
from ..operations import Access
from ..ptx import PtxEntry
from .active_device import ActiveDevice, KernelLaunch, current
from .compiling import dot_notes
from .host_descriptors import in_memory
from .host_memory import mapped_for_launch
from .launch_arguments import flat_arguments, parameter_bytes

_REPEATED = (
    "Where a tile has fewer elements than its program has threads, Triton loads each in several threads, which need "
    "not wait for the one that stores: tl.debug_barrier() between the two lines orders them"
)
_REDUCED = (
    "All lanes store the result of a reduction to one place, and not all have the same bits. In tl.sum(x * y) of one "
    "element a thread, Triton fuses the product into the first addition, and each lane rounds another one: launch with "
    "enable_fp_fusion=False. In tl.reduce, what merges (a, b) may round otherwise than what merges (b, a)"
)
_SCRATCH = {"global": "_allocator", "profile": "_profile_allocator"}
"""Scratch memory, in the order of the parameters, by what allocates it."""

_OWN_INSTRUCTIONS = (9, 0)  # the first capability whose tl.dot and descriptors are not those of earlier ones


class Launcher:
    """Runs one compiled kernel, with `source` and `metadata` as Triton's compiler gives them."""

    def __init__(self, source: Any, metadata: Any) -> None:
        self._metadata = metadata
        self._signature: Mapping[Any, Any] = dict(source.signature)
        names = getattr(source, "constants", None) or {}
        self._constants = {x: None for x in names if not isinstance(x, tuple)}

    def __call__(
        self, x: Any, y: Any, z: Any, stream: Any, entry: PtxEntry, packed: Any, launch_metadata: Any,
        enter: Any, leave: Any, *args: Any,
    ) -> None:  # fmt: skip
        """Launch it, between the two hooks; a grid without blocks runs nothing."""
        __tracebackhide__ = True
        if enter is not None:
            enter(launch_metadata)
        grid = _grid(x, y, z)
        if all(grid):
            self._launch(grid, stream, entry, args)
        if leave is not None:
            leave(launch_metadata)

    def _launch(self, grid: tuple[int, int, int], stream: Any, entry: PtxEntry, args: tuple[Any, ...]) -> None:
        __tracebackhide__ = True
        session, metadata, parameters = current(), self._metadata, entry.parameters
        descriptors = getattr(metadata, "tensordesc_meta", None) or ()
        flat = flat_arguments(self._signature, self._constants, args, descriptors)
        device = session.device_of(x for _, _, x in in_memory(flat))
        scratch = self._scratch(grid, stream, len(parameters) - len(flat))
        flat += [("scratch memory", "*i8", x) for x in scratch]
        params = parameter_bytes(flat, parameters)
        options = dict(session.options)
        if not _fuses(metadata):
            options["contract"] = "off"
        cooperative, blocks = getattr(metadata, "launch_cooperative_grid", False), self._blocks(grid)
        if cooperative:
            options["resident"] = None  # all blocks
        start = time.perf_counter()
        with mapped_for_launch(device, in_memory(flat)):
            try:
                report = entry.launch(
                    device, blocks, 32 * metadata.num_warps, params=params, shared=metadata.shared,
                    cluster=self._cluster if self._cluster > 1 else None, cooperative=bool(cooperative), **options,
                )  # fmt: skip
            except PtxError as error:
                raise _explained(error, session) from None
            except HazardError as error:
                if note := _note(error.hazard):
                    error.add_note(note)
                raise
        compiled = getattr(metadata, "warpmma_ptx_target", session.ptx_target)
        notes = dot_notes(getattr(metadata, "warpmma_dots", ()), metadata.num_warps, compiled, device.target)
        session.launches.append(
            KernelLaunch(
                name=entry.name, grid=grid, num_warps=metadata.num_warps, shared=metadata.shared, entry=entry,
                device=device, ptx_target=compiled, report=replace(report, notes=report.notes + notes),
                seconds=time.perf_counter() - start,
            )
        )  # fmt: skip

    @property
    def _cluster(self) -> int:
        """Blocks of the cluster that runs each program."""
        return getattr(self._metadata, "num_ctas", 1)

    def _blocks(self, grid: tuple[int, int, int]) -> tuple[int, int, int]:
        """Return the blocks of a grid of programs: those of a cluster lie along x, as in Triton's launcher."""
        return grid[0] * self._cluster, grid[1], grid[2]

    def _scratch(self, grid: tuple[int, int, int], stream: Any, count: int) -> list[Any]:
        """Ask the allocators for what the kernel wants, as Triton's launcher does."""
        if not 0 <= count <= 2:
            raise OperandError(
                f"{self._metadata.name}: its PTX takes {count} more parameters than Triton's signature has; 0 to 2 are "
                f"known, for scratch memory"
            )
        return [self._allocated(kind, grid, stream) for kind in list(_SCRATCH)[:count]]

    def _allocated(self, kind: str, grid: tuple[int, int, int], stream: Any) -> Any:
        if not (size := getattr(self._metadata, f"{kind}_scratch_size", 0)):
            return None
        from triton.runtime import _allocation

        known = getattr(_allocation, _SCRATCH[kind])
        allocate = known.get() if hasattr(known, "get") else known
        alignment = getattr(self._metadata, f"{kind}_scratch_align", 1)
        x, y, z = self._blocks(grid)
        return allocate(x * y * z * size, alignment, stream)


def _fuses(metadata: Any) -> bool:
    """Return whether Triton lets ptxas fuse: neither its own option nor those that are handed on say --fmad=false."""
    handed_on = str(getattr(metadata, "ptx_options", None) or "").replace(" ", "=")
    return bool(getattr(metadata, "enable_fp_fusion", True)) and "fmad=false" not in handed_on


def _grid(*sizes: Any) -> tuple[int, int, int]:
    try:
        x, y, z = (operator.index(n) for n in sizes)
    except TypeError:
        raise OperandError(f"the grid is {shown(sizes)}; expected integers") from None
    return x, y, z


def _explained(error: PtxError, session: ActiveDevice) -> PtxError:
    """Add to an error why Triton wrote what is not simulated: for the latest targets alone."""
    if session.capability < _OWN_INSTRUCTIONS:
        return error
    hint = f"\nTriton writes it for ptx_target={session.ptx_target!r}; with ptx_target='sm_80' or 'sm_89' it does not"
    return PtxError(str(error) + hint, error.file, error.line, error.column)


def _note(hazard: Hazard) -> str:
    """Return the cause of a race within a program that Triton's code makes, and not the kernel's."""
    if hazard.kind not in ("race", "lane order") or "of block" in hazard.detail:
        return ""
    if "in this very access" not in hazard.detail:
        return _REPEATED
    made = hazard.site.instruction
    stored = isinstance(made, Access) and made.direction == "store" and made.space == "shared"
    return _REDUCED if stored else ""
