"""`explain`: how one element of D came about, from whole matrices, as one instruction or a whole product has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arguments import is_integer
from .._arrays import as_array
from ..arithmetic import evidence_of, recipe_of
from ..errors import OperandError, shown
from ..execution import mma
from ..isa import AnyInstruction, Instruction, check_target, parse_any
from ..products import Chain, Multiplicand, Operands, Product, is_dask, prepare
from ..scaling import Quantized, scale_codes
from ..sparsity import compress, positions, rows_met
from .chain_of_element import ElementCodes, exact_result, links
from .element_bounds import element_bound
from .explanation import Explanation
from .partings import parting_of

__all__ = ["explain"]

Array = npt.NDArray[Any]


def explain(
    instruction: str | AnyInstruction | None, a: Multiplicand, b: Multiplicand, c: npt.ArrayLike | None = None,
    row: int = 0, column: int = 0, *, target: str, against: str | None = None, matrix: int = 0,
    metadata: npt.ArrayLike | None = None, selector: int = 0, indices: npt.ArrayLike | None = None,
    scale_a: npt.ArrayLike | None = None, scale_b: npt.ArrayLike | None = None,
    split_k: int | Sequence[int] = 1, promote_every: int | None = None, epilogue: str | None = None,
) -> Explanation:  # fmt: skip
    """Tell how one element of D comes about, step by step, exactly.

    Parameters
    ----------
    instruction : str, Instruction, WarpgroupInstruction or None
        Of `mma` or `wgmma`; None for what `matmul` takes by default.
    a, b, c : array_like or Quantized
        Matrices: those of one instruction, as `mma` takes them, or of a whole product, as `matmul` does. There is no
        batch: explain one product of it. Without `c`, C is +0.
    row, column : int
        Of the element of D.
    target : str
    against : str, optional
        Another target, to be explained beside: the result says where the two part.
    matrix : int
        Which of the four matrices of `m8n8k4` with f16 operands, where all four are given.
    metadata, selector
        Of one sparse instruction, as for `mma`.
    indices : array_like of int, optional
        Of a sparse product, as for `matmul`.
    scale_a, scale_b : array_like, optional
        Block scales, as for `mma` and `matmul`.
    split_k, promote_every, epilogue
        Of a whole product, as for `matmul`.

    Returns
    -------
    Explanation

    Raises
    ------
    WarpmmaError
        As `mma` and `matmul` do; a batch, or an element that D has not.

    Examples
    --------
    >>> i = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    >>> A, B = np.full((16, 16), 0.1, np.float16), np.full((16, 8), 3, np.float16)
    >>> told = explain(i, A, B, row=3, column=5, target="sm_90", against="sm_80")
    >>> float(told.value), len(told.steps), len(told.against.steps)
    (4.798828125, 1, 2)
    >>> told.lost == -told.error == 0
    True
    >>> told.parting.reason
    'a step takes 16 products on sm_90, and 8 on sm_80'
    """
    given = {
        "c": c, "metadata": metadata, "selector": selector, "indices": indices, "scale_a": scale_a, "scale_b": scale_b,
        "split_k": split_k, "promote_every": promote_every, "epilogue": epilogue,
    }  # fmt: skip
    told = _explained(instruction, a, b, given, target, row, column, matrix)
    if against is None:
        return told
    other = _explained(instruction, a, b, given, against, row, column, matrix)
    return replace(told, against=other, parting=parting_of(told, other))


def _explained(
    instruction: str | AnyInstruction | None, a: Multiplicand, b: Multiplicand, given: dict[str, Any], target: str,
    row: int, column: int, matrix: int,
) -> Explanation:  # fmt: skip
    product = _product(instruction, a, b, dict(given), target)
    record, recipe = product.chain.instruction, product.chain.recipe
    batch, rows, columns = product.flat
    for name, value, count in (("row", row, rows), ("column", column, columns), ("matrix", matrix, batch)):
        if not is_integer(value) or not 0 <= value < count:
            raise OperandError(f"{record}: {name} is {shown(value)}; expected 0 to {count - 1}")
    element = ElementCodes.of(product, int(row), int(column), int(matrix))
    made, result = links(element)
    return Explanation(
        instruction=record, target=target, row=int(row), column=int(column), matrix=int(matrix), a=element.a,
        b=element.b, positions=element.positions, scale_a=element.scale_a, scale_b=element.scale_b, c=element.c,
        recipe=recipe, evidence=evidence_of(record, target), links=made, format=product.format.name, result=result,
        exact=exact_result(element), bound=element_bound(element),
    )  # fmt: skip


def _product(
    instruction: str | AnyInstruction | None, a: Multiplicand, b: Multiplicand, given: dict[str, Any], target: str
) -> Product:
    """Check operands and turn them into codes: of one instruction, or of a whole product."""
    if any(is_dask(x) for x in (a, b, given["c"])):
        raise OperandError("explain takes arrays in memory; give what compute() makes of a dask array")
    record = None if instruction is None else parse_any(instruction)
    metadata, selector = given.pop("metadata"), given.pop("selector")
    of_one = metadata is not None or not is_integer(selector) or selector != 0
    alone = is_integer(given["split_k"]) and given["split_k"] == 1
    alone = alone and all(given[name] is None for name in ("indices", "promote_every", "epilogue"))
    if isinstance(record, Instruction) and alone:
        check_target(record, target)
        if of_one or _fits_one(record, a, b):
            return _of_instruction(record, a, b, given, target, metadata, selector)
    if of_one:
        raise OperandError(
            f"{'matmul' if record is None else record}: metadata and a selector are of one mma and its matrices; give "
            "a whole product indices (see sparsity.compress), or a dense A that obeys the pattern"
        )
    product = prepare(a, b, instruction=record, target=target, **given)
    if len(product.shape) > 2:
        _refuse_batch(product.chain.instruction, product.shape)
    return product


def _refuse_batch(record: AnyInstruction, shape: tuple[int, ...]) -> None:
    raise OperandError(f"{record}: explain takes one product; D would be {shape}: give the matrices of one, A[i], B[i]")


def _fits_one(record: Instruction, a: Multiplicand, b: Multiplicand) -> bool:
    """Whether A and B have the shapes that `mma` takes, without a batch."""
    if isinstance(a, Quantized) or isinstance(b, Quantized):
        return False
    of_a, of_b = (as_array(x, f"{record}: {name}").shape for name, x in (("A", a), ("B", b)))
    stored = of_a == record.layout("A").shape
    return of_b == record.layout("B").shape and (stored or (record.sparse and of_a == (record.m, record.k)))


def _of_instruction(
    record: Instruction, a: Any, b: Any, given: dict[str, Any], target: str, metadata: Any, selector: int,
) -> Product:  # fmt: skip
    """Check operands as `mma` does, which computes with them; return their codes."""
    c, scale_a, scale_b = given["c"], given["scale_a"], given["scale_b"]
    d = mma(
        record, a, b, c, target=target, metadata=metadata, selector=selector, scale_a=scale_a, scale_b=scale_b
    )  # fmt: skip
    layout = record.layout("D")
    if d.shape != layout.shape:
        _refuse_batch(record, d.shape)
    of_a, chosen = as_array(a, f"{record}: A"), None
    if record.sparse and metadata is None:
        of_a, places = compress(of_a, record)
        chosen = rows_met(places, record).astype(np.intp)
    elif record.sparse:
        chosen = positions(metadata, record, selector=selector)
    of_c = np.zeros(layout.shape, record.format("C").code_dtype) if c is None else c
    scales = (
        None if scale_a is None else scale_codes(record, "A", scale_a),
        None if scale_b is None else scale_codes(record, "B", scale_b),
    )
    flat: list[Any] = [
        None if x is None else x.reshape(-1, *x.shape[-2:])
        for x in (record.format("A").codes(of_a), record.format("B").codes(b), chosen, *scales)
    ]
    chain = Chain(
        instruction=record, recipe=recipe_of(record, target), engine="numpy", k=record.k, slices=(0, record.k)
    )  # fmt: skip
    return Product(
        chain=chain, target=target, shape=layout.shape, given=Operands(*flat),
        c=record.format("C").codes(of_c).reshape(-1, record.m, record.n), tensor_scales=(), alpha=None, epilogue=None,
        format=record.format("D"),
    )  # fmt: skip
