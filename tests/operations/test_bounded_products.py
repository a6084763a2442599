"""`fma.oob`: an H200's results, for every code as each operand, in hashes; two elements as one alone."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np
import pytest

from lab.generators import operation_inputs
from warpmma.errors import MnemonicError, TargetError
from warpmma.operations import evidence, operation

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "h200_oob.json").read_text())


def test_every_code_as_each_operand() -> None:
    codes = np.arange(1 << 16, dtype=np.uint16).reshape(-1, 32)
    assert len(RECORDED) * codes.size == 2_359_296
    for name, recorded in RECORDED.items():
        mnemonic, role, other = name.split()
        given = [np.full_like(codes, int(other, 16)) for _ in range(3)]
        given[int(role)] = codes
        (d,) = operation(mnemonic)(*given)
        assert f"{zlib.crc32(d.tobytes()):08x}" == recorded, name


@pytest.mark.parametrize("relu", ["", ".relu"])
@pytest.mark.parametrize("type_", ["f16", "bf16"])
def test_two_elements_are_on_their_own(relu: str, type_: str) -> None:
    x = [a.copy() for a in operation_inputs(f"fma.rn{relu}.{type_}x2", 512, 3)]
    for number, operand in enumerate(x):
        operand.view(np.uint16)[:, number::7] = 0x7FF7 | (number & 1) << 15
    (d,) = operation(f"fma.rn.oob{relu}.{type_}x2")(*x)
    (plain,) = operation(f"fma.rn{relu}.{type_}x2")(*x)
    halves = [a.view(np.uint16).reshape(-1, 32) for a in x]
    (single,) = operation(f"fma.rn.oob{relu}.{type_}")(*halves)
    assert np.array_equal(d.view(np.uint16).reshape(-1, 32), single) and (d != plain).any()
    assert not single[halves[0] & 0x7FFF == 0x7FF7].any()


def test_what_there_is_not() -> None:
    with pytest.raises(TargetError):
        operation("fma.rn.oob.f16", "sm_89")
    for name in ("fma.rn.ftz.oob.f16", "fma.rn.oob.f32"):
        with pytest.raises(MnemonicError):
            operation(name)
    assert evidence("fma.rn.oob.f16", target="sm_90").kind == "measured"
    assert evidence("fma.rn.oob.f16", target="sm_100").kind == "derived"
