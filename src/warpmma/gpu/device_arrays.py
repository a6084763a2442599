"""Arrays on a GPU, of any library that exports DLPack: where they lie, and results in the library of the operands.

1. Operands are read by DLPack on the stream that their library has current on A's GPU (PyTorch, CuPy), or else the
   legacy default stream; nothing waits. Which GPU the library has current does not matter.
2. A result is made by the library of A: PyTorch, CuPy, or what the array names by `__array_namespace__`. Where it lacks
   the type, the result holds codes, unsigned integers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from .._arrays import dtype_named, lent_by_dlpack
from .._records import Shown
from ..errors import OperandError, WarpmmaError
from ..formats import Format

ON_GPU = (2, 13)
"""DLPack's devices whose memory a kernel reads: CUDA's, and managed memory."""

_LEGACY = 1  # the default stream, as DLPack numbers it


def is_on_gpu(x: Any) -> bool:
    """Return whether an array lies on an NVIDIA GPU."""
    if isinstance(x, np.ndarray) or not hasattr(type(x), "__dlpack_device__"):
        return False
    with suppress(Exception):  # each library has its own
        return int(x.__dlpack_device__()[0]) in ON_GPU
    return False


@dataclass(frozen=True, kw_only=True, eq=False)
class GpuTensor(Shown):
    """An array on a GPU: its address, strides in elements, NumPy or ml_dtypes type, and what keeps it alive."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any]
    device: int
    owner: Any = field(repr=False)


def read(x: Any, name: str, stream: int, error: type[WarpmmaError] = OperandError) -> GpuTensor:
    """Read where an array lies; raise `error`, whose message begins with `name`, if it is none on a GPU."""
    if not is_on_gpu(x):
        raise error(f"{name} lies on the CPU, other operands on a GPU; expected all on one")
    library, module = _library(x)
    with library.beside(module, x) if library else nullcontext():  # PyTorch exports from its current GPU alone
        tensor, dtype, owner = lent_by_dlpack(x, name, error, ON_GPU, stream=stream or _LEGACY)
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    whole = np.cumprod([1, *shape[:0:-1]])[::-1].tolist() if shape else []
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else tuple(whole)
    address = (tensor.data or 0) + tensor.byte_offset
    return GpuTensor(address=address, shape=shape, strides=strides, dtype=dtype, device=tensor.device_id, owner=owner)


def check_one_gpu(who: object, arrays: Iterable[Any]) -> None:
    """Raise `OperandError` unless the arrays that lie on a GPU lie on one; nothing is read."""
    numbers = {int(x.__dlpack_device__()[1]) for x in arrays if is_on_gpu(x)}
    if len(numbers) > 1:
        raise OperandError(f"{who}: operands lie on GPUs {sorted(numbers)}; expected one")


def read_operand(x: Any, name: str, fmt: Format, stream: int, who: object) -> GpuTensor:
    """Read an operand; its elements are of the format's type, or codes, whose upper bits are ignored."""
    array = read(x, name, stream)
    if array.dtype not in (fmt.dtype, fmt.code_dtype):
        raise OperandError(f"{who}: {name}: {array.dtype} array; expected {fmt.dtype}, or {fmt.code_dtype} codes")
    return array


@dataclass(frozen=True)
class _Library:
    stream: Callable[[Any, Any], int]
    empty: Callable[[Any, Any, tuple[int, ...], str], Any]
    beside: Callable[[Any, Any], AbstractContextManager[Any]]  # makes the array's GPU the current one


def _torch_empty(torch: Any, like: Any, shape: tuple[int, ...], dtype: str) -> Any:
    return torch.empty(shape, dtype=getattr(torch, dtype), device=like.device)


def _cupy_empty(cupy: Any, like: Any, shape: tuple[int, ...], dtype: str) -> Any:
    with _cupy_beside(cupy, like):
        return cupy.empty(shape, np.dtype(dtype))


def _cupy_beside(cupy: Any, x: Any) -> Any:
    return cupy.cuda.Device(x.device.id)


_LIBRARIES: Mapping[str, _Library] = MappingProxyType({
    "torch": _Library(
        lambda torch, x: int(torch.cuda.current_stream(x.device).cuda_stream), _torch_empty,
        lambda torch, x: torch.cuda.device(x.device),
    ),
    "cupy": _Library(
        lambda cupy, x: int(cupy.cuda.get_current_stream(x.device.id).ptr), _cupy_empty, _cupy_beside,
    ),
})  # fmt: skip


def _library(x: Any) -> tuple[_Library | None, Any]:
    """Return how a library is asked, and its module."""
    for kind in type(x).__mro__:
        name = kind.__module__.partition(".")[0]
        if name in _LIBRARIES:
            return _LIBRARIES[name], sys.modules[name]
    return None, None


def stream_of(x: Any) -> int:
    """Return the handle of the stream on which to compute with an array."""
    library, module = _library(x)
    return library.stream(module, x) if library else 0


def empty_like(x: Any, shape: tuple[int, ...], fmt: Format) -> Any:
    """Allocate a result beside an array, of the format's type or of its codes' (rule 2)."""
    library, module = _library(x)
    if library is None and not hasattr(x, "__array_namespace__"):
        raise OperandError(
            f"{type(x).__name__} is an array of an unknown library, without __array_namespace__; convert it by "
            "torch.from_dlpack or cupy.from_dlpack"
        )
    for name in (fmt.dtype.name, fmt.code_dtype.name):
        with suppress(AttributeError, TypeError, ValueError):  # CuPy knows some names of ml_dtypes, and says so
            if library is not None:
                return library.empty(module, x, shape, name)
            space = x.__array_namespace__()
            return space.empty(shape, dtype=getattr(space, name), device=x.device)
    raise OperandError(f"{type(x).__name__}: its library has neither {fmt.dtype.name} nor {fmt.code_dtype.name}")


def dtype_of(x: Any, name: str) -> np.dtype[Any]:
    """Return the NumPy or ml_dtypes type of an array of any library, without reading it."""
    try:
        return dtype_named(str(x.dtype).removeprefix("torch."))
    except (AttributeError, TypeError):
        raise OperandError(f"{name} is {getattr(x, 'dtype', type(x).__name__)}, whose type is unknown") from None
