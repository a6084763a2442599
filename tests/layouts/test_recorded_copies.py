"""What an H200 and its driver did with tensor maps: loads, `tensormap.replace`, and encodes that were refused.

`tests/data/h200_tensor_copies.npz` is part of what `python -m lab.record.tensor_maps` wrote, on an H200 with driver
580.159.04; the rest was equal too.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.gpu.tensor_copy_kernels import PATTERN, REGION
from warpmma.errors import OperandError
from warpmma.hardware import map_of, tensor_bytes
from warpmma.layouts import replace_field

DATA = Path(__file__).parents[1] / "data" / "h200_tensor_copies.npz"


@cache
def recorded(name: str) -> Any:
    with np.load(DATA) as archive:
        found = archive[name]
    return json.loads(found.tobytes()) if name.endswith(("cases", "chains", "refused")) else found


@pytest.mark.parametrize("name", ["tiled", "im2col3", "im2col4", "im2col5", "interleave", "interleave_im2col"])
def test_loads_are_those_of_an_h200(name: str) -> None:
    memory = tensor_bytes(int(recorded(f"{name} seed")))
    region = (np.arange(REGION // 4, dtype=np.uint32) * np.uint32(PATTERN)).view(np.uint8)
    dumps, cases, end = recorded(f"{name} dumps"), recorded(f"{name} cases"), 0
    for case in cases:
        copy = map_of(case).box_copy(case["start"][::-1], case["region"] + case["at"], offsets=case["offsets"][::-1])
        begin, end = end, end + copy.span
        shared = region[case["at"] : case["at"] + copy.span]
        np.testing.assert_array_equal(copy.load(memory[case["address"] :], shared), dumps[begin:end])
        assert copy.copied_bytes == case["counted"]
    assert end == len(dumps) and len(cases) >= 100


def test_replaced_fields_are_those_of_an_h200() -> None:
    starts, after, chains = (recorded(f"replace {x}") for x in ("starts", "after", "chains"))
    for start, came, chain in zip(starts, after, chains, strict=True):
        encoded = start.tobytes()
        for field, ordinal, immediate, value in chain:
            encoded = replace_field(encoded, field, value if immediate is None else immediate, ordinal)
        assert encoded == came.tobytes()
    assert len(chains) > 150


def test_the_driver_refuses_what_is_refused() -> None:
    refused = recorded("refused")
    for given in refused:
        with pytest.raises(OperandError):
            map_of(given)
    assert len(refused) > 300


@pytest.mark.parametrize("given", [{"address": (1 << 57) - 16, "box": [16, 1, 1, 1]}, {"box": [16, 256, 57, 1]}])
def test_the_driver_accepts_the_last_legal_values(given: dict[str, Any]) -> None:
    base = {"type": 0, "dims": [1024] * 4, "strides": [1024, 1 << 20, 1 << 30], "interleave": 0, "swizzle": 0, "l2": 0}
    map_of({**base, "fill": 0, "steps": [1] * 4, "address": 1 << 40, **given})
