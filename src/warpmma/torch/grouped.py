"""Products of groups, as `torch.nn.functional.grouped_mm` and its gradients call them (`_grouped_mm`).

1. `offs` says where each group ends. Of A `[m, k]` and B `[group, k, n]` groups are of rows of A; of A `[group, m, k]`
   and B `[k, n]` of columns of B; of A `[m, k]` and B `[k, n]` of k, and D is `[group, m, n]`. Without `offs` A and B
   are batches.
2. Each group is a product of its own, whose chain begins at its first element. Rows and columns of no group, which
   PyTorch leaves as they are in memory, are zeros here.
3. Of tensors on a GPU the host does not read `offs`, so nothing waits: a kernel reads it. Groups of columns are rows of
   the transposed product. The report then has one product of all rows, or all of k.
"""

from __future__ import annotations

from typing import Any

from ..errors import OperandError
from .multiplying import grouped_sums
from .replaced import LEFT, OperatorCall
from .sums import Sums
from .tensors import array_of, dtype_name, pytorch


def grouped_product(call: OperatorCall) -> Any:
    """Compute `_grouped_mm`."""
    a, b, ends = (call.x[name] for name in ("self", "mat2", "offs"))
    type_ = call.float_type("self", "mat2")
    if type_ is None or call.x["bias"] is not None or not {a.ndim, b.ndim} <= {2, 3}:
        return LEFT
    out = call.output(type_)
    if ends is None:
        if not a.ndim == b.ndim == 3 or len(a) != len(b) or a.shape[-1] != b.shape[-2]:
            return LEFT
        x, y = (array_of(t, call.op) for t in (a, b))
        return call.rounded(call.summed(x, y, (type_, type_), out), out)
    groups = next((len(x) for x in (a, b) if x.ndim == 3), None)
    if a.ndim == b.ndim == 3 or a.shape[-1] != b.shape[-2] or groups not in (None, len(ends)) or ends.ndim != 1:
        return LEFT
    if dtype_name(ends.dtype) != "int32":
        raise OperandError(f"{call.op}: offs is {dtype_name(ends.dtype)}; expected int32")
    return (_on_gpu if a.device.type == "cuda" else _on_cpu)(call, a, b, ends, type_, out)


def _on_gpu(call: OperatorCall, a: Any, b: Any, ends: Any, type_: str, out: str) -> Any:
    """Rule 3."""
    if ends.device != a.device:
        raise OperandError(f"{call.op}: offs is on {ends.device}; expected {a.device}, where A is")
    x, y, places = (array_of(t, call.op) for t in (a, b, ends.contiguous()))
    of_columns = a.ndim == 3
    if of_columns:
        x, y = y.mT, x.mT
    sums: Sums = grouped_sums(x, y, places, (type_, type_), call.given)
    batch = 1 if 3 in (a.ndim, b.ndim) else len(ends)
    call.counted(sums, (a.shape[-2], b.shape[-1], a.shape[-1]), batch, (type_, type_), out)
    d = call.rounded(sums, out)
    return d.mT.contiguous() if of_columns else d


def _on_cpu(call: OperatorCall, a: Any, b: Any, ends: Any, type_: str, out: str) -> Any:
    """Rule 2, group by group."""
    torch = pytorch()
    along_k = a.ndim == b.ndim == 2
    length = a.shape[-1] if along_k else b.shape[-1] if a.ndim == 3 else a.shape[-2]
    stops = ends.tolist()
    starts = [0, *stops[:-1]]
    if any(not start <= stop <= length for start, stop in zip(starts, stops, strict=True)):
        raise OperandError(f"{call.op}: offs is {stops}; expected ascending ends of groups, at most {length}")
    made = []
    for i, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        part = slice(start, stop)
        of = (a[:, part], b[part]) if along_k else (a[i], b[:, part]) if a.ndim == 3 else (a[part], b[i])
        x, y = (array_of(t, call.op) for t in of)
        made.append(call.rounded(call.summed(x, y, (type_, type_), out), out))
    if along_k:
        return torch.stack(made) if made else torch.zeros(0, a.shape[0], b.shape[1], dtype=a.dtype)
    axis = 1 if a.ndim == 3 else 0
    shape = [a.shape[-2], b.shape[-1]]
    shape[axis] -= stops[-1] if stops else 0
    left = torch.zeros(shape, dtype=made[0].dtype if made else a.dtype)
    return torch.cat([*made, left], axis)
