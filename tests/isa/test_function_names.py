"""Names of approximate functions that are not PTX's: of CUDA C++, of machine code, of Python, and misspelled."""

from __future__ import annotations

import re

import pytest

from warpmma.arithmetic import SEQUENCES, machine_text
from warpmma.errors import MnemonicError
from warpmma.isa.names.foreign import CUDA, ptx_of
from warpmma.operations import operation, operations


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "expf",
            ": this is CUDA C++; in PTX it is ex2.approx.ftz.f32 with -use_fast_math and a multiplication before, "
            "else many instructions",
        ),
        ("tanhf(x)", ": this is CUDA C++; in PTX it is tanh.approx.f32 with -use_fast_math, else many instructions"),
        ("__expf", ": this is CUDA C++; in PTX it is ex2.approx.f32, after a multiplication"),
        ("__powf", ": this is CUDA C++; in PTX it is lg2.approx.f32, a multiplication and ex2.approx.f32"),
        ("hrsqrt", ": this is CUDA C++; in PTX it is rsqrt.approx.ftz.f32, between two cvt"),
        ("h2exp2", ": this is a function of many instructions"),
        ("std::exp", ": this is a function of many instructions"),
        ("erff", ": this is a function of many instructions"),
        ("__frsqrt_rn", ": this is a function of many instructions"),
        ("torch.exp", ": this is a function of Python, not an instruction"),
        ("np.exp2", ": this is a function of Python, not an instruction"),
        ("tl.math.exp2", ": this is a function of Python, not an instruction"),
        ("MUFU", ": this is machine code; in PTX it is rcp.approx.ftz.f32, or another approximate function"),
        ("MUFU.SQRT", ": this is machine code; in PTX it is sqrt.approx.ftz.f32"),
        ("MUFU.EX2.F16", ": this is machine code; in PTX it is ex2.approx.f16"),
        ("MUFU.RCP64H", ": this is machine code; in PTX it is rcp.approx.ftz.f64"),
        ("EX2.approx.f32", ": PTX is written in small letters"),
        ("exp2.approx.f32", ". Nearest: ex2.approx.f32"),
        ("ex2.f32", ". Nearest: ex2.approx.f32"),
        ("ex2.approx", ". Nearest: ex2.approx.f32"),
        ("ex2.approx.ftz.f16", ". Nearest: ex2.approx.f16"),
        ("log2.approx.f32", ". Nearest: lg2.approx.f32"),
        ("tanh.f32", ". Nearest: tanh.approx.f32"),
        ("tanh.approx.ftz.f32", ". Nearest: tanh.approx.f32"),
        ("rsqrt.f32", ". Nearest: rsqrt.approx.f32"),
        ("sqrt.f32", ". Nearest: sqrt.rn.f32"),
        ("lg2", ". There are lg2.approx.f32, lg2.approx.ftz.f32"),
        (
            "ex2",
            ". There are ex2.approx.f32, ex2.approx.ftz.f32, ex2.approx.f16, ex2.approx.f16x2, ex2.approx.ftz.bf16, "
            "ex2.approx.ftz.bf16x2",
        ),
        ("sqrt", ". There are sqrt.rn.f32, sqrt.rn.ftz.f32, sqrt.rz.f32, sqrt.rz.ftz.f32, sqrt.rm.f32, "
                 "sqrt.rm.ftz.f32, ..."),
        ("softmax", ""),
    ],
)  # fmt: skip
def test_other_names_of_functions_are_explained(name: str, says: str) -> None:
    with pytest.raises(MnemonicError) as caught:
        operation(name)
    assert str(caught.value) == f"{name!r} is not a simulated operation{says}"


def test_a_machine_instruction_leads_to_the_form_that_is_it_alone() -> None:
    alone = {row.machine: form for form, row in SEQUENCES.items() if "," not in row.machine}
    alone |= {machine_text(f"{form}x2", "sm_103"): f"{form}x2" for form in ("ex2.approx.f16", "ex2.approx.ftz.bf16")}
    assert len(alone) == 14
    for machine, form in alone.items():
        assert ptx_of(machine) == ("machine code", form)


def test_what_a_function_is_said_to_be_is_an_operation_every_time() -> None:
    rows = {row.mnemonic for row in operations()}
    named = [name for ptx in CUDA.values() for name in re.findall(r"\b\w+\.approx[.\w]*\b", ptx)]
    assert len(named) > 25 and set(named) <= rows
