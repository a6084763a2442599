"""Types of elements: what a kernel declares or accesses, compared with what an array holds.

The rules, for types by the names that NumPy and ml_dtypes have:

1. Two scalar floats contradict each other if they are different formats: float32 and float64, float16 and bfloat16.
2. A float and an integer contradict each other if their widths differ. An integer of the same width holds codes.
3. A signed integer contradicts a declared integer that is narrower: the kernel would take each number for several. The
   default of NumPy, int64, for an `int *` is that. A narrower integer is packed data, an unsigned one words of bits.
4. Nothing else is compared: bytes (`char`), `void`, vectors and structs; elements of other kinds; empty arrays.
"""

from __future__ import annotations

import re

_WIDTHS = (8, 16, 32, 64, 128)


def contradicts(declared: str, held: str) -> bool:
    """Whether elements of a type cannot be meant for a kernel that takes them for another.

    Parameters
    ----------
    declared : str
        What the kernel takes them for: "float32", "bfloat16", "int32"; "" if that is not known.
    held : str
        Of the array.

    Examples
    --------
    >>> [contradicts("float16", x) for x in ("float16", "uint16", "float32", "int64")]
    [False, False, True, True]
    """
    mine, its = _kind(declared), _kind(held)
    if mine is None or its is None:
        return False
    (kind, bits), (other, other_bits) = mine, its
    if kind == other == "float":
        return declared != held
    if "float" in (kind, other):
        return bits != other_bits
    return other == "int" and other_bits > bits


def expected(declared: str) -> str:
    """Say which arrays a kernel takes.

    Examples
    --------
    >>> expected("float16"), expected("int32")
    ('float16, or uint16 for codes', 'int32 or uint32')
    """
    kind, bits = _kind(declared) or ("", 0)
    return f"{declared}, or uint{bits} for codes" if kind == "float" else f"int{bits} or uint{bits}"


def _kind(name: str) -> tuple[str, int] | None:
    """Return "float", "int" or "uint", and the width."""
    if name == "bool":
        return "uint", 8
    found = re.fullmatch(r"(?:b?(float)|(u?int))(\d+)(?:_\w+)?", name)
    if found is None or int(found[3]) not in _WIDTHS:  # narrower ones of ml_dtypes are no bytes of memory
        return None
    return found[1] or found[2], int(found[3])
