"""Every instruction except `mma` and `wgmma` as a row: form, operands, computation, targets. No state."""

from .._lazy import renamed
from .arithmetic import divided_factors, folded_function, packing, shl, shr, unpacking
from .control import Control, Fence, Hint, Mbarrier, Stack, Trap
from .effects import Access, Barrier, Copy, CopyGroup, Exit
from .elements import float_code
from .memory import (
    REDUCED,
    AsyncStore,
    Atomic,
    BulkCopy,
    CacheControl,
    CachePolicy,
    MapPublication,
    MapReplacement,
    TensorCopy,
)
from .on_arrays import elementwise
from .records import DTYPES, UNDEFINED, InstructionRow, MemoryOrder, MemoryScope, Operation, RegisterType, register_type
from .table import evidence, matrix_move, matrix_moves, operation, operations, row, rows
from .variants import with_complement, with_selectors
from .versions import lowest_version
from .warp import MatrixMove, WarpgroupGroup, WarpgroupMultiply, WmmaMove, WmmaMultiply, warpgroup_multiply
from .windows import RANK_BIT, SPACES, WINDOWS, Space, Window, space_of, window_of

__getattr__ = renamed(__name__, {"Row": "InstructionRow"})

__all__ = [
    "DTYPES",
    "RANK_BIT",
    "REDUCED",
    "SPACES",
    "UNDEFINED",
    "WINDOWS",
    "Access",
    "AsyncStore",
    "Atomic",
    "Barrier",
    "BulkCopy",
    "CacheControl",
    "CachePolicy",
    "Control",
    "Copy",
    "CopyGroup",
    "Exit",
    "Fence",
    "Hint",
    "InstructionRow",
    "MapPublication",
    "MapReplacement",
    "MatrixMove",
    "Mbarrier",
    "MemoryOrder",
    "MemoryScope",
    "Operation",
    "RegisterType",
    "Space",
    "Stack",
    "TensorCopy",
    "Trap",
    "WarpgroupGroup",
    "WarpgroupMultiply",
    "Window",
    "WmmaMove",
    "WmmaMultiply",
    "divided_factors",
    "elementwise",
    "evidence",
    "float_code",
    "folded_function",
    "lowest_version",
    "matrix_move",
    "matrix_moves",
    "operation",
    "operations",
    "packing",
    "register_type",
    "row",
    "rows",
    "shl",
    "shr",
    "space_of",
    "unpacking",
    "warpgroup_multiply",
    "window_of",
    "with_complement",
    "with_selectors",
]
