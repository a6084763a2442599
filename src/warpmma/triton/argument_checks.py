"""Arguments of a kernel before Triton sees them: NumPy arrays are wrapped, unsupported arguments are refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import OperandError, UnsupportedError
from .active_device import current
from .host_memory import HostArray, check_place

_CLUSTERS = (9, 0)  # the first compute capability that has them


def given_to_triton(
    names: Sequence[str], args: Sequence[Any], options: Mapping[str, Any], dtypes: Mapping[str, str]
) -> tuple[list[Any], dict[str, Any]]:
    """Return arguments and options of a kernel as Triton takes them; refuse clusters where it does not write them."""
    session, count = current(), options.get("num_ctas")
    if isinstance(count, int) and count > 1 and "num_ctas" not in names and session.capability < _CLUSTERS:
        raise UnsupportedError(
            f"num_ctas is {count}, and Triton writes for {session.ptx_target} here, which has no clusters; it writes "
            "for sm_90 in warpmma.triton.device('sm_90') without ptx_target"
        )
    called = [*names, *(f"argument {i}" for i in range(len(names), len(args)))]
    given = [for_triton(name, x, dtypes) for name, x in zip(called, args, strict=False)]
    named = {name: for_triton(name, x, dtypes) if name in names else x for name, x in options.items()}
    return given, named


def for_triton(name: str, x: Any, dtypes: Mapping[str, str]) -> Any:
    """Return an argument as Triton takes it.

    Refused are a tensor on a GPU, a type of elements that Triton does not have, a scalar of NumPy; a descriptor of such
    a tensor, too.
    """
    if isinstance(x, bool | int | float | str) or x is None:
        return x
    if isinstance(x, tuple):
        inner = [for_triton(f"{name}[{i}]", y, dtypes) for i, y in enumerate(x)]
        return type(x)(*inner) if hasattr(x, "_fields") else tuple(inner)
    if isinstance(x, np.generic):
        raise OperandError(f"{name} is {x!r}; Triton takes numbers of Python: give {name}.item()")
    if isinstance(x, np.ndarray):
        x = HostArray(x)
    if hasattr(x, "block_shape") and hasattr(x, "base"):  # a descriptor
        for_triton(f"{name}.base", x.base, dtypes)
    if hasattr(x, "data_ptr") and hasattr(x, "dtype"):
        check_place(name, x)
        dtype = str(x.dtype).rpartition(".")[2]
        if dtype not in dtypes:
            known = ", ".join(sorted({x for x, y in dtypes.items() if x != y}))
            raise OperandError(f"{name} is of {x.dtype}, which Triton does not take; it takes {known}")
    return x
