"""Operations that their mnemonics alone do not determine, and operands for them.

These are `setp` with two destinations, `mov` of vectors, and video instructions with bytes and halves of registers.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np

from ..._arrays import Array
from ...errors import MnemonicError
from ...operations import DTYPES, Operation, operations, packing, unpacking, with_complement, with_selectors
from ...registers import LANES
from ..generators import operation_inputs

__all__ = ["every_variant", "variant_inputs"]

_VECTORS = (("b16", 2), ("b32", 2), ("b32", 4), ("b64", 2), ("b64", 4))


def every_variant(target: str) -> Iterator[tuple[str, Operation]]:
    """Name what is compared, and its row."""
    for row in operations(target):
        if row.mnemonic.startswith("setp.") and len(row.outputs) == 1 and row.mnemonic.split(".")[-1] not in _SINGLE:
            yield f"{row.mnemonic} p|q", with_complement(row.mnemonic)
        opcode = row.mnemonic.partition(".")[0]
        for selectors in _SELECTORS.get(
            opcode[-1] if opcode[-1] in "24" else opcode, _BYTES if opcode in _VIDEO else ()
        ):
            try:
                chosen = with_selectors(row.mnemonic, selectors)
            except MnemonicError:  # with .add, .min and .max the destination has none
                continue
            yield f"{row.mnemonic} {' '.join(x or '.' for x in selectors)}", chosen
    for type_, count in _VECTORS:
        yield f"mov.{type_} of {count}", packing(type_, count)
        yield f"mov of {count} of {type_}", unpacking(type_, count)


_SINGLE = ("f16", "bf16")
_VIDEO = ("vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vset")
_BYTES = (("", "b1", "h1", ""), ("b2", "", "h0", ""), ("h1", "b3", "", ""))
_SELECTORS = {
    "vmad": (("", "b0", "h1", ""), ("", "-h0", "b1", ""), ("", "", "-", ""), ("", "-", "-b2", ""), ("", "h1", "", "-")),
    "2": (("h1", "h03", "h31", ""), ("h0", "", "h22", "")),
    "4": (("b20", "b7531", "b0426", ""), ("b3", "b1111", "", "")),
}


def variant_inputs(name: str, row: Operation, lanes: int, seed: int) -> tuple[Array, ...]:
    """Make operands, hard ones if the mnemonic determines their types."""
    if not any(row.vectors):
        given = operation_inputs(row.mnemonic, lanes, seed)
        return (*given, *(x[::-1].copy() for x in given[: len(row.inputs) - len(given)]))
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    shape, dtypes = (lanes // LANES, LANES), [np.dtype(DTYPES[kind]) for kind in row.inputs]
    return tuple(rng.integers(0, 1 << (8 * x.itemsize), shape, np.uint64).astype(x) for x in dtypes)
