"""Results of products: their format, how they are scaled and rounded, and where they are written."""

from __future__ import annotations

import numpy as np

from .._arguments import check_choice
from .._arrays import Array
from ..errors import OperandError
from ..formats import FORMATS, FloatFormat, Format, floating
from .float32 import ChainInstruction


def output_format(record: ChainInstruction, epilogue: str | None) -> Format:
    """Return the format of the result."""
    if epilogue is None:
        return record.format("D")
    floats = [name for name, fmt in FORMATS.items() if isinstance(fmt, FloatFormat) and fmt.signed and name != "f64"]
    check_choice("epilogue", epilogue, floats)
    if record.d_type not in ("f32", "f16"):
        raise OperandError(f"{record}: D is {record.d_type}, which an epilogue cannot round; expected f32 or f16")
    return FORMATS[epilogue]


def finish(record: ChainInstruction, codes: Array, epilogue: str | None, alpha: Array | None = None) -> Array:
    """Scale and round codes of D."""
    if epilogue is None and alpha is None:
        return codes
    fmt = floating(record.d_type)
    if alpha is not None:  # 48 bits, exact in float64, and then rounded once
        with np.errstate(invalid="ignore"):  # infinity times zero
            codes = fmt.encode(fmt.decode(codes) * alpha, "rn")
    return codes if epilogue is None else floating(epilogue).encode(fmt.decode(codes), "rn")


def alpha_of(given: list[Array], batch: tuple[int, ...]) -> Array | None:
    """Return the product of tensor scales for every matrix of the batch, rounded to f32, as float64."""
    if not given:
        return None
    fmt = FORMATS["f32"]
    product = np.ones(())
    for x in given:  # two of 24 bits: exact in float64
        with np.errstate(invalid="ignore"):  # infinity times zero
            product = product * fmt.decode(fmt.codes(x))
    return np.broadcast_to(fmt.decode(fmt.encode(product, "rn")), batch).reshape(-1)


def checked_out(out: Array, shape: tuple[int, ...], fmt: Format) -> Array:
    """View `out` as codes."""
    if isinstance(out, np.ma.MaskedArray):
        raise OperandError("out is a masked array, and products ignore masks; pass its .data")
    good = isinstance(out, np.ndarray) and out.shape == shape and out.dtype in (fmt.dtype, fmt.code_dtype)
    if not good or not out.flags.writeable or not out.flags.c_contiguous:
        came = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
        flaw = ""
        if good:
            flaw = " that is not contiguous" if out.flags.writeable else " that is read-only"
        raise OperandError(f"out is {came}{flaw}; expected a writable C-contiguous {fmt.dtype} array {shape}")
    return np.asarray(out).view(fmt.code_dtype)
