"""From a statement and its row to a step's operands and results, by class of the row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...isa import Instruction, PtxInstruction
from ...operations import (
    Access,
    AsyncStore,
    Atomic,
    Barrier,
    BulkCopy,
    CacheControl,
    CachePolicy,
    ClusterAddress,
    Control,
    Copy,
    CopyGroup,
    Exit,
    MatrixMove,
    Operation,
    WmmaMove,
    WmmaMultiply,
)
from ..text import Statement
from .matched import Matched
from .matrix_steps import multiply_step, wmma_move_step, wmma_step
from .memory_steps import (
    access_step,
    atomic_step,
    bulk_step,
    cache_step,
    copy_step,
    counted_step,
    group_step,
    mapped_step,
    move_step,
    policy_step,
)
from .register_steps import operation_step
from .resolving import Resolver
from .thread_steps import barrier_step, control_step, exit_step


def match(names: Resolver, statement: Statement, row: PtxInstruction) -> Matched:
    """Return what a step of a statement has.

    Raises
    ------
    PtxError
        Operands that do not fit the row.
    """
    for kind, way in _WAYS.items():
        if isinstance(row, kind):
            return way(names, statement, row)
    raise names.fail(statement, f"rows of {type(row).__name__} are not simulated from PTX text")


_WAYS: Mapping[type, Callable[[Resolver, Statement, Any], Matched]] = {
    Operation: operation_step,
    Access: access_step,
    Atomic: atomic_step,
    MatrixMove: move_step,
    Copy: copy_step,
    CopyGroup: group_step,
    BulkCopy: bulk_step,
    AsyncStore: counted_step,
    Barrier: barrier_step,
    Control: control_step,
    CacheControl: cache_step,
    CachePolicy: policy_step,
    ClusterAddress: mapped_step,
    Exit: exit_step,
    Instruction: multiply_step,
    WmmaMove: wmma_move_step,
    WmmaMultiply: wmma_step,
}
