"""Elements of whole products, split, promoted and scaled, explained and compared with `matmul`."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

import warpmma as wm
from lab.generators import random_codes
from warpmma import scaling, sparsity
from warpmma.analysis.chain_of_element import ElementCodes
from warpmma.analysis.product_bounds import bounds
from warpmma.formats import FORMATS, FloatFormat
from warpmma.isa import Instruction, MatrixInstruction
from warpmma.products import Product, prepare

from .recipes import Case, Faults, cases, examined

__all__ = ["chain_faults", "product_faults"]

Array = npt.NDArray[Any]
Rng = np.random.Generator
_ROWS, _COLUMNS = 3, 4


def chain_faults(count: int, seed: int) -> Iterator[Faults]:
    """Draw products until enough elements have been explained."""
    number, explained, every = 0, 0, cases()
    while explained < count:
        found = product_faults(every[number % len(every)], np.random.default_rng([seed, number]))
        explained, number = explained + found.rows, number + 1
        print(f"\r{explained:6} of {count} elements of products", end="", flush=True)
        yield found


def product_faults(case: Case, rng: Rng) -> Faults:
    """Draw a product that a recipe makes, explain all of its elements, and compare."""
    found = Faults()
    instruction, target = case.uses[int(rng.integers(len(case.uses)))]
    arguments = _arguments(instruction, rng)
    if instruction.c_type != instruction.d_type:
        arguments = {name: x for name, x in arguments.items() if name not in ("split_k", "promote_every")}
    given = {**arguments, "instruction": instruction, "target": target}
    product = prepare(**given)
    d = product.format.codes(wm.matmul(**given))
    of_whole = bounds(product)
    for row, column in np.ndindex(*product.shape):
        element = ElementCodes.of(product, row, column)
        found.rows += 1
        least = float(of_whole[row, column])
        fault = examined(element, [int(d[row, column])], found, Fraction(least) if np.isfinite(least) else None)
        if fault:
            found.faults.append(f"{target} {instruction}, {_told(product)}: {fault}")
    return found


def _told(product: Product) -> str:
    chain = product.chain
    return f"slices {chain.slices}, promoted every {chain.promote}, epilogue {product.epilogue}"


def _arguments(instruction: MatrixInstruction, rng: Rng) -> dict[str, Any]:
    """Draw matrices, and how to split a product."""
    one = instruction.c_type != instruction.d_type
    width = max(16, instruction.k // (instruction.scales_per_row or instruction.k))  # whole groups and blocks
    k = instruction.k if one else int(rng.integers(1, 5)) * instruction.k
    if not one and k > width and rng.random() < 0.5:
        k -= width if instruction.k > width else 0
    a = _matrix(instruction, "A", (_ROWS, k), rng)
    b = _matrix(instruction, "B", (k, _COLUMNS), rng)
    given: dict[str, Any] = {"a": a, "b": b}
    if isinstance(instruction, Instruction) and instruction.sparse:
        given["a"] = sparsity.prune(a, instruction)
    quantized = False
    if isinstance(instruction, Instruction) and instruction.block_scale:
        quantized = not instruction.sparse and rng.random() < 0.5
        if quantized:
            for name, shape, operand in (("a", (_ROWS, k), "A"), ("b", (k, _COLUMNS), "B")):
                values = rng.standard_normal(shape).astype(np.float32) * np.exp2(rng.integers(-6, 6, shape))
                given[name] = scaling.quantize(values.astype(np.float32), instruction, operand)  # type: ignore[arg-type]
        else:
            blocks = -(-k // (instruction.k // instruction.scales_per_row))
            top = FORMATS[str(instruction.stype)].mask
            given["scale_a"] = rng.integers(0, top, (_ROWS, blocks)).astype(np.uint8)
            given["scale_b"] = rng.integers(0, top, (blocks, _COLUMNS)).astype(np.uint8)
    if rng.random() < 0.7 and not quantized:
        given["c"] = _matrix(instruction, "C", (_ROWS, _COLUMNS), rng)
    if instruction.d_type == "f32":
        given["split_k"] = int(rng.integers(1, 4))
        given["promote_every"] = instruction.k * int(rng.integers(1, 3)) if rng.random() < 0.5 else None
    if instruction.d_type in ("f32", "f16") and rng.random() < 0.3:
        given["epilogue"] = str(rng.choice(["bf16", "f16", "e4m3", "tf32"]))
    return given


def _matrix(instruction: MatrixInstruction, operand: str, shape: tuple[int, ...], rng: Rng) -> Array:
    """Draw a matrix: all codes, or numbers near 1 of a narrow or wide range, many of them cancelling."""
    fmt = instruction.format(operand)  # type: ignore[arg-type]
    style = int(rng.integers(4))
    if style == 0 or not isinstance(fmt, FloatFormat):
        codes = random_codes(fmt, shape, rng)
        if isinstance(fmt, FloatFormat):  # few without a defined error
            codes = np.where(np.isfinite(fmt.decode(codes)), codes, 0)
        return fmt.array(codes.astype(fmt.code_dtype))
    values = rng.choice([-2.0, -1.0, 0.5, 1.0, 3.0], shape) if style == 1 else rng.standard_normal(shape)
    if style == 3:
        values = values * np.exp2(rng.integers(-20, 20, shape))
    return fmt.array(fmt.encode(values))
