"""The check of a sparse A on a GPU: a kernel that finds the first group whose product would not be known.

1. A dense A must not have more nonzero units in a group than are stored. Indices must be 0 to 3, defined by PTX, and of
   known effect on the target. If groups break several of these rules, the first group that breaks the first of them is
   reported, as on the host.
2. The host waits for the result: wrong bits are worse than a wait. Products themselves check nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np

from .._arrays import Array
from .._records import Shown
from ..formats import FORMATS
from ..isa import MatrixInstruction
from ..sparsity import Codes, sparse_a
from .batch_views import BatchView, runs, view
from .cuda_driver import CudaGpu
from .device_arrays import GpuTensor, empty_like, read
from .kernel_text import source, sparse_text
from .text_kernel import TextKernel, TextLaunch

_THREADS, _MOST_BLOCKS = 256, 1024
_KIND = 60  # `kernels/sparse_check.cuh` has these numbers, and the structure
_NONE = (1 << 64) - 1

_CHECK = np.dtype(
    [
        ("from", "<u8"), ("found", "<u8"), ("of_batch", "<i8"), ("of_row", "<i8"), ("of_group", "<i8"),
        ("of_element", "<i8"), ("first", "<i8"), ("of_first", "<i8"), ("matrices", "<i8"), ("rows", "<i8"),
        ("groups", "<i8"), ("bytes", "<i4"), ("defined", "<u4"), ("known", "<u4"),
    ],
    align=True,
)  # fmt: skip


@cache
def _kernel_of(width: int, a_type: str, of_dense: bool) -> TextKernel:
    numbers = {"OF_DENSE_A": int(of_dense), "THREADS": _THREADS}
    defined = [f"#define {name} {value}" for name, value in numbers.items()]
    text = [*defined, source("numbers.cuh"), sparse_text(width, a_type), source("sparse_check.cuh")]
    return TextKernel(text="\n".join(text), name="check")


@dataclass(frozen=True, eq=False)
class SparseFault(Shown):
    """What a check found: the kind, and the group, by its place in the batch, its row and its number.

    Attributes
    ----------
    kind : int
        0: a broken pattern, or indices outside of 0 to 3; 1: undefined indices; 2: indices of unknown effect.
    place : tuple of int
    elements : ndarray
        Of the group, of A's type; or its two indices.
    """

    kind: int
    place: tuple[int, ...]
    elements: Any


def check_dense_a(gpu: CudaGpu, record: MatrixInstruction, a: GpuTensor, like: Any, stream: int) -> None:
    """Raise `MetadataError` unless a dense A, `[..., m, k]`, obeys the pattern: the host waits for a stream.

    `like` is an array whose library makes room for the results.
    """
    sparse, fmt = sparse_a(record), record.format("A")
    fault = first_fault(gpu, a, like, sparse.pattern.width, record.a_type, stream=stream)
    if fault:
        codes = fault.elements.view(fmt.code_dtype) & fmt.code_dtype.type((1 << fmt.bits) - 1)
        raise sparse.broken(fmt.decode(codes), fault.place)


def check_indices(
    gpu: CudaGpu, record: MatrixInstruction, target: str, indices: GpuTensor, like: Any, stream: int
) -> None:  # fmt: skip
    """Raise unless indices, `[..., m, groups, 2]`, have a known effect on a target: the host waits for a stream.

    Raises
    ------
    MetadataError, UnsupportedError
        Indices outside of 0 to 3, undefined ones, and defined ones whose effect on the target is not known.
    """
    sparse = sparse_a(record)
    fault = first_fault(
        gpu, indices, like, sparse.pattern.width, record.a_type, defined=sparse.legal_codes(),
        known=sparse.legal_codes(target), stream=stream,
    )  # fmt: skip
    if fault:
        sparse.check_indices_on(fault.elements, fault.place, target)


def first_fault(
    gpu: CudaGpu, x: GpuTensor, like: Any, width: int, a_type: str, *, defined: Codes | None = None,
    known: Codes | None = None, stream: int = 0,
) -> SparseFault | None:  # fmt: skip
    """Check a dense A, or indices for which there are `defined` and `known` nibbles: the host waits for a stream.

    Parameters
    ----------
    gpu : CudaGpu
    x : GpuTensor
        A, `[..., m, k]`, or indices, `[..., m, groups, 2]`.
    like
        An array whose library makes room for the results.
    width : int
        Columns of a group.
    a_type : str
        PTX type of A.
    defined, known : set of int, optional
        Nibbles that PTX defines, and those of them whose effect on the target is known.
    stream : int

    Returns
    -------
    SparseFault or None
        The first of the first kind that there is.
    """
    kernel, checks = _kernel_of(width, a_type, defined is None), _checks(x, width, defined, known)
    blocks = sum(grid for grid, _ in checks)
    if not blocks:
        return None
    room = empty_like(like, (8 * blocks,), FORMATS["u8"])
    at = read(room, "results of the check", stream).address
    found = np.empty(blocks, "<u8")
    for (grid, given), end in zip(checks, accumulate(grid for grid, _ in checks), strict=True):
        given["found"] = at + 8 * (end - grid)
        gpu.launch(TextLaunch(kernel=kernel, grid=grid, threads=_THREADS, given=given.tobytes()), stream)
    gpu.fetch(at, found, stream)
    key = int(found.min())
    return None if key == _NONE else _fault(gpu, x, width if defined is None else 0, key, stream)


def _checks(x: GpuTensor, width: int, defined: Codes | None, known: Codes | None) -> list[tuple[int, Array]]:
    """Return the blocks and the structure of a launch for each run of the batch; `found` is left open."""
    *batch, rows, groups, _ = _shape(x, width if defined is None else 0)
    inner = rows * groups
    numbers = BatchView(0, 1, tuple(accumulate(reversed([*batch[1:], inner]), mul))[::-1] if batch else (), ())
    own = view(x, tuple(batch), 2 if defined is None else 3)
    row, group, element = own.own[0], own.own[1] * (width if defined is None else 1), own.own[-1]
    size = own.size
    checks = []
    for matrices, (run, number) in runs(tuple(batch), (own, numbers)):
        grid = min(-(-matrices * inner // _THREADS), _MOST_BLOCKS)
        fields = {
            "from": run.address, "of_batch": size * run.batch[0], "of_row": size * row, "of_group": size * group,
            "of_element": size * element, "first": number.address, "of_first": number.batch[0], "matrices": matrices,
            "rows": rows, "groups": groups, "bytes": size, "defined": _mask(defined), "known": _mask(known),
        }  # fmt: skip
        given = np.zeros((), _CHECK)
        for name, value in fields.items():
            given[name] = value
        checks.append((grid, given))
    return checks


def _shape(x: GpuTensor, width: int) -> tuple[int, ...]:
    """Return a shape that ends with rows, groups and the elements of a group; `width` of them in A, 0 of indices."""
    return (*x.shape[:-1], x.shape[-1] // width, width) if width else x.shape


def _mask(codes: Codes | None) -> int:
    return sum(1 << code for code in codes or ())


def _fault(gpu: CudaGpu, x: GpuTensor, width: int, key: int, stream: int) -> SparseFault:
    """Fetch the group that a key names."""
    *shape, each = _shape(x, width)
    kind, number = key >> _KIND, key & (1 << _KIND) - 1
    place = tuple(int(i) for i in np.unravel_index(number, shape))
    elements: Array = np.empty(each, x.dtype)
    for i in range(each):
        at = (*place[:-1], place[-1] * width + i) if width else (*place, i)
        offset = sum(j * stride for j, stride in zip(at, x.strides, strict=True))
        gpu.fetch(x.address + x.dtype.itemsize * offset, elements[i : i + 1], stream)
    return SparseFault(kind, place, elements)
