"""The script that compares tensor maps with a GPU: its orders, its cases, and that ptxas takes its kernels."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
from oracles import needs

from lab.generators.tensor_map_cases import near_miss
from lab.gpu.tensor_copy_kernels import KINDS, ORDER_WORDS, REGION, REPLACEMENTS, module_text
from lab.record.tensor_maps import PARTS, fault_cases, orders_of
from warpmma.errors import WarpmmaError
from warpmma.hardware import copy_case, im2col_case, map_of
from warpmma.layouts import REPLACED


def test_orders_are_innermost_first() -> None:
    tiled = {"box": [16, 8], "dims": [64, 32], "start": [-8, 3], "offsets": [], "at": 256}
    column = {"dims": [8, 6, 5, 2], "start": [0, 1, 2, 3], "offsets": [4, 5], "at": 128}
    first, second = orders_of([tiled, column]).tolist()
    assert first == [2, 2**32 - 8, 3, 0, 0, 0, 0, 0, 0, 256] + [0] * (ORDER_WORDS - 10)
    assert second[:10] == [14, 0, 1, 2, 3, 0, 4, 5, 0, 128]
    assert {2, 14} <= set(KINDS)


def test_replacements_are_every_field_and_ordinal() -> None:
    assert {name for name, _, _ in REPLACEMENTS} == {*REPLACED} and len(REPLACEMENTS) == 2 + 5 + 5 + 4 + 5 + 22


def test_cases_fit_the_region_and_both_kinds_of_near_misses_occur() -> None:
    rng = np.random.default_rng(1)
    for make in (copy_case, lambda rng, region: im2col_case(rng, region, rank=4)):
        for _ in range(50):
            case = make(rng, REGION)
            assert map_of(case).encoded and case["at"] % 128 == 0 and case["at"] < REGION
    refused = 0
    for _ in range(300):
        try:
            map_of(near_miss(rng, 1 << 40))
        except WarpmmaError:
            refused += 1
    assert 100 < refused < 250


def test_faults_name_what_traps_and_what_does_not() -> None:
    cases = fault_cases()
    traps = [name for name, traps, _ in cases if traps]
    assert 30 < len(traps) < len(cases) - 15 and len({name for name, _, _ in cases}) == len(cases)
    assert {f"fault {i}" for i in range(len(cases))} < set(PARTS)


@needs("ptxas")
def test_ptxas_takes_the_kernels(tmp_path: Path) -> None:
    source = tmp_path / "copies.ptx"
    source.write_text(module_text())
    subprocess.run(["ptxas", "-arch=sm_90a", str(source), "-o", str(tmp_path / "copies.cubin")], check=True)
