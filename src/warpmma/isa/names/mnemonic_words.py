"""Fragments of mnemonics that people type, and what each says about an instruction: see `instruction_words`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from ..._arguments import suggestion
from ...errors import MnemonicError, shown
from ..tables import MatrixInstruction, WarpgroupInstruction, instructions
from .name_meanings import explained

Fragment = Callable[[MatrixInstruction], bool]
"""A test that a fragment applies to an instruction."""

_SHAPE = re.compile(r"(?:m(\d+))?(?:n(\d+))?(?:k(\d+))?|(\d+)x(\d+)x(\d+)")
TYPES = ("f16", "bf16", "tf32", "f32", "f64", "e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "s8", "u8", "s4", "u4", "b1",
          "s32")  # fmt: skip
_TYPE_NAMES = {
    **dict.fromkeys(("fp16", "half", "float16"), "f16"),
    **dict.fromkeys(("bfloat16", "nv_bfloat16"), "bf16"),
    **dict.fromkeys(("tfloat32", "tensorfloat32"), "tf32"),
    **dict.fromkeys(("fp32", "float", "float32", "single"), "f32"),
    **dict.fromkeys(("fp64", "double", "float64"), "f64"),
    **dict.fromkeys(("float8_e4m3fn", "float8_e4m3", "fp8_e4m3", "fp8e4m3", "e4m3fn", "fp8e4nv"), "e4m3"),
    **dict.fromkeys(("float8_e5m2", "fp8_e5m2", "fp8e5m2", "fp8e5", "bf8"), "e5m2"),
    **dict.fromkeys(("float6_e2m3fn", "fp6_e2m3", "e2m3fn"), "e2m3"),
    **dict.fromkeys(("float6_e3m2fn", "fp6_e3m2", "e3m2fn"), "e3m2"),
    **dict.fromkeys(("fp4", "f4", "float4", "float4_e2m1fn", "fp4_e2m1", "e2m1fn"), "e2m1"),
    **dict.fromkeys(("int8", "i8"), "s8"), **dict.fromkeys(("uint8", "ui8"), "u8"),
    **dict.fromkeys(("int4", "i4"), "s4"), **dict.fromkeys(("uint4", "ui4"), "u4"),
    **dict.fromkeys(("int32", "i32", "int"), "s32"),
    **dict.fromkeys(("bit", "bits", "bool", "binary", "int1"), "b1"),
}  # fmt: skip
_OPEN = {
    **dict.fromkeys(("fp8", "float8", "f8"), "e4m3 or e5m2"), **dict.fromkeys(("fp6", "float6", "f6"), "e3m2 or e2m3"),
}  # fmt: skip
STAND_FOR: Mapping[str, str] = MappingProxyType(
    {"nvfp4": "mxf4nvf4 4X ue4m3", "mxfp4": "mxf4 ue8m0", "mxfp8": "mxf8f6f4 ue8m0", "mxfp6": "mxf8f6f4 ue8m0"}
)
"""Names of number formats with scales, and the fragments that they stand for."""


def warpgroup(i: MatrixInstruction) -> bool:
    """Whether an instruction is a `wgmma`."""
    return isinstance(i, WarpgroupInstruction)


def holds(**fields: Any) -> Fragment:
    """Return a test that fields have these values."""
    return lambda i: all(getattr(i, name) == value for name, value in fields.items())


_SIMPLE: dict[str, Fragment] = {
    "mma": lambda i: not warpgroup(i), "wgmma": lambda i: warpgroup(i), "mma_async": lambda i: warpgroup(i),
    "sync": lambda i: True, "aligned": lambda i: True, "popc": lambda i: i.bit_op is not None,
    "dense": lambda i: not i.sparse, "sparse": lambda i: i.sparse, "sp": lambda i: i.sparse,
    **dict.fromkeys(("sp::ordered_metadata", "ordered_metadata", "ordered"), holds(sparsity="sp::ordered_metadata")),
    "block_scale": lambda i: i.block_scale, "satfinite": holds(satfinite=True),
    **{f"{word}{kind}": holds(kind=kind) for kind in ("f8f6f4", "mxf8f6f4", "mxf4", "mxf4nvf4")
       for word in ("", "kind::")},
    **{f"{word}{n}x": lambda i, n=n: i.scales_per_row == n for n in (1, 2, 4)  # type: ignore[misc]
       for word in ("", "scale_vec::")},
    **{stype: holds(stype=stype) for stype in ("ue8m0", "ue4m3")},
    **{rounding: holds(rounding=rounding) for rounding in ("rn", "rz", "rm", "rp")},
    **{op: holds(bit_op=op) for op in ("xor", "and")},
}  # fmt: skip

_FIELDS: dict[str, str] = {
    **{x: f"{x}_type" for x in "abcd"}, "m": "m", "n": "n", "k": "k", "kind": "kind", "stype": "stype",
    "scale_vec": "scales_per_row", "sparse": "sparse", "satfinite": "satfinite", "block_scale": "block_scale",
}  # fmt: skip

VOCABULARY: tuple[str, ...] = (*TYPES, *_SIMPLE, *STAND_FOR, "row", "col", *(f"{x}=" for x in _FIELDS))
"""Fragments except shapes: for completion, and for suggestions when a word is unknown."""


def type_named(name: str) -> str | None:
    """Return PTX's name of a type from any of its names; None if there is no such type."""
    lowered = name.lower()
    return lowered if lowered in TYPES else _TYPE_NAMES.get(lowered)


def sizes_of(fragment: str) -> dict[str, int]:
    """Return the sizes that a fragment gives."""
    match = _SHAPE.fullmatch(fragment) if fragment else None
    if match is None:
        return {}
    sizes = match.groups()[3:] if match[4] else match.groups()[:3]
    return {name: int(size[:9]) for name, size in zip("mnk", sizes, strict=True) if size}


def has_place(fragment: str) -> bool:
    """Whether the meaning of a fragment depends on its position: types and layouts."""
    return bool(type_named(fragment)) or fragment in ("row", "col")


def is_fragment(word: str) -> bool:
    """Whether a word says something about an instruction."""
    lowered = word.lower()
    return lowered in _SIMPLE or lowered in STAND_FOR or has_place(lowered) or bool(sizes_of(lowered))


def fragment_test(fragment: str, text: str) -> Fragment:
    """Return what a fragment without a position says; `MnemonicError` if nothing. Errors quote the text."""
    if fragment in _SIMPLE:
        return _SIMPLE[fragment]
    if sizes := sizes_of(fragment):
        return holds(**sizes)
    name, equals, value = fragment.partition("=")
    if equals and name in _FIELDS:
        return holds(**{_FIELDS[name]: _value(name, value, text)})
    if fragment in _OPEN:
        raise MnemonicError(f"{shown(text, str)}: {fragment} is {_OPEN[fragment]}; say which")
    if known_otherwise := explained(text, "mma"):
        raise MnemonicError(f"{shown(text, str)}: {known_otherwise}; expected an mma or wgmma")
    known = [*VOCABULARY, *_TYPE_NAMES, *dict.fromkeys(i.shape for i in instructions())]
    raise MnemonicError(
        f"{shown(text, str)}: {shown(fragment)} is nothing that an instruction is{suggestion(fragment, known)}; "
        "expected a mnemonic, or words such as m16n8k16, f16, sp, mxf4, 4X, satfinite, d=f16"
    )


def _value(name: str, value: str, text: str) -> Any:
    """Read the value of `name=value`."""
    if name in "abcd" and (type_ := type_named(value)):
        return type_
    if name in "mnk" and re.fullmatch(r"[0-9]{1,4}", value):
        return int(value)
    if name == "scale_vec" and re.fullmatch(r"[124]x", value):
        return int(value[0])
    if name in ("sparse", "satfinite", "block_scale") and value in ("true", "false"):
        return value == "true"
    if name in ("kind", "stype"):
        return value
    form = {"scale_vec": "4X", "sparse": "true", "satfinite": "true", "block_scale": "true"}.get(name)
    form = form or ("16" if name in "mnk" else "f16")
    raise MnemonicError(f"{shown(text, str)}: {name}={value} cannot be read; expected such as {name}={form}")
