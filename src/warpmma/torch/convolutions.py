"""Convolutions, and their gradients, as products with a stated order of k.

1. A convolution is a product with a row for each place of the output, images first, and a column for each output
   channel; k runs over the places of the kernel, row by row, and at each over the input channels: (r, s, c). Padding is
   zeros. Groups are a batch. A bias is added to the sum, as that of `linear`.
2. The gradient of the input has a row for each of its places, and k runs over the places of the kernel, turned around,
   and at each over the output channels. Where the stride is above 1, zeros lie between the rows of the gradient and are
   multiplied, too.
3. The gradient of the weight has a row for each output channel and a column for each (r, s, c); k runs over the places
   of the output, images first. That of the bias is PyTorch's sum.
4. Transposed convolutions are PyTorch's own.

This order is a choice: libraries have many kernels, and take one by size. The rows of the left factor are laid out in
memory, as many times as the kernel has places.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from .replaced import LEFT, OperatorCall
from .tensors import array_of, pytorch


def convolution(call: OperatorCall) -> Any:
    """Compute `convolution` (rule 1)."""
    bias = call.x["bias"]
    type_ = _type(call, "input", "weight", *(["bias"] if bias is not None else []))
    if type_ is None:
        return LEFT
    added = None if bias is None else array_of(bias, f"{call.op}: bias")
    return _image(call, _seen(call), _by_channel(call.x["weight"], call.x["groups"]).mT, type_, added)


def convolution_gradients(call: OperatorCall) -> Any:
    """Compute `convolution_backward`: the gradients of input, weight and bias that are wanted (rules 2 and 3)."""
    type_ = _type(call, "grad_output", "input", "weight")
    if type_ is None:
        return LEFT
    gradient, wanted = call.x["grad_output"], call.x["output_mask"]
    of_bias = gradient.sum([0, *range(2, gradient.ndim)]) if wanted[2] else None
    return (
        _of_input(call, type_) if wanted[0] else None, _of_weight(call, type_) if wanted[1] else None, of_bias
    )  # fmt: skip


def _of_input(call: OperatorCall, type_: str) -> Any:
    """Rule 2."""
    gradient, x, weight = (call.x[name] for name in ("grad_output", "input", "weight"))
    groups, kernel, places = call.x["groups"], weight.shape[2:], gradient.shape[2:]
    stride, padding, dilation = (_of_each(call, name) for name in ("stride", "padding", "dilation"))
    apart = gradient.new_zeros(*gradient.shape[:2], *((n - 1) * s + 1 for n, s in zip(places, stride, strict=True)))
    apart[(..., *(slice(None, None, s) for s in stride))] = gradient
    around = []
    for i, n in enumerate(x.shape[2:]):
        reach = dilation[i] * (kernel[i] - 1)
        before = reach - padding[i]
        around.append((before, n - apart.shape[2 + i] - before + reach))
    rows = _patches(apart, kernel, [1] * len(kernel), around, dilation)
    turned = weight.flip(list(range(2, weight.ndim))).unflatten(0, (groups, -1))  # [group, out, in, *kernel]
    b = turned.permute(0, *range(3, turned.ndim), 1, 2).flatten(1, -2)
    return _image(call, rows, b, type_)


def _of_weight(call: OperatorCall, type_: str) -> Any:
    """Rule 3."""
    gradient, weight, groups = call.x["grad_output"], call.x["weight"], call.x["groups"]
    a = gradient.unflatten(1, (groups, -1)).movedim(0, 2).flatten(2)  # [group, out, image and place]
    sums = _product(call, a, _grouped_rows(call, _seen(call)), type_)
    d = call.rounded(sums, type_).reshape(len(weight), *weight.shape[2:], weight.shape[1])
    return d.movedim(-1, 1).contiguous()


def _seen(call: OperatorCall) -> Any:
    """Return what each place of the output sees of the input."""
    stride, padding, dilation = (_of_each(call, name) for name in ("stride", "padding", "dilation"))
    return _patches(call.x["input"], call.x["weight"].shape[2:], stride, [(n, n) for n in padding], dilation)


def _image(call: OperatorCall, patches: Any, b: Any, type_: str, bias: Any = None) -> Any:
    """Multiply patches by `[group, k, channel]`, and return the image, `[image, channel, *places]`."""
    a = _grouped_rows(call, patches)
    sums = _product(call, a, b, type_)
    sums = sums.with_codes(sums.codes.swapaxes(0, 1).reshape(a.shape[1], b.shape[0] * b.shape[2]))
    d = call.rounded(sums.scaled_and_added(1, 0 if bias is None else 1, bias, type_), type_)
    return d.view(*patches.shape[: call.x["input"].ndim - 1], -1).movedim(-1, 1).contiguous()


def _type(call: OperatorCall, *names: str) -> str | None:
    """Return the PTX type of a call that is replaced."""
    if call.x["transposed"] or call.x["input"].ndim < 3 or not call.x["input"].numel():
        return None
    return call.float_type(*names)


def _of_each(call: OperatorCall, name: str) -> list[int]:
    """Return an argument for each dimension of a place."""
    given, dimensions = list(call.x[name]), call.x["input"].ndim - 2
    return given * dimensions if len(given) == 1 else given


def _product(call: OperatorCall, a: Any, b: Any, type_: str) -> Any:
    x, y = (array_of(t, call.op) for t in (a, b))
    return call.summed(x, y, (type_, type_), type_)


def _patches(
    x: Any, kernel: Sequence[int], stride: Sequence[int], around: Sequence[tuple[int, int]], dilation: Sequence[int]
) -> Any:
    """Return what each place of the output sees, `[image, *places, *kernel, channel]`, without a copy."""
    flat = [n for pair in reversed(around) for n in pair]
    x = pytorch().nn.functional.pad(x, flat).movedim(1, -1).contiguous()
    size = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(x.shape[1:-1], kernel, stride, dilation, strict=True)]
    step = x.stride()[1:-1]
    over, within = ([a * b for a, b in zip(step, by, strict=True)] for by in (stride, dilation))
    return x.as_strided((len(x), *size, *kernel, x.shape[-1]), (x.stride(0), *over, *within, x.stride(-1)))


def _grouped_rows(call: OperatorCall, patches: Any) -> Any:
    """Lay patches out as rows, `[group, place, k]`."""
    places = call.x["input"].ndim - 1  # images, and dimensions of a place
    rows = patches.reshape(prod(patches.shape[:places]), prod(patches.shape[places:-1]), call.x["groups"], -1)
    return rows.permute(2, 0, 1, 3).flatten(2)


def _by_channel(weight: Any, groups: int) -> Any:
    """Return a weight as `[group, output channel, k]`."""
    return weight.unflatten(0, (groups, -1)).movedim(2, -1).flatten(2)
