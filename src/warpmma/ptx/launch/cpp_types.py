"""Parameters of an entry as C++ declares them: what a mangled name says, where the text agrees with it.

The rules:

1. Types are known where the whole name is read (`mangled_names`), the text has as many parameters, and each has the
   size of its type. Compilers of other languages mangle, too, with other parameters.
2. Of a pointer to numbers the type of the elements is known. `char`, signed or not, stands for bytes; a pointer to
   `void`, to pointers, vectors or structs says nothing.
3. `long` has 64 bits, as on Linux.
"""

from __future__ import annotations

import re

from ..names import function_named
from ..text import Function, Variable, bytes_of

_ELEMENTS = {
    "float": "float32", "double": "float64", "half": "float16", "_Float16": "float16", "__half": "float16",
    "__nv_bfloat16": "bfloat16", "__nv_fp8_e4m3": "float8_e4m3fn", "__nv_fp8_e5m2": "float8_e5m2",
    "__nv_fp8_e8m0": "float8_e8m0fnu", "c10::Half": "float16", "c10::BFloat16": "bfloat16",
    "cutlass::half_t": "float16", "cutlass::bfloat16_t": "bfloat16",
    "bool": "bool", "short": "int16", "unsigned short": "uint16", "int": "int32", "unsigned int": "uint32",
    "long": "int64", "unsigned long": "uint64", "long long": "int64", "unsigned long long": "uint64",
}  # fmt: skip
"""Rule 2."""

_SIZES = {
    "bool": 1, "char": 1, "signed char": 1, "unsigned char": 1, "short": 2, "unsigned short": 2, "int": 4,
    "unsigned int": 4, "float": 4, "long": 8, "unsigned long": 8, "long long": 8, "unsigned long long": 8, "double": 8,
}  # fmt: skip


def declared_types(function: Function) -> tuple[str, ...]:
    """Return the types of an entry's parameters in C++; none where they are not known (rule 1)."""
    found = function_named(function.name)
    types = None if found is None else found.parameters
    if types is None:
        return ()
    types = () if types == ("void",) else types
    if len(types) != len(function.parameters):
        return ()
    for type_, declared in zip(types, function.parameters, strict=True):
        plain = not isinstance(declared, Variable) or (declared.dimensions is None and declared.vector == 1)
        wanted = 8 if "*" in type_ else _SIZES.get(type_)
        if wanted is not None and not (plain and bytes_of(declared.type) == wanted):
            return ()
    return types


def element_of(type_: str) -> str:
    """Return the type of the elements that a pointer leads to, as NumPy and ml_dtypes name it; "" for all else.

    Examples
    --------
    >>> element_of("const __half*"), element_of("float"), element_of("float4*"), element_of("float**")
    ('float16', '', '', '')
    """
    found = re.fullmatch(r"(?:const |volatile )*(.+?) ?\*(?: const| volatile| __restrict__)*", type_)
    return _ELEMENTS.get(found[1], "") if found else ""


def declaration(type_: str, name: str) -> str:
    """Write a parameter as C++ does.

    Examples
    --------
    >>> declaration("const float*", "x"), declaration("float (*) [4]", "rows"), declaration("int", "")
    ('const float* x', 'float (*rows) [4]', 'int')
    """
    return type_.replace("(*)", f"(*{name})", 1) if "(*)" in type_ else f"{type_} {name}".rstrip()
