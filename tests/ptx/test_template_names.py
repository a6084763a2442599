"""Instances of templates, by the names that C++ gives them: as nvcc 13.0 mangles them, and a demangler reads them."""

from __future__ import annotations

import ctypes
import ctypes.util
import re

import pytest

import warpmma as wm
from warpmma.ptx.names.mangled_names import instance, plain_instance, source_name

NAMES = {
    "_ZN1n1kIfLi3EEEvPT_": "n::k<float, 3>",
    "_ZN1n1kINS_1XELin2EEEvPT_": "n::k<n::X, -2>",
    "_ZN1n1kINS_1YINS_1XEEELi1EEEvPT_": "n::k<n::Y<n::X>, 1>",
    "_ZN1n1kINS_1YINS_1XEE1ZELi1EEEvPT_": "n::k<n::Y<n::X>::Z, 1>",
    "_ZN1n4packIJifNS_1XEEEEvDpT_": "n::pack<int, float, n::X>",
    "_Z3twoIPKfPN1n1YINS3_IfEEEEEvT_T0_": "two<const float*, n::Y<n::Y<float>>*>",
    "_Z3twoIN1n1XES1_EvT_T0_": "two<n::X, n::X>",
    "_Z3twoI6float4PS0_EvT_T0_": "two<float4, float4*>",
    "_Z3twoIKPKiRVcEvT_T0_": "two<const int* const, volatile char&>",
    "_Z3litILin1ELb1ELj7ELxn5ELN1n1ME1EEvPi": "lit<-1, true, 7, -5, (n::M)1>",
    "_Z2ttIN1n1YEiEvT_IT0_E": "tt<n::Y, int>",
    "_Z3twoIyaEvT_T0_": "two<unsigned long long, signed char>",
    "_ZN52_GLOBAL__N__00000000_4_k_cu_00000000_000000000000000006hiddenIdEEvT_": "hidden<double>",
}  # fmt: skip
UNREAD = ["scale", "_Z5saxpyifPfS_", "_Z3twoIPFiiEiEvT_T0_", "_Z3", "_Z5scaleI", "_Z5scaleIfLi4", "_ZN", "_Z1kIS9_Ev",
          "_Z1k" + "IP" * 500, "_Z1kILiE"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_instances(name: str) -> None:
    assert instance(name) == source_name(name) == NAMES[name]


@pytest.mark.parametrize("name", NAMES)
def test_instances_are_those_of_a_demangler(name: str) -> None:
    library = ctypes.CDLL(ctypes.util.find_library("stdc++") or pytest.skip("no libstdc++"))
    library.__cxa_demangle.restype = ctypes.c_char_p
    said = library.__cxa_demangle(name.encode(), None, None, None).decode()
    told = re.sub(r"\(anonymous namespace\)::", "", said.removeprefix("void "))
    for kind in ("float", "int"):
        told = told.replace(f"{kind} const*", f"const {kind}*")
    told = told.replace("char volatile", "volatile char").replace(
        "_GLOBAL__N__00000000_4_k_cu_00000000_0000000000000000::", ""
    )
    assert plain_instance(told).startswith(plain_instance(NAMES[name]))


@pytest.mark.parametrize("name", UNREAD)
def test_what_is_no_instance_or_not_read(name: str) -> None:
    assert instance(name) == ""


def test_modules_find_instances() -> None:
    head, names = ".version 8.0 .target sm_80 .address_size 64 ", list(NAMES)[:4]
    module = wm.ptx.load(head + " ".join(f".entry {x}() {{ ret; }}" for x in names))
    assert module["n::k<n::Y<n::X>,1>"].name == names[2] and module["k<float,3u>"].name == names[0]
    with pytest.raises(wm.OperandError, match=r"'k' means 4 entries .*_ZN1n1kIfLi3EEEvPT_ \(n::k<float, 3>\)"):
        module["k"]
    with pytest.raises(wm.OperandError, match=r"no entry 'n::k<float, 4>'; did you mean 'n::k<float, 3>'"):
        module["n::k<float, 4>"]
