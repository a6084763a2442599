"""How the mnemonics of each kind are spelled: a description each, which reads and prints them.

Sources: PTX ISA 9.1, 9.7.14.5.14, 9.7.14.6.3 and 9.7.15; that ptxas reads qualifiers in any order, and which orders it
does not, is in docs/specification/ptx.md 1.1 and 6.
"""

from __future__ import annotations

from .families import FAMILIES, Family
from .grammar import Grammar, MnemonicSlot, Refusal
from .warpgroups import WARPGROUP_FAMILIES, WarpgroupFamily

MMA: Grammar[Family] = Grammar(
    opcode="mma",
    slots=(
        MnemonicSlot(part="sparsity"),
        MnemonicSlot(part="sync", holds=None),
        MnemonicSlot(part="aligned", holds=None),
        MnemonicSlot(part="shape", holds=int, fields=("m", "n", "k"), spelling="m{}n{}k{}",
                     needs="one shape, such as .m16n8k16"),
        MnemonicSlot(part="layout", fields=("a_layout", "b_layout"), needs="the layouts of A and B, as .row.col"),
        MnemonicSlot(part="kind", spelling="kind::{}"),
        MnemonicSlot(part="block_scale", holds=None, partner="stype"),
        MnemonicSlot(part="scale_vec", spelling="scale_vec::{}"),
        MnemonicSlot(part="satfinite", holds=bool),
        MnemonicSlot(part="type", fields=("d_type", "a_type", "b_type", "c_type"),
                     needs="the types of D, A, B and C, as .f32.f16.f16.f32"),
        MnemonicSlot(part="stype"),
        MnemonicSlot(part="rounding"),
        MnemonicSlot(part="bit_op"),
        MnemonicSlot(part="popc", holds=None, partner="bit_op"),
    ),
    rows=FAMILIES,
    # The types of A and B are what a user cares for most, then the shape.
    weights={"a_type": 4, "b_type": 4, "sparsity": 3, "m": 2, "n": 2, "d_type": 2, "kind": 2},
    refusals=(
        Refusal(
            fields={"m": 8, "n": 8, "k": 4, "a_type": "bf16", "b_type": "bf16"},
            why="ptxas assembles the bf16 forms of m8n8k4 to no instruction at all and leaves D as it was, so they "
            "compute nothing",
            nearest="mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32",
        ),
    ),
)  # fmt: skip
"""Of `mma`."""

WGMMA: Grammar[WarpgroupFamily] = Grammar(
    opcode="wgmma.mma_async",
    slots=(
        MnemonicSlot(part="sync", holds=None),
        MnemonicSlot(part="aligned", holds=None),
        MnemonicSlot(part="shape", holds=int, fields=("m", "n", "k"), spelling="m{}n{}k{}", any_number=True,
                     needs="one shape, such as .m64n128k16"),
        MnemonicSlot(part="satfinite", holds=bool),
        MnemonicSlot(part="type", fields=("d_type", "a_type", "b_type"),
                     needs="the types of D, A and B, as .f32.f16.f16"),
        MnemonicSlot(part="bit_op", readable=("xor",)),
        MnemonicSlot(part="popc", holds=None, partner="bit_op", follows=True),
    ),
    rows=WARPGROUP_FAMILIES,
    # The types of A and B are what a user cares for most, then that of D.
    weights={"a_type": 4, "b_type": 4, "d_type": 2},
    unsupported={"sp": "the arithmetic of sparse wgmma was not measured; only dense is simulated"},
)  # fmt: skip
"""Of dense `wgmma.mma_async`."""
