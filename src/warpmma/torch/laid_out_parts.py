"""Implicit products on the CPU: parts of their factors are laid out as matrices, and multiplied.

A part is of some rows or columns, and all of k, so no result depends on how they are cut. Factors that are laid out at
a time have at most `MOST` bytes each, or a tenth of operands and result, whichever is more; one row or column at least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product as all_of
from math import prod
from typing import Any

from ..products import ImplicitFactor, ImplicitProduct, Moved

MOST = 64 << 20

Spans = Mapping[str, tuple[int, int]]
"""Of some digits, from where to where a part goes; others are whole."""


def multiplied_in_parts(product: ImplicitProduct, a: Any, b: Any, d: Any, multiply: Callable[..., Any]) -> None:
    """Compute an implicit product of tensors into `d`.

    `multiply` takes two matrices, `[g, rows, k]` and `[g, k, columns]`, and the spans of g and columns; it returns
    `[rows, g x columns]` in the type of D.
    """
    most = max(MOST, sum(x.numel() * x.element_size() for x in (a, b, d)) // 10)
    lanes = max(1, most // (max(1, product.size(product.along)) * a.element_size()))
    of_a, of_b = (a, product.a, product.rows), (b, product.b, product.columns)
    first, second = (of_a, of_b) if product.a.moved else (of_b, of_a)
    for outer in _parts("g" + first[2], product.sizes, lanes):
        x = laid_out(product, *first, outer)
        of_group = {"g": outer["g"]}
        for inner in _parts(second[2], product.sizes, max(1, lanes // _count(product, "g", outer))):
            y = laid_out(product, *second, of_group | inner)
            rows, columns = (x, y) if first is of_a else (y, x)
            spans = {**outer, **inner}
            letters = product.rows + "g" + product.columns
            sizes = [_count(product, letter, spans) for letter in letters]
            start = sum(_span(product, letter, spans)[0] * product.d[letter] for letter in letters)
            into = d.as_strided(sizes, [product.d[letter] for letter in letters], d.storage_offset() + start)
            into.copy_(multiply(rows, columns.mT, spans).view(sizes))


def _span(product: ImplicitProduct, letter: str, spans: Spans) -> tuple[int, int]:
    return spans.get(letter, (0, product.sizes[letter]))


def _count(product: ImplicitProduct, letter: str, spans: Spans) -> int:
    start, stop = _span(product, letter, spans)
    return stop - start


def _parts(letters: str, sizes: Mapping[str, int], most: int) -> Iterator[dict[str, tuple[int, int]]]:
    """Cut digits, the last is the fastest, into parts of at most so many values together, or one."""
    if not letters:
        yield {}
        return
    first, rest = letters[0], letters[1:]
    size, each = sizes[first], prod(sizes[x] for x in rest)
    if each <= most:
        step = max(1, most // max(1, each))
        for start in range(0, size, step):
            yield {**{x: (0, sizes[x]) for x in rest}, first: (start, min(size, start + step))}
        return
    for start in range(size):
        for part in _parts(rest, sizes, most):
            yield {**part, first: (start, start + 1)}


def laid_out(product: ImplicitProduct, x: Any, factor: ImplicitFactor, lanes: str, spans: Spans) -> Any:
    """Lay a part of a factor out, `[g, lanes, k]`."""
    letters = "g" + lanes + product.along
    span = {letter: _span(product, letter, spans) for letter in letters}
    sizes = [stop - start for start, stop in span.values()]
    kernel = [next(iter(moved.steps.keys() & set("trs"))) for moved in factor.moved]
    if factor.moved:
        out = x.new_zeros(sizes)
        _fill(out, x, product, factor, letters, kernel, span)
    else:
        start = sum(span[letter][0] * factor.strides[letter] for letter in letters)
        out = x.as_strided(sizes, [factor.strides[letter] for letter in letters], x.storage_offset() + start)
    around = [letters.index(letter) for letter in product.descending if letter not in kernel]
    out = out.flip(around) if around else out
    return out.reshape(sizes[0], prod(sizes[1 : 1 + len(lanes)]), prod(sizes[1 + len(lanes) :]))


def _fill(
    out: Any, x: Any, product: ImplicitProduct, factor: ImplicitFactor, letters: str, kernel: list[str],
    span: Mapping[str, tuple[int, int]],
) -> None:  # fmt: skip
    """Copy what each place of the kernel brings together."""
    places = {
        next(iter(moved.steps.keys() - {letter})): moved for moved, letter in zip(factor.moved, kernel, strict=True)
    }
    others = [letter for letter in letters if letter not in kernel]
    sizes = [places[i].size if i in places else span[i][1] - span[i][0] for i in others]
    strides = [places[i].stride if i in places else factor.strides[i] for i in others]
    start = sum(span[i][0] * factor.strides[i] for i in others if i not in places)
    source = x.as_strided(sizes, strides, x.storage_offset() + start)
    if 2 * source.numel() <= out.numel():
        source = source.contiguous()  # each element is read several times
    for at in all_of(*(range(*span[letter]) for letter in kernel)):
        values = dict(zip(kernel, at, strict=True))
        pairs = {i: _meeting(moved, values, i, span[i]) for i, moved in places.items()}
        if any(pair is None for pair in pairs.values()):
            continue
        into: list[Any] = []
        for letter in letters:
            if letter in values:
                low, high = span[letter]
                value = values[letter]
                into.append(high - 1 - value if letter in product.descending else value - low)
            else:
                into.append(pairs[letter][0] if letter in pairs else slice(None))  # type: ignore[index]
        out[tuple(into)] = source[tuple(pairs[i][1] if i in pairs else slice(None) for i in others)]  # type: ignore[index]


def _meeting(moved: Moved, kernel: Mapping[str, int], place: str, span: tuple[int, int]) -> tuple[slice, slice] | None:
    """Return which places of a part, and which of the image, a place of the kernel brings together."""
    base = moved.first + sum(moved.steps.get(letter, 0) * value for letter, value in kernel.items())
    step, apart, (low, high) = moved.steps[place], moved.apart, span
    if apart == 1:  # image = base + step x place
        first, last = max(low, -(base // step)), min(high - 1, (moved.size - 1 - base) // step)
        if first > last:
            return None
        start = base + first * step
        return slice(first - low, last + 1 - low), slice(start, base + last * step + 1, step)
    # place = apart x image - base
    first, last = max(0, -(-(low + base) // apart)), min(moved.size - 1, (high - 1 + base) // apart)
    if first > last:
        return None
    return slice(apart * first - base - low, apart * last - base + 1 - low, apart), slice(first, last + 1)
