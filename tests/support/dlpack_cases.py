"""An object that has only `__dlpack__`, as other libraries' arrays have it: memory of NumPy's, exported by ctypes."""

from __future__ import annotations

import ctypes
from typing import Any

from arrays import Array

# int64: all fields of DLPack's structures begin at multiples of 8 bytes, so each structure is so many words.
_DESTROY = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_NEW = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _DESTROY)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_alive: dict[int, Any] = {}
_destroyers: list[Any] = []


class Exported:
    """`array`, exported with a type code and bits.

    Parameters
    ----------
    array : ndarray
    code, bits, lanes : int
    device : int
        Device type that is claimed.
    version : tuple of 2 int, optional
        Of the structure; without, the old one.
    flags : int
        Of a structure with version.
    strides : bool
        Whether they are spelled out.
    offset : int
        Bytes of the array that come before the tensor's beginning, in `byte_offset`.
    lost : bool
        Whether the pointer is null.
    """

    def __init__(
        self, array: Array, code: int, bits: int, *, lanes: int = 1, device: int = 1,
        version: tuple[int, int] | None = (1, 0), flags: int = 0, strides: bool = True, offset: int = 0,
        lost: bool = False,
    ) -> None:  # fmt: skip
        self.array, self.type, self.device = array, code | bits << 8 | lanes << 16, device
        self.version, self.flags, self.strides, self.offset = version, flags, strides, offset
        self.lost, self.freed = lost, list[int]()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0

    def _export(self) -> object:
        x, rank = self.array, self.array.ndim
        extents = (ctypes.c_int64 * (2 * rank))(*x.shape, *(n // x.itemsize for n in x.strides))
        at = ctypes.addressof(extents)
        memory = x.ctypes.data - self.offset if x.size and not self.lost else 0
        tensor = [memory, self.device, rank | self.type << 32, at, at + 8 * rank if self.strides else 0, self.offset]
        if self.version is not None:
            major, minor = self.version
            words, label = [major | minor << 32, 0, 0, self.flags, *tensor], b"dltensor_versioned"
        else:
            words, label = [*tensor, 0, 0], b"dltensor"
        managed = (ctypes.c_uint64 * len(words))(*words)
        freed, address = self.freed, ctypes.addressof(managed)

        def ended(_: int) -> None:
            freed.append(address)
            _alive.pop(address)

        destroy = _DESTROY(ended)
        _alive[address] = (managed, extents, x, label)
        _destroyers.append(destroy)  # for good: one that runs must not be freed by what it runs
        return _NEW(address, label, destroy)


class Versioned(Exported):
    """Knows `max_version`."""

    def __dlpack__(self, *, stream: object = None, max_version: tuple[int, int] | None = None) -> object:
        assert stream is None and max_version is not None and max_version[0] == 1
        return self._export()


class Old(Exported):
    """From before versions."""

    def __dlpack__(self) -> object:
        self.version = None
        return self._export()
