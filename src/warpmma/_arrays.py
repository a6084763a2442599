"""Arrays as they come in, or a typed error; and read-only arrays as results.

Arrays of other libraries that NumPy cannot read are imported by DLPack, without a copy: NumPy's `from_dlpack` refuses
types that NumPy lacks, bfloat16 and floats of 8 bits and less, although ml_dtypes has them. So the capsule that
`__dlpack__` returns is read here. It stays unconsumed, and the array keeps a reference to it: when the last array goes,
the capsule's own destructor frees the memory.

Source: the header of DLPack 1.3 and its "Python Specification" (structures, codes of types and devices, flags).
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from ._arguments import is_integer
from .errors import OperandError, WarpmmaError, shown

_VERSION = (1, 3)  # requested: a later minor version adds codes, a later major one changes the structure
_HOST = (1, 3, 11)  # memory that the CPU reads: its own, and pages that CUDA or ROCm has pinned
_DEVICES = {2: "a CUDA GPU", 4: "an OpenCL device", 7: "Vulkan", 8: "Metal", 10: "a ROCm GPU", 13: "CUDA, managed"}
_PADDED = 1 << 2  # flag: elements narrower than a byte have one each, and do not share
_TORCH = "torch."  # before the names of its types, which are ml_dtypes' else
_INTEGERS, _UNSIGNED, _FLOATS, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6

_TYPES: dict[tuple[int, int], str] = {
    **{(_INTEGERS, bits): f"int{bits}" for bits in (8, 16, 32, 64)},
    **{(_UNSIGNED, bits): f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{(_FLOATS, bits): f"float{bits}" for bits in (16, 32, 64)},
    **{(_COMPLEX, bits): f"complex{bits}" for bits in (64, 128)},
    (_BOOL, 8): "bool", (_BFLOAT, 16): "bfloat16",
    (7, 8): "float8_e3m4", (8, 8): "float8_e4m3", (9, 8): "float8_e4m3b11fnuz", (10, 8): "float8_e4m3fn",
    (11, 8): "float8_e4m3fnuz", (12, 8): "float8_e5m2", (13, 8): "float8_e5m2fnuz", (14, 8): "float8_e8m0fnu",
    (15, 6): "float6_e2m3fn", (16, 6): "float6_e3m2fn", (17, 4): "float4_e2m1fn",
}  # fmt: skip
"""NumPy's or ml_dtypes' name of each type, by its code and bits."""


class DlpackRecord(ctypes.Structure):
    """A tensor, as DLPack describes it: `DLTensor`."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )  # fmt: skip


class _Managed(ctypes.Structure):
    """The beginning of the structure without version."""

    _fields_ = (("tensor", DlpackRecord),)


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), ("tensor", DlpackRecord),
    )  # fmt: skip


class _Lent:
    """Memory that a capsule lends for as long as this lives, in the words of NumPy's array interface."""

    def __init__(self, capsule: object, interface: dict[str, Any]) -> None:
        self.capsule = capsule
        self.__array_interface__ = interface


def imported(x: Any, name: str, error: type[WarpmmaError]) -> Any:
    """Return an array if NumPy cannot read the object but DLPack can, and anything else unchanged.

    The array is read-only. `error`, whose message begins with `name`, is raised for an array on another device, for one
    that requires a gradient, and for one of a type that NumPy and ml_dtypes lack.
    """
    if isinstance(x, np.ndarray) or not hasattr(type(x), "__dlpack__") or isinstance(x, np.generic):
        return x
    if hasattr(type(x), "__array__"):
        try:
            array = np.asarray(x)
        except Exception:  # each library has its own; DLPack gives the reason, if it has none either
            array = None
        if array is not None and array.dtype != object:
            return array
    return _read(x, name, error)


def lent_by_dlpack(
    x: Any, name: str, error: type[WarpmmaError], devices: Sequence[int], **asked: Any
) -> tuple[DlpackRecord, np.dtype[Any], object]:
    """Ask an array on one of these devices for its memory: the tensor, its type, and what keeps the memory.

    `asked` goes to `__dlpack__`, such as the `stream` on which a GPU's memory is read. Errors are as for `imported`.
    """
    try:
        device = int(x.__dlpack_device__()[0])
        pending = hasattr(x, "is_neg") and x.is_neg()
        capsule = _capsule(x, asked) if device in devices and not pending else None
    except Exception as reason:
        if (octets := _octets(x)) is not None:
            tensor, _, owner = lent_by_dlpack(octets, name, error, devices, **asked)
            return tensor, dtype_named(str(x.dtype).removeprefix(_TORCH)), owner
        raise error(f"{name}: not an array: {str(reason).partition(chr(10))[0]}") from None
    if device not in devices:
        where = _DEVICES.get(device, f"device type {device} of DLPack")
        raise error(f"{name} lies on another device ({where}); copy it to the CPU first, as .cpu() does")
    if pending:  # PyTorch exports such a tensor without its sign
        raise error(f"{name}: not an array: it is negated on reading; pass x.resolve_neg()")
    tensor, flags = _tensor(capsule, name, error)
    kind = _TYPES.get((tensor.code, tensor.bits))
    if kind is None or tensor.lanes != 1 or (tensor.bits < 8 and not flags & _PADDED):
        came = kind or f"of {tensor.bits} bits, DLPack's type code {tensor.code}"
        together = f", {tensor.lanes} in one" if tensor.lanes != 1 else ", which share bytes" if kind else ""
        expected = ", ".join(_TYPES.values())
        raise error(
            f"{name}: not an array: elements are {came}{together}; expected {expected}, each in bytes of its own"
        )
    return tensor, dtype_named(kind), capsule


def _read(x: Any, name: str, error: type[WarpmmaError]) -> npt.NDArray[Any]:
    """Read what exports itself by DLPack on the host."""
    tensor, dtype, capsule = lent_by_dlpack(x, name, error, _HOST)
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if not math.prod(shape):
        return np.empty(shape, dtype)
    if not tensor.data:
        raise error(f"{name}: not an array: it has no memory")
    strides = tuple(tensor.strides[i] * dtype.itemsize for i in range(tensor.ndim)) if tensor.strides else None
    interface = {
        "version": 3, "shape": shape, "typestr": f"|V{dtype.itemsize}", "strides": strides,
        "data": (tensor.data + tensor.byte_offset, True),
    }  # fmt: skip
    return np.asarray(_Lent(capsule, interface)).view(dtype)


def is_tensor(x: Any) -> bool:
    """Return whether it is a tensor of PyTorch, which is not imported to find that out."""
    torch = sys.modules.get("torch")
    return torch is not None and hasattr(torch, "Tensor") and issubclass(type(x), torch.Tensor)


def _capsule(x: Any, asked: Mapping[str, Any]) -> object:
    """Ask for a capsule; libraries from before versions know no `max_version`."""
    try:
        return x.__dlpack__(max_version=_VERSION, **asked)
    except TypeError:
        return x.__dlpack__(**asked)


def _octets(x: Any) -> Any:
    """Return bytes of a PyTorch tensor of fp8, which older versions of it do not export; None of anything else."""
    library = sys.modules.get("torch")
    kind = str(getattr(x, "dtype", ""))
    if library is None or not kind.startswith(f"{_TORCH}float8_") or x.requires_grad:
        return None
    return x.view(library.uint8)


def _tensor(capsule: object, name: str, error: type[WarpmmaError]) -> tuple[DlpackRecord, int]:
    """Return the tensor in a capsule, and its flags."""
    if address := capsule_address(capsule, b"dltensor_versioned"):
        managed = _Versioned.from_address(address)
        if managed.major == _VERSION[0]:
            return managed.tensor, managed.flags
        raise error(f"{name}: not an array: it exports DLPack {managed.major}.{managed.minor}; expected 1")
    if address := capsule_address(capsule, b"dltensor"):
        return _Managed.from_address(address).tensor, 0
    raise error(f"{name}: not an array: its __dlpack__ returned {type(capsule).__name__}; expected a capsule")


def capsule_address(capsule: object, label: bytes) -> int | None:
    """Return the address that a capsule of this name holds; None for anything else."""
    of_capsule = (ctypes.py_object, ctypes.c_char_p)
    is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, *of_capsule)(("PyCapsule_IsValid", ctypes.pythonapi))
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, *of_capsule)(("PyCapsule_GetPointer", ctypes.pythonapi))
    return get(capsule, label) if is_valid(capsule, label) else None


Array = npt.NDArray[Any]
"""An array of any dtype: the one alias of the package."""

# What NumPy broadcasts. Its arrays may have twice as many, which leaves room for what the package adds inside.
MOST_DIMENSIONS = 32
# Repeated by broadcasting, an array takes no memory. What is made of it does, and machines address at most 2**47 bytes.
MOST_ELEMENTS = 1 << 47
_PART = 1 << 14  # elements whose temporaries stay in a cache, which makes arithmetic three times as fast


def everywhere(value: Any, shape: tuple[int, ...]) -> Array:
    """Return a read-only array with one scalar of NumPy everywhere; `np.broadcast_to` takes ten times as long.

    Examples
    --------
    >>> everywhere(np.uint16(7), (1, 3)), everywhere(np.uint16(7), (1, 3)).flags.writeable
    (array([[7, 7, 7]], dtype=uint16), False)
    """
    return np.ndarray(shape, value.dtype, value.tobytes(), strides=(0,) * len(shape))


def as_array(x: npt.ArrayLike, name: str, error: type[WarpmmaError] = OperandError) -> Array:
    """Return an array in the machine's byte order; raise `error` if `x` is not one, such as a ragged list."""
    if isinstance(x, np.ma.MaskedArray):
        raise error(f"{name} is a masked array, and instructions do not take masks; fill it first")
    if type(x) is not np.ndarray:
        x = imported(x, name, error)
    try:
        array = np.asarray(x)
    except MemoryError:
        raise
    except Exception as reason:  # an object's own `__array__` can raise anything
        raise error(f"{name}: not an array: {shown(reason, str)}") from None
    if array.size > MOST_ELEMENTS:
        raise error(f"{name} has {array.size:,} elements, {list(array.shape)}: more than any memory holds")
    if array.ndim > MOST_DIMENSIONS:
        raise error(f"{name} has {array.ndim} dimensions; expected at most {MOST_DIMENSIONS}")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def broadcast(who: str, arrays: Sequence[Array]) -> tuple[Array, ...]:
    """Return arrays broadcast to one shape; raise `OperandError` if they do not broadcast, or not within memory."""
    shapes = {x.shape for x in arrays}
    try:
        size = math.prod(np.broadcast_shapes(*shapes))
    except ValueError:
        raise OperandError(f"{who}: operands of {_listed(arrays)} do not broadcast") from None
    if size > MOST_ELEMENTS:
        raise OperandError(f"{who}: operands of {_listed(arrays)}: no memory holds the results")
    return tuple(arrays) if len(shapes) == 1 else tuple(np.broadcast_arrays(*arrays))


def by_parts(compute: Callable[..., Array], *arrays: Array, dtype: Any = None) -> Array:
    """Apply a function of arrays of one dimension, element by element, to parts whose temporaries stay in a cache.

    The arrays broadcast. The result is of `dtype`, by default that of the first.
    """
    given = np.broadcast_arrays(*arrays)
    flat = [x.reshape(-1) for x in given]
    result = np.empty(flat[0].shape, flat[0].dtype if dtype is None else dtype)
    for start in range(0, result.size, _PART):
        part = slice(start, start + _PART)
        result[part] = compute(*(x[part] for x in flat))
    return result.reshape(given[0].shape)


def _listed(arrays: Sequence[Array]) -> str:
    return " and ".join(str(list(x.shape)) for x in arrays)


def frozen(array: Array) -> Array:
    """Return a copy that cannot be written, nor made writable: its memory is that of an immutable object."""
    return np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape)


def dtype_named(name: str) -> np.dtype[Any]:
    """Return the type of this name, such as "float16" or "float8_e4m3fn"."""
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes  # a tenth of the time of `import warpmma`, and many uses do not need it

        dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return dtype


def non_negative(name: str, value: object) -> float:
    """Return a finite number of at least 0 as a float; raise `OperandError` for anything else."""
    if isinstance(value, float | np.floating) or is_integer(value):
        with suppress(OverflowError):  # of an integer
            if 0 <= float(value) < math.inf:
                return float(value)
    raise OperandError(f"{name} is {shown(value)}; expected a number of at least 0")


def all_ones(where: Array, dtype: Any) -> Array:
    """Return all bits of a dtype where something is true, 0 elsewhere.

    Examples
    --------
    >>> all_ones(np.array([True, False]), np.uint16)
    array([65535,     0], dtype=uint16)
    """
    return np.asarray(where) if np.dtype(dtype).kind == "b" else np.negative(where.astype(dtype))
