"""Approximate functions as on an H200; the tool that records them, without a GPU: what it keeps, finds and runs."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from types import ModuleType

import changed_sources
import numpy as np
import pytest
from arrays import Array, same
from oracles import skip_without
from sequence_cases import BY_HAND, by_arrays, mutants

from lab.record import sequences as tool
from warpmma.arithmetic import SEQUENCES, SPECIAL_FUNCTIONS, approximate_reference
from warpmma.arithmetic.arrays import function_arrays
from warpmma.arithmetic.dispatch import functions, sequence_arrays
from warpmma.arithmetic.exact import special_functions
from warpmma.hardware.emitting import ptx_module

RECORDED = np.load(Path(__file__).parents[1] / "data" / "h200_sequences.npz")
operands = cache(tool.operands)


class Stub:
    device = "no GPU"
    flip = ""

    def __init__(self, forms: list[str], target: str) -> None:
        self.forms = forms

    def run(self, form: str, given: tuple[Array, ...]) -> Array:
        assert form in self.forms
        results = tool.expected(form, given).copy()
        results[1] ^= results.dtype.type(form == self.flip)
        return results


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool, "SequenceGpu", Stub)


def test_what_is_kept(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "kept.npz"
    assert tool.main(["--only", "ex2.approx.f[13]*", "--record", str(file)]) == 0
    assert "no GPU: 3 forms, 1235276 results, 0 differences; " in capsys.readouterr().out
    with np.load(file) as archive:
        kept = dict(archive)
    assert str(kept.pop("device")) == "no GPU"
    assert set(kept) == {key for key in RECORDED.files if key.startswith(("ex2.approx.f1", "ex2.approx.f3"))}
    for key, x in kept.items():
        same(x, RECORDED[key])


def test_a_difference_is_found(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(Stub, "flip", "tanh.approx.bf16")
    assert tool.main(["--only", "tanh.approx.bf16*"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("        1 tanh.approx.bf16 chosen: in, out, expected 0x1 0x0 0x1\n")
    assert "no GPU: 2 forms, 131072 results, 1 differences; " in out


def test_no_form(capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main(["--only", "ex3.*"]) == 2
    assert capsys.readouterr().out == "no such form\n"


def test_digests_see_every_result_and_its_place() -> None:
    results = np.arange(10, dtype=np.uint32)
    whole = tool.digests(results, 4)
    assert whole.shape == (3,)
    for place in range(10):
        changed = results.copy()
        changed[place] ^= 1 << 31
        assert (tool.digests(changed, 4) != whole).tolist() == [place // 4 == i for i in range(3)]
    assert (tool.digests(results[::-1], 4) != whole).all()


def test_kernels_are_assembled(tmp_path: Path) -> None:
    skip_without("ptxas")
    kernels = [tool.kernel(form, f"k{i}") for i, form in enumerate(tool.FORMS)]
    source = tmp_path / "k.ptx"
    source.write_text(ptx_module(kernels, "sm_90a", (8, 0)))
    subprocess.run(["ptxas", "-arch=sm_90a", str(source), "-o", str(tmp_path / "k.cubin")], check=True)


# The recording


def test_every_form_is_recorded() -> None:
    names = {key.split("|")[0] for key in RECORDED.files} - {"device"}
    packed = {f"{form}x2" for form, row in SEQUENCES.items() if row.fmt.bits == 16}
    assert set(tool.FORMS) == names == set(SEQUENCES) | packed
    assert str(RECORDED["device"]) == "NVIDIA H200, driver 580.159.04"


@pytest.mark.parametrize("form", tool.FORMS)
def test_as_on_an_h200(form: str) -> None:
    """All that was recorded: results one by one, and digests of many more."""
    for which, codes in operands(form).items():
        for key, found in tool.kept(form, which, tool.expected(form, codes)):
            same(found, RECORDED[key])


@pytest.mark.parametrize("form", SEQUENCES)
def test_the_reference_is_as_on_an_h200(form: str) -> None:
    chosen, results = operands(form)["chosen"], RECORDED[f"{form}|results"]
    for place in range(0, len(results), 3):
        codes = [int(x[place * tool.KEPT]) for x in chosen]
        assert hex(approximate_reference(form, *codes)) == hex(int(results[place])), list(map(hex, codes))


ZERO, LEAST = "scaling 0: first +1", "scaling 0: last +1"  # 0 is what it was; 2^-126 is normal, and what comes out too
TWICE = "twice before"  # divisor and dividend, and the divisor is still small enough
HUGE = {"first -1", "last -1", "last +1"}  # of 2^126 the reciprocal is normal; infinity and NaN stay what they are
EQUIVALENT = {
    "rcp.approx.f32": {ZERO, LEAST, *(f"scaling 1: {x}" for x in HUGE)},
    "rsqrt.approx.f32": {ZERO, LEAST},
    "sqrt.approx.f32": {ZERO, LEAST},
    "ex2.approx.f32": {f"scaling 0: {x}" for x in HUGE},  # 2^-126 is normal
    "lg2.approx.f32": {ZERO, LEAST},
    "div.approx.f32": {ZERO, LEAST, f"scaling 0: {TWICE}"},
    "div.full.f32": {
        *(f"scaling 0: {x}" for x in HUGE),
        *(x.replace("0", "1") for x in (ZERO, LEAST)),
        f"scaling 1: {TWICE}",
    },
    "div.full.ftz.f32": {f"scaling 0: {x}" for x in HUGE},
    "rsqrt.approx.f64": {"scaling 0: first -1", LEAST},  # 0 is special
}
"""What changes no result of any operand."""


@pytest.mark.parametrize(
    "form", [form for form, row in SEQUENCES.items() if row.scalings or row.dividend or row.factor or row.refinement]
)
def test_a_wrong_table_is_noticed(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what was recorded or is known by hand, unless both tables are the same function."""
    unnoticed = set()
    hand = [(codes, expected) for name, codes, expected in BY_HAND if name == form]
    for name, mutant in mutants(SEQUENCES[form]):
        monkeypatch.setattr(sequence_arrays, "find_sequence", lambda _, mutant=mutant: mutant)
        kept = tool.kept(form, "chosen", tool.expected(form, operands(form)["chosen"]))
        right = all(np.array_equal(x, RECORDED[key]) for key, x in kept)
        if right and all(by_arrays(form, codes) == expected for codes, expected in hand):
            unnoticed.add(name)
    assert unnoticed == EQUIVALENT.get(form, set())


# Rules of the special-function unit that only these operands notice: the other formats, where the range ends

NARROW = "ex2.approx.f16 ex2.approx.ftz.bf16 tanh.approx.f16 tanh.approx.bf16"
UPPER = "rcp.approx.ftz.f64 rsqrt.approx.ftz.f64"
CUT16, INFINITE = 'fmt.encode(values, "rz")', "2.0 ** (fmt.emax + 1)"
ON_ARRAYS = [
    ("ex2.approx.ftz.f32", function_arrays, "np.minimum(code, int(self.infinity))", "code & (1 << 31) - 1"),
    (NARROW, functions, CUT16, 'fmt.encode(values, "rn")'),
    ("ex2.approx.f16", functions, CUT16, 'fmt.encode(np.where(values < 2.0**-14, 0, values), "rz")'),
    ("ex2.approx.f16", functions, INFINITE, "2.0 ** (fmt.emax + 2)"),
    ("ex2.approx.f16", functions, INFINITE, "2.0 ** fmt.emax"),
    ("ex2.approx.f16 ex2.approx.ftz.bf16", functions, "sign | infinity", "sign | infinity - 1"),
    ("tanh.approx.f16 tanh.approx.bf16", functions, "dtype=np.uint16)))", "dtype=np.uint16) & 0x7FFF))"),
    (NARROW, functions, "cast(int, fmt.nan_code)", "fmt.sign_bit | 0x7FFF"),
    (UPPER, function_arrays, "_Word(1023, 20)", "_Word(1022, 20)"),
    (UPPER, function_arrays, "np.where(magnitude > word.infinity, _NAN, result)", "result"),
    (UPPER, function_arrays, "np.where(magnitude < _U(1 << word.fraction_bits), _U(0), magnitude)", "magnitude"),
    ("rcp.approx.ftz.f64", function_arrays, "(code < 1 << self.fraction_bits)", "(code < 0)"),
    ("rcp.approx.ftz.f64", function_arrays, "(code < 1 << self.fraction_bits)", "(code < 2 << self.fraction_bits)"),
]
BY_REFERENCE = [
    ("ex2.approx.ftz.f32", "field >= self.top", "field > self.top"),
    ("ex2.approx.f16 tanh.approx.f16", "<< 10 | f >> 13", "<< 10 | f + (1 << 12) >> 13"),
    ("ex2.approx.ftz.bf16 tanh.approx.bf16", "return code >> 16", "return code + (1 << 15) >> 16"),
    ("ex2.approx.f16", "if e - 127 > 15:", "if e - 127 > 14:"),
    ("ex2.approx.f16", "if e - 127 >= -14:", "if e - 127 >= -15:"),
    ("ex2.approx.f16", "_fixed(e, f, 24)", "_fixed(e, f, 23) << 1"),
    ("tanh.approx.f16", "return sign | _F32.cut(magnitude, 24, 0)", "return sign"),
    (UPPER, "_F32, _UPPER = _Word(127, 23), _Word(1023, 20)", "_F32, _UPPER = _Word(127, 23), _Word(1022, 20)"),
    (UPPER, "fraction << 23 - self.fraction_bits", "fraction"),
    ("rcp.approx.ftz.f64", "if field < 1:", "if field < 2:"),
]


@pytest.mark.parametrize(("forms", "module", "old", "new"), ON_ARRAYS)
def test_another_rule_on_arrays_is_noticed(forms: str, module: ModuleType, old: str, new: str) -> None:
    names = changed_sources.changed(module, (old, new))
    for form in forms.split():
        function, (codes,) = SPECIAL_FUNCTIONS[SEQUENCES[form].function], operands(form)["chosen"]
        if function.bits == 16:
            results = names["special_function"](function.name, codes)
        elif function.fmt == "f64":
            upper = names["function_on_arrays"](function, (codes >> np.uint64(32)).astype(np.uint32))
            results = upper.astype(np.uint64) << np.uint64(32)
        else:
            results = names["function_on_arrays"](function, codes)
        found = dict(tool.kept(form, "chosen", results))
        assert not all(np.array_equal(x, RECORDED[key]) for key, x in found.items()), form


@pytest.mark.parametrize(("forms", "old", "new"), BY_REFERENCE)
def test_another_rule_of_the_reference_is_noticed(forms: str, old: str, new: str) -> None:
    compute = changed_sources.changed(special_functions, (old, new))["special_function_reference"]
    for form in forms.split():
        function, (codes,) = SPECIAL_FUNCTIONS[SEQUENCES[form].function], operands(form)["chosen"]
        half = 32 if function.fmt == "f64" else 0
        pairs = zip(codes[:: tool.KEPT].tolist(), RECORDED[f"{form}|results"].tolist(), strict=True)
        assert any(compute(function.name, code >> half) << half != result for code, result in pairs), form
