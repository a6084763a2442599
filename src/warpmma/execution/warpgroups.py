"""`wgmma` on operands: codes of A, B and C in, codes of D out.

1. D = A B + C. C is D's registers before the instruction; if `scale_d` is false they are not read, and C is +0.
2. `imm_a` and `imm_b` of -1 flip the sign of every element of A or B first, of zeros, infinities and NaN too. Integers
   and single bits have no such immediate.
3. Metadata and selector say which row of B a stored element of A is multiplied by; undefined metadata is refused, or
   read as an H200 does.
4. Registers of a warpgroup are `[..., register, 128]`; `[..., 4, register, 32]`, a warp at a time, is read as well.

Sources: docs/specification/wgmma.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from .._arguments import is_integer
from .._arrays import Array, as_array, frozen
from .._progress import for_each
from ..arithmetic import Engine, Recipe, dot_chain, recipe_of, resolve
from ..errors import OperandError, shown
from ..formats import FloatFormat
from ..isa import MatrixInstruction, WarpgroupInstruction, check_target
from ..layouts import Operand
from ..registers import LANES, WARPS
from ..sparsity import sparse_a
from .batches import CHUNK, NATIVE_CHUNK, cut
from .refusals import Undefined, check_selector, check_sparse
from .shared_operands import SharedOperand, check_shared, codes_of


@dataclass(frozen=True, kw_only=True)
class WarpgroupOptions:
    """What a `wgmma` has beside its matrices (rules 1 to 3)."""

    scale_d: bool = True
    imm_a: int = 1
    imm_b: int = 1
    selector: int = 0
    undefined: Undefined = "error"

    def check(self, record: MatrixInstruction) -> None:
        """Raise `OperandError` or `MetadataError` for an option that the instruction does not take."""
        if not isinstance(self.scale_d, bool | np.bool_):
            raise OperandError(f"{record}: scale_d is {shown(self.scale_d)}; expected a bool")
        floating = isinstance(record.format("A"), FloatFormat)
        for name, sign in (("imm_a", self.imm_a), ("imm_b", self.imm_b)):
            if not is_integer(sign) or sign not in (1, -1):
                raise OperandError(f"{record}: {name} is {shown(sign)}; expected 1 or -1")
            if sign == -1 and not floating:
                raise OperandError(f"{record}: {name} is -1, but PTX negates floating-point operands only; expected 1")
        check_selector(record, self.selector, self.undefined)


@dataclass(frozen=True, kw_only=True, eq=False)
class WarpgroupExecution:
    """A checked call: codes with the same leading dimensions, or ones that broadcast.

    A is `[..., 64, k]` (stored elements, k/2, of a sparse one), B `[..., k, n]`, C `[..., 64, n]` or None for +0,
    metadata registers `[..., 128]`. Single bits are words of 32 along k.
    """

    instruction: WarpgroupInstruction
    target: str
    options: WarpgroupOptions
    a: Array
    b: Array
    c: Array | None
    metadata: Array | None
    engine: Engine

    @cached_property
    def batch(self) -> tuple[int, ...]:
        """Leading dimensions of D."""
        given = {"A": self.a.shape[:-2], "B": self.b.shape[:-2]}
        if self.c is not None:
            given["C"] = self.c.shape[:-2]
        if self.metadata is not None:
            given["metadata"] = self.metadata.shape[:-1]
        try:
            return np.broadcast_shapes(*given.values())
        except ValueError:
            raise OperandError(f"{self.instruction}: batches do not broadcast: {given}") from None

    def run(self, threads: int | None) -> Array:
        """Compute codes of D, `[..., 64, n]`."""
        record, batch = self.instruction, self.batch
        recipe, engine = recipe_of(record, self.target), resolve(self.engine)
        mixed = self.metadata is not None and check_sparse(
            record, self.metadata, self.options.selector, self.options.undefined, self.target
        )
        shape = (record.m, record.n)
        code = record.format("D").code_dtype
        zero = np.zeros(shape, record.format("C").code_dtype)
        parts = [
            None
            if x is None
            else np.broadcast_to(x, (*batch, *x.shape[x.ndim - own :])).reshape(
                math.prod(batch), *x.shape[x.ndim - own :]
            )
            for x, own in ((self.a, 2), (self.b, 2), (zero if self.c is None else self.c, 2), (self.metadata, 1))
        ]
        out = np.empty((math.prod(batch), *shape), code)

        def compute(chunk: slice) -> None:
            a, b, c, words = (None if x is None else np.ascontiguousarray(x[chunk]) for x in parts)
            assert a is not None and b is not None and c is not None
            a, b = (
                signed(record, "A", a, self.options.imm_a), signed(record, "B", b, self.options.imm_b),
            )  # fmt: skip
            if words is None:
                part = out[chunk]
                if (d := dot_chain(recipe, a, b, c, k=a.shape[2], engine=engine, out=part)) is not part:
                    part[...] = d
            elif mixed:
                out[chunk] = self._mixed(recipe, a, b, c, words)
            else:
                chosen = sparse_a(record).positions(words, self.options.selector).astype(np.uint8)
                out[chunk] = dot_chain(recipe, a, b, c, k=a.shape[2], engine=engine, chosen=chosen)

        size = NATIVE_CHUNK if engine == "native" and not mixed else CHUNK
        for_each(compute, cut(len(out), math.prod(shape), size), threads)
        return out.reshape(*batch, *shape)

    def _mixed(self, recipe: Recipe, a: Array, b: Array, c: Array, words: Array) -> Array:
        """Compute D of tf32 whose halves come from two elements: every row of A has a B of its own."""
        groups, m, k = a.shape
        n = b.shape[2]
        # Halves of the two elements of each group, 0 to 3, the low one of the first first: [group of B, 4, n]
        parts = np.stack([b & np.uint32(0xFFFF), b >> np.uint32(16)], axis=2).reshape(groups, k, 4, n)
        index = sparse_a(self.instruction).halves(words, self.options.selector).astype(np.intp)  # [..., m, k, 2]
        which, column = np.arange(groups)[:, None, None], np.arange(k)
        low, high = (parts[which, column, index[..., i]] for i in (0, 1))
        rows = (low | high << np.uint32(16)).reshape(groups * m, k, n)
        d = dot_chain(
            recipe, a.reshape(groups * m, 1, k), rows, c.reshape(groups * m, 1, n), k=k, engine=resolve(self.engine)
        )
        return d.reshape(groups, m, n)


def signed(record: WarpgroupInstruction, operand: Operand, codes: Array, sign: int) -> Array:
    """Rule 2: codes of an operand after `imm-scale-a` or `imm-scale-b`."""
    fmt = record.format(operand)
    if sign == 1 or not isinstance(fmt, FloatFormat):
        return codes
    flipped: Array = codes ^ codes.dtype.type(fmt.sign_bit)
    return flipped


def registers_of(record: WarpgroupInstruction, operand: Operand, registers: npt.ArrayLike) -> Array:
    """Check registers and join those of the four warps (rule 4): `[..., register, 128]`."""
    layout = record.layout(operand)
    array = as_array(registers, f"{record}: registers of {operand}")
    if array.dtype != layout.packing.dtype:
        same = array.dtype.kind in "if" and array.dtype.itemsize == 4
        raise OperandError(
            f"{record}: registers of {operand} are {array.dtype}; expected uint32" + " (use .view(np.uint32))" * same
        )
    if array.shape[-2:] == (layout.registers, layout.lanes):
        return array
    if array.shape[-3:] == (WARPS, layout.registers, LANES):
        joined: Array = np.moveaxis(array, -3, -2).reshape(*array.shape[:-3], layout.registers, layout.lanes)
        return joined
    raise OperandError(
        f"{record}: registers of {operand} are {array.shape}; expected [..., {layout.registers}, {layout.lanes}] or "
        f"[..., {WARPS}, {layout.registers}, {LANES}]"
    )


def codes_in_registers(
    record: WarpgroupInstruction, operand: Operand, words: Array, *, by_warp: bool = False
) -> Array:  # fmt: skip
    """Unpack registers `[..., register, 128]`: codes `[..., rows, columns]`; of single bits words of 32.

    With `by_warp`, the registers are `[..., 4, register, 32]`.
    """
    layout = record.layout(operand)
    fmt = record.format(operand)
    if fmt.bits == 1:
        layout = layout.words()
    word, position = layout.slots
    if by_warp:
        word = _words_by_warp(record, operand)
    flat = words.reshape(*words.shape[: -3 if by_warp else -2], layout.registers * layout.lanes).take(word, axis=-1)
    packing = layout.packing
    if packing.per_register == 1:
        return flat
    codes: Array = ((flat >> packing.shifts[position]) & packing.dtype.type(packing.mask)).astype(fmt.code_dtype)
    return codes


@lru_cache(maxsize=256)
def _words_by_warp(record: WarpgroupInstruction, operand: Operand) -> Array:
    """Return where the word of each code is among `[warp, register, lane]`."""
    layout = record.layout(operand)
    if record.format(operand).bits == 1:
        layout = layout.words()
    register, lane = np.divmod(layout.slots[0], layout.lanes)
    return frozen((lane // LANES * layout.registers + register) * LANES + lane % LANES)


def in_registers(record: WarpgroupInstruction, operand: Operand, codes: Array, *, by_warp: bool = False) -> Array:
    """Pack codes `[..., rows, columns]` into registers `[..., register, 128]`; `[..., 4, register, 32]` by warp."""
    layout = record.layout(operand)
    place = _codes_by_warp(record, operand) if by_warp else layout.flat
    flat = codes.reshape(*codes.shape[:-2], layout.flat.size).take(place, axis=-1)
    return np.asarray(layout.packing.join(flat))


@lru_cache(maxsize=256)
def _codes_by_warp(record: WarpgroupInstruction, operand: Operand) -> Array:
    """Return the place of each code of `[warp, register, lane]`, `[..., position]`."""
    flat = record.layout(operand).flat
    return frozen(np.ascontiguousarray(flat.reshape(flat.shape[0], WARPS, LANES, -1).swapaxes(0, 1)))


def read_operand(record: WarpgroupInstruction, operand: Operand, given: npt.ArrayLike | SharedOperand) -> Array:
    """Read A, `[..., 64, k]`, or B, `[..., k, n]`, from registers or shared memory."""
    if isinstance(given, SharedOperand):
        check_shared(record, operand, given)
        codes = codes_of(record, operand, given)
        return codes if operand == "A" else codes.swapaxes(-1, -2)
    if operand == "B":
        raise OperandError(
            f"{record}: B is {shown(type(given).__name__)}; expected a SharedOperand: it lies in shared memory"
        )
    return codes_in_registers(record, "A", registers_of(record, "A", given))


def execute_warpgroup(
    record: WarpgroupInstruction, a: npt.ArrayLike | SharedOperand, b: SharedOperand, c: npt.ArrayLike, target: str,
    options: WarpgroupOptions, metadata: npt.ArrayLike | None, engine: Engine, threads: int | None,
) -> Array:  # fmt: skip
    """Compute registers of D, `[..., register, 128]`."""
    check_target(record, target)
    options.check(record)
    of_c = registers_of(record, "C", c)  # its batch counts even where it is not read
    call = WarpgroupExecution(
        instruction=record, target=target, options=options, a=read_operand(record, "A", a),
        b=read_operand(record, "B", b), c=codes_in_registers(record, "C", of_c) if options.scale_d else None,
        metadata=metadata_words(record, metadata), engine=engine,
    )  # fmt: skip
    if not options.scale_d and of_c.ndim > 2:  # D has the batch of C too
        batch = np.broadcast_shapes(call.batch, of_c.shape[:-2])
        return np.broadcast_to(in_registers(record, "D", call.run(threads)), (*batch, *of_c.shape[-2:])).copy()
    return in_registers(record, "D", call.run(threads))


def metadata_words(record: WarpgroupInstruction, metadata: npt.ArrayLike | None) -> Array | None:
    """Check that metadata is there where it is needed, uint32 `[..., 128]` or `[..., 4, 32]`, and nowhere else."""
    if record.sparse != (metadata is not None):
        raise OperandError(f"{record} {'needs' if record.sparse else 'takes no'} metadata")
    if metadata is None:
        return None
    words = as_array(metadata, f"{record}: metadata")
    lanes = WARPS * LANES
    if words.dtype == np.uint32 and words.shape[-1:] == (lanes,):
        return words
    if words.dtype == np.uint32 and words.shape[-2:] == (WARPS, LANES):
        return words.reshape(*words.shape[:-2], lanes)
    raise OperandError(
        f"{record}: metadata is {words.dtype} {words.shape}; expected uint32 [..., {lanes}] or [..., {WARPS}, {LANES}]"
    )
