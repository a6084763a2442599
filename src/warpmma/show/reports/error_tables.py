"""Errors of whole products as text, JSON and comma-separated values."""

from __future__ import annotations

import csv as csv_
import io
import json as json_
from collections.abc import Iterable, Sequence
from fractions import Fraction
from textwrap import wrap
from typing import Any

from ..._text import table
from ...analysis import BINS, ErrorPlace, ErrorReport, ProductError
from ...products import FLOAT32, Choice
from ..sums.exact_text import rational

_WIDTH = 118
_ROWS = 13  # of a histogram above 1 ulp


def figure(number: float | Fraction | None) -> str:
    """Write a number in three digits, as people read errors.

    Examples
    --------
    >>> figure(0), figure(0.5), figure(1234.5), figure(2.6008e-06), figure(1e9), figure(None)
    ('0', '0.5', '1,234', '2.6e-06', '1e+09', '-')
    """
    if number is None:
        return "-"
    try:
        value = float(number)
    except OverflowError:
        return "beyond 1e308"
    if value == 0 or value != value:
        return "0" if value == 0 else "-"
    if 1000 <= abs(value) < 1e7:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def text(report: ErrorReport) -> str:
    """Write tables: the figures of each product, how each was computed, and the histogram."""
    parts = [
        headline(report.products),
        "\n".join(_figures(report.products)),
        "\n".join(_specials(report.products)),
        "\n".join(_same_bits(report.products)),
        "\n".join(["How each was computed", *_how(report.products)]),
        "\n".join(["Elements by error, in ulps", *_bins([some[0] for some in alike(report.products)])]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def headline(products: Sequence[ProductError]) -> str:
    """Say in one line what was measured."""
    choice, shape = products[0].choice, " x ".join(map(str, products[0].result.shape))
    types = f"{choice.instruction.a_type} x {choice.instruction.b_type}"
    return f"Errors of D, {shape}, {types}, k = {choice.k}, against the exact result"


def _place(index: Sequence[int]) -> str:
    return f"[{', '.join(map(str, index))}]"


def _figures(products: Sequence[ProductError]) -> list[str]:
    bounded = any(x.used is not None for x in products)
    head = ["", "ulps: largest", "mean", "at", "relative: largest", "mean", "absolute", "of |A||B|+|C|", "<= 1/2 ulp"]
    rows = [[*head, *(["of bound"] if bounded else [])]]
    for x in products:
        of, where = figures_of(x), _place(x.largest.index) if x.largest else "-"
        row = [
            x.name, of["ulps"], of["mean_ulps"], where, of["largest_relative"], of["mean_relative"],
            of["largest_absolute"], of["backward"], of["rounded"],
        ]  # fmt: skip
        rows.append([*row, *([figure(x.used)] if bounded else [])])
    return _folded(rows)


def figures_of(product: ProductError) -> dict[str, str]:
    """Write the figures of a product by name: its largest error in ulps, `_FIGURES`, and the share that is rounded."""
    return {
        "ulps": figure(product.largest.ulps if product.largest else None),
        **{name: figure(_measured(product, name)) for name in _FIGURES},
        "rounded": share(product.rounded, product.compared),
    }


def _measured(product: ProductError, name: str) -> float | None:
    """Return one of a product's figures; None if no element was compared, where 0 would mislead."""
    figure_: float = getattr(product, name)
    return figure_ if product.compared else None


def _folded(rows: list[list[str]]) -> list[str]:
    """Lay out a table; if names are too long for it, each gets a line of its own."""
    lines = table(rows, left=[0])
    if max(map(len, lines)) <= _WIDTH:
        return lines
    rest = table([["", *row[1:]] for row in rows], left=[0])
    return [
        line
        for row, line in zip(rows, rest, strict=True)
        for line in ([shortened(row[0], _WIDTH), line] if row[0] else [line])
    ]


def share(part: int, whole: int) -> str:
    """Write a part of a whole in percent.

    Examples
    --------
    >>> share(0, 9), share(1, 3), share(1, 9999), share(9998, 9999), share(3, 3), share(0, 0)
    ('0', '33.3%', '<0.1%', '>99.9%', '100%', '-')
    """
    if not whole:
        return "-"
    if part in (0, whole):
        return "100%" if part else "0"
    percent = 100 * part / whole
    return "<0.1%" if percent < 0.05 else ">99.9%" if percent >= 99.95 else f"{percent:.1f}%"


_COUNTS = (
    ("nan", "results are NaN"),
    ("infinite", "results are infinite"),
    ("overflowed", "of those are finite, exactly"),
    ("undefined", "exact results are NaN or infinite, for an operand is"),
    ("misplaced", "of those came out otherwise"),
    ("zeros", "results are not zero where the exact one is: no relative error"),
)


def _specials(products: Iterable[ProductError]) -> list[str]:
    lines = []
    for x in products:
        lines += [f"{x.name}: {getattr(x, name):,} {words}" for name, words in _COUNTS if getattr(x, name)]
        if x.used is not None and x.used > 1:
            lines.append(
                f"{x.name}: errors up to {figure(x.used)} times their bounds; {x.choice.target} has none so large"
            )
    return lines


def alike(products: Iterable[ProductError]) -> list[list[ProductError]]:
    """Group products with the same bits, NaN included."""
    found: list[list[ProductError]] = []
    for product in products:
        mine = product.result.dtype, product.result.tobytes()
        for some in found:
            if mine == (some[0].result.dtype, some[0].result.tobytes()) and some[0].bins == product.bins:
                some.append(product)
                break
        else:
            found.append([product])
    return found


def _same_bits(products: Iterable[ProductError]) -> list[str]:
    return [
        line for some in alike(products) if len(some) > 1
        for line in wrap(f"the same bits: {', '.join(x.name for x in some)}", _WIDTH, subsequent_indent="  ")
    ]  # fmt: skip


def _how(products: Sequence[ProductError]) -> list[str]:
    lines = []
    for x in products:
        choice = x.choice
        lines += wrap(
            f"{x.name}: given; bounds are of {products[0].name}" if x.given else
            f"{x.name}: {choice.instruction} on {choice.target}{_along(choice)}; {choice.evidence.kind}"
            + f"; {choice.note}" * bool(choice.note),
            _WIDTH, initial_indent="  ", subsequent_indent="    ", break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
    return lines


def _along(choice: Choice) -> str:
    parts = []
    if choice.float32 is not None and FLOAT32[choice.float32].tensor_cores:
        done = "rounded" if FLOAT32[choice.float32].rounded else "truncated"
        parts.append(f"float32 {done} to tf32, which does not count as an error here")
    if len(choice.slices) > 1:
        parts.append(f"k in {len(choice.slices)} slices")
    if choice.promote_every:
        parts.append(f"promoted to f32 every {choice.promote_every}")
    if choice.epilogue:
        parts.append(f"rounded to {choice.epilogue}")
    return "".join(f", {part}" for part in parts)


def bin_name(at: int) -> str:
    """Name a bin of a histogram by the errors in it.

    Examples
    --------
    >>> [bin_name(i) for i in (0, 1, 2, 3, 12, 27)]
    ['0', 'to 1/2', 'to 1', 'to 2', 'to 1,024', 'more']
    """
    if at == len(BINS):
        return "more"
    end = BINS[at]
    if at == 0:
        return "0"
    return f"to {end.numerator:,}" if end.denominator == 1 else f"to {end}"


def shown_bins(products: Iterable[ProductError]) -> range:
    """Return the bins of a histogram from the first to the last that has an element."""
    used = [i for x in products for i, count in enumerate(x.bins) if count]
    return range(min(used, default=0), max(used, default=0) + 1)


def _bins(products: Sequence[ProductError]) -> list[str]:
    """Lay out histograms, as many beside each other as fit."""
    some = _few_bins(shown_bins(products))
    lines: list[str] = []
    rest = list(products)
    while rest:
        taken = next(n for n in range(len(rest), 0, -1) if n == 1 or max(map(len, _columns(rest[:n], some))) <= _WIDTH)
        lines += [*([""] if lines else []), *_columns(rest[:taken], some)]
        rest = rest[taken:]
    return lines


def _columns(products: Sequence[ProductError], bins: Sequence[range]) -> list[str]:
    rows = [["ulps", *(shortened(x.name, 60) for x in products)]]
    for some in bins:
        counts = (sum(x.bins[i] for i in some) for x in products)
        rows.append([bin_name(some[-1]), *(share(n, x.compared) for n, x in zip(counts, products, strict=True))])
    return [f"  {line}" for line in table(rows, left=[0])]


def shortened(name: str, most: int) -> str:
    """Cut a name that is too long for a column."""
    return name if len(name) <= most else f"{name[: most - 3]}..."


def _few_bins(bins: range) -> list[range]:
    """Merge bins above 1 ulp, two or three to a row, to limit the number of rows."""
    low, high = (range(bins.start, min(bins.stop, 3)), range(max(bins.start, 3), bins.stop))
    each = -(-len(high) // _ROWS) or 1
    return [range(i, i + 1) for i in low] + [range(i, min(i + each, high.stop)) for i in high[::each]]


# JSON and CSV


def _placed(place: ErrorPlace | None) -> dict[str, Any] | None:
    if place is None:
        return None
    return {
        "index": list(place.index), "result": place.result, "value": str(place.value), "exact": str(place.exact),
        "error": str(place.error), "ulp": str(place.ulp), "ulps": str(place.ulps), "relative": rational(place.relative),
        "bound": rational(place.bound),
    }  # fmt: skip


_PLAIN = (
    "name", "given", "format", "elements", "compared", "exact", "rounded", "mean_ulps", "mean_relative",
    "largest_relative", "relative_at", "zeros", "largest_absolute", "backward", "bound_ulps", "used", "nan",
    "infinite", "overflowed", "undefined", "misplaced",
)  # fmt: skip
_FIGURES = ("mean_ulps", "mean_relative", "largest_relative", "largest_absolute", "backward")


def json(report: ErrorReport) -> str:
    """Write all but arrays: "products", a list; of each its "choice", its figures, "largest" and "histogram".

    Rational numbers are strings such as "-3/8"; figures are null where no element was compared; a bin has its upper
    end in ulps as "to", null for the last.
    """
    found = []
    for x in report.products:
        choice = x.choice
        how = {
            "instruction": str(choice.instruction), "target": choice.target, "shape": list(choice.shape),
            "k": choice.k, "slices": [list(each) for each in choice.slices], "promote_every": choice.promote_every,
            "epilogue": choice.epilogue, "float32": choice.float32, "evidence": str(choice.evidence),
            "note": choice.note,
        }  # fmt: skip
        bins = [{"to": rational(end), "count": count} for end, count in x.histogram]
        plain = {name: _measured(x, name) if name in _FIGURES else getattr(x, name) for name in _PLAIN}
        found.append({**plain, "choice": how, "largest": _placed(x.largest), "histogram": bins})
    return json_.dumps({"products": found}, indent=2)


def csv(report: ErrorReport) -> str:
    """Write the histograms: "above" and "to" in ulps, and a column for each product."""
    out = io.StringIO()
    writer = csv_.writer(out, lineterminator="\n")
    writer.writerow(["above", "to", *(x.name for x in report.products)])
    ends: list[str] = ["", *(str(float(end)) for end in BINS), ""]
    for i in range(len(BINS) + 1):
        writer.writerow([ends[i], ends[i + 1], *(x.bins[i] for x in report.products)])
    return out.getvalue()
