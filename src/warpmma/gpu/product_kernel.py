"""The CUDA kernel of a product: one source, specialised by constants that follow from the recipe.

There is no kernel for a target: a `ProductForm` says what the arithmetic is and how results are made, and `kernel_of`
writes its numbers in front of the sources in `kernels`. NVRTC compiles them, for a GPU or for a simulated device.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import prod

from .._records import Shown
from ..arithmetic import (
    FloatChains,
    FmaChain,
    FusedDotAdd,
    GroupedDotAdd,
    IntegerSum,
    Popcount,
    Recipe,
    code_fields,
    fused_steps,
)
from ..errors import UnsupportedError
from ..formats import FORMATS, FloatFormat, floating

MOST_SLICES = 64
"""Slices of k whose lengths a launch takes."""

_SIDE = 16  # threads of a block, along rows and along columns of its tile
THREADS = _SIDE**2
OPTIONS = ("-fmad=false", "-std=c++17", "-diag-suppress=177")
"""Options of NVRTC beside the target: products and sums are not contracted; not every unit uses every constant."""

_CHUNK = 16  # words of a panel along k that a block holds at a time, where a step has not more
_PER_WORD = 4  # integers
_INT_BITS = 31


@dataclass(frozen=True, kw_only=True)
class ProductForm(Shown):
    """What a kernel computes.

    Attributes
    ----------
    recipe : Recipe
    k : int
        Products of one instruction; of a sparse one, stored ones. Of fused multiply-adds it may be any divisor of the
        lengths of all chains, 16 at most.
    width : int
        Columns of a group of a sparse A, half of them stored; 0 of a dense one.
    scales : int
        Block scales of a row in one instruction.
    partial : bool
        Whether chains end within k, and their results are added in f32.
    to_tf32 : bool
        Whether A and B, of f32, are rounded to tf32 first.
    alpha : bool
        Whether D is multiplied by a factor for each matrix of the batch.
    result : str
        Format to which D is rounded; D's own, where it is not.
    """

    recipe: Recipe
    k: int
    width: int = 0
    scales: int = 0
    partial: bool = False
    to_tf32: bool = False
    alpha: bool = False
    result: str


@dataclass(frozen=True, kw_only=True)
class ProductKernel(Shown):
    """A kernel: its text, the rows and columns of its tiles, and the products of one instruction, all of a sparse A."""

    text: str
    rows: int
    columns: int
    instruction: int
    arch: str = ""  # the target of NVRTC, where it is not the GPU's own

    name = "product"

    def blocks(self, batch: int, m: int, n: int) -> int:
        """Return the number of blocks of a launch."""
        return prod((batch, -(-m // self.rows), -(-n // self.columns)))


@cache
def kernel_of(form: ProductForm) -> ProductKernel:
    """Return the kernel of a form; `UnsupportedError` for one that has none."""
    recipe, unit = form.recipe, form.recipe.unit
    logical = 2 if form.width else 1
    cut = _steps(form)
    stored = [i for step in cut for i in step]
    step, instruction = len(cut[0]) * logical, len(stored) * logical
    if len({len(x) for x in cut}) > 1:
        raise UnsupportedError(f"engine='cuda' does not do {recipe}: its steps differ; use engine='native' or 'numpy'")
    order = _columns_of(stored, form.width) if form.width else stored
    in_order = order == list(range(instruction))
    chunk = step if in_order else instruction  # a chunk of what is not in order is of whole instructions
    chunk *= max(1, -(-_CHUNK * (_PER_WORD if isinstance(unit, IntegerSum | Popcount) else 1) // chunk))
    rows, columns, blocks = _tile(form, chunk)
    numbers = {
        "TX": _SIDE, "RM": rows, "RN": columns, "CHUNK": chunk, "STEP": step, "INSTRUCTION": instruction,
        "SCALES": form.scales, "MOST_SLICES": MOST_SLICES, "SPARSE": int(bool(form.width)),
        "PARTIAL": int(form.partial), "AFTER": int(recipe.accumulate == "after"), "HAS_ALPHA": int(form.alpha),
        "IN_ORDER": int(in_order), "SETTLED": int(isinstance(unit, GroupedDotAdd)),
        "BLOCKS": blocks, "CHAINS_OF_FMA": int(isinstance(unit, FmaChain)),
        "SCALED": int(form.scales > 0), "SCALE_NAN": (floating(recipe.scale).nan_code or 0) if recipe.scale else 0,
        "TO_TF32": int(form.to_tf32),
        "AS_IT_IS": int(form.result == recipe.d == recipe.c and not form.alpha), **_of_unit(recipe, step, logical),
    }  # fmt: skip
    words_of = {"VALUE": "double" if recipe.d == "f64" else "float", "FUSED": _fused(recipe)}
    defined = [f"#define {name} {value}" for name, value in (*numbers.items(), *words_of.items())]
    defined.append(f"#define PLACES {', '.join(map(str, _inverse(order)))}")
    code = "u64" if "f64" in (recipe.a, recipe.d) else "u32"
    formats = [format_constants("A", recipe.a, recipe.convert), format_constants("B", recipe.b, recipe.convert)]
    formats += [
        format_constants("C", recipe.c),
        format_constants("D", recipe.d),
        format_constants("Result", form.result),
    ]
    scale = [_scale(recipe.scale)] if recipe.scale else []
    body = ("panels.cuh", _SOURCE[type(unit)], "product.cuh")
    text = [*defined, source("numbers.cuh"), f"typedef {code} Code;", *formats, *scale, *map(source, body)]
    return ProductKernel(text="\n".join(text), rows=rows * _SIDE, columns=columns * _SIDE, instruction=instruction)


_SOURCE = {
    FusedDotAdd: "fused.cuh", GroupedDotAdd: "grouped.cuh", FmaChain: "chains.cuh", FloatChains: "chains.cuh",
    IntegerSum: "integers.cuh", Popcount: "integers.cuh",
}  # fmt: skip


def _steps(form: ProductForm) -> list[list[int]]:
    """Cut the products of an instruction, of a sparse one the stored ones, into steps."""
    unit = form.recipe.unit
    if isinstance(unit, FusedDotAdd):
        return [list(x) for x in fused_steps(form.recipe.order, unit.products, form.k)]
    wraps = isinstance(unit, Popcount) or (isinstance(unit, IntegerSum) and not unit.saturate)
    if wraps and not form.width:
        return [list(range(_CHUNK * _PER_WORD))]  # they may be cut anywhere
    return [list(range(form.k))]


def _columns_of(stored: list[int], width: int) -> list[int]:
    """Order all columns of a sparse A by groups, as its stored elements are ordered."""
    kept = width // 2
    groups = dict.fromkeys(i // kept for i in stored)
    return [group * width + i for group in groups for i in range(width)]


def _inverse(order: list[int]) -> list[int]:
    places = dict(zip(order, range(len(order)), strict=True))
    return [places[i] for i in range(len(order))]


def _tile(form: ProductForm, chunk: int) -> tuple[int, int, int]:
    """Return rows and columns of a thread, and blocks of a multiprocessor.

    The panels have to fit into 48 KiB, accumulators into registers. Of such tiles these are the fastest on an H200.
    """
    unit = form.recipe.unit
    if isinstance(unit, FusedDotAdd):
        return (2, 4, 2) if chunk > 2 * _CHUNK else (4, 4, 3)
    if isinstance(unit, GroupedDotAdd):
        return 2, 4, 3
    if form.partial:
        return 4, 4, 2
    if form.recipe.d == "f64":
        return 4, 4, 1
    return 8, 4, 2


def _of_unit(recipe: Recipe, step: int, logical: int) -> dict[str, int]:
    """Return the parameters of a unit."""
    match recipe.unit:
        case FusedDotAdd() as unit:
            runs, wraps = _runs(
                step // logical, _largest(recipe) * 2.0**unit.fraction_bits, 2 ** (unit.fraction_bits + 1)
            )
            return {
                "F": unit.fraction_bits, "FLOOR": unit.floor, "RESULT_BITS": unit.result_bits,
                "NEAREST": int(unit.rounding == "rn"), "RUNS": runs, "MAY_WRAP": int(wraps),
            }  # fmt: skip
        case GroupedDotAdd() as unit:
            return {
                "F": unit.fraction_bits, "FLOOR": unit.floor, "GROUP": unit.group * logical,
            }  # fmt: skip
        case FloatChains() as unit:
            return {"LENGTH": unit.length, "SEEDED": int(unit.seed == "product")}
        case IntegerSum() as unit:
            return {"SATURATE": int(unit.saturate), "ONES": 0, "EXCLUSIVE": 0}
        case Popcount() as unit:
            return {"SATURATE": 0, "ONES": 1, "EXCLUSIVE": int(unit.operation == "xor")}
        case FmaChain():
            return {}


def _runs(products: int, most: float, of_c: int) -> tuple[int, bool]:
    """Cut the products of a step, each below `most`, into runs that an int32 holds; and say whether it wraps with C.

    Where it does, all products of a run have one sign: without one of them, and with C twice, it would not.
    """
    limit = 2**_INT_BITS
    runs = -(-products // int(limit / most))
    wraps = products / runs * most + of_c >= limit
    if wraps and (products / runs - 1) * most >= limit - 2 * of_c:
        return 2 * runs, False
    return runs, wraps


def _largest(recipe: Recipe) -> float:
    """Return the largest product of two significands, by the weight of their places before the point."""
    return prod(2 - 2.0 ** -floating(x).fraction_bits for x in (recipe.a, recipe.b))


def _fused(recipe: Recipe) -> str:
    unit = recipe.unit
    if not isinstance(unit, FmaChain):
        return "fmaf"
    rounding = {"rn": "rn", "rz": "rz", "rm": "rd", "rp": "ru"}[unit.rounding]
    return f"__fma_{rounding}" if recipe.d == "f64" else f"__fmaf_{rounding}"


def format_constants(called: str, name: str, converted: str | None = None) -> str:
    """Write the constants of a format, as `numbers.cuh` reads them."""
    fmt = FORMATS[name]
    width = fmt.bits
    constants = {"width": width, "bytes": max(8, 1 << (width - 1).bit_length()) // 8}
    if not isinstance(fmt, FloatFormat):
        return _struct(called, {**constants, "integer": 1, "emin": 0, "is_signed": int(fmt.signed)})
    if width == 64:
        return _struct(called, {**constants, "integer": 0, "emin": fmt.emin})
    overflow = fmt.inf_code if fmt.overflow == "infinity" else fmt.max_code
    constants |= {"integer": 0, "padding": fmt.padding, "kept_bits": fmt.fraction_bits, "emax": fmt.emax}
    codes = {
        "of_nan": fmt.max_code if fmt.nan_code is None else fmt.nan_code,
        "of_overflow": fmt.max_code if overflow is None else overflow,
    }
    for field, value in code_fields(fmt, converted or name).items():
        (codes if field in ("magnitude", "special_from", "infinity") else constants)[field] = value
    return _struct(called, constants, codes)


def _scale(name: str) -> str:
    fmt = floating(name)
    return _struct(
        "Scale", {"fraction_bits": fmt.fraction_bits, "bias": fmt.bias, "subnormals": int(fmt.subnormals)},
    )  # fmt: skip


def _struct(called: str, *constants: dict[str, int]) -> str:
    kinds = zip(("int", "u32"), constants, strict=False)
    lines = [f"  static constexpr {kind} {name} = {value};" for kind, of in kinds for name, value in of.items()]
    return "\n".join([f"struct {called} {{", *lines, "};"])


@cache
def source(name: str) -> str:
    """Return the text of a file of `kernels`."""
    return (files(__package__) / "kernels" / name).read_text(encoding="utf-8")
