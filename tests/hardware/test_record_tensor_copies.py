"""Random tensor copies, stores and reductions in PTX: the bytes of an H200."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from lab.generators.tensor_program_cases import ROOM, in_warpmma, random_cases, written
from lab.gpu.tensor_copy_kernels import REGION
from lab.record.tensor_copies import BATCH, SEED, digest
from warpmma.hardware import tensor_bytes
from warpmma.operations import TensorCopy, rows

RECORDED = json.loads((Path(__file__).parents[1] / "data/h200_tensor_programs.json").read_text())["digests"]
CASES = random_cases(np.random.default_rng(SEED), len(RECORDED) // 2 * BATCH)
BASE = 0x7F0000000000


@pytest.mark.alike(4)
@pytest.mark.parametrize("number", range(len(RECORDED) // 2))
def test_tensors_and_shared_memory(number: int) -> None:
    cases, seed = CASES[number * BATCH : (number + 1) * BATCH], SEED + number * BATCH
    maps, orders = written(cases, BASE)
    regions = np.resize(tensor_bytes(seed + 1, 1 << 20), (BATCH, REGION))
    places = [BASE + (1 << 30) + (i << 26) for i in range(4)]
    given = [maps, orders, regions, np.zeros((BATCH, 2), np.uint32)]
    rooms = np.resize(tensor_bytes(seed, 1 << 20), BATCH * ROOM)
    found = in_warpmma({BASE: rooms, **dict(zip(places, given, strict=True))}, BATCH, places)
    assert [digest(found[BASE]), digest(found[places[2]])] == RECORDED[2 * number : 2 * number + 2]


def test_what_ran_is_measured_and_nothing_else() -> None:
    """Forms with `.multicast::cluster`, a cache hint or `.shared::cta` as the destination are in no program."""
    ran = {(case["way"], len(case["dims"]), "box" not in case) for case in CASES}
    copies = [x for x in rows("sm_90a") if isinstance(x, TensorCopy)]
    plain = [x for x in copies if not (x.multicast or x.hint or ".shared::cta.global" in x.mnemonic)]
    assert len(plain) == 80 and len(ran) == 62
    for x in copies:
        found = x in plain and (x.operation or x.direction, x.rank, x.im2col) in ran
        assert (x.evidence.kind == "measured") == found, x
