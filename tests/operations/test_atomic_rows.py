"""`atom` and `red`: what their rows say, which of them ptxas takes, and what becomes of an element."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import needs

from warpmma.errors import MnemonicError, TargetError
from warpmma.operations import Atomic, row, rows

ATOMICS = [x for x in rows("sm_90") if isinstance(x, Atomic)]


@pytest.mark.parametrize(
    ("mnemonic", "expected"),
    [
        ("atom.add.u32", {"space": "generic", "order": "relaxed", "scope": "gpu", "syntax": "d0, [p], a0", "size": 4}),
        ("atom.acq_rel.sys.shared::cta.cas.b64", {"space": "shared", "order": "acq_rel", "scope": "sys", "values": 2}),
        ("atom.shared::cluster.cas.b16", {"kind": "b16", "syntax": "d0, [p], a0, b0", "since": "sm_90"}),
        (
            "atom.cas.b128",
            {
                "kind": "b64",
                "registers": 2,
                "syntax": "{d0, d1}, [p], {a0, a1}, {b0, b1}",
                "size": 16,
                "since": "sm_90",
            },
        ),
        ("red.release.cta.global.add.f64", {"returns": False, "results": (), "order": "release", "observes": False}),
        ("atom.global.v4.f32.add", {"count": 4, "size": 16, "ptx": (8, 1), "mnemonic": "atom.global.add.v4.f32"}),
        ("red.global.add.noftz.L2::cache_hint.v2.bf16x2", {"hint": True, "size": 8, "kind": "b32", "floating": True}),
        ("atom.add.v2.f32", {"count": 2, "space": "global"}),  # a generic address, but not of shared memory
        ("atom.cta.inc.u32", {"ptx": (6, 0), "scope": "cta", "floating": False}),
    ],
)
def test_what_rows_say(mnemonic: str, expected: dict[str, Any]) -> None:
    found = row(mnemonic)
    assert isinstance(found, Atomic)
    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(
    "mnemonic",
    [
        "atom.add.s64", "atom.and.u32", "atom.exch.u32", "atom.exch.b16", "atom.cas.u64", "atom.inc.u64", "red.cas.b32",
        "atom.add.f16", "atom.min.f32", "atom.min.noftz.f16", "atom.shared.add.v2.f32", "atom.add.v8.f32",
        "atom.shared.add.L2::cache_hint.u32", "atom.cas.L2::cache_hint.b32", "red.exch.b32", "red.acquire.gpu.add.u32",
        "red.acq_rel.gpu.add.u32", "atom.max.b32", "atom.volatile.add.u32",
    ],
)  # fmt: skip
def test_what_is_no_atomic(mnemonic: str) -> None:
    with pytest.raises(MnemonicError):
        row(mnemonic)


@pytest.mark.parametrize("mnemonic", ["atom.add.noftz.bf16", "atom.cas.b128", "red.add.v2.f32", "atom.cluster.add.u32"])
def test_what_came_with_sm_90(mnemonic: str) -> None:
    assert isinstance(row(mnemonic, "sm_90"), Atomic)
    with pytest.raises(TargetError):
        row(mnemonic, "sm_80")


_LETTER = {"f32": "f", "f64": "e", "b128": "q"}
_HEAD = """.version 9.0
.target {target}
.address_size 64
.entry k() {{ .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<9>; .reg .f64 %e<9>; .reg .b128 %q<9>;
"""


def _statement(given: Atomic) -> str:
    letter = _LETTER.get(given.type, {16: "h", 32: "r", 64: "d"}[min(given.bits, 64)])
    vector = ", ".join(f"%{letter}{i}" for i in range(given.count))
    vector = vector if given.count == 1 else f"{{{vector}}}"
    parts = [vector] * given.returns + ["[%d8]"] + [vector] * given.values + ["%d7"] * given.hint
    return f"{given} {', '.join(parts)};"


@needs("ptxas")
@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_ptxas_takes_what_a_target_has(target: str, tmp_path: Path) -> None:
    statements = {str(x): _statement(x) for x in ATOMICS}
    source = tmp_path / "atomics.ptx"
    source.write_text(_HEAD.format(target=target) + "\n".join(statements.values()) + "\nret; }\n")
    done = subprocess.run(
        ["ptxas", "-arch", target, str(source), "-o", str(tmp_path / "x")], capture_output=True, text=True, check=False
    )
    first = _HEAD.count("\n") + 1
    refused = {
        list(statements)[int(line.split("line ")[1].split(";")[0]) - first]
        for line in (done.stdout + done.stderr).splitlines()
        if "error" in line and "line " in line
    }
    assert refused == {str(x) for x in ATOMICS if target not in x.targets}


# What becomes of an element


def _one(mnemonic: str, old: int, *operands: int, space: str = "global") -> int:
    found = row(mnemonic)
    assert isinstance(found, Atomic)
    dtype = f"u{found.bits // 8}"
    return int(found.combine(space, *(np.array([x], dtype) for x in (old, *operands)))[0])


@pytest.mark.parametrize(
    ("mnemonic", "given", "expected"),
    [
        ("atom.add.u32", (0xFFFFFFFF, 2), 1),
        ("atom.add.u64", (2**64 - 1, 2), 1),
        ("atom.min.s32", (1, 0xFFFFFFFF), 0xFFFFFFFF),
        ("atom.min.u32", (1, 0xFFFFFFFF), 1),
        ("atom.max.s64", (2**63, 5), 5),
        ("atom.inc.u32", (6, 7), 7),
        ("atom.inc.u32", (7, 7), 0),
        ("atom.inc.u32", (9, 7), 0),
        ("atom.dec.u32", (0, 7), 7),
        ("atom.dec.u32", (8, 7), 7),
        ("atom.dec.u32", (7, 7), 6),
        ("atom.cas.b32", (3, 3, 9), 9),
        ("atom.cas.b32", (3, 4, 9), 3),
        ("atom.cas.b16", (3, 3, 0x9000), 0x9000),
        ("atom.exch.b64", (3, 4), 4),
        ("atom.xor.b64", (2**63 | 1, 2**63), 1),
        ("atom.add.f32", (0x00400000, 0x00400000), 0),  # subnormal operands become zeros in global memory
        ("atom.add.f32", (0x80000001, 0x80000000), 0x80000000),
        ("atom.add.f64", (1, 1), 2),
        ("atom.add.noftz.f16x2", (0x00013C00, 0x00013C00), 0x00024000),
        ("atom.add.noftz.bf16", (0x3F80, 0x3F80), 0x4000),
    ],
)
def test_what_becomes_of_an_element(mnemonic: str, given: tuple[int, ...], expected: int) -> None:
    assert _one(mnemonic, *given) == expected


def test_subnormal_sums_stay_in_shared_memory() -> None:
    assert _one("atom.add.f32", 0x00400000, 0x00400000, space="shared") == 0x00800000
    assert _one("atom.add.f32", 1, 1, space="shared") == 2


def test_128_bits_are_compared_whole() -> None:
    found = row("atom.cas.b128")
    assert isinstance(found, Atomic)
    old = np.array([[1, 2], [1, 3]], np.uint64)
    equal, new = np.array([[1, 2]] * 2, np.uint64), np.array([[7, 8]] * 2, np.uint64)
    assert found.combine("global", old, equal, new).tolist() == [[7, 8], [1, 3]]
