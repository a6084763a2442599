"""Settings of products: arguments of `arithmetic` and of `matmul`, and the instruction for each type.

1. For f32, `products.float32` maps the option to `fma.rn.f32` or an instruction for tf32.
2. A named instruction is used for products of its types of A and B.
3. Otherwise it is of the requested kind, `wgmma` or `mma`; where the target has no `wgmma` for the types (f64), an
   `mma`. Of several, the one with the largest k, as `warpmma.matmul` chooses; n of a `wgmma` changes no bit.
4. Sums are kept in f32, with accumulate="f16" in f16 where A is f16 or of 8 bits; for f64 in f64, for s8 in s32.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, cast

from .._arguments import check_choice, check_threads, is_integer
from ..arithmetic import Engine, Evidence, FusedDotAdd, resolve
from ..errors import MnemonicError, OperandError, TargetError, shown
from ..isa import TARGETS, MatrixInstruction, WarpgroupInstruction, check_known, check_target, find, parse_any
from ..operations import operation
from ..products import (
    FLOAT32,
    FMA,
    ChainInstruction,
    Float32,
    FloatFma,
    checked_float32,
    default_instruction,
    evidence_on,
    recipe_on,
)
from .convolution_orders import ConvolutionOrders

Accumulator = Literal["f32", "f16"]

_KINDS = ("mma", "wgmma")
_EIGHT_BITS = ("e4m3", "e5m2")


@dataclass(frozen=True, kw_only=True)
class ProductSettings:
    """Settings of products; `arithmetic` documents each."""

    target: str
    kind: str
    named: tuple[MatrixInstruction, ...]
    float32: Float32
    accumulate: Accumulator
    split_k: int
    promote_every: int | None
    engine: Engine
    threads: int | None
    convolution_k: ConvolutionOrders


def checked_settings(
    target: str, instruction: object, float32: Float32, accumulate: Accumulator, split_k: int,
    promote_every: int | None, engine: Engine, threads: int | None, convolution_k: object = None,
) -> ProductSettings:  # fmt: skip
    """Return checked arguments."""
    check_known(target)
    check_choice("float32", float32, tuple(FLOAT32))
    check_choice("accumulate", accumulate, ("f32", "f16"))
    if not is_integer(split_k) or split_k < 1:
        raise OperandError(f"split_k is {shown(split_k)}; expected a positive number of slices")
    if promote_every is not None and (not is_integer(promote_every) or promote_every < 0):
        raise OperandError(f"promote_every is {shown(promote_every)}; expected a length of k, 0 for never, or None")
    check_threads(threads)
    resolve(engine)
    kind, named = _named(target, instruction)
    for record in named:
        checked_float32(float32, record)
    return ProductSettings(
        target=target, kind=kind, named=named, float32=float32, accumulate=accumulate, split_k=int(split_k),
        promote_every=None if promote_every is None else int(promote_every), engine=engine, threads=threads,
        convolution_k=ConvolutionOrders.of(convolution_k),
    )  # fmt: skip


def _named(target: str, instruction: object) -> tuple[str, tuple[MatrixInstruction, ...]]:
    """Separate kinds of instructions from mnemonics."""
    if instruction is None:
        return "mma", ()
    several = instruction if isinstance(instruction, Iterable) and not isinstance(instruction, str) else [instruction]
    kind, named = "mma", []
    for each in several:
        if isinstance(each, str) and each in _KINDS:
            kind = each
            continue
        record = parse_any(cast(MatrixInstruction, each))
        check_target(record, target)
        if record.sparse or record.block_scale:
            raise OperandError(f"{record}: products of tensors are dense and have no block scales; use warpmma.matmul")
        named.append(record)
    if kind == "wgmma" and not any(isinstance(i, WarpgroupInstruction) for i in find(target=target)):
        raise TargetError(f"{target} has no wgmma; sm_90a has")
    return kind, tuple(named)


@lru_cache(maxsize=1024)
def chosen(a: str, b: str, given: ProductSettings, stype: str = "") -> ChainInstruction:
    """Return the instruction for PTX types of A and B, with block scales of a format."""
    if stype:
        return _block_scaled(a, b, stype, given.target)
    if a == b == "f32":
        if not FLOAT32[given.float32].tensor_cores:
            return FMA
        a = b = "tf32"
    for record in given.named:
        if (record.a_type, record.b_type) == (a, b):
            return record
    c = "f16" if given.accumulate == "f16" and a in ("f16", *_EIGHT_BITS) else None
    if given.kind == "wgmma":
        d = c or {"s8": "s32"}.get(a, "f32")
        found = find(a=a, b=b, d=d, sparse=False, satfinite=False, target=given.target)
        if warpgroups := [i for i in found if isinstance(i, WarpgroupInstruction)]:
            return max(warpgroups, key=lambda i: (i.k, -i.n))
    try:
        return default_instruction(a, b, c, given.target)
    except MnemonicError:
        rest = f"; the nearest that has one is {near}" if (near := _nearest(a, b, given.target)) else ""
        raise TargetError(f"{given.target} has no mma for {a} x {b}{rest}") from None


def _block_scaled(a: str, b: str, stype: str, target: str) -> MatrixInstruction:
    """Return the `mma` with block scales; of e2m1 ue4m3 are those of 16 elements, ue8m0 of 32."""

    def fitting(where: str) -> list[MatrixInstruction]:
        found = find(a=a, b=b, block_scale=True, sparse=False, stype=stype, target=where)
        return [i for i in found if i.k // i.scales_per_row == (16 if stype == "ue4m3" else 32)]

    if found := fitting(target):
        return max(found, key=lambda i: i.k)
    others = [name for name in TARGETS if fitting(name)]
    rest = f"; {others[0]} has" if others else ""
    raise TargetError(
        f"{target} has no mma for {a} x {b} with block scales of {stype}{rest} (tcgen05 is not simulated)"
    )


def _nearest(a: str, b: str, target: str) -> str | None:
    """Name the nearest target that has a dense `mma` for types of A and B."""
    have = {name for i in find(a=a, b=b, sparse=False, block_scale=False) for name in i.targets}
    mine = TARGETS[target].number
    return min(have, key=lambda name: (abs(TARGETS[name].number - mine), name), default=None)


def narrow(record: ChainInstruction, target: str) -> bool:
    """Return whether sums of an instruction keep fewer bits than f32 has, though D is f32."""
    if record.d_type != "f32":
        return False
    unit = recipe_on(record, target).unit
    return isinstance(unit, FusedDotAdd) and unit.result_bits < 23


def promoted(record: ChainInstruction, given: ProductSettings, *, exact_sums: bool = False) -> int:
    """Return after how much of k sums are promoted, 0 for never: of 8-bit floating point alone."""
    if record.a_type not in _EIGHT_BITS or record.d_type != "f32":
        return 0
    if given.promote_every is not None:
        return given.promote_every
    return 128 if exact_sums and narrow(record, given.target) else 0


def known_by(record: ChainInstruction, target: str) -> Evidence:
    """Return the evidence for what an instruction computes."""
    return operation(str(FMA)).evidence if isinstance(record, FloatFma) else evidence_on(record, target)
