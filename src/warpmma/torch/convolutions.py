"""Convolutions, transposed ones, and their gradients, as products with a stated order of k.

1. Which elements meet is what `products.implicit` says. The order of k is that of the option `convolution_k`: by
   default (r, s, c) for the output; for the gradient of the input (r, s, k), the kernel turned around, as the gradient
   is a convolution with it; for that of the weight (n, p, q). What lies outside of an image, or between elements of a
   stride, is +0, and multiplied like any element.
2. Groups are a batch. A bias is added to the sum, as that of `linear`. Its gradient is PyTorch's sum.
3. A transposed convolution is the gradient of an input, and takes its order of k; its gradients are a convolution, and
   the gradient of a weight.
4. On a GPU the kernel gathers its factors, and writes the rounded result: no memory is used beside. On the CPU parts of
   the factors are laid out, as `laid_out_parts` says.
5. Results lie in memory channels last, where the input or the weight does; gradients of weights as the weight.

The order is a choice: libraries have many kernels, and take one by size.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..gpu import is_on_gpu
from ..products import Convolution, ImplicitProduct, ProductOptions, TensorLayout, boundaries, convolved_on_gpu
from .laid_out_parts import Spans, multiplied_in_parts
from .multiplying import summed
from .replaced import LEFT, OperatorCall
from .report import ReplacedProduct
from .settings import chosen, promoted
from .tensors import array_of, dtype_for, dtype_name, pytorch, tensor_of


def convolution(call: OperatorCall) -> Any:
    """Compute `convolution` (rules 1 to 3)."""
    x, weight, bias = (call.x[name] for name in ("input", "weight", "bias"))
    type_ = _type(call, "input", "weight", *(["bias"] if bias is not None else []))
    shape = None if type_ is None else _output_shape(call)
    if type_ is None or shape is None or (bias is not None and tuple(bias.shape) != (shape[1],)):
        return LEFT
    d = _empty(shape, x, weight)
    _run(call, "data" if call.x["transposed"] else "forward", x, weight, d, type_, bias)
    return d


def convolution_gradients(call: OperatorCall) -> Any:
    """Compute `convolution_backward`: the gradients of input, weight and bias that are wanted (rules 1 to 3)."""
    type_ = _type(call, "grad_output", "input", "weight")
    if type_ is None or _output_shape(call) != tuple(call.x["grad_output"].shape):
        return LEFT
    gradient, x, weight, wanted = (call.x[name] for name in ("grad_output", "input", "weight", "output_mask"))
    transposed = call.x["transposed"]
    of_input = of_weight = None
    if wanted[0]:
        of_input = _empty(x.shape, x, weight)
        _run(call, "forward" if transposed else "data", gradient, weight, of_input, type_)
    if wanted[1]:
        of_weight = _empty(weight.shape, weight)
        seen, output = (gradient, x) if transposed else (x, gradient)
        _run(call, "weight", output, seen, of_weight, type_)
    return of_input, of_weight, gradient.sum([0, *range(2, gradient.ndim)]) if wanted[2] else None


def _type(call: OperatorCall, *names: str) -> str | None:
    """Return the PTX type of a call that is replaced."""
    if call.x["input"].ndim not in (3, 4, 5) or not all(call.x[name].numel() for name in ("input", "weight")):
        return None
    return call.float_type(*names)


def _output_shape(call: OperatorCall) -> tuple[int, ...] | None:
    """Return the shape of the output; None of what PyTorch refuses, or leaves empty."""
    x, weight, groups, transposed = (call.x[name] for name in ("input", "weight", "groups", "transposed"))
    if groups < 1 or weight.ndim != x.ndim or weight.shape[0] % groups:
        return None
    if x.shape[1] != (weight.shape[0] if transposed else weight.shape[1] * groups):
        return None
    channels = weight.shape[1] * groups if transposed else weight.shape[0]
    each = [_of_each(call, name) for name in ("stride", "padding", "dilation", "output_padding")]
    if min(each[0] + each[2]) < 1 or min(each[1]) < 0:
        return None
    places = []
    for n, kernel, stride, padding, dilation, more in zip(x.shape[2:], weight.shape[2:], *each, strict=True):
        reach = dilation * (kernel - 1) - 2 * padding
        places.append((n - 1) * stride + reach + more + 1 if transposed else (n - reach - 1) // stride + 1)
    return (x.shape[0], channels, *places) if min(places) > 0 else None


def _of_each(call: OperatorCall, name: str) -> list[int]:
    """Return an argument for each dimension of a place."""
    given, dimensions = list(call.x[name]), call.x["input"].ndim - 2
    return given * dimensions if len(given) == 1 else given


def _empty(shape: tuple[int, ...], *like: Any) -> Any:
    """Allocate a result (rule 5)."""
    torch = pytorch()
    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(len(shape))
    is_last = last and any(x.is_contiguous(memory_format=last) and not x.is_contiguous() for x in like)
    return torch.empty(
        tuple(shape), dtype=like[0].dtype, device=like[0].device,
        memory_format=last if is_last else torch.contiguous_format,
    )  # fmt: skip


def _run(call: OperatorCall, name: str, a: Any, b: Any, d: Any, type_: str, bias: Any = None) -> None:
    """Compute one of the products of a convolution into `d`."""
    on_gpu = is_on_gpu(d)
    a, b = (_readable(call, x) for x in (a, b))
    input_, weight, output = {"forward": (a, b, d), "data": (d, b, a), "weight": (b, d, a)}[name]
    stride, padding, dilation = (_of_each(call, each) for each in ("stride", "padding", "dilation"))
    whole = Convolution(
        input=_layout(input_), weight=_layout(weight), output=_layout(output), groups=call.x["groups"], stride=stride,
        padding=padding, dilation=dilation,
    )  # fmt: skip
    order = call.given.convolution_k.in_dimensions(name, len(stride))
    product = {"forward": whole.forward, "data": whole.data, "weight": whole.weights}[name](order)
    record = chosen(type_, type_, call.given)
    split, every = call.given.split_k if record.d_type == "f32" else 1, promoted(record, call.given)
    if on_gpu:
        options = ProductOptions(
            target=call.given.target, float32=call.given.float32, split_k=split, promote_every=every or None,
            epilogue=None if type_ in (record.d_type, "f32") else type_, engine=call.given.engine,
        )  # fmt: skip
        bias = None if bias is None else _readable(call, bias).contiguous()
        convolved_on_gpu(product, a, b, d, bias, record, options)
    else:
        multiplied_in_parts(product, a, b, d, _part(call, product, type_, bias))
    batch, m, n, k = product.shape
    of = dtype_name(dtype_for(type_))
    call.report.products[
        ReplacedProduct(
            op=call.op, shape=(m, n, k), batch=batch, dtypes=(of, of, of), instruction=str(record),
            target=call.given.target, split_k=len(boundaries(k, record.k, split)) - 1, promote_every=every, order=order,
        )
    ] += 1  # fmt: skip


def _readable(call: OperatorCall, x: Any) -> Any:
    """Return a tensor whose memory is what it says; `OperandError` of one on another device, as of meta."""
    x = x.detach().resolve_conj().resolve_neg()
    array_of(x, call.op)
    return x


def _layout(x: Any) -> TensorLayout:
    return TensorLayout(shape=tuple(x.shape), strides=x.stride())


def _part(call: OperatorCall, product: ImplicitProduct, type_: str, bias: Any) -> Any:
    """Make the product of parts that are laid out, `[g, rows, k]` and `[g, k, columns]`."""
    added = None if bias is None else array_of(bias, f"{call.op}: bias")

    def multiply(a: Any, b: Any, spans: Spans) -> Any:
        sums = summed(array_of(a, call.op), array_of(b, call.op), (type_, type_), call.given)
        sums = sums.with_codes(np.ascontiguousarray(sums.codes.swapaxes(0, 1)).reshape(a.shape[1], -1))
        c = None
        if added is not None:
            (g, g_end), (j, j_end) = spans["g"], spans[product.columns]
            c = np.ascontiguousarray(added.reshape(product.sizes["g"], -1)[g:g_end, j:j_end]).reshape(-1)
        return tensor_of(sums.scaled_and_added(1, 0 if c is None else 1, c, type_).rounded(type_))

    return multiply
