"""`explain`: how one element of D is computed, by one instruction or by a whole product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, Protocol, TypedDict, Unpack, overload

import numpy as np
import numpy.typing as npt

from .._arguments import is_integer, members
from .._arrays import as_array
from ..arithmetic import recipe_of
from ..errors import OperandError, shown
from ..execution import mma_call
from ..isa import Instruction, MatrixInstruction, WarpgroupInstruction, check_target, plainest
from ..layouts import Operand
from ..products import (
    Chain,
    ChainInstruction,
    Float32,
    Multiplicand,
    Operands,
    Product,
    checked_float32,
    evidence_on,
    is_dask,
    prepare,
)
from ..scaling import Quantized, scale_codes
from ..sparsity import compress, positions, rows_met
from .chain_of_element import ElementCodes, exact_result, links
from .element_bounds import element_bound
from .explanation import Explanation, first_difference

_MOST_TARGETS = 1 << 10


class _Options(TypedDict, total=False):
    """Parameters of `explain` other than the instruction, operands and an element's place."""

    float32: Float32 | None
    target: str | None
    targets: Sequence[str] | None
    against: str | Sequence[str] | None
    matrix: int
    metadata: npt.ArrayLike | None
    selector: int
    indices: npt.ArrayLike | None
    scale_a: npt.ArrayLike | None
    scale_b: npt.ArrayLike | None
    split_k: int | Sequence[int]
    promote_every: int | None
    epilogue: str | None


class _Explain(Protocol):
    """Operands come first, as of `matmul`; or the instruction does, as of `mma`."""

    @overload
    def __call__(
        self, instruction: str | MatrixInstruction | None, a: Multiplicand, b: Multiplicand,
        c: npt.ArrayLike | None = None, row: int = 0, column: int = 0, **more: Unpack[_Options],
    ) -> Explanation: ...  # fmt: skip
    @overload
    def __call__(
        self, a: Multiplicand, b: Multiplicand, c: npt.ArrayLike | None = None, row: int = 0, column: int = 0, *,
        instruction: str | MatrixInstruction | None = None, **more: Unpack[_Options],
    ) -> Explanation: ...  # fmt: skip


def _in_either_order(call: Callable[..., Explanation]) -> _Explain:
    """Take the instruction before the operands too."""

    @wraps(call)
    def either(*given: Any, **more: Any) -> Explanation:
        if given and (given[0] is None or isinstance(given[0], str | Instruction | WarpgroupInstruction)):
            if "instruction" in more:
                raise OperandError(f"explain got two instructions: {shown(given[0])} and {shown(more['instruction'])}")
            given, more = given[1:], {**more, "instruction": given[0]}
        return call(*given, **more)

    return either


@_in_either_order
def explain(
    a: Multiplicand, b: Multiplicand, c: npt.ArrayLike | None = None, row: int = 0, column: int = 0, *,
    instruction: str | MatrixInstruction | None = None, float32: Float32 | None = None, target: str | None = None,
    targets: Sequence[str] | None = None, against: str | Sequence[str] | None = None, matrix: int = 0,
    metadata: npt.ArrayLike | None = None, selector: int = 0, indices: npt.ArrayLike | None = None,
    scale_a: npt.ArrayLike | None = None, scale_b: npt.ArrayLike | None = None,
    split_k: int | Sequence[int] = 1, promote_every: int | None = None, epilogue: str | None = None,
) -> Explanation:  # fmt: skip
    """Explain how one element of D is computed, step by step, exactly.

    Parameters
    ----------
    a, b, c : array_like or Quantized
        Matrices: those of one instruction, as `mma` takes them, or of a whole product, as `matmul` does. There is no
        batch: explain one product of it. Without `c`, C is +0.
    row, column : int
        Of the element of D.
    instruction : str, Instruction or WarpgroupInstruction, optional
        Of `mma` or `wgmma`, also as words such as "m16n8k16 f16", which name the plainest instruction that has them. It
        may also precede `a`. Default: the instruction that `matmul` uses.
    float32 : {"ieee", "tf32", "tf32-truncated"}, optional
        How float32 is multiplied, as for `matmul`.
    target : str
    targets : sequence of str, optional
        In place of `target` and `against`: the first is explained, and compared with each of the others.
    against : str or sequence of str, optional
        Other targets, to be compared with.
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
        As `mma` and `matmul` do; a batch, or an element that D has not; no target.

    Examples
    --------
    >>> A, B = np.full((16, 16), 0.1, np.float16), np.full((16, 8), 3, np.float16)
    >>> told = explain(A, B, row=3, column=5, targets=["sm_90", "sm_80", "sm_100"])
    >>> float(told.value), len(told.steps), [len(other.steps) for other in told.others]
    (4.798828125, 1, [2, 1])
    >>> told.lost == -told.error == 0
    True
    >>> [parting and parting.reason for parting in told.partings]
    ['a step takes 16 products on sm_90, and 8 on sm_80', None]
    >>> told = explain("m16n8k16 f16", A, B, target="sm_90")
    >>> print(told.instruction)
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
    """
    first, *others = _targets(target, targets, against)
    record = None if instruction is None else plainest(instruction, first)
    given = {
        "float32": checked_float32(float32, record), "c": c, "metadata": metadata, "selector": selector,
        "indices": indices, "scale_a": scale_a, "scale_b": scale_b, "split_k": split_k,
        "promote_every": promote_every, "epilogue": epilogue,
    }  # fmt: skip
    product = _product(record, a, b, dict(given), first)
    told = _explained(product, row, column, matrix)
    given["float32"] = product.chain.float32  # chosen once, with one warning
    beside = tuple(_explained(_product(record, a, b, dict(given), x), row, column, matrix) for x in others)
    return replace(told, others=beside, partings=tuple(first_difference(told, other) for other in beside))


def explain_codes(
    record: MatrixInstruction, target: str, a: Sequence[int], b: Sequence[int], c: int, *,
    rows: Sequence[int] | None = None, scale_a: Sequence[int] | None = None, scale_b: Sequence[int] | None = None,
) -> Explanation:  # fmt: skip
    """Explain how one instruction computes one element of D from codes, whatever its row and column.

    Parameters
    ----------
    record : Instruction or WarpgroupInstruction
    target : str
    a, b : sequence of int
        Codes of a row of A and of the elements of B that they meet; of a sparse A of what is stored.
    c : int
    rows : sequence of int, optional
        Of a sparse A: the rows of B that its elements meet.
    scale_a, scale_b : sequence of int, optional
        Codes of block scales.

    Returns
    -------
    Explanation

    Examples
    --------
    >>> from warpmma.isa import parse
    >>> i = parse("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    >>> float(explain_codes(i, "sm_90", [0x3C00] * 16, [0x4000] * 16, 0).value)
    32.0
    """

    def of(name: Operand, codes: Sequence[int]) -> Any:
        return np.array(codes, record.format(name).code_dtype)

    b_codes = np.zeros(record.k, record.format("B").code_dtype)
    b_codes[list(range(record.k) if rows is None else rows)] = of("B", b)
    chosen = None if rows is None else np.array(rows, np.intp)[None, None]
    scales = (
        None if scale_a is None else np.array(scale_a, np.uint8)[None, None],
        None if scale_b is None else np.array(scale_b, np.uint8)[None, :, None],
    )
    chain = Chain(
        instruction=record, recipe=recipe_of(record, target), engine="numpy", k=record.k, slices=(0, record.k),
        float32="tf32-truncated" if record.a_type == "tf32" else None,
    )  # fmt: skip
    product = Product(
        chain=chain, target=target, shape=(1, 1), c=of("C", [c])[None, None], tensor_scales=(), alpha=None,
        given=Operands(of("A", a)[None, None], b_codes[None, :, None], chosen, *scales), epilogue=None,
        format=record.format("D"),
    )  # fmt: skip
    return _explained(product, 0, 0, 0)


def _targets(target: object, targets: object, against: object) -> list[str]:
    """Return the target that is explained, and those that it is compared with."""
    if (target is None) == (targets is None) or (targets is not None and against is not None):
        raise OperandError("explain takes target='sm_90', with against= or without, or targets=['sm_80', 'sm_90']")
    name, given = ("against", against) if targets is None else ("targets", targets)
    several: Any = [given] if isinstance(given, str) else [] if given is None else members(given, _MOST_TARGETS)
    if several is None or not all(isinstance(x, str) for x in several) or (targets is not None and not several):
        raise OperandError(f"{name} is {shown(given)}; expected names of targets such as ['sm_80', 'sm_90']")
    found = several if target is None else [target, *several]
    if repeated := [x for i, x in enumerate(several) if x in several[:i]]:
        raise OperandError(f"{name} is {shown(given)}; {shown(repeated[0])} is named twice")
    return found


def _explained(product: Product, row: int, column: int, matrix: int) -> Explanation:
    record = product.chain.instruction
    batch, rows, columns = product.flat
    for name, value, count in (("row", row, rows), ("column", column, columns), ("matrix", matrix, batch)):
        if not is_integer(value) or not 0 <= value < count:
            raise OperandError(f"{record}: {name} is {shown(value)}; expected 0 to {count - 1}")
    element = ElementCodes.of(product, int(row), int(column), int(matrix))
    made, result = links(element)
    return Explanation(
        instruction=record, target=product.target, row=int(row), column=int(column), matrix=int(matrix), a=element.a,
        b=element.b, positions=element.positions, scale_a=element.scale_a, scale_b=element.scale_b, c=element.c,
        recipe=product.chain.recipe, evidence=evidence_on(record, product.target), links=made,
        format=product.format.name, result=result, exact=exact_result(element), bound=element_bound(element),
        float32=product.chain.float32,
    )  # fmt: skip


def _product(
    record: MatrixInstruction | None, a: Multiplicand, b: Multiplicand, given: dict[str, Any], target: str
) -> Product:
    """Check operands and turn them into codes: of one instruction, or of a whole product."""
    if any(is_dask(x) for x in (a, b, given["c"])):
        raise OperandError("explain takes arrays in memory; call compute() on a dask array first")
    metadata, selector = given.pop("metadata"), given.pop("selector")
    of_one = metadata is not None or not is_integer(selector) or selector != 0
    alone = is_integer(given["split_k"]) and given["split_k"] == 1
    alone = alone and all(given[name] is None for name in ("indices", "promote_every", "epilogue"))
    if isinstance(record, Instruction) and alone and not (record.a_type == "tf32" and given["float32"] == "tf32"):
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


def _refuse_batch(record: ChainInstruction, shape: tuple[int, ...]) -> None:
    raise OperandError(f"{record}: explain takes one product; D would be {shape}: give the matrices of one, A[i], B[i]")


def _fits_one(record: Instruction, a: Multiplicand, b: Multiplicand) -> bool:
    """Return True if A and B have the shapes that `mma` takes, without a batch."""
    if isinstance(a, Quantized) or isinstance(b, Quantized):
        return False
    of_a, of_b = (as_array(x, f"{record}: {name}").shape for name, x in (("A", a), ("B", b)))
    stored = of_a == record.layout("A").shape
    return of_b == record.layout("B").shape and (stored or (record.sparse and of_a == (record.m, record.k)))


def _of_instruction(
    record: Instruction, a: Any, b: Any, given: dict[str, Any], target: str, metadata: Any, selector: int
) -> Product:
    """Check operands as `mma` does; return their codes."""
    c, scale_a, scale_b = given["c"], given["scale_a"], given["scale_b"]
    call = mma_call(record, a, b, c, target, metadata, selector, scale_a=scale_a, scale_b=scale_b)
    layout = record.layout("D")
    if call.batch:
        _refuse_batch(record, (*call.batch, *layout.shape))
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
        instruction=record, recipe=recipe_of(record, target), engine="numpy", k=record.k, slices=(0, record.k),
        float32="tf32-truncated" if record.a_type == "tf32" else None,
    )  # fmt: skip
    return Product(
        chain=chain, target=target, shape=layout.shape, given=Operands(*flat),
        c=record.format("C").codes(of_c).reshape(-1, record.m, record.n), tensor_scales=(), alpha=None, epilogue=None,
        format=record.format("D"),
    )  # fmt: skip
