"""Values as formulas of a kernel's inputs, normalised so that the order of operands does not matter.

A formula is a tuple: ("in", number), ("number", code), ("mul", flags, factors), ("add", flags, terms),
("fma", flags, factors, addend), ("neg", x), and (name, ...) for any other instruction. Factors have no signs: the sign
of a factor is moved outside the product.
"""

from __future__ import annotations

Formula = tuple[object, ...]


def negated(x: Formula) -> Formula:
    """Negate; for a number, in its 32-bit code."""
    if x[0] == "neg":
        return x[1]  # type: ignore[return-value]
    if x[0] == "number" and isinstance(x[1], int):
        return "number", x[1] ^ 1 << 31
    return "neg", x


def _signed(a: Formula, b: Formula) -> tuple[bool, tuple[Formula, ...]]:
    """Move the sign out of a product, and sort its factors."""
    turned = False
    found = []
    for x in (a, b):
        if x[0] == "neg":
            turned, x = not turned, x[1]  # type: ignore[assignment]
        elif x[0] == "number" and isinstance(x[1], int) and x[1] >> 31:
            turned, x = not turned, ("number", x[1] ^ 1 << 31)
        found.append(x)
    return turned, tuple(sorted(found, key=repr))


ONE: Formula = ("number", 0x3F800000)


def product(a: Formula, b: Formula, flags: str) -> Formula:
    """Multiply; one is the identity."""
    turned, factors = _signed(a, b)
    if ONE in factors and "SAT" not in flags:
        rest = factors[1 - factors.index(ONE)]
        whole = total(rest, ("number", 1 << 31), flags)
    else:
        whole = ("mul", flags, factors)
    return negated(whole) if turned and "SAT" not in flags else (*whole, "turned") if turned else whole


def total(a: Formula, b: Formula, flags: str) -> Formula:
    """Add; -0 is the identity."""
    for x, zero in ((a, b), (b, a)):
        if zero == ("number", 1 << 31) and not flags:
            return x
        if zero == ("number", 1 << 31) and flags == "FTZ" and x[0] == "neg":  # the sign may be flipped afterwards
            return negated(total(x[1], zero, flags))  # type: ignore[arg-type]
    return "add", flags, tuple(sorted((a, b), key=repr))


def fused(a: Formula, b: Formula, c: Formula, flags: str) -> Formula:
    """Fused multiply-add."""
    if c == ("number", 1 << 31) or c == ("neg", ("number", 0)):  # -0: a product as an addition
        return product(a, b, flags)
    turned, factors = _signed(a, b)
    if ONE in factors:
        rest = factors[1 - factors.index(ONE)]
        return total(negated(rest) if turned else rest, c, flags)
    return "fma", flags, turned, factors, c


def shown(x: object) -> str:
    """Write a formula."""
    if not isinstance(x, tuple):
        return str(x)
    if x and x[0] == "in":
        return f"x{x[1]}"
    return f"{x[0]}({', '.join(shown(part) for part in x[1:] if part != '')})" if x else "()"
