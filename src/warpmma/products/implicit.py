"""Convolutions and their gradients as implicit products: which elements meet, by letters of their places.

1. Letters name digits: n of images; g of groups, c of input and k of output channels in a group; (d, h, w) of places of
   the input, (z, p, q) of the output, (t, r, s) of the kernel. Two dimensions have the last two of these, one has the
   last. Along each, an element of the kernel brings together input = output x stride + kernel x dilation - padding.
2. The output is a product over (t, r, s) and c: rows are (n, z, p, q), columns k. What the kernel sees outside of the
   input is +0.
3. The gradient of the input is a product over (t, r, s) and k: rows are (n, d, h, w), columns c. Where no place of the
   output is brought together with a place of the input, between those of a stride above 1 too, the gradient of the
   output is +0.
4. The gradient of the weight is a product over (n, z, p, q): rows are k, columns c and (t, r, s).
5. A transposed convolution is rule 3, without the gradients; its gradients are rules 2 and 4.

Groups are the batch. In each rule the digits of k have any order, and each ascends or descends.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .._records import Shown

_INPUT, _OUTPUT, _KERNEL = "dhw", "zpq", "trs"


@dataclass(frozen=True, kw_only=True)
class Moved(Shown):
    """A coordinate of an image: (first + the sum of steps x digits) / apart, where that is whole and below its size."""

    size: int
    stride: int
    steps: Mapping[str, int]
    first: int = 0
    apart: int = 1


@dataclass(frozen=True, kw_only=True)
class ImplicitFactor(Shown):
    """Where elements of a factor lie: strides by letters, and coordinates."""

    strides: Mapping[str, int]
    moved: Sequence[Moved] = ()


@dataclass(frozen=True, kw_only=True)
class ImplicitProduct(Shown):
    """A product whose factors are not laid out.

    Attributes
    ----------
    sizes : mapping of str to int
        Of every letter.
    rows, columns, along : str
        Letters, the last is the fastest.
    descending : str
        Letters of `along` that descend.
    a, b : ImplicitFactor
    d : mapping of str to int
        Strides of the result.
    """

    sizes: Mapping[str, int]
    rows: str
    columns: str
    along: str
    descending: str
    a: ImplicitFactor
    b: ImplicitFactor
    d: Mapping[str, int]

    def size(self, letters: Iterable[str]) -> int:
        """Return the number of values of some digits together."""
        return math.prod(self.sizes[x] for x in letters)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Batch, m, n and k."""
        return self.sizes["g"], *map(self.size, (self.rows, self.columns, self.along))  # type: ignore[return-value]


@dataclass(frozen=True, kw_only=True)
class TensorLayout(Shown):
    """Shape and strides of a tensor `[image, channel, *places]`, or `[output channel, input channel, *places]`."""

    shape: Sequence[int]
    strides: Sequence[int]


@dataclass(frozen=True, kw_only=True)
class Convolution(Shown):
    """A convolution: its input, weight and output, and for each dimension of a place how the kernel moves."""

    input: TensorLayout
    weight: TensorLayout
    output: TensorLayout
    groups: int
    stride: Sequence[int]
    padding: Sequence[int]
    dilation: Sequence[int]

    @property
    def _letters(self) -> tuple[str, str, str]:
        dimensions = len(self.stride)
        return _INPUT[-dimensions:], _OUTPUT[-dimensions:], _KERNEL[-dimensions:]

    @property
    def sizes(self) -> dict[str, int]:
        """The size of every letter."""
        layouts = (self.input, self.output, self.weight)
        of_places = zip("".join(self._letters), (n for x in layouts for n in x.shape[2:]), strict=True)
        c, k = self.weight.shape[1], self.weight.shape[0] // self.groups
        return {"n": self.input.shape[0], "g": self.groups, "c": c, "k": k, **dict(of_places)}

    def forward(self, order: str) -> ImplicitProduct:
        """Return the product of rule 2; `order` has the letters of k, with "-" before those that descend."""
        _, places, _ = self._letters
        return self._product(f"n{places}", "k", order, self._seen(), self._of_weight(), self._of_image("k"))

    def data(self, order: str) -> ImplicitProduct:
        """Return the product of rule 3."""
        inputs, _, kernel = self._letters
        moved = [
            Moved(size=size, stride=stride, steps={place: 1, letter: -dilation}, first=padding, apart=apart)
            for place, letter, size, stride, padding, dilation, apart in zip(
                inputs, kernel, self.output.shape[2:], self.output.strides[2:], self.padding, self.dilation,
                self.stride, strict=True,
            )
        ]  # fmt: skip
        gradient = ImplicitFactor(strides=self._channels(self.output, "k"), moved=moved)
        return self._product(f"n{inputs}", "c", order, gradient, self._of_weight(), self._of_image("c"))

    def weights(self, order: str) -> ImplicitProduct:
        """Return the product of rule 4; columns are as they lie in memory."""
        of_weight = self._of_weight()
        letters = ["c", *self._letters[2]]
        columns = sorted(letters, key=lambda x: -of_weight.strides[x])
        return self._product("k", "".join(columns), order, self._of_image("k"), self._seen(), of_weight)

    def _product(
        self, rows: str, columns: str, order: str, a: ImplicitFactor, b: ImplicitFactor, d: ImplicitFactor
    ) -> ImplicitProduct:
        along = order.replace("-", "")
        descending = "".join(x for x in along if f"-{x}" in order)
        return ImplicitProduct(
            sizes=self.sizes, rows=rows, columns=columns, along=along, descending=descending, a=a, b=b, d=d.strides
        )

    def _channels(self, of: TensorLayout, letter: str) -> dict[str, int]:
        """Return the strides of images, groups and channels."""
        image, channel = of.strides[:2]
        return {"n": image, "g": channel * self.sizes[letter], letter: channel}

    def _seen(self) -> ImplicitFactor:
        """Return the input, as places of the output see it."""
        _, places, kernel = self._letters
        moved = [
            Moved(size=size, stride=along, steps={place: stride, letter: dilation}, first=-padding)
            for place, letter, size, along, stride, padding, dilation in zip(
                places, kernel, self.input.shape[2:], self.input.strides[2:], self.stride, self.padding,
                self.dilation, strict=True,
            )
        ]  # fmt: skip
        return ImplicitFactor(strides=self._channels(self.input, "c"), moved=moved)

    def _of_image(self, letter: str) -> ImplicitFactor:
        """Return the output, or of the letter c the input, as it lies in memory."""
        of, places = (self.output, self._letters[1]) if letter == "k" else (self.input, self._letters[0])
        return ImplicitFactor(strides={**self._channels(of, letter), **dict(zip(places, of.strides[2:], strict=True))})

    def _of_weight(self) -> ImplicitFactor:
        outer, inner, *places = self.weight.strides
        of_places = dict(zip(self._letters[2], places, strict=True))
        return ImplicitFactor(strides={"g": outer * self.sizes["k"], "k": outer, "c": inner, **of_places})
