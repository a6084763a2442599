"""Plain products among PyTorch's operators, below autograd, so that products of gradients are included.

`mm`, `bmm`, `addmm`, `baddbmm`, of vectors `mv`, `addmv`, `dot` and `vdot` (a vector is a matrix of one column, or
row), and operators composed of them: `matmul`, `linear`, `einsum`. Of two tensors of one floating-point type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from ..errors import OperandError
from ..formats import FORMATS
from .multiplying import summed
from .report import ProductReport, ReplacedProduct
from .settings import ProductSettings
from .sums import Sums
from .tensors import TYPES, array_of, dtype_for, dtype_name, tensor_of

LEFT = object()
"""Returned by a replacement for calls that it leaves to PyTorch, which computes or raises."""

_FLOATS = ("f16", "bf16", "f32", "f64")


@dataclass(frozen=True, kw_only=True, eq=False)
class OperatorCall:
    """A call of one of PyTorch's operators."""

    op: str  # as "aten::mm"
    x: Mapping[str, Any]  # arguments by the names of its schema
    given: ProductSettings
    report: ProductReport

    def array(self, name: str) -> Any:
        """Read a tensor among the arguments, as `array_of` does."""
        return array_of(self.x[name], f"{self.op}: {name}")

    def with_arguments(self, x: Mapping[str, Any]) -> OperatorCall:
        """Return the same with other arguments."""
        return replace(self, x=x)

    def rounded(self, sums: Sums, out: str) -> Any:
        """Round sums to the type of the output, as a tensor."""
        return tensor_of(sums.rounded(out))

    def summed(self, a: Any, b: Any, types: tuple[str, str], out: str, **more: Any) -> Sums:
        """Multiply as `multiplying.summed` does, and add the product to the report."""
        sums = summed(a, b, types, self.given, **more)
        *batch, m, n = sums.codes.shape
        self.counted(sums, (m, n, a.shape[-1]), int(np.prod(batch, dtype=int)), types, out)
        return sums

    def counted(self, sums: Sums, shape: tuple[int, int, int], batch: int, types: tuple[str, str], out: str) -> None:
        """Add a product to the report."""
        product = ReplacedProduct(
            op=self.op, shape=shape, batch=batch,
            dtypes=(FORMATS[types[0]].dtype.name, FORMATS[types[1]].dtype.name, dtype_name(dtype_for(out))),
            instruction=sums.instruction, target=self.given.target, split_k=sums.slices,
            promote_every=sums.promote_every,
        )  # fmt: skip
        self.report.products[product] += 1

    def float_type(self, *names: str) -> str | None:
        """Return the PTX type that dense tensors share, if products of it are replaced."""
        if any(dtype_name(self.x[name].layout) != "strided" for name in names):
            return None
        found = {TYPES.get(dtype_name(self.x[name].dtype)) for name in names}
        only = found.pop()
        return only if not found and only in _FLOATS else None

    def output(self, type_: str) -> str:
        """Return the PTX type of the result: that of the operands, or f32 if that is requested."""
        wanted = self.x.get("out_dtype")
        out = type_ if wanted is None else TYPES.get(dtype_name(wanted))
        if out not in (type_, "f32"):
            raise OperandError(f"{self.op}: out_dtype is {wanted}; expected that of the operands, or torch.float32")
        return out


def _matrices(a: str, b: str, dims: int, c: str = "") -> Callable[[OperatorCall], Any]:
    """Make the replacement of a product of these arguments, which may be added to another."""
    return lambda call: _product(call, call.x[a], call.x[b], dims, call.x[c] if c else None)


def _product(call: OperatorCall, a: Any, b: Any, dims: int, c: Any) -> Any:
    """Compute beta x C + alpha x A x B of matrices, or of batches of them."""
    names = [name for name, x in call.x.items() if any(x is y for y in (a, b, c) if y is not None)]
    type_ = call.float_type(*names)
    if type_ is None or a.ndim != dims or b.ndim != dims:
        return LEFT
    if a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
        return LEFT
    x, y = (array_of(t, f"{call.op}: {name}") for t, name in ((a, "A"), (b, "B")))
    shape = (*x.shape[:-1], y.shape[-1])
    z = None if c is None else array_of(c, f"{call.op}: C")
    if z is not None and not _broadcasts(z.shape, shape):
        return LEFT
    out = call.output(type_)
    sums = call.summed(x, y, (type_, type_), out)
    alpha, beta = (call.x.get(name, 1) for name in ("alpha", "beta"))
    return call.rounded(sums.scaled_and_added(alpha, beta if z is not None else 0, z, out), out)


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, to) == to
    except ValueError:
        return False


def _vector(name: str) -> Callable[[OperatorCall], Any]:
    """Make the replacement of a matrix times a vector, which may be added to `self`."""

    def run(call: OperatorCall) -> Any:
        a, b, c = call.x[name], call.x["vec"], None if name == "self" else call.x["self"]
        if a.ndim != 2 or b.ndim != 1 or (c is not None and c.ndim > 1):
            return LEFT
        x = {**call.x, "vec": b[:, None]}
        if c is not None and c.ndim:
            x["self"] = c = c[:, None]
        d = _product(call.with_arguments(x), a, x["vec"], 2, c)
        return d if d is LEFT else d.squeeze(1)

    return run


def _dot(other: str) -> Callable[[OperatorCall], Any]:
    """Make the replacement of a vector times a vector."""

    def run(call: OperatorCall) -> Any:
        a, b = call.x["self"], call.x[other]
        if a.ndim != 1 or b.ndim != 1:
            return LEFT
        x = {"self": a[None], other: b[:, None]}
        d = _product(call.with_arguments(x), x["self"], x[other], 2, None)
        return d if d is LEFT else d.squeeze()

    return run


PRODUCTS: Mapping[str, Callable[[OperatorCall], Any]] = MappingProxyType({
    "aten::mm": _matrices("self", "mat2", 2),
    "aten::bmm": _matrices("self", "mat2", 3),
    "aten::addmm": _matrices("mat1", "mat2", 2, "self"),
    "aten::baddbmm": _matrices("batch1", "batch2", 3, "self"),
    "aten::mv": _vector("self"),
    "aten::addmv": _vector("mat"),
    "aten::dot": _dot("tensor"),
    "aten::vdot": _dot("other"),
})  # fmt: skip
"""Replacements by operator name, without the "_" of those that write to their first argument."""
