"""`wmma`: its rows, fragments and chains of `mma`, against the machine code of ptxas."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import needs

from warpmma.errors import MnemonicError, TargetError
from warpmma.operations import InstructionRow, WmmaMove, WmmaMultiply, evidence, row, rows

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "wmma.json").read_text())
ROWS = tuple(rows(opcode="wmma"))
MOVES = [x for x in ROWS if isinstance(x, WmmaMove)]
MULTIPLIES = [x for x in ROWS if isinstance(x, WmmaMultiply)]


@pytest.mark.parametrize(
    ("target", "products", "loads", "stores"),
    [("sm_70", 48, 24, 12), ("sm_72", 96, 54, 18), ("sm_75", 101, 64, 22), ("sm_80", 138, 88, 26)],
)
def test_every_form_that_ptx_documents(target: str, products: int, loads: int, stores: int) -> None:
    there = [x for x in ROWS if target in x.targets]
    generic = [x for x in there if isinstance(x, WmmaMove) and not x.space]
    assert sum(isinstance(x, WmmaMultiply) for x in there) == products
    assert sum(x.direction == "load" for x in generic) == loads
    assert sum(x.direction == "store" for x in generic) == stores
    assert len([x for x in there if isinstance(x, WmmaMove)]) == 4 * len(generic)  # .global, .shared, .shared::cta


@pytest.mark.parametrize("mnemonic", RECORDED["fragments"])
def test_fragments_are_those_of_machine_code(mnemonic: str) -> None:
    move = row(mnemonic)
    assert isinstance(move, WmmaMove)
    for text, targets in RECORDED["fragments"][mnemonic].items():
        for target in targets:
            layout = move.layout(target)
            assert " | ".join(" ".join(x) for x in (layout.row, layout.column, layout.matrix)).strip() == text, target
            assert layout.registers == move.registers


@pytest.mark.parametrize("mnemonic", RECORDED["products"])
def test_chains_are_those_of_machine_code(mnemonic: str) -> None:
    """As many matrix instructions as the tiles are, of their shape."""
    product = row(mnemonic)
    assert isinstance(product, WmmaMultiply)
    emulated = {("sm_90", "s4"), ("sm_90", "u4"), ("sm_90", "b1")}
    for target, text in RECORDED["products"][mnemonic].items():
        steps = product.steps(target)
        tile, (m, n, _) = steps[0], product.shape
        of_m, of_n = (m // tile.m, n // tile.n) if tile.m <= m else (m // tile.n, n // tile.m)
        tiles = len(steps) * of_m * of_n
        if tile.shape == "m8n8k4" and tile.a_type == "f16":
            tiles = len(steps) * {"f16": 2, "f32": 4}[tile.d_type]  # one multiplies four blocks, in so many steps
        counted = {name: int(number) for number, name in re.findall(r"(\d+)x(\S+)", text)}
        if (target, product.a_type) not in emulated:
            assert sum(counted.values()) == tiles, target
            shape = tile.shape.replace("m", "").replace("n", "").replace("k", "")
            assert all(name.split(".")[1].replace("x", "") == shape for name in counted), target


@pytest.mark.parametrize("target", ["sm_70", "sm_75", "sm_90"])
def test_fragments_hold_every_element(target: str) -> None:
    for move in MOVES:
        if target in move.targets:
            layout = move.layout(target)
            held = np.bincount(layout.flat.ravel() % np.prod(move.rows_columns))
            assert layout.shape[-2:] == move.rows_columns and (held == layout.matrices).all()
            assert (move.line, move.lines) == (move.rows_columns if move.order == "col" else move.rows_columns[::-1])


def test_fragments_of_a_product_are_those_that_are_loaded() -> None:
    for product in MULTIPLIES:
        m, n, k = product.shape
        orders = {"a": product.a_layout, "b": product.b_layout, "c": "row", "d": "row"}
        for letter, order in orders.items():
            action = "store" if letter == "d" else "load"
            type_ = product.type(letter.upper())  # type: ignore[arg-type]
            move = row(f"wmma.{action}.{letter}.sync.aligned.{order}.m{m}n{n}k{k}.{type_}")
            assert isinstance(move, WmmaMove)
            for target in product.targets:
                assert move.layout(target) == product.layout(letter.upper(), target)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mnemonic", "fields"),
    [
        (
            "wmma.load.a.sync.aligned.m16n16k16.global.row.f16",
            {"operand": "A", "direction": "load", "space": "global", "order": "row", "ptx": (6, 0), "kind": "b32",
             "syntax": "{d0, d1, d2, d3, d4, d5, d6, d7}, [p]{, q}"},
        ),
        (
            "wmma.store.d.sync.aligned.col.m8n8k4.shared::cta.f64",
            {"operand": "D", "direction": "store", "space": "shared", "kind": "b64", "since": "sm_80", "ptx": (7, 8),
             "syntax": "[p], {a0, a1}{, q}", "line": 8},
        ),
        (
            "wmma.mma.sync.aligned.row.col.m32n8k16.f16.f32",
            {"d_type": "f16", "c_type": "f32", "a_type": "f16", "shape": (32, 8, 16), "ptx": (6, 1)},
        ),
        (
            "wmma.mma.sync.aligned.col.row.m8n32k16.satfinite.s32.u8.u8.s32",
            {"satfinite": True, "a_layout": "col", "b_layout": "row", "since": "sm_72",
             "syntax": "{d0, d1, d2, d3, d4, d5, d6, d7}, {a0}, {b0, b1, b2, b3}, {c0, c1, c2, c3, c4, c5, c6, c7}"},
        ),
        ("wmma.mma.sync.aligned.row.row.m8n8k4.rp.f64.f64.f64.f64", {"rounding": "rp"}),
        ("wmma.mma.and.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32", {"bit_op": "and", "since": "sm_80"}),
    ],
)  # fmt: skip
def test_what_names_say(mnemonic: str, fields: dict[str, Any]) -> None:
    found = row(mnemonic)
    assert {name: getattr(found, name) for name in fields} == fields


@pytest.mark.parametrize(
    ("mnemonic", "target", "error"),
    [
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.bf16.bf16.f32", "sm_75", TargetError),
        ("wmma.load.b.sync.aligned.row.m8n8k32.s4", "sm_80", MnemonicError),
        ("wmma.mma.sync.aligned.row.col.m16n16k8.f64.f64.f64.f64", "sm_80", MnemonicError),
        ("wmma.mma.sync.aligned.row.m16n16k16.f32.f32", "sm_80", MnemonicError),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32.satfinite", "sm_70", MnemonicError),
    ],
)
def test_what_there_is_not(mnemonic: str, target: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        row(mnemonic, target)


def test_evidence_is_that_of_the_chain() -> None:
    name = "wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32"
    known = evidence(name, target="sm_80")
    assert known.kind == "derived" and "m16n8k4.row.col.f32.tf32.tf32.f32 does, which is" in known.assumption
    assert known.machine == evidence(name, target="sm_90").machine == "HMMA"


def test_what_was_compared_says_so() -> None:
    for x in ROWS:
        for target in x.targets:
            known = evidence(x.mnemonic, target=target)
            assert known.kind == ("measured" if target in ("sm_90", "sm_90a") else "derived")
            assert known.assumption or "594 forms of sm_90a, 0 differences" in known.compared


def _text(given: InstructionRow, target: str) -> str:
    """One instruction as a module, of registers that are set to nothing."""
    (letters,) = (re.findall(r"([abcdpq])(\d*)", given.syntax),)
    counts = Counter(letter for letter, _ in letters)
    classes = {}
    if isinstance(given, WmmaMultiply):
        for letter in "abcd":
            type_ = given.type(letter.upper())  # type: ignore[arg-type]
            classes[letter] = {"f64": "f64", "f32": "f32"}.get(type_, "b32")
        operands = given.syntax
    else:
        assert isinstance(given, WmmaMove)
        letter = "d" if given.direction == "load" else "a"
        classes = {letter: {"f64": "f64", "f32": "f32"}.get(given.type, "b32")}
        operands = given.syntax.replace("{, q}", ", 64")
    operands = re.sub(r"([abcd])(\d+)", r"%\1\2", operands).replace("[p]", "[%p]")
    declared = "".join(f".reg .{kind} %{letter}<{counts[letter]}>;" for letter, kind in classes.items())
    version = "7.8"
    return (
        f".version {version}\n.target {target}\n.address_size 64\n.visible .entry k() {{ .reg .b64 %p; {declared}\n"
        f"{given.mnemonic} {operands};\nret; }}\n"
    )


@needs("ptxas")
def test_ptxas_takes_every_row(tmp_path: Path) -> None:
    for target in ("sm_75", "sm_80"):
        bodies = [_text(x, target) for x in ROWS if target in x.targets]
        head = bodies[0].split(".visible")[0]
        entries = [
            ".visible" + body.split(".visible")[1].replace("entry k(", f"entry k{i}(") for i, body in enumerate(bodies)
        ]
        (tmp_path / "all.ptx").write_text(head + "".join(entries))
        ran = subprocess.run(
            ["ptxas", f"-arch={target}", str(tmp_path / "all.ptx"), "-o", str(tmp_path / "all.cubin")],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr[:500]
