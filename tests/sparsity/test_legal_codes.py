"""Which nibbles of metadata are legal, and which have a known effect on a target."""

from __future__ import annotations

import re

import numpy as np
import pytest

import warpmma as wm
from warpmma import sparsity
from warpmma.errors import MetadataError, TargetError, UnsupportedError
from warpmma.isa import TARGETS

pytestmark = pytest.mark.quick

BF16 = "mma.sp.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32"
SPARSE = [i for i in wm.instructions() if i.sparse]
SORTED = {0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110}
SWAPPED = {(code & 3) << 2 | code >> 2 for code in SORTED}


@pytest.mark.parametrize("instruction", SPARSE, ids=str)
def test_of_bf16_alone_and_from_sm_100_on_descending_indices_are_unknown(instruction: wm.Instruction) -> None:
    for target in instruction.targets:
        whole, known = sparsity.legal_codes(instruction), sparsity.legal_codes(instruction, target)
        if instruction.a_type == "bf16" and TARGETS[target].number >= 100:
            assert known == SORTED
            assert whole == (SORTED if instruction.sparsity == "sp::ordered_metadata" else SORTED | SWAPPED)
        else:
            assert known == whole


def test_a_target_that_lacks_the_instruction() -> None:
    with pytest.raises(TargetError, match=re.escape(f"{BF16} is not legal on sm_75; legal on sm_80")):
        sparsity.legal_codes(BF16, "sm_75")
    dense = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
    with pytest.raises(MetadataError, match=re.escape(f"{dense} is dense, without pattern and metadata")):
        sparsity.legal_codes(dense, "sm_80")


@pytest.mark.parametrize("through", ["execute", "matmul"])
def test_both_ways_in_refuse_the_same(through: str) -> None:
    """Registers and whole matrices read one table: what is undefined, and what is defined and of unknown effect."""

    def run(pair: list[int], target: str) -> object:
        indices = np.tile(pair, (16, 8, 1))
        a, b = np.ones((16, 16), wm.FORMATS["bf16"].dtype), np.ones((32, 8), wm.FORMATS["bf16"].dtype)
        if through == "matmul":
            return wm.matmul(a, b, instruction=BF16, target=target, indices=indices)
        c = np.zeros((16, 8), np.float32)
        registers = [wm.load(BF16, name, x) for name, x in (("A", a), ("B", b), ("C", c))]  # type: ignore[arg-type]
        return wm.execute(BF16, *registers, target=target, metadata=sparsity.pack_metadata(indices, BF16))

    run([1, 3], "sm_100")
    run([3, 1], "sm_90")
    with pytest.raises(UnsupportedError) as unknown:
        run([3, 1], "sm_100")
    assert str(unknown.value).endswith(
        "legal are 0x4, 0x8, 0x9, 0xc, 0xd, 0xe (as asked). PTX allows descending indices; for bf16 ptxas does not "
        "sort them on sm_100, and their effect on the hardware is not known"
    )
    for target in ("sm_90", "sm_100"):
        with pytest.raises(MetadataError, match=r"\(PTX: i0 != i1\)$"):
            run([2, 2], target)
