"""Registers in, registers out.

Data run one way: registers are unpacked to codes by their layouts, the target's recipe computes codes of D, and D's
layout packs them. The native engine does all of it for a batch of warps. For NumPy, work is cut into chunks of warps
small enough that a chunk's temporaries stay in cache; the batch dimension comes last inside a chunk, so that every
operation runs along it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arrays import Array, frozen
from .._progress import for_each
from ..arithmetic import (
    Engine,
    Evidence,
    NativeRegisters,
    Popcount,
    Recipe,
    dot,
    evidence_of,
    native_product,
    recipe_of,
    resolve,
    take_rows,
)
from ..errors import UnsupportedError
from ..gpu import is_on_gpu
from ..isa import Instruction, MatrixInstruction, WarpgroupInstruction, check_target, parse_any
from ..layouts import Layout
from ..registers import LANES
from ..scaling import block_scales
from ..sparsity import sparse_a
from .batches import CHUNK, NATIVE_CHUNK, broadcast, cut, reader
from .refusals import Ids, Undefined, check_choices, check_fragment, check_sparse, check_words, refuse_others
from .shared_operands import SharedOperand
from .warpgroups import WarpgroupOptions, execute_warpgroup


class Gather:
    """How an instruction's registers become arrays of codes for the units, and the other way round.

    A comes out as `[k, (matrix,) m, 1, warp]`, B as `[k, (matrix,) 1, n, warp]`, C and D as `[(matrix,) m, n, warp]`.
    """

    def __init__(self, instruction: Instruction, words: bool) -> None:
        shapes = {name: instruction.layout(name) for name in ("A", "B", "C", "D")}
        if words:  # single bits are combined a register at a time
            shapes |= {name: shapes[name].words() for name in ("A", "B")}
        dtype = {name: instruction.format(name).code_dtype for name in ("A", "B", "C")}
        self.codes = {
            "A": _gather(shapes["A"], dtype["A"], lambda x: np.moveaxis(x, -1, 0)[..., None]),
            "B": _gather(shapes["B"], dtype["B"], lambda x: np.moveaxis(x, -2, 0)[..., None, :]),
            "C": _gather(shapes["C"], dtype["C"], lambda x: x),
        }
        self._d = shapes["D"]

    @staticmethod
    @cache
    def of(instruction: Instruction, words: bool) -> Gather:
        """Return the one of an instruction, made once."""
        return Gather(instruction, words)

    def registers(self, codes: Array) -> Array:
        """Pack codes of D into registers `[warp, register, lane]`."""
        packing = self._d.packing
        flat = codes.reshape(-1, codes.shape[-1]).astype(packing.dtype, copy=False)
        registers = flat.take(self._d.flat[..., 0], axis=0)  # position 0 begins at bit 0
        for position in range(1, packing.per_register):
            registers |= flat.take(self._d.flat[..., position], axis=0) << packing.shifts[position]
        return np.moveaxis(registers, -1, 0)


def _gather(layout: Layout, dtype: np.dtype[Any], arrange: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return a function from registers `[warp, register, lane]` to codes, arranged, with the warps last."""
    packing = layout.packing
    word, position = (arrange(x) for x in layout.slots)
    shift = frozen(packing.shifts[position])[..., None]
    whole = packing.per_register == 1
    mask = packing.dtype.type(packing.mask)

    def gather(registers: Array) -> Array:
        words = np.ascontiguousarray(registers.reshape(len(registers), -1).T).take(word, axis=0)
        return words if whole else ((words >> shift) & mask).astype(dtype)

    return gather


def execute(
    instruction: str | Instruction | WarpgroupInstruction, a: npt.ArrayLike | SharedOperand,
    b: npt.ArrayLike | SharedOperand, c: npt.ArrayLike, *, target: str,
    metadata: npt.ArrayLike | None = None, selector: int = 0, undefined: Undefined = "error",
    scale_a: npt.ArrayLike | None = None, scale_b: npt.ArrayLike | None = None,
    byte_id_a: int = 0, thread_id_a: int = 0, byte_id_b: int = 0, thread_id_b: int = 0,
    scale_d: bool = True, imm_a: int = 1, imm_b: int = 1,
    engine: Engine = "auto", threads: int | None = None,
) -> Array:  # fmt: skip
    """Execute an instruction on registers, for a batch of warps, or of warpgroups.

    Parameters
    ----------
    instruction : str, Instruction or WarpgroupInstruction
    a, b, c : array_like of uint32 (uint64 for f64)
        Registers `[..., register, 32]`; the leading dimensions broadcast. Of `wgmma` `[..., register, 128]`, or
        `[..., 4, register, 32]`, a warp at a time; B is a `SharedOperand`, A may be one.
    target : str
        Such as "sm_90".
    metadata : array_like of uint32
        Of a sparse instruction: `[..., 32]`; of `wgmma` `[..., 128]` or `[..., 4, 32]`.
    selector : int
        Sparsity selector: which lanes hold the metadata.
    undefined : {"error", "hardware"}
        What to do about metadata that PTX leaves undefined: raise, or compute what an H200 does (on sm_90 alone).
    scale_a, scale_b : array_like of uint32
        Of a block-scaled instruction: `[..., 32]`.
    byte_id_a, thread_id_a, byte_id_b, thread_id_b : int
        Which bytes of which lanes hold the scales.
    scale_d : bool
        Of `wgmma`: whether D, whose old registers `c` has, is an addend; otherwise it is not read.
    imm_a, imm_b : {1, -1}
        Of `wgmma` with floating-point A and B: -1 negates A or B.
    engine : {"auto", "numpy", "native"}
        "auto" takes the fastest that is there; all give the same bits.
    threads : int, optional
        How many threads share the batch; one by default.

    Returns
    -------
    ndarray of uint32 (uint64 for f64)
        Registers of D, `[..., register, 32]`; of `wgmma` `[..., register, 128]`.

    Raises
    ------
    MnemonicError, TargetError
        No such instruction, or not on this target.
    OperandError
        A wrong register count, lane count or dtype, batches that do not broadcast, an operand too many or too few;
        a descriptor that reads outside of the memory that is given.
    UnsupportedError
        Registers that lie on a GPU.
    MetadataError, ScaleError
        Undefined metadata or selector; undefined byte-id or thread-id.

    Examples
    --------
    >>> i = "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32"
    >>> ones = np.full((1, 32), 0x01010101, np.uint32)
    >>> execute(i, ones, ones, np.zeros((2, 32), np.uint32), target="sm_75")[:, 0]
    array([16, 16], dtype=uint32)
    """
    record = parse_any(instruction)
    if any(map(is_on_gpu, (a, b, c))):
        raise UnsupportedError(f"{record}: execute takes registers of the host; matrices on a GPU go to mma or matmul")
    if isinstance(record, WarpgroupInstruction):
        refuse_others(
            record, scale_a=(scale_a, None), scale_b=(scale_b, None), byte_id_a=(byte_id_a, 0),
            thread_id_a=(thread_id_a, 0), byte_id_b=(byte_id_b, 0), thread_id_b=(thread_id_b, 0),
        )  # fmt: skip
        options = WarpgroupOptions(scale_d=scale_d, imm_a=imm_a, imm_b=imm_b, selector=selector, undefined=undefined)
        return execute_warpgroup(record, a, b, c, target, options, metadata, engine, threads)  # type: ignore[arg-type]
    assert isinstance(record, Instruction)
    refuse_others(record, scale_d=(scale_d, True), imm_a=(imm_a, 1), imm_b=(imm_b, 1))
    check_target(record, target)
    operands = {name: check_fragment(record, name, x) for name, x in (("A", a), ("B", b), ("C", c))}  # type: ignore[arg-type]
    ids: Ids = {
        "A": {"byte_id": byte_id_a, "thread_id": thread_id_a},
        "B": {"byte_id": byte_id_b, "thread_id": thread_id_b},
    }
    words = check_words(record, metadata, scale_a, scale_b)
    return Execution.of(record, operands | words, target, selector, undefined, ids, engine).run(threads)


@dataclass(frozen=True, kw_only=True, eq=False)
class Execution:
    """A checked call of `execute`; computes D for any range of its warps."""

    instruction: Instruction
    recipe: Recipe
    selector: int
    ids: Ids
    batch: tuple[int, ...]  # leading dimensions of D
    mixed: bool  # the halves of a tf32 element may come from two rows of B
    native: bool
    read: dict[str, Callable[[slice], Array]]  # from a range of warps to their part of an operand

    @classmethod
    def of(
        cls, record: Instruction, operands: dict[str, Array], target: str, selector: int, undefined: Undefined,
        ids: Ids, engine: Engine,
    ) -> Execution:  # fmt: skip
        """Check operands of the right types against an instruction that the target supports."""
        native = resolve(engine) == "native"
        check_choices(record, selector, undefined, ids)
        batch = broadcast(record, operands)
        mixed = record.sparse and check_sparse(record, operands["metadata"], selector, undefined, target)
        return cls(
            instruction=record, recipe=recipe_of(record, target), selector=selector, ids=ids, batch=batch, mixed=mixed,
            native=native, read={name: reader(x, 2 if name in "ABC" else 1, batch) for name, x in operands.items()},
        )  # fmt: skip

    def run(self, threads: int | None) -> Array:
        """Compute registers of D, `[..., register, 32]`."""
        layout = self.instruction.layout("D")
        out = np.empty((*self.batch, layout.registers, LANES), layout.packing.dtype)
        flat = out.reshape(-1, layout.registers, LANES)
        whole = self.native and not self.mixed  # the native engine reads and writes registers itself
        run = self.on_registers if whole else self.on_codes
        chunks = cut(len(flat), layout.flat.size, NATIVE_CHUNK if whole else CHUNK)
        for_each(lambda chunk: run(chunk, flat[chunk]), chunks, threads)
        return out

    def on_registers(self, chunk: slice, out: Array) -> None:
        """Let the native engine compute registers of D from registers."""
        given = {name: read(chunk) for name, read in self.read.items()}
        extra: dict[str, Array] = self._scales(given)
        if self.instruction.sparse:
            extra["chosen"] = self._positions(given).astype(np.uint8)
        registers = _native_registers(self.instruction, self.recipe)
        registers.run(given["A"], given["B"], given["C"], out, **extra)

    def on_codes(self, chunk: slice, out: Array) -> None:
        """Unpack registers to codes, compute codes of D, and pack them."""
        instruction, recipe = self.instruction, self.recipe
        gather = Gather.of(instruction, isinstance(recipe.unit, Popcount))
        given = {name: read(chunk) for name, read in self.read.items()}
        codes = {name: gather.codes[name](given[name]) for name in "ABC"}
        extra = self._scales(given)
        if extra:
            extra = {"scale_a": _rows(extra["scale_a"]), "scale_b": np.moveaxis(extra["scale_b"], 0, -1)[:, None]}
        if not instruction.sparse:
            out[...] = gather.registers(dot(recipe, codes["A"], codes["B"], codes["C"], **extra))
            return
        # Rows of B are chosen for every warp and row of A, all columns together: so n comes last.
        codes, extra = ({name: _columns_last(x) for name, x in named.items()} for named in (codes, extra))
        if self.mixed:
            codes["B"] = _mixed_halves(codes["B"], sparse_a(instruction).halves(given["metadata"], self.selector))
        else:
            extra["chosen"] = _choice(self._positions(given))
        native = self.native
        d = _native_rows(recipe, **codes) if native else dot(recipe, codes["A"], codes["B"], codes["C"], **extra)
        out[...] = gather.registers(_columns_last(d))

    def _scales(self, given: dict[str, Array]) -> dict[str, Array]:
        """Return block scales as matrices; empty for an instruction without them."""
        if not self.instruction.block_scale:
            return {}
        scales = block_scales(self.instruction)
        return {
            "scale_a": scales.unpack("A", given["scale_a"], **self.ids["A"]),
            "scale_b": scales.unpack("B", given["scale_b"], **self.ids["B"]),
        }

    def _positions(self, given: dict[str, Array]) -> Array:
        return sparse_a(self.instruction).positions(given["metadata"], self.selector)


def evidence(instruction: str | MatrixInstruction, *, target: str) -> Evidence:
    """Return the evidence for what an instruction computes on a target.

    Parameters
    ----------
    instruction : str, Instruction or WarpgroupInstruction
        Of `wgmma` too.
    target : str

    Returns
    -------
    Evidence
        Its `kind` is "measured", "published" or "derived".

    Raises
    ------
    MnemonicError, TargetError
        No such instruction, or not on this target.

    Examples
    --------
    >>> i = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    >>> print(evidence(i, target="sm_90"))
    measured: this project; on H200, driver 580.159, CUDA 13.0; 1,006,632,960 outputs, 0 differences; as HMMA
    >>> evidence(i, target="sm_121").kind
    'derived'
    """
    record = parse_any(instruction)
    check_target(record, target)
    return evidence_of(record, target)


def _rows(of_a: Array) -> Array:
    """Return what belongs to the rows of A, `[warp, m, x]`, arranged as A is: `[x, m, 1, warp]`."""
    return of_a.transpose(2, 1, 0)[:, :, None]


def _columns_last(array: Array) -> Array:
    """Swap the last two dimensions, columns and warps."""
    return np.ascontiguousarray(array.swapaxes(-1, -2))


def _choice(rows_of_b: Array) -> Array:
    """Rows of B for every stored element, `[warp, m, x]`, arranged as `compute` takes them: `[x, m, warp, 1]`.

    There are at most 256 rows, and bytes are transposed several times as fast as indices.
    """
    return np.ascontiguousarray(rows_of_b.astype(np.uint8).transpose(2, 1, 0)).astype(np.intp)[..., None]


def _mixed_halves(b: Array, indices: Array) -> Array:
    """Rows of a tf32 B for every row of A, each half of an element chosen by an index of its own.

    So an H200 reads any nibble: the group's two elements are four halves, 0 and 1 the low and high half of the
    first; i0 names the half that becomes the low one, i1 the high one.
    """
    first = 4 * np.arange(indices.shape[2])  # of the halves of each group
    parts = np.stack([b & np.uint32(0xFFFF), b >> np.uint32(16)], axis=1).reshape(-1, *b.shape[1:])
    low, high = (take_rows(parts, _choice(first + indices[..., i])) for i in (0, 1))
    mixed: Array = low | high << np.uint32(16)
    return mixed


@cache
def _native_registers(instruction: Instruction, recipe: Recipe) -> NativeRegisters:
    layouts = {name: instruction.layout(name) for name in ("A", "B", "C", "D")}
    if isinstance(recipe.unit, Popcount):
        layouts |= {name: layouts[name].words() for name in ("A", "B")}
    return NativeRegisters(recipe, layouts, sparse=instruction.sparse, scales=instruction.scales_per_row)


def _native_rows(recipe: Recipe, A: Array, B: Array, C: Array) -> Array:
    """Compute D where every row of A has a B of its own: A `[k, m, warp, 1]`, B `[k, m, warp, n]`, C `[m, warp, n]`."""
    k, n = len(A), B.shape[-1]
    rows_of_a, rows_of_b = A.reshape(k, -1).T[:, None], B.reshape(k, -1, n).swapaxes(0, 1)
    return native_product(recipe, rows_of_a, rows_of_b, C.reshape(-1, 1, n), k=k).reshape(C.shape)
