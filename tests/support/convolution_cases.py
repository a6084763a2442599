"""Convolutions laid out as matrices, element by element: what implicit products have to equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from arrays import Array

from warpmma.products import Convolution, TensorLayout

INPUT, OUTPUT, KERNEL = "dhw", "zpq", "trs"


@dataclass(frozen=True, kw_only=True)
class Case:
    """Shapes of a convolution, and how its kernel moves."""

    input: tuple[int, ...]
    weight: tuple[int, ...]
    groups: int = 1
    stride: Sequence[int]
    padding: Sequence[int]
    dilation: Sequence[int]

    @property
    def output(self) -> tuple[int, ...]:
        moved = zip(self.input[2:], self.weight[2:], self.stride, self.padding, self.dilation, strict=True)
        places = [(n + 2 * p - e * (k - 1) - 1) // s + 1 for n, k, s, p, e in moved]
        return self.input[0], self.weight[0], *places

    def drawn(self, dtype: Any, seed: int = 0) -> tuple[Array, Array, Array]:
        """Draw input, weight and output."""
        rng = np.random.default_rng([seed, *self.input])
        x, weight, y = (rng.standard_normal(s).astype(dtype) for s in (self.input, self.weight, self.output))
        return x, weight, y

    def convolution(self, x: Any, weight: Any, y: Any) -> Convolution:
        """Describe it for arrays as they lie."""
        of = [TensorLayout(shape=z.shape, strides=[n // z.itemsize for n in z.strides]) for z in (x, weight, y)]
        return Convolution(
            input=of[0], weight=of[1], output=of[2], groups=self.groups, stride=self.stride, padding=self.padding,
            dilation=self.dilation,
        )  # fmt: skip

    def factors(self, name: str, order: str, x: Array, weight: Array, y: Array) -> tuple[Array, Array]:
        """Lay out A `[g, m, k]` and B `[g, k, n]`; columns of the gradient of a weight are (c, t, r, s)."""
        inputs, outputs, kernel = (letters[-len(self.stride) :] for letters in (INPUT, OUTPUT, KERNEL))
        w = _letters(weight.reshape(self.groups, -1, *weight.shape[1:]), f"gkc{kernel}")
        if name == "data":
            apart = np.zeros(
                (*y.shape[:2], *((n - 1) * s + 1 for n, s in zip(y.shape[2:], self.stride, strict=True))), y.dtype
            )
            between: Any = (..., *(slice(None, None, s) for s in self.stride))
            apart[between] = y
            moved = zip(self.padding, self.dilation, weight.shape[2:], strict=True)
            back = [e * (k - 1) - p for p, e, k in moved]
            turned = _seen(apart, x.shape[2:], weight.shape[2:], [1] * len(back), back, self.dilation)
            turned = np.flip(turned, tuple(range(turned.ndim - len(back), turned.ndim)))
            a = _letters(_grouped(turned, self.groups), f"ngk{inputs}{kernel}")
            return _matrix(a, f"n{inputs}", order), _matrix(w, "c", order).swapaxes(1, 2)
        rows = _seen(x, y.shape[2:], weight.shape[2:], self.stride, self.padding, self.dilation)
        seen = _letters(_grouped(rows, self.groups), f"ngc{outputs}{kernel}")
        if name == "forward":
            return _matrix(seen, f"n{outputs}", order), _matrix(w, "k", order).swapaxes(1, 2)
        of = _letters(_grouped(y, self.groups), f"ngk{outputs}")
        return _matrix(of, "k", order), _matrix(seen, f"c{kernel}", order).swapaxes(1, 2)

    def image(self, name: str, d: Array) -> Array:
        """Give the product `[g, m, n]` its shape."""
        shape = {"forward": self.output, "data": self.input, "weight": self.weight}[name]
        if name == "weight":
            return d.reshape(shape)
        places = d.reshape(self.groups, shape[0], -1, d.shape[2])  # [g, image, place, channel]
        return places.transpose(1, 0, 3, 2).reshape(shape)


CASES = (
    Case(input=(2, 6, 7, 8), weight=(10, 3, 3, 2), groups=2, stride=(2, 1), padding=(1, 0), dilation=(1, 2)),
    Case(input=(3, 5, 11), weight=(7, 5, 3), stride=(3,), padding=(1,), dilation=(1,)),
    Case(input=(1, 2, 4, 5, 3), weight=(3, 2, 2, 3, 2), stride=(1, 2, 2), padding=(1, 1, 0), dilation=(2, 1, 1)),
)  # fmt: skip


def _seen(
    x: Array, places: Sequence[int], kernel: Sequence[int], stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int],
) -> Array:  # fmt: skip
    """Return what every place sees, `[image, channel, *places, *kernel]`: +0 outside."""
    dimensions = len(places)
    for i in range(dimensions):
        at = np.arange(places[i])[:, None] * stride[i] + np.arange(kernel[i]) * dilation[i] - padding[i]
        axis = 2 + 2 * i
        inside = (at >= 0) & (at < x.shape[axis])
        shape = [1] * (x.ndim + 1)
        shape[axis : axis + 2] = at.shape
        taken = np.take(x, np.where(inside, at, 0), axis=axis)
        x = np.where(inside.reshape(shape), taken, np.zeros((), x.dtype))
    return x.transpose(0, 1, *range(2, x.ndim, 2), *range(3, x.ndim, 2))


def _grouped(x: Array, groups: int) -> Array:
    return x.reshape(x.shape[0], groups, -1, *x.shape[2:])


def _letters(x: Array, letters: str) -> tuple[Array, str]:
    assert x.ndim == len(letters)
    return x, letters


def _matrix(of: tuple[Array, str], lanes: str, order: str) -> Array:
    """Lay an array with letters out as `[g, lanes, k]`."""
    x, letters = of
    along = order.replace("-", "")
    for sign, letter in pairwise(order):
        if sign == "-":
            x = np.flip(x, letters.index(letter))
    x = x.transpose([letters.index(i) for i in "g" + lanes + along])
    g, *sizes = x.shape
    return np.ascontiguousarray(x).reshape(g, int(np.prod(sizes[: len(lanes)])), -1)
