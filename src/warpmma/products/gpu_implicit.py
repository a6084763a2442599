"""Implicit products on a GPU: the kernel gathers their factors, where they lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ..errors import OperandError, UnsupportedError
from ..gpu import (
    Coordinate,
    Digit,
    GatheredFactor,
    GatheredProduct,
    GpuTensor,
    ProductLaunch,
    gpu,
    kernel_of,
    read,
    stream_of,
)
from .chain import Chain, ProductOptions, chain_of
from .float32 import ChainInstruction
from .gpu_products import form_of
from .implicit import ImplicitFactor, ImplicitProduct
from .results import output_format

_OF_FLOAT32 = ("f32", "tf32")


def convolved_on_gpu(
    product: ImplicitProduct, a: Any, b: Any, d: Any, bias: Any, record: ChainInstruction, options: ProductOptions
) -> None:
    """Compute an implicit product of tensors on a GPU into `d`, on their stream; nothing waits, no memory is used.

    `bias`, or None, is added to the sums of columns, `[batch, n]` contiguously, and has the type of D.
    """
    if options.engine not in ("auto", "cuda"):
        raise OperandError(f"{record}: engine={options.engine!r} takes no arrays on a GPU; expected 'auto'")
    stream = stream_of(a)
    given = {name: read(x, name, stream) for name, x in (("A", a), ("B", b), ("D", d))}
    added = None if bias is None else read(bias, "bias", stream)
    devices = {x.device for x in (*given.values(), *([] if added is None else [added]))}
    if len(devices) > 1:
        raise OperandError(f"{record}: operands lie on GPUs {sorted(devices)}; expected one")
    float32 = options.float32 if record.a_type in _OF_FLOAT32 else None
    chain = chain_of(record, replace(options, engine="cuda"), product.shape[3], float32)
    launch = launch_of(product, chain, given, added, options.epilogue)
    gpu(given["D"].device).launch(launch, stream)


def launch_of(
    product: ImplicitProduct, chain: Chain, given: Mapping[str, GpuTensor], bias: GpuTensor | None,
    epilogue: str | None,
) -> ProductLaunch:  # fmt: skip
    """Return the launch of an implicit product of what lies on a GPU: A, B and D by their names."""
    a = _gathered(product, product.a, product.rows, given["A"].address, given["A"].dtype.itemsize)
    b = _gathered(product, product.b, product.columns, given["B"].address, given["B"].dtype.itemsize)
    if not (a.is_small and b.is_small):
        raise UnsupportedError(
            f"strides of a convolution are {[x.apart for x in product.a.moved]}; expected their product below {1 << 31}"
        )
    record = chain.instruction
    form = replace(
        form_of(chain, output_format(record, epilogue).name), gathered=(len(a.coordinates), len(b.coordinates)),
        bias=bias is not None,
    )  # fmt: skip
    return ProductLaunch(
        kernel=kernel_of(form), shape=product.shape, d=given["D"].address, slices=chain.slices, promote=chain.promote,
        gathered=GatheredProduct(a=a, b=b, d=_target(product), bias=0 if bias is None else bias.address),
    )  # fmt: skip


def _gathered(product: ImplicitProduct, factor: ImplicitFactor, lanes: str, address: int, size: int) -> GatheredFactor:
    """Describe a factor by digits; one that descends begins with its last value."""

    def digit(letter: str, sign: int = 1) -> Digit:
        steps = [sign * x.steps.get(letter, 0) for x in factor.moved]
        return Digit(size=product.sizes[letter], stride=sign * factor.strides.get(letter, 0), steps=steps)

    last = {letter: product.sizes[letter] - 1 for letter in product.descending}
    start = sum(n * factor.strides.get(letter, 0) for letter, n in last.items())
    coordinates = [
        Coordinate(
            size=x.size, stride=x.stride, apart=x.apart,
            first=x.first + sum(n * x.steps.get(letter, 0) for letter, n in last.items()),
        )
        for x in factor.moved
    ]  # fmt: skip
    return GatheredFactor(
        address=address + start * size, batch=factor.strides["g"], lanes=[digit(x) for x in lanes],
        k=[digit(x, -1 if x in product.descending else 1) for x in product.along], coordinates=coordinates,
    )  # fmt: skip


def _target(product: ImplicitProduct) -> tuple[int, int, int, int, int]:
    """Return where the result lies: the places of an image are one run, and so are columns."""
    outer, places = product.rows[0], product.rows[1:]
    run = product.size(places)
    of = product.d
    if not places:
        return of["g"], 0, of[outer], _along(product, product.columns), product.sizes[outer]
    return of["g"], of[outer], _along(product, places), _along(product, product.columns), run


def _along(product: ImplicitProduct, letters: Sequence[str]) -> int:
    """Return the stride of digits that lie one after the other."""
    several = [x for x in letters if product.sizes[x] > 1]
    for outer, inner in pairwise(several):
        if product.d[outer] != product.d[inner] * product.sizes[inner]:
            raise OperandError(f"D has strides {dict(product.d)}; expected the places {letters} one after the other")
    return product.d[several[-1]] if several else 0
