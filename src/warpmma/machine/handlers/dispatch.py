"""The one door: a site, a row, its operands and the lanes that execute it.

A front end says which row comes next, for which lanes, and where in its source that is. What the row needs is found by
its class: an `Operation` computes from registers, an `Access` touches memory, and so on. Adding an instruction of a
known class is a row in `operations`; adding a class is a line in `_HANDLERS`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from operator import add
from typing import Any

from ..._arrays import Array
from ...isa import Instruction, PtxInstruction, WarpgroupInstruction
from ...operations import (
    Access,
    AsyncStore,
    Atomic,
    Barrier,
    BulkCopy,
    CacheControl,
    CachePolicy,
    Copy,
    CopyGroup,
    Exit,
    Fence,
    Hint,
    MapPublication,
    MapReplacement,
    MatrixMove,
    Mbarrier,
    Operation,
    Stack,
    TensorCopy,
    Trap,
    WarpgroupGroup,
    WarpgroupMultiply,
    WmmaMove,
    WmmaMultiply,
    warpgroup_multiply,
)
from ..base import Site
from ..block import Batch, Results
from . import (
    bulk_copying,
    caching,
    computing,
    copying,
    load_store,
    matrix_unit,
    mbarriers,
    synchronising,
    tensor_copying,
    tensor_maps,
    updating,
    warp_matrices,
    warpgroup_unit,
)
from .python_operands import bound
from .timeline_recording import Handler, recorded

_HANDLERS: Mapping[type, Handler] = {
    Operation: computing.compute,
    Access: load_store.access,
    Atomic: updating.update,
    MatrixMove: load_store.move,
    CacheControl: caching.control,
    CachePolicy: caching.policy,
    Copy: copying.copy,
    CopyGroup: copying.group,
    BulkCopy: bulk_copying.bulk,
    TensorCopy: tensor_copying.copy_box,
    MapReplacement: tensor_maps.replace,
    MapPublication: tensor_maps.publish,
    AsyncStore: bulk_copying.store_counted,
    Barrier: synchronising.barrier,
    Exit: synchronising.leave,
    Fence: synchronising.fence,
    Mbarrier: mbarriers.mbarrier,
    Hint: synchronising.hint,
    Trap: synchronising.trap,
    Stack: synchronising.stack,
    Instruction: matrix_unit.multiply,
    WmmaMove: warp_matrices.move_matrix,
    WmmaMultiply: warp_matrices.multiply_matrices,
    WarpgroupGroup: warpgroup_unit.group,
    WarpgroupMultiply: warpgroup_unit.multiply,
}

_REGISTERS = (Operation, Instruction, WmmaMultiply)  # rule 7 of `barriers`


def handler(row: PtxInstruction) -> Handler:
    """Return the function that executes a row on bound operands; the rest of `execute` is left to the caller."""
    return _HANDLERS[type(row)]


def execute(batch: Batch, site: Site, row: PtxInstruction, operands: Sequence[Any], lanes: Array) -> Results:
    """Execute an instruction on the operands of a kernel in Python, which are checked first.

    Parameters
    ----------
    batch : Batch
    site : Site
        Where it stands.
    row : PtxInstruction
    operands : sequence
        Registers, numbers for immediates and for values in every lane, and sequences of them for fragments; without the
        results.
    lanes : ndarray of bool
        `[block, warp, lane]`: who executes it. `batch.lanes.alive` itself, if all do.

    Returns
    -------
    tuple of WarpRegister

    Raises
    ------
    HazardError
        What is a hazard, and not asked to be a warning.
    OperandError
        Operands that do not fit the row.
    """
    if isinstance(row, WarpgroupInstruction):
        row = warpgroup_multiply(row, len(operands) > 1 and isinstance(operands[1], list | tuple))
    if batch.lanes.any_waiting and type(row) not in _REGISTERS and (lanes & batch.lanes.waiting).any():
        batch.stand(lanes, site)
    batch.costs.count(site, lanes)
    if batch.timeline is None:
        return _HANDLERS[type(row)](batch, site, row, bound(batch, row, operands), lanes)
    handle = recorded(_HANDLERS[type(row)], partial(add, batch.timeline.now, 1))
    return handle(batch, site, row, bound(batch, row, operands), lanes)
