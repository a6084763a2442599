"""Rows of `bits`, `collectives` and `movmatrix`, and how tests run them."""

from __future__ import annotations

from typing import Any

import numpy as np

from warpmma.operations import operation
from warpmma.operations.arithmetic import integers
from warpmma.operations.warp import collectives

BITS = [mnemonic for form in integers.FORMS for mnemonic in form.mnemonics]
COLLECTIVES = [mnemonic for form in collectives.FORMS for mnemonic in form.mnemonics]
ROWS = {m: operation(m) for m in (*BITS, *COLLECTIVES, "movmatrix.sync.aligned.m8n8.trans.b16")}
LANE = np.arange(32)
FULL = 0xFFFFFFFF
_DTYPES: dict[str, Any] = {"b16": np.uint16, "b32": np.uint32, "b64": np.uint64, "pred": np.bool_}


def run(mnemonic: str, *operands: Any, active: Any = None) -> Any:
    """Execute a row on Python numbers, or lists of 32, and return the outputs as lists."""
    row = ROWS[mnemonic]
    arrays = [
        x if kind == "imm" else np.broadcast_to(np.array(x, _DTYPES[kind]), (32,))
        for x, kind in zip(operands, row.inputs, strict=True)
    ]
    results = [x.tolist() for x in row(*arrays, active=active)]
    return results[0] if len(results) == 1 else results


def lane0(mnemonic: str, *operands: Any) -> int:
    return int(run(mnemonic, *operands)[0])
