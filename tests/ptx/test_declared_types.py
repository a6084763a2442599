"""Declared types are checked: a mangled name says what a pointer leads to; arrays of other elements are errors."""

from __future__ import annotations

import ctypes
import ctypes.util
import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import warpmma as wm
from warpmma.errors import OperandError
from warpmma.kernel import Output
from warpmma.machine import contradicts
from warpmma.ptx import load
from warpmma.ptx.launch.arguments import ArgumentError
from warpmma.ptx.names.mangled_names import function_named, variable_named

HEAD = ".version 8.0 .target sm_80 .address_size 64 "
PARAMETERS: dict[str, tuple[str, ...] | None] = {
    "_Z3cgkPKiPii": ("const int*", "int*", "int"),
    "_Z6noargsv": ("void",),
    "_Z1hPK6__halfPK7__half2P13__nv_bfloat16S_PVKfPPfPKPKfPA4_fPv": (
        "const __half*", "const __half2*", "__nv_bfloat16*", "__half", "const volatile float*", "float**",
        "const float* const*", "float (*) [4]", "void*",
    ),
    "_ZN1n3oneENS_1XEPS0_PKS0_PNS0_2InENS_1EEPS6_": (
        "n::X", "n::X*", "const n::X*", "n::X::In*", "n::E", "n::E*",
    ),
    "_ZN1n4packIJfPdNS_1XEEEEviDpT_": ("int", "float", "double*", "n::X"),
    "_ZN1n4packIJEEEviDpT_": ("int",),
    "_ZN1n2ttINS_3ArrEfEEvT_IT0_Li3EEPS3_PS4_": ("n::Arr<float, 3>", "float*", "n::Arr<float, 3>*"),
    "_ZN1n3twoI6__halfdEEvPKT_PT0_NS_3ArrIS2_Li4EEEPNS7_IS5_Li4EEENS_3TenIS3_EES2_": (
        "const __half*", "double*", "n::Arr<__half, 4>", "n::Arr<double, 4>*", "n::Ten<const __half>", "__half",
    ),
    "_ZN1n3twoIVffEEvPKT_PT0_NS_3ArrIS2_Li4EEEPNS7_IS5_Li4EEENS_3TenIS3_EES2_": (
        "const volatile float*", "float*", "n::Arr<volatile float, 4>", "n::Arr<float, 4>*",
        "n::Ten<const volatile float>", "volatile float",
    ),
    "_Z2fpPFiiEPf": None, "_Z1kDv4_fPf": None,
    "_ZN8__main__3foB2v1B4testEPf": None, "_Z1kPT_": None, "_Z1kPf.part": None,
}  # fmt: skip
"""As nvcc and NVRTC 13.0 mangle them."""


@pytest.mark.parametrize("name", PARAMETERS)
def test_types_of_parameters(name: str) -> None:
    found = function_named(name)
    assert (None if found is None else found.parameters) == PARAMETERS[name]


@pytest.mark.parametrize("name", [x for x, types in PARAMETERS.items() if types])
def test_types_are_those_of_a_demangler(name: str) -> None:
    library = ctypes.CDLL(ctypes.util.find_library("stdc++") or pytest.skip("no libstdc++"))
    library.__cxa_demangle.restype = ctypes.c_char_p
    said = library.__cxa_demangle(name.encode(), None, None, None).decode()
    ours = ", ".join(x for x in PARAMETERS[name] or () if x != "void")
    assert _words(said[said.index("(") :]) == _words(f"({ours})")


def _words(types: str) -> list[str]:
    """Words in any order inside of each type: the one writes `const float*`, the other `float const*`."""
    return [" ".join(sorted(re.findall(r"[\w:]+|[*&<>()\[\]]", x))) for x in types.split(",")]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("_ZZ4statP6float4PKS_S_P4int4E5E12ab", "E12ab"), ("_ZZ5plainE2sA", "sA"), ("_ZZ5plainE2sA_0", "sA"),
        ("_ZZN1n1kIfLi3EEEvPT_E4tile", "tile"), ("_ZN1n5tableE", "n::table"), ("buffer", "buffer"),
        ("_ZZ2fpPFiiEPfE4tile", "_ZZ2fpPFiiEPfE4tile"), ("_ZZ5plainE2sA+", "_ZZ5plainE2sA+"),
    ],
)  # fmt: skip
def test_names_of_variables(name: str, says: str) -> None:
    assert variable_named(name) == says


def launched(name: str, *args: Any, parameters: str = ".param .u64 p", target: str = "sm_90") -> Any:
    module = load(f"{HEAD}.entry {name}({parameters}) {{ ret; }}")
    return next(iter(module.values())).launch(wm.Device(target), 1, 1, list(args))


FLOATS = {"float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2"}
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
TAKEN = {
    "f": {"float32", "int32", "uint32"},
    "d": {"float64", "int64", "uint64"},
    "6__half": {"float16", "int16", "uint16"},
    "13__nv_bfloat16": {"bfloat16", "int16", "uint16"},
    "13__nv_fp8_e4m3": {"float8_e4m3fn", "int8", "uint8"},
    "13__nv_fp8_e5m2": {"float8_e5m2", "int8", "uint8"},
    "t": {"float16", "bfloat16", "int8", "int16", "uint8", "uint16", "uint32", "uint64"},
    "i": {"float32", "int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64"},
    "x": {"float64", *INTEGERS},
    **dict.fromkeys(("v", "c", "a", "h", "6float4", "4int4", "7__half2", "Pf", "1X", "A4_f"), FLOATS | {*INTEGERS}),
}  # fmt: skip
"""Which arrays a pointer to each type takes: all others are errors."""


@pytest.mark.parametrize("mangled", TAKEN)
@pytest.mark.parametrize("const", ["", "K", "VK"])
def test_what_a_pointer_takes(mangled: str, const: str) -> None:
    for dtype in sorted(FLOATS | {*INTEGERS}):
        array = np.zeros(4, getattr(ml_dtypes, dtype, dtype))
        name = f"_Z1kP{const}{mangled}"
        if dtype in TAKEN[mangled]:
            launched(name, array)
        else:
            with pytest.raises(
                ArgumentError, match=rf"^<ptx>:1:\d+: args\[0\] of k\(.*is an array of {dtype}; expected"
            ):
                launched(name, array)


def test_messages_say_what_is_expected() -> None:
    says = (
        r"args\[1\] of scale\(float\*, const __half\*, int\), const __half\*, is an array of float32; "
        "expected float16, or uint16 for codes"
    )
    three = ".param .u64 _Z5scalePfPK6__halfi_param_0, .param .u64 b, .param .u32 c"
    x = np.zeros(4, np.float32)
    with pytest.raises(ArgumentError, match=says):
        launched("_Z5scalePfPK6__halfi", x, x, 4, parameters=three)
    with pytest.raises(ArgumentError, match=r"is an array of int64; expected int32 or uint32"):
        launched("_Z1kPi", np.arange(4))


def test_arrays_of_a_device_and_outputs_are_checked() -> None:
    device, module = wm.Device("sm_80"), load(f"{HEAD}.entry _Z1kPf(.param .u64 p) {{ ret; }}")
    for array in (device.array(np.zeros(4)), Output(np.zeros(4)), device.empty(4, np.float16)):
        with pytest.raises(ArgumentError, match="expected float32"):
            module["k"].launch(device, 1, 1, [array])
    module["k"].launch(device, 1, 1, [device.zeros(4)])


def test_what_has_no_elements_is_not_compared() -> None:
    for array in (np.zeros(0), np.zeros((4, 0)), np.zeros(4, np.complex64), np.zeros(2, "f4, i4"), None, 4096):
        launched("_Z1kPf", array)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("k", ".param .u64 p"),
        ("_Z1kPfS_", ".param .u64 p"),  # as many parameters as another language makes of them
        ("_Z1kfPf", ".param .u64 p, .param .u64 q"),  # sizes that are not those of the types
        ("_Z1kPFfvEPf", ".param .u64 p, .param .u64 q"),  # not read
        ("_Z1kPf", ".param .align 8 .b8 p[8]"),
    ],
)
def test_names_that_the_text_does_not_agree_with_say_nothing(name: str, parameters: str) -> None:
    struct = "b8 p[8]" in parameters
    launched(name, *[bytes(8) if struct else np.zeros(4)] * parameters.count(".param"), parameters=parameters)


def test_instances_of_templates() -> None:
    launched("_ZN1n5scaleI6__halfLi4EEEvPKT_", np.zeros(4, np.float16))
    with pytest.raises(OperandError, match=r"args\[0\] of n::scale<__half, 4>\(const __half\* p\).* expected float16"):
        launched("_ZN1n5scaleI6__halfLi4EEEvPKT_", np.zeros(4, np.float32))


def test_types_that_cannot_be_compared() -> None:
    assert not any(contradicts(x, y) for x, y in [("", "float32"), ("float32", ""), ("float32", "complex64")])
    assert not contradicts("int8", "int4") and contradicts("bool", "int32") and contradicts("float32", "bool")
