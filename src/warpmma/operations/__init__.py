"""Every instruction but `mma` and `wgmma` as a row: form, operands, what it computes, targets. No state."""

from .addresses import ClusterAddress
from .approximations import divided_factors
from .atomics import Atomic
from .bulk import AsyncStore, BulkCopy
from .caches import CacheControl, CachePolicy
from .effects import Access, Barrier, Copy, CopyGroup, Exit
from .elements import float_code
from .fences import Control, Fence, Hint, Trap
from .fragments import MatrixMove
from .integers import shl, shr
from .on_arrays import elementwise
from .phases import Mbarrier
from .records import (
    DTYPES,
    UNDEFINED,
    MemoryOrder,
    MemoryScope,
    Operation,
    RegisterType,
    Row,
    register_type,
)
from .stacks import Stack
from .table import (
    evidence,
    matrix_move,
    matrix_moves,
    operation,
    operations,
    row,
    rows,
)
from .variants import with_complement, with_selectors
from .vector_moves import packing, unpacking
from .windows import SPACES, WINDOWS, Space, Window, window_of
from .wmma import WmmaMove, WmmaMultiply

__all__ = [
    "DTYPES",
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
    "ClusterAddress",
    "Control",
    "Copy",
    "CopyGroup",
    "Exit",
    "Fence",
    "Hint",
    "MatrixMove",
    "Mbarrier",
    "MemoryOrder",
    "MemoryScope",
    "Operation",
    "RegisterType",
    "Row",
    "Space",
    "Stack",
    "Trap",
    "Window",
    "WmmaMove",
    "WmmaMultiply",
    "divided_factors",
    "elementwise",
    "evidence",
    "float_code",
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
    "unpacking",
    "window_of",
    "with_complement",
    "with_selectors",
]
