"""A device: memory that lives between launches.

The rules:

1. Arrays of a device are copies, at multiples of 256. The address of an array is valid in every launch on the device,
   until the array is freed.
2. Mapped memory is memory of the process, at an address that the caller chooses: a kernel that writes there writes it.
3. Memory is read and written by address, too, within one piece: the host reads its current bytes, and bytes that the
   host writes count as written. `allocate` returns unwritten bytes, and `free` takes the address at which a piece
   begins.
4. The shadow of a piece is as large as the piece, so the address space of a process cannot be mapped as a whole.
5. Memory that neither a kernel nor the caller wrote is unwritten: a kernel that reads it gets a hazard. For memory that
   the process writes itself, the caller says what is written.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from ..._arguments import is_integer
from ..._arrays import MOST_DIMENSIONS, MOST_ELEMENTS, Array, as_array
from ..._records import Shown
from ...errors import OperandError, shown
from ...isa import check_known
from ...operations import WINDOWS
from .address_space import AddressSpace, Region, nearest
from .global_memory import check_array, check_elements

_CONSTANT = 1 << 16  # bytes of constant memory that a module may declare
MOST_MAPPED = 1 << 38
"""Bytes of one mapped piece, more than any GPU has: rule 4."""


class DeviceArray(Shown):
    """An array in the memory of a device.

    Attributes
    ----------
    device : Device
    address : int
        Its first byte: what a kernel's pointer holds.
    shape : tuple of int
    dtype : dtype
    """

    __slots__ = ("_region", "device", "dtype", "shape")

    def __init__(self, device: Device, region: Region, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.device, self.shape, self.dtype, self._region = device, shape, dtype, region

    def __repr__(self) -> str:
        where = f"at {self._region.start:#x}" if self._region.live else "freed"
        return f"<{self._region.name}: {self.dtype} {self.shape} {where}>"

    @property
    def address(self) -> int:
        """Where its first byte is; an `OperandError` if it was freed."""
        return self._live().start

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    def data_ptr(self) -> int:
        """Return the address, under PyTorch's name for it."""
        return self.address

    def numpy(self) -> Array:
        """Copy it out; unwritten elements are 0."""
        return np.array(self._live().data).view(self.dtype).reshape(self.shape)

    def set(self, values: npt.ArrayLike) -> None:
        """Write it, as the host does.

        Parameters
        ----------
        values : array_like
            Of its type; they broadcast to its shape.

        Raises
        ------
        OperandError
            Another type or shape, a freed array, or one that is read-only.
        """
        region = self._live()
        given = as_array(values, f"{region.name}: the values")
        if given.dtype != self.dtype:
            raise OperandError(f"{region.name} holds {self.dtype}; the values are {given.dtype}")
        try:
            new = np.ascontiguousarray(np.broadcast_to(given, self.shape))
        except ValueError:
            raise OperandError(f"{region.name} is {self.shape}; the values are {given.shape}") from None
        _write(region, 0, _bytes(new))

    def free(self) -> None:
        """Free its memory: from now on its addresses are invalid."""
        if self._region.live:
            self.device.space.remove(self._region)

    def _live(self) -> Region:
        if not self._region.live:
            raise OperandError(f"{self._region.name} was freed, and has no address any more")
        return self._region


class Device(Shown):
    """A simulated device: memory that lives between launches.

    Parameters
    ----------
    target : str

    Attributes
    ----------
    target : str
    space : AddressSpace
        What lies where; launches read it.
    made : WeakKeyDictionary
        What modules have made for the device, which lives until either is gone.

    Raises
    ------
    TargetError
        No such target.

    Examples
    --------
    >>> device = Device("sm_90")
    >>> x = device.array(np.arange(4, dtype=np.float32))
    >>> hex(x.address), x.numpy()
    ('0x7f0000000000', array([0., 1., 2., 3.], dtype=float32))
    """

    def __init__(self, target: str) -> None:
        check_known(target)
        self.target = target
        self.space = AddressSpace()
        self.made: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        self._made = 0

    def __repr__(self) -> str:
        return f"<Device {self.target}: {len(self.space.regions)} pieces of memory>"

    def array(self, x: npt.ArrayLike) -> DeviceArray:
        """Copy an array to the device; it keeps its type and shape.

        Raises
        ------
        OperandError
            Not an array, or elements of a type that GPUs do not have.
        """
        given = as_array(x, "array")
        check_elements(given.dtype, "array")
        data = np.array(given, order="C", subok=False)
        return self._place(data, data.shape, data.dtype, written=True)

    def empty(self, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float32) -> DeviceArray:
        """Make an unwritten array.

        Raises
        ------
        OperandError
            No shape, or no type of numbers.
        """
        return self._new("empty", shape, dtype, written=False)

    def zeros(self, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float32) -> DeviceArray:
        """Make an array of zeros.

        Raises
        ------
        OperandError
            No shape, or no type of numbers.
        """
        return self._new("zeros", shape, dtype, written=True)

    def allocate(self, nbytes: int) -> int:
        """Allocate unwritten memory.

        Parameters
        ----------
        nbytes : int
            At least 1.

        Returns
        -------
        int
            Its address, a multiple of 256.

        Raises
        ------
        OperandError
            No such number, or more than the process has.

        Examples
        --------
        >>> device = Device("sm_90")
        >>> x = device.allocate(16)
        >>> device.write(x + 4, bytes([1, 2, 3]))
        >>> device.read(x, 8).hex()
        '0000000001020300'
        >>> device.free(x)
        """
        if not is_integer(nbytes) or nbytes < 1:
            raise OperandError(f"allocate: nbytes is {shown(nbytes)}; expected a positive number of bytes")
        return self._new("allocate", nbytes, np.uint8, written=False).address

    def free(self, address: int) -> None:
        """Free memory by the address of its first byte: from now on its addresses are invalid.

        Raises
        ------
        OperandError
            No memory of the device begins there; the error names the nearest.
        """
        at, region = self._at("free", address)
        if at != region.start:
            raise OperandError(f"free: {at:#x} is {at - region.start} bytes past the beginning of {region}")
        self.space.remove(region)

    def read(self, where: DeviceArray | int, size: int | None = None) -> bytes:
        """Copy bytes out; unwritten bytes are 0.

        Parameters
        ----------
        where : DeviceArray or int
            An array of the device, or the address of the first byte.
        size : int, optional
            In bytes, within one array; all of the array if none is given.

        Raises
        ------
        OperandError
            Not all of these bytes are in one array of the device; the error names the nearest.
        """
        at, region, size = self._range("read", where, size)
        return region.data[at : at + size].tobytes()

    def write(self, where: DeviceArray | int, data: bytes) -> None:
        """Write bytes, as the host does: constant memory, too.

        Parameters
        ----------
        where : DeviceArray or int
            An array of the device, or the address of the first byte.

        Raises
        ------
        OperandError
            As of `read`, or memory of the process that is read-only.
        """
        if not isinstance(data, bytes | bytearray | memoryview):
            raise OperandError(f"write: data is {type(data).__name__}; expected bytes")
        given = np.frombuffer(bytes(data), np.uint8)
        at, region, _ = self._range("write", where, given.size)
        _write(region, at, given)

    def map(self, array: Array, address: int | None = None, *, name: str = "", written: bool = True) -> DeviceArray:
        """Place memory of the process, where kernels read and write it in place.

        Parameters
        ----------
        array : ndarray
            C-contiguous. One that is read-only can only be read by kernels.
        address : int, optional
            Of its first byte; a multiple of 256 of the device's choice, if none is given. The process's own address is
            `array.ctypes.data`.
        name : str, optional
            As hazards call it.
        written : bool
            Whether it holds data. If not, a kernel that reads it before it is written gets a hazard, as with memory
            fresh from an allocator; `mark_written` says what the process has written.

        Raises
        ------
        OperandError
            No such array, an address where other memory of the device lies, memory that is mapped already, or a piece
            as large as an address space.
        """
        data, held = check_array(array, "map: the array")
        if data.size > MOST_MAPPED:
            raise OperandError(
                f"map: {data.size} bytes; expected {MOST_MAPPED} at most. The address space of a process cannot be "
                "mapped as a whole: map each allocation at its own address"
            )
        if address is not None and not is_integer(address):
            raise OperandError(f"map: address is {shown(address)}; expected an integer, or None")
        if not isinstance(name, str):
            raise OperandError(f"map: name is {shown(name)}; expected a string")
        if not isinstance(written, bool):
            raise OperandError(f"map: written is {shown(written)}; expected True or False")
        if (other := self.space.holder(held, "map: the array")) is not None:
            raise OperandError(f"map: the array is memory of {other} already")
        name = name or self._name("mapped array")
        region = Region(name=name, start=int(address or 0), data=data, held=held, written=written, cause=_marked(name))
        if address is None:
            self.space.place(region)
        else:
            self.space.place_at(region, "map")
        return DeviceArray(self, region, array.shape, array.dtype)

    def mark_written(self, where: DeviceArray | int, size: int | None = None) -> None:
        """Mark memory as written: the process wrote it, through its own array or by another way than `set`.

        Parameters
        ----------
        where : DeviceArray or int
            An array of the device, or the address of the first byte.
        size : int, optional
            In bytes, within one array; all of the array if none is given.

        Raises
        ------
        OperandError
            Not all of these bytes are in one array of the device, or it was freed.

        Examples
        --------
        >>> device, memory = Device("sm_90"), np.zeros(64, np.uint8)
        >>> x = device.map(memory, 0x10000, written=False)
        >>> memory[:16] = 1
        >>> device.mark_written(x, 16)
        """
        self._mark("mark_written", where, size, written=True)

    def mark_unwritten(self, where: DeviceArray | int, size: int | None = None) -> None:
        """Mark memory as unwritten, as after an allocator has taken it back; its bytes do not change.

        Parameters
        ----------
        where : DeviceArray or int
        size : int, optional
            As for `mark_written`.

        Raises
        ------
        OperandError
            As for `mark_written`.
        """
        self._mark("mark_unwritten", where, size, written=False)

    def variable(
        self, name: str, nbytes: int, *, alignment: int = 1, initial: bytes = b"", constant: bool = False,
        before: int | None = None,
    ) -> DeviceArray:  # fmt: skip
        """Place a variable of a module, `.global` or `.const`: what no initial bytes are given for is 0.

        Parameters
        ----------
        name : str
            As hazards call it.
        nbytes, alignment : int
        initial : bytes
        constant : bool
            Whether it lies in constant memory, which kernels only read. Its address in the space `.const` is what lies
            between the beginning of the window and its generic address.
        before : int, optional
            Bytes of constant memory that its module has already; by default what lies there of all modules.

        Raises
        ------
        OperandError
            More constant memory than there is.
        """
        space = "const" if constant else "global"
        data = np.zeros(nbytes, np.uint8)
        data[: len(initial)] = np.frombuffer(initial, np.uint8)
        data.flags.writeable = not constant
        region = self.space.place(Region(name=name, start=0, data=data), alignment=alignment, space=space)
        used = region.stop - WINDOWS["const"].base
        if before is not None:
            used = -(-before // alignment) * alignment + nbytes
        if constant and used > _CONSTANT:
            self.space.remove(region)
            raise OperandError(f"{name}: {used} bytes of constant memory; there are {_CONSTANT}")
        return DeviceArray(self, region, (nbytes,), np.dtype(np.uint8))

    def _mark(self, who: str, where: Any, size: Any, *, written: bool) -> None:
        at, region, size = self._range(who, where, size)
        region.mark(at, size, written)
        if not written:
            region.cause = _marked(region.name)

    def _range(self, who: str, where: Any, size: Any) -> tuple[int, Region, int]:
        """Return bytes from an array or an address on: the offset in their region, the region, and how many."""
        if size is not None and not (is_integer(size) and size >= 0):
            raise OperandError(f"{who}: size is {shown(size)}; expected a number of bytes")
        if isinstance(where, DeviceArray):
            if where.device is not self:
                raise OperandError(f"{who}: {where!r} is an array of another device than {self!r}")
            address, region = where.address, where._live()
            size = region.data.size if size is None else size
        else:
            address, region = self._at(who, where)
            if size is None:
                raise OperandError(f"{who}: an address needs a size in bytes; only an array is taken as a whole")
        if (beyond := address + int(size) - region.stop) > 0:
            past = f"{shown(beyond)} byte{'s' * (beyond != 1)} past {region}"
            raise OperandError(f"{who}: {shown(int(size))} bytes from {address:#x} end {past}")
        return address - region.start, region, int(size)

    def _at(self, who: str, address: Any) -> tuple[int, Region]:
        """Return an address and the region that it is in."""
        if not is_integer(address):
            raise OperandError(f"{who}: got {type(address).__name__}; expected an array of this device, or an address")
        if not 0 <= address < 1 << 64:
            raise OperandError(f"{who}: {shown(address)} is not an address; expected an integer of 64 bits, unsigned")
        if (region := self.space.find(int(address))) is not None:
            return int(address), region
        if not self.space.regions:
            raise OperandError(f"{who}: no memory of the device is at {address:#x}; it has none yet")
        near = nearest(((x.name, x.start, x.stop) for x in self.space.regions), int(address), 1)
        raise OperandError(f"{who}: no memory of the device is at {address:#x}; the nearest, {near}")

    def _new(self, who: str, shape: Any, dtype: Any, *, written: bool) -> DeviceArray:
        sizes = tuple(shape) if isinstance(shape, list | tuple) else (shape,)
        if not all(is_integer(n) and n >= 0 for n in sizes) or len(sizes) > MOST_DIMENSIONS:
            raise OperandError(
                f"{who}: shape is {shown(shape)}; expected sizes, of at most {MOST_DIMENSIONS} dimensions"
            )
        made = _dtype(who, dtype)
        sizes = tuple(int(n) for n in sizes)
        if math.prod(sizes) > MOST_ELEMENTS:
            raise OperandError(f"{who}: {shown(shape)} is more than any memory holds")
        try:
            data = np.zeros(sizes, made)
        except MemoryError:
            raise OperandError(f"{who}: {shown(shape)} of {made} is more than this memory holds") from None
        return self._place(data, sizes, made, written=written)

    def _place(self, data: Array, shape: tuple[int, ...], dtype: np.dtype[Any], *, written: bool) -> DeviceArray:
        name = self._name("device array")
        region = Region(
            name=name, start=0, data=_bytes(data), written=written, cause=f"it was never written: {name} is empty"
        )
        return DeviceArray(self, self.space.place(region), shape, dtype)

    def _name(self, kind: str) -> str:
        self._made += 1
        return f"{kind} {self._made - 1}"


def _marked(name: str) -> str:
    """Return what hazards report about bytes that hold no data."""
    return f"these bytes of {name} were never written, or were marked as unwritten"


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8) if array.size else np.zeros(0, np.uint8)


def _write(region: Region, offset: int, data: Array) -> None:
    """Write a region, as the host does: constant memory too, but not memory that is read-only in the process."""
    if region.held and not region.writeable:
        raise OperandError(f"{region.name} is read-only memory of the process")
    before = region.writeable
    region.data.flags.writeable = True
    region.data[offset : offset + data.size] = data
    region.data.flags.writeable = before
    region.mark(offset, data.size, True)


def _dtype(who: str, given: Any) -> np.dtype[Any]:
    """Return a type of numbers."""
    try:
        dtype: np.dtype[Any] = np.dtype(given)
    except Exception:  # NumPy raises many kinds
        raise OperandError(f"{who}: {shown(given)} is not a type of elements") from None
    check_elements(dtype, who)
    if dtype.itemsize == 0 or dtype.subdtype is not None:
        raise OperandError(f"{who}: {shown(given)} is not a type of numbers")
    return dtype
