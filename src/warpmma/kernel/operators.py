"""The integer operators of registers as rows: both operands are as wide as the wider, and unsigned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ..arithmetic import Evidence
from ..operations import Operation, shl, shr

__all__ = ["instruction"]

Array = npt.NDArray[Any]

_BITWISE = ("and", "or", "xor", "not", "shl")  # PTX has them as .b32, others as .u32


def _divide(divide: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    def apply(x: Array, y: Array) -> Array:
        return np.where(y != 0, divide(x, np.where(y == 0, 1, y).astype(x.dtype)), ~np.zeros_like(x))

    return apply


_COMPUTE: Mapping[str, Callable[[Array, Array], Array]] = {
    "add": np.add, "sub": np.subtract, "mul.lo": np.multiply,
    "div": _divide(np.floor_divide), "rem": _divide(np.remainder),
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": lambda x, _: ~x, "shl": shl, "shr": shr,
    "setp.lt": np.less, "setp.le": np.less_equal, "setp.gt": np.greater, "setp.ge": np.greater_equal,
    "setp.eq": np.equal, "setp.ne": np.not_equal,
}  # fmt: skip
_EVIDENCE = Evidence(
    kind="published", source="PTX ISA 9.1, Integer Arithmetic, Logic and Shift Instructions",
    assumption="that division by zero, which PTX leaves open, gives all ones, as on an H200",
)  # fmt: skip


@cache
def instruction(name: str, kind: str) -> Operation:
    """Return the row that an operator stands for, by the class of its operands.

    Examples
    --------
    >>> instruction("add", "b32").mnemonic, instruction("shl", "b64").mnemonic, instruction("and", "pred").mnemonic
    ('add.u32', 'shl.b64', 'and.pred')
    """
    compute = _COMPUTE[name]
    each = cast(Any, kind)
    return Operation(
        mnemonic=f"{name}.{kind if kind == 'pred' or name in _BITWISE else 'u' + kind[1:]}",
        inputs=(each, each), outputs=("pred" if name.startswith("setp") else each,),
        compute=lambda a, b: (compute(a, b),), since="sm_70", ptx=(1, 0), evidence=_EVIDENCE,
    )  # fmt: skip
