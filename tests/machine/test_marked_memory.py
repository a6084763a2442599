"""Memory that the host marks as written or unwritten."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.errors import OperandError
from warpmma.kernel import HazardError, HazardWarning, launch

ADDRESS = 0x10000


def fresh(count: int = 64, address: int | None = ADDRESS) -> tuple[wm.Device, Any, np.ndarray]:
    """A device, and memory of the host that nobody has written."""
    device, memory = wm.Device("sm_90"), np.zeros(count, np.uint8)
    return device, device.map(memory, address, written=False), memory


def readable(device: wm.Device, address: int, size: int) -> list[int]:
    """Bytes that can be read without a hazard."""
    found = []
    for i in range(size):
        try:
            launch(lambda t, i=i: t("ld.global.b8", address + i), 1, 1, [], target=device)
        except HazardError as error:
            assert error.hazard.kind == "unwritten"
        else:
            found.append(i)
    return found


def test_fresh_memory_of_the_host_is_unwritten_until_somebody_writes_it() -> None:
    device, there, _ = fresh(64)
    says = "unwritten: .*these bytes of mapped array 0 were never written, or were marked as unwritten"
    with pytest.raises(HazardError, match=says):
        launch(lambda t: t("ld.global.b32", ADDRESS), 1, 1, [], target=device)
    launch(lambda t: t("st.global.b32", ADDRESS + 4, 7), 1, 1, [], target=device)
    assert readable(device, ADDRESS, 12) == [4, 5, 6, 7]
    there.set(np.zeros(64, np.uint8))
    assert readable(device, ADDRESS, 64) == list(range(64))


def test_memory_is_written_by_default() -> None:
    device, memory = wm.Device("sm_90"), np.zeros(8, np.uint8)
    device.map(memory, ADDRESS)
    assert readable(device, ADDRESS, 8) == list(range(8))


@pytest.mark.parametrize("address", [ADDRESS, ADDRESS + 1, ADDRESS + 6, ADDRESS + 16, ADDRESS + 24])
@pytest.mark.parametrize(
    ("first", "size"), [(0, 64), (0, 1), (63, 1), (3, 7), (16, 16), (5, 27), (31, 33), (8, 2), (9, 0)]
)
def test_ranges_of_any_bytes_are_marked_and_no_others(first: int, size: int, address: int) -> None:
    device, _, _ = fresh(64, address)
    device.mark_written(address + first, size)
    assert readable(device, address, 64) == list(range(first, first + size))
    device.mark_written(address, 64)
    device.mark_unwritten(address + first, size)
    assert readable(device, address, 64) == [*range(first), *range(first + size, 64)]


def test_random_marks_and_stores_leave_what_a_list_of_bytes_has() -> None:
    random = np.random.default_rng(0)
    for _ in range(12):
        address = ADDRESS + int(random.integers(40))
        device, there, _ = fresh(48, address)
        known = np.zeros(48, bool)
        for _ in range(8):
            first = int(random.integers(48))
            size = int(random.integers(49 - first))
            act = random.integers(3)
            if act == 0 and size:
                launch(lambda t, a=address + first: t("st.global.b8", a, 1), 1, 1, [], target=device)
                known[first] = True
            elif act == 1:
                device.mark_written(address + first, size)
                known[first : first + size] = True
            else:
                device.mark_unwritten(address + first, size)
                known[first : first + size] = False
        assert readable(device, address, 48) == np.flatnonzero(known).tolist()
        assert there.device is device


def test_an_array_is_marked_as_a_whole_or_from_its_beginning() -> None:
    device = wm.Device("sm_90")
    x = device.array(np.arange(8, dtype=np.uint32))
    device.mark_unwritten(x)
    with pytest.raises(HazardError, match=r"unwritten: .*these bytes of device array 0"):
        launch(lambda t, x: t("ld.global.b32", x), 1, 1, [x])
    device.mark_written(x, 6)
    assert readable(device, x.address, 32) == list(range(6))
    assert x.numpy().tolist() == list(range(8))  # marks change no byte
    device.mark_written(x)
    assert readable(device, x.address, 32) == list(range(32))
    empty = device.empty(0)
    device.mark_written(empty)


def test_words_that_are_written_in_part_are_unwritten() -> None:
    device, _, _ = fresh()
    device.mark_written(ADDRESS, 6)
    launch(lambda t: t("ld.global.b32", ADDRESS), 1, 1, [], target=device)
    with pytest.raises(HazardError, match="unwritten"):
        launch(lambda t: t("ld.global.b32", ADDRESS + 4), 1, 1, [], target=device)


def test_where_hazards_are_off_or_warnings_reads_go_on() -> None:
    device, _, memory = fresh()
    memory[:4] = 9
    launch(
        lambda t: t("st.global.b32", ADDRESS + 8, t("ld.global.b32", ADDRESS)), 1, 1, [], target=device, hazards="off"
    )
    assert memory[8:12].tolist() == [9] * 4
    device.mark_unwritten(ADDRESS, 64)  # a store that is not tracked lets all of an array count as written
    assert readable(device, ADDRESS, 64) == []
    with pytest.warns(HazardWarning, match="unwritten"):
        launch(lambda t: t("ld.global.b32", ADDRESS), 1, 1, [], target=device, hazards="warn")


def test_memory_that_is_freed_and_mapped_again_is_fresh_again() -> None:
    device, there, memory = fresh()
    device.mark_written(there)
    there.free()
    with pytest.raises(OperandError, match="mapped array 0 was freed"):
        device.mark_written(there)
    device.map(memory, ADDRESS, written=False)
    assert readable(device, ADDRESS, 64) == []


@pytest.mark.parametrize("name", ["mark_written", "mark_unwritten"])
def test_refused(name: str) -> None:
    device, there, _ = fresh()
    mark, other = getattr(device, name), wm.Device("sm_90").zeros(4)
    text = re.escape(
        f"{name}: 32 bytes from {ADDRESS + 40:#x} end 8 bytes past mapped array 0 (64 bytes from {ADDRESS:#x})"
    )
    with pytest.raises(OperandError, match=text):
        mark(ADDRESS + 40, 32)
    with pytest.raises(OperandError, match=rf"{name}: 65 bytes from .* end 1 byte past mapped array 0 \(64 bytes"):
        mark(there, 65)
    with pytest.raises(
        OperandError, match=rf"{name}: no memory of the device is at {ADDRESS - 4:#x}; the nearest, mapped"
    ):
        mark(ADDRESS - 4, 8)
    with pytest.raises(OperandError, match=f"{name}: an address needs a size in bytes"):
        mark(ADDRESS)
    with pytest.raises(OperandError, match=f"{name}: size is -1; expected a number of bytes"):
        mark(ADDRESS, -1)
    with pytest.raises(OperandError, match=f"{name}: size is 2.5; expected a number of bytes"):
        mark(there, 2.5)
    with pytest.raises(OperandError, match=f"{name}: got ndarray; expected an array of this device, or an address"):
        mark(np.zeros(4), 4)
    with pytest.raises(OperandError, match=f"{name}: .* is an array of another device"):
        mark(other)
    with pytest.raises(OperandError, match=f"{name}: .* bytes from 0x10000 end .* bytes past mapped array 0"):
        mark(there, 10**5000)
    for address in (-1, 1 << 64, 10**5000):
        with pytest.raises(OperandError, match=f"{name}: .* is not an address; expected an integer of 64 bits"):
            mark(address, 4)
    with pytest.raises(OperandError, match=f"{name}: no memory of the device is at 0x10000; it has none yet"):
        getattr(wm.Device("sm_90"), name)(ADDRESS, 4)


def test_a_name_is_a_string() -> None:
    with pytest.raises(OperandError, match="map: name is 7; expected a string"):
        wm.Device("sm_90").map(np.zeros(4), name=7)  # type: ignore[arg-type]


def test_written_is_true_or_false() -> None:
    with pytest.raises(OperandError, match="map: written is 1; expected True or False"):
        wm.Device("sm_90").map(np.zeros(4), written=1)  # type: ignore[arg-type]
