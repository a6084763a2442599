"""Every instruction but `mma` and `wgmma` as a row: form, operands, what it computes, targets. No state."""

from .matrices import MatrixMove, matrix_move, matrix_moves
from .rows import Operation, operation, operations

__all__ = ["MatrixMove", "Operation", "matrix_move", "matrix_moves", "operation", "operations"]
