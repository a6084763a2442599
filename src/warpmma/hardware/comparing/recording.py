"""Registers of every `mma` of a GPU, recorded as an archive that `warpmma verify` replays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from io import BytesIO

import numpy as np

from ..._arrays import Array
from ...arithmetic import recipe
from ...gpu import TextKernel, TextLaunch
from ...isa import Instruction
from ...registers import LANES
from ..emitting import ptx_kernel, ptx_module
from ..generators import instruction_inputs, metadata_words, mma_jobs, styles
from .rooms import Room

__all__ = ["archive_of", "recorded"]

_UNWRITTEN = 0xDEADBEEF


def recorded(
    room: Room, records: Iterable[Instruction], warps: int, seed: int, *, undefined: bool = False
) -> Iterator[tuple[Instruction, dict[str, Array]]]:  # fmt: skip
    """Run instructions on the GPU, in every style of operands.

    Parameters
    ----------
    room : Room
    records : iterable of Instruction
    warps : int
        For each style.
    seed : int
    undefined : bool
        Whether metadata may be such as PTX leaves undefined.

    Yields
    ------
    tuple of Instruction and dict of str to ndarray
        Fields of an archive, as `warpmma.hardware` describes them.

    Raises
    ------
    UnsupportedError
        The driver refuses.
    """
    for record in records:
        rng = np.random.default_rng([seed, *str(record).encode()])
        each = [instruction_inputs(record, room.target, x, warps, rng) for x in styles(recipe(record, room.target))]
        given = {name: np.concatenate([x[name] for x in each]) for name in each[0]}
        if record.sparse:
            given["e"] = metadata_words(record, room.target, len(given["a"]), rng, undefined=undefined)
        fields = dict(given)
        jobs = mma_jobs(record)
        for job in jobs if record.sparse else jobs[-1:]:
            if job.ids != jobs[-1].ids:
                continue
            fields[f"d{job.selector}" if record.sparse else "d"] = _executed(room, job.selector, job.ids, record, given)
        if record.block_scale:
            fields["ids"] = np.array(jobs[-1].ids)
        yield record, fields


def _executed(
    room: Room, selector: int, ids: tuple[int, int, int, int], record: Instruction, given: dict[str, Array]
) -> Array:  # fmt: skip
    layout, warps = record.layout("D"), len(given["a"])
    d = np.full((warps, layout.registers, LANES), _UNWRITTEN, layout.packing.dtype)
    words = [name for name in ("e", "sa", "sb") if name in given]
    arrays: dict[str, Array] = {x: given[x] for x in "abc"} | {"d": d} | {x: given[x] for x in words}
    addresses = [room.put(name, x) for name, x in arrays.items()]
    kernel = ptx_kernel(record, "recorded", selector=selector, ids=ids)
    room.launch(
        TextLaunch(
            kernel=TextKernel(text=ptx_module([kernel], room.target, room.ptx), name="recorded"), grid=warps,
            threads=LANES, given=np.array(addresses, np.uint64).tobytes(),
        )
    )  # fmt: skip
    room.get(addresses[3], d)
    return d


def archive_of(
    fields: Iterable[tuple[Instruction, dict[str, Array]]], target: str, device: str, *, undefined: bool = False
) -> bytes:
    """Put recordings together into an archive."""
    arrays = {"target": np.array(target), "device": np.array(device)}
    if undefined:
        arrays["undefined"] = np.array("hardware")
    for record, some in fields:
        arrays |= {f"{record}|{name}": x for name, x in some.items()}
    file = BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()
