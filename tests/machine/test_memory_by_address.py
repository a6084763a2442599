"""Memory of a device, allocated, read, written and freed by address."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.errors import OperandError
from warpmma.kernel import HazardError, launch
from warpmma.machine.memory.device import MOST_MAPPED


def twice(t: Any, source: int, to: int) -> None:
    at = t.tid[0] * 4
    t("st.global.b32", at + t.constant(to, "b64"), t("ld.global.b32", at + t.constant(source, "b64")) * 2)


def run(device: wm.Device, source: int, to: int, threads: int = 32) -> None:
    launch(lambda t: twice(t, source, to), 1, threads, [], target=device)


def test_a_kernel_finds_what_the_host_wrote_and_the_host_what_the_kernel_wrote() -> None:
    device = wm.Device("sm_90")
    x, y = device.allocate(128), device.allocate(128)
    assert x % 256 == y % 256 == 0 and y > x + 128
    device.write(x, np.arange(32, dtype=np.uint32).tobytes())
    run(device, x, y)
    assert np.frombuffer(device.read(y, 128), np.uint32).tolist() == list(range(0, 64, 2))
    assert device.read(y + 5, 3) == device.read(y, 128)[5:8]


def test_what_nobody_wrote_is_unwritten_and_bytes_that_the_host_wrote_are_not() -> None:
    device = wm.Device("sm_90")
    x, y = device.allocate(128), device.allocate(128)
    assert device.read(x, 128) == bytes(128)
    device.write(x + 4, bytes(64))
    run(device, x + 4, y, 16)
    with pytest.raises(HazardError, match="unwritten"):
        run(device, x, y, 16)


def test_freed_memory_belongs_to_no_allocation() -> None:
    device = wm.Device("sm_90")
    x, y = device.allocate(128), device.allocate(128)
    device.free(x)
    with pytest.raises(HazardError, match=r"bounds: .*the nearest, device array 1"):
        run(device, x, y)
    with pytest.raises(
        OperandError, match=rf"^read: no memory of the device is at {x:#x}; the nearest, device array 1 "
    ):
        device.read(x, 4)
    array = device.array(np.zeros(3))
    device.free(array.address)
    with pytest.raises(OperandError, match="was freed"):
        array.numpy()


def test_arrays_are_pieces_of_memory_too() -> None:
    device = wm.Device("sm_90")
    array = device.array(np.arange(4, dtype=np.uint16))
    assert device.read(array) == device.read(array.address, 8) == np.arange(4, dtype=np.uint16).tobytes()
    device.write(array.address + 2, b"\xff\xff")
    device.write(array, b"\x07")
    assert array.numpy().tolist() == [7, 65535, 2, 3]


def test_memory_of_the_process_is_read_and_written_at_its_own_address() -> None:
    device, memory = wm.Device("sm_90"), np.arange(8, dtype=np.uint8)
    device.map(memory, memory.ctypes.data, written=False)
    device.write(memory.ctypes.data + 4, b"\x09\x0a")
    assert memory.tolist() == [0, 1, 2, 3, 9, 10, 6, 7]
    assert device.read(memory.ctypes.data, 8) == memory.tobytes()
    fixed = np.zeros(4, np.uint8)
    fixed.flags.writeable = False
    address = device.map(fixed).address
    with pytest.raises(OperandError, match="read-only memory of the process"):
        device.write(address, b"1")


def test_a_range_beyond_its_piece_names_it() -> None:
    device = wm.Device("sm_90")
    x = device.allocate(16)
    says = rf"8 bytes from {x + 12:#x} end 4 bytes past device array 0 \(16 bytes from {x:#x}\)"
    with pytest.raises(OperandError, match=f"^read: {says}$"):
        device.read(x + 12, 8)
    with pytest.raises(OperandError, match=f"^write: {says}$"):
        device.write(x + 12, bytes(8))
    assert device.read(x, 16) == bytes(16)
    with pytest.raises(OperandError, match=rf"^free: {x + 4:#x} is 4 bytes past the beginning of device array 0"):
        device.free(x + 4)


@pytest.mark.parametrize("nbytes", [0, -1, 1.5, "4", None, True])
def test_sizes_that_are_refused(nbytes: Any) -> None:
    with pytest.raises(OperandError, match=r"^allocate: nbytes is .*expected a positive number of bytes"):
        wm.Device("sm_90").allocate(nbytes)


@pytest.mark.parametrize(
    ("address", "says"), [("x", "got str"), (-1, "is not an address"), (1 << 64, "not an address")]
)
def test_addresses_that_are_refused(address: Any, says: str) -> None:
    device = wm.Device("sm_90")
    for call in (lambda: device.read(address, 4), lambda: device.write(address, b"1"), lambda: device.free(address)):
        with pytest.raises(OperandError, match=says):
            call()


def test_data_that_is_refused() -> None:
    device = wm.Device("sm_90")
    with pytest.raises(OperandError, match=r"^write: data is list; expected bytes"):
        device.write(device.allocate(4), [1, 2])  # type: ignore[arg-type]
    with pytest.raises(OperandError, match="an address needs a size"):
        device.read(device.allocate(4))


def test_an_address_space_is_not_mapped_as_a_whole() -> None:
    first = np.zeros(1, np.uint8)
    everything = np.asarray(_View(first.ctypes.data, MOST_MAPPED + 1))
    with pytest.raises(OperandError, match="map each allocation at its own address"):
        wm.Device("sm_90").map(everything, everything.ctypes.data)


class _View:
    """An array that claims more bytes than there are, and of which nobody reads any."""

    def __init__(self, address: int, size: int) -> None:
        self.__array_interface__ = {"version": 3, "typestr": "|u1", "shape": (size,), "data": (address, True)}
