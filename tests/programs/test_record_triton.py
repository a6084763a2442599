"""What Triton 3.6 made of its kernels writes, on the simulator, what it wrote on an H200, every bit."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from programs.archive import Recording, kept, read
from programs.simulating import simulate
from record_triton import TRITON
from triton_programs.calls import TritonCase
from triton_programs.cases import CASES
from triton_programs.kept import kept_case, kept_texts, plain_text, version

from warpmma import ptx


@cache
def recording() -> Recording:
    return read(TRITON)


@pytest.mark.skipif(not TRITON.exists(), reason="not recorded yet")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_kernel_writes_what_an_h200_wrote(case: TritonCase) -> None:
    made = kept_case(case)
    outputs, _, _ = simulate(
        ptx.load(kept_texts()[made.program], "triton.ptx"), made.make(), hazards={"poison": "warn"}
    )
    for name, array in outputs.items():
        digest, part = kept(array)
        expected = recording().outputs[str(made)][name]
        places = np.flatnonzero(part != expected[1])
        assert not len(places), f"{name}: {len(places)} of {len(part)} differ, first at {places[:5]}"
        assert digest == expected[0], name


def test_texts_are_of_these_cases_and_name_no_machine() -> None:
    texts = kept_texts()
    assert set(texts) == {str(case) for case in CASES}
    assert version() == "3.6.0"
    for text in texts.values():
        assert "/" not in "".join(line for line in text.splitlines() if line.startswith("\t.file"))
        assert plain_text(text) == text
