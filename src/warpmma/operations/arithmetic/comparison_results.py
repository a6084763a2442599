"""Comparisons whose result is combined by a Boolean operation, or written to two predicates or to numbers (`set`).

The rules (PTX ISA 9.1: Comparison and Selection Instructions, Half Precision Comparison Instructions; operands compare
by the rules of module `comparisons`):

1. With `.and`, `.or` or `.xor` the result is that operation on the comparison and a third operand, a predicate.
2. `setp` with two destinations writes the result for the opposite comparison to the second: `p|q` has t op c and
   (not t) op c.
3. `setp` of two elements, f16x2 or bf16x2, has a destination for each, the lower first; the third operand applies to
   both. If there is only one destination, it receives the result of the lower element.
4. For true, `set` gives all ones in integer types and 1.0 in floating-point types; for false 0. Each of two elements
   gives a half, all ones or zeros if the type is s32 or u32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import numpy as np

from ..._arrays import Array
from ...formats import FloatFormat
from ..carriage import Carriage, decided, whole
from ..elements import TYPES, operands
from ..forms import Form
from ..measurements import OPERATIONS, VARIANTS, measured
from ..records import DTYPES, Operation, register_type
from ..value_forms import Words
from .comparisons import BOOLEAN, COMPARISONS, FLOAT_COMPARISONS, UNSIGNED_COMPARISONS, comparison, complemented

Test = Callable[..., tuple[Array, ...]]

_PAIRS = ("f16x2", "bf16x2")


def _test(words: Words) -> Test:
    """Return the comparison of each element, combined with the third operand (rules 1 and 3)."""
    name, type_ = words[1], words[-1]
    one = comparison(name, type_.removesuffix("x2"), "ftz" in words)
    combine = next((BOOLEAN[word] for word in words if word in BOOLEAN), None)

    def test(a: Array, b: Array, c: Array | None = None) -> tuple[Array, ...]:
        if type_ in _PAIRS:
            pairs = [tuple((x >> np.uint32(shift)).astype(np.uint16) for x in (a, b)) for shift in (0, 16)]
            results = tuple(one(x, y)[0] for x, y in pairs)
        else:
            results = one(a, b)
        return results if c is None or combine is None else tuple(combine(t, c) for t in results)

    return test


def _third(words: Words) -> str:
    return " pred" if any(word in BOOLEAN for word in words) else ""


def _carriage(words: Words) -> Carriage:
    """Return how poison is carried: a third operand may decide the result."""
    return decided((2, int("or" in words))) if "and" in words or "or" in words else whole


def _predicates(words: Words) -> dict[str, Any]:
    """Return the fields of a row that the words of `setp` determine."""
    results = "pred pred" if words[-1] in _PAIRS else "pred"
    given = operands(f"T T{_third(words)} -> {results}", words)
    return {
        **given, "compute": _test(words), "sinks": (0, 1), "carriage": _carriage(words),
        "variant": partial(complemented, words),
    }  # fmt: skip


def _numbers(words: Words) -> dict[str, Any]:
    """Return the fields of a row that the words of `set` determine."""
    out, test = words[-2], _test(words)
    kind = register_type(out)
    part = DTYPES[kind] if words[-1] not in _PAIRS else np.uint16
    fmt = TYPES[out].fmt
    true = fmt.bias << fmt.fraction_bits if isinstance(fmt, FloatFormat) else np.iinfo(part).max

    def compute(*x: Array) -> tuple[Array]:
        parts = [(t * part(true)).astype(DTYPES[kind], copy=False) for t in test(*x)]
        return (parts[0] if len(parts) == 1 else parts[0] | (parts[1] << np.uint32(16)),)

    return {**operands(f"T T{_third(words)} -> {out}", words), "compute": compute, "carriage": _carriage(words)}


_EVIDENCE = measured("Comparison and Selection Instructions", f"{OPERATIONS}, {VARIANTS}")
_setp = partial(Form, kind=Operation, fields=_predicates, ptx=(1, 0), evidence=_EVIDENCE)
_set = partial(Form, kind=Operation, fields=_numbers, ptx=(1, 0), evidence=_EVIDENCE)
_BOOL = ".<and or xor>"
_BF = {"since": "sm_90", "ptx": (7, 8)}


def _integers() -> Iterator[tuple[str, str]]:
    """Comparisons and the types that have them."""
    yield COMPARISONS, "s16 u16 s32 u32 s64 u64"
    yield "eq ne", "b16 b32 b64"
    yield UNSIGNED_COMPARISONS, "u16 u32 u64"


def _setp_forms() -> Iterator[Form]:
    for names, types in _integers():
        yield _setp(spelling=f"setp.<{names}>{_BOOL}.<{types}>")
    yield _setp(spelling=f"setp.<{FLOAT_COMPARISONS}>{_BOOL}{{.ftz}}.f32")
    yield _setp(spelling=f"setp.<{FLOAT_COMPARISONS}>{_BOOL}.f64")
    yield _setp(spelling=f"setp.<{FLOAT_COMPARISONS}>{_BOOL}{{.ftz}}.f16", ptx=(4, 2))
    yield _setp(spelling=f"setp.<{FLOAT_COMPARISONS}>.ftz.f16", ptx=(4, 2))
    yield _setp(spelling=f"setp.<{FLOAT_COMPARISONS}>{{{_BOOL}}}{{.ftz}}.f16x2", ptx=(4, 2))
    yield _setp(spelling=f"setp.<{FLOAT_COMPARISONS}>{_BOOL}.bf16", **cast(Any, _BF))
    yield _setp(spelling=f"setp.<{FLOAT_COMPARISONS}>{{{_BOOL}}}.bf16x2", **cast(Any, _BF))


def _set_forms() -> Iterator[Form]:
    for names, types in _integers():
        for results, more in (("u32 s32 f32", {}), ("f16", {"ptx": (4, 2)}), ("bf16", _BF)):
            yield _set(spelling=f"set.<{names}>{{{_BOOL}}}.<{results}>.<{types}>", **cast(Any, more))
    start = f"set.<{FLOAT_COMPARISONS}>{{{_BOOL}}}"
    yield _set(spelling=f"{start}{{.ftz}}.<u32 s32 f32>.f32")
    yield _set(spelling=f"{start}.<u32 s32 f32>.f64")
    yield _set(spelling=f"{start}{{.ftz}}.f16.<f32 f16>", ptx=(4, 2))
    yield _set(spelling=f"{start}.f16.f64", ptx=(4, 2))
    yield _set(spelling=f"{start}{{.ftz}}.<u16 s16 u32 s32>.f16", ptx=(6, 5))
    yield _set(spelling=f"{start}{{.ftz}}.f16x2.f16x2", ptx=(4, 2))
    yield _set(spelling=f"{start}{{.ftz}}.<u32 s32>.f16x2", ptx=(6, 5))
    yield _set(spelling=f"{start}.bf16.<f16 bf16 f32 f64>", **cast(Any, _BF))
    yield _set(spelling=f"{start}.<u16 s16 u32 s32>.bf16", **cast(Any, _BF))
    yield _set(spelling=f"{start}.<bf16x2 u32 s32>.bf16x2", **cast(Any, _BF))


FORMS = (*_setp_forms(), *_set_forms())
"""Every form of this module."""
