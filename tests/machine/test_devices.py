"""Memory that lives between launches."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.errors import OperandError, TargetError
from warpmma.kernel import HazardError, Output, launch


def double(t: Any, x: Any, y: Any) -> None:
    at = t.tid[0] * 4
    t("st.global.b32", y + at, t("ld.global.b32", x + at) * 2)


def read(t: Any, x: Any) -> None:
    t("ld.global.b32", x + t.tid[0] * 4)


def test_a_launch_writes_arrays_of_a_device_and_a_later_one_reads_them() -> None:
    device = wm.Device("sm_90")
    x, y, z = device.array(np.arange(32, dtype=np.uint32)), device.empty(32, np.uint32), device.empty((32,), "u4")
    launch(double, 1, 32, [x, y])
    launch(double, 1, 32, [y, z])
    assert z.numpy().tolist() == [4 * n for n in range(32)]
    assert y.dtype == np.uint32 and y.shape == (32,) and y.nbytes == 128 and y.data_ptr() == y.address


def test_an_array_is_a_copy_and_so_is_what_comes_out() -> None:
    device, mine = wm.Device("sm_90"), np.ones((2, 3), np.float16)
    there = device.array(mine)
    mine[0, 0] = 2
    there.numpy()[0, 1] = 3
    assert (there.numpy() == 1).all() and there.numpy().dtype == np.float16
    there.set(np.float16(4))
    assert (there.numpy() == 4).all() and there.shape == (2, 3)


def test_addresses_are_multiples_of_256_and_lie_apart() -> None:
    device = wm.Device("sm_70")
    made = [device.zeros(n, np.uint8) for n in (0, 1, 256, 257, 0)]
    assert all(x.address % 256 == 0 for x in made)
    assert len({x.address for x in made}) == 5
    assert all(b.address > a.address + a.nbytes for a, b in pairwise(made))
    with pytest.raises(HazardError, match=r"bounds.*device array 2 \(256 bytes"):
        launch(lambda t, x: t("ld.global.b8", x + 256), 1, 32, [made[2]])


def test_plain_arrays_have_the_same_addresses_in_every_launch_and_are_gone_after_it() -> None:
    device, seen = wm.Device("sm_90"), []
    kept = device.zeros(1, np.uint32)

    def note(t: Any, x: Any) -> None:
        seen.append(int(x.bits.flat[0]))

    launch(note, 1, 32, [np.zeros(4)], target=device)
    launch(note, 1, 32, [np.zeros(4)], target=device)
    assert seen[0] == seen[1] > kept.address
    with pytest.raises(HazardError, match="bounds"):
        launch(lambda t: t("ld.global.b32", seen[0]), 1, 32, [], target=device)


def test_plain_arrays_are_given_back_after_a_hazard_too() -> None:
    device, x = wm.Device("sm_90"), np.zeros(4, np.uint32)
    with pytest.raises(HazardError):
        launch(read, 1, 32, [x], target=device)
    assert not device.space.regions
    launch(read, 1, 4, [x], target=device)


def test_what_nobody_wrote_is_unwritten_until_a_launch_or_the_host_has_written_it() -> None:
    device = wm.Device("sm_90")
    y = device.empty(32, np.uint32)
    with pytest.raises(HazardError, match=r"unwritten: .*it was never written: device array 0 is empty"):
        launch(read, 1, 32, [y])
    launch(double, 1, 16, [np.arange(16, dtype=np.uint32), y])
    launch(read, 1, 16, [y])
    with pytest.raises(HazardError, match="unwritten"):
        launch(read, 1, 17, [y])
    y.set(np.zeros(32, np.uint32))
    launch(read, 1, 32, [y])
    assert device.empty(3).numpy().tolist() == [0, 0, 0]


def test_a_smaller_store_of_an_earlier_launch_is_known() -> None:
    """Grains are cut, and stay so."""
    device = wm.Device("sm_90")
    y = device.empty(64, np.uint8)
    launch(lambda t, y: t("st.global.b8", y + t.tid[0] * 2, t.tid[0]), 1, 32, [y])
    launch(lambda t, y: t("ld.global.b8", y + t.tid[0] * 2), 1, 32, [y])
    with pytest.raises(HazardError, match="unwritten"):
        launch(lambda t, y: t("ld.global.b8", y + t.tid[0]), 1, 32, [y])


def test_what_another_launch_did_lies_before() -> None:
    device = wm.Device("sm_90")
    x = device.zeros(32, np.uint32)

    def one(t: Any, x: Any) -> None:
        with t.where(t.tid[0] == 0):
            t("st.global.b32", x, 7)

    launch(one, 1, 32, [x])
    launch(lambda t, x: t("st.global.b32", x + t.tid[0] * 4, 8), 1, 32, [x])
    assert (x.numpy() == 8).all()


def test_a_freed_array_is_nobodys() -> None:
    device = wm.Device("sm_90")
    x = device.zeros(32, np.uint32)
    address = x.address
    x.free()
    x.free()
    for use in (lambda: x.address, x.numpy, lambda: x.set(0), lambda: launch(read, 1, 32, [x])):
        with pytest.raises(OperandError, match="device array 0 was freed"):
            use()
    assert "freed" in repr(x)
    assert device.zeros(32, np.uint32).address > address  # a stale address finds nothing else
    with pytest.raises(HazardError, match="bounds"):
        launch(lambda t: t("ld.global.b32", address), 1, 32, [], target=device)


# Mapped memory


def test_memory_of_the_process_lies_where_the_caller_wants_it() -> None:
    device, mine = wm.Device("sm_90"), np.arange(32, dtype=np.uint32)
    there = device.map(mine, address=0x10000)
    launch(double, 1, 32, [there, there])
    assert mine.tolist() == [2 * n for n in range(32)] and there.address == 0x10000
    launch(lambda t: t("st.global.b32", 0x10004, 5), 1, 1, [], target=device)
    assert mine[1] == 5
    there.free()
    device.map(mine, address=0x10004)


def test_memory_of_the_process_at_its_own_address_and_a_part_of_it_as_an_argument() -> None:
    device, every = wm.Device("sm_90"), np.arange(96, dtype=np.uint32)
    mine = every[:64]
    device.map(mine, address=mine.ctypes.data)
    launch(double, 1, 32, [mine[:32], mine[32:]], target=device)
    assert mine[32:].tolist() == [2 * n for n in range(32)]
    with pytest.raises(OperandError, match=r"args\[0\] shares a part of its memory with mapped array 0"):
        launch(read, 1, 32, [every[32:]], target=device)


@pytest.mark.parametrize("shift", [1, 4, 8, 12, 16, 24])
@pytest.mark.parametrize("kind", ["b32", "v2.b32", "v4.b32"])
def test_an_address_that_is_no_multiple_of_what_is_accessed(shift: int, kind: str) -> None:
    """What counts is the address, not where in the array it is."""
    device, mine = wm.Device("sm_90"), np.arange(256, dtype=np.uint8)
    there = device.map(mine, address=0x1000 + shift)
    size = {"b32": 4, "v2.b32": 8, "v4.b32": 16}[kind]
    found: list[Any] = []

    def kernel(t: Any) -> None:
        values = t(f"ld.global.{kind}", 0x1020 + t.tid[0] * size)
        values = values if isinstance(values, tuple) else (values,)
        found.append(np.stack([v.bits[0, 0, :8] for v in values], axis=-1))
        t(f"st.global.{kind}", 0x1020 + t.tid[0] * size, *values)

    launch(kernel, 1, 8, [], target=device)
    begin = 0x20 - shift
    assert found[0].tobytes() == mine[begin : begin + 8 * size].tobytes()
    with pytest.raises(HazardError, match="misaligned"):
        launch(lambda t: t("ld.global.b32", there.address + 2 - shift % 2), 1, 1, [], target=device)


@pytest.mark.parametrize("address", [0xFFF, 0x1000, 0x107F])
def test_overlapping_memory_is_refused(address: int) -> None:
    device = wm.Device("sm_90")
    device.map(np.zeros(128, np.uint8), address=0x1000)
    with pytest.raises(OperandError, match=r"map: mapped array 1 .* overlaps mapped array 0 \(128 bytes from 0x1000\)"):
        device.map(np.zeros(2, np.uint8), address=address)
    device.map(np.zeros(2, np.uint8), address=0x1080)
    device.map(np.zeros(2, np.uint8), address=0xFFE)


def test_the_device_places_around_what_is_mapped() -> None:
    device = wm.Device("sm_90")
    device.map(np.zeros(1024, np.uint8), address=0x7F0000000010)
    assert device.zeros(5).address == 0x7F0000000500


@pytest.mark.parametrize("space", ["shared", "local", "const", "param"])
def test_a_window_of_another_space_is_refused(space: str) -> None:
    window = wm.operations.WINDOWS[space]
    with pytest.raises(OperandError, match=re.escape(f"window of generic addresses of .{space}")):
        wm.Device("sm_90").map(np.zeros(2, np.uint8), address=window.base + window.size - 1)


def test_mapping_what_is_mapped_or_no_array_or_nowhere() -> None:
    device, mine = wm.Device("sm_90"), np.zeros(4)
    device.map(mine)
    with pytest.raises(OperandError, match=r"the array is memory of mapped array 0 .* already"):
        device.map(mine[1:], address=64)
    with pytest.raises(OperandError, match="not contiguous"):
        device.map(np.zeros((4, 4))[:, 1])
    with pytest.raises(OperandError, match="address is 'there'; expected an integer"):
        device.map(np.zeros(4), address="there")  # type: ignore[arg-type]
    for address in (-8, 1 << 64):
        with pytest.raises(OperandError, match="beyond the 64 bits"):
            device.map(np.zeros(4), address=address)


def test_what_the_process_cannot_write_a_kernel_cannot_either() -> None:
    device, mine = wm.Device("sm_90"), np.arange(32, dtype=np.uint32)
    mine.flags.writeable = False
    there = device.map(mine)
    launch(read, 1, 32, [there])
    with pytest.raises(HazardError, match=r"bounds: .*mapped array 0, which is read-only"):
        launch(double, 1, 32, [there, there])
    with pytest.raises(OperandError, match="read-only memory of the process"):
        there.set(np.zeros(32, np.uint32))


# Variables, for front ends


def test_variables_of_modules() -> None:
    device = wm.Device("sm_90")
    one = device.variable("counter", 8, alignment=8, initial=b"\x05")
    two = device.variable("table", 4, alignment=4)
    fixed = device.variable("fixed", 64, alignment=16, initial=bytes(range(64)), constant=True)
    assert one.address % 8 == 0 and one.numpy().tolist() == [5, *[0] * 7]
    assert two.address > one.address + 8  # so that an index one too far is found
    assert wm.operations.window_of(fixed.address) == "const" and fixed.address % 16 == 0
    fixed.set(np.arange(64, dtype=np.uint8)[::-1])  # as cudaMemcpyToSymbol does
    assert fixed.numpy()[0] == 63
    with pytest.raises(OperandError, match="more: 65540 bytes of constant memory; there are 65536"):
        device.variable("more", (1 << 16) - 64, alignment=4, constant=True)


# Errors


def test_target_and_device_of_a_launch() -> None:
    device, other = wm.Device("sm_90"), wm.Device("sm_80")
    x = device.zeros(32, np.uint32)
    launch(read, 1, 32, [x], target="sm_90")
    launch(read, 1, 32, [x], target=device)
    with pytest.raises(TargetError, match="target is sm_80, and the arrays are of a device of sm_90"):
        launch(read, 1, 32, [x], target="sm_80")
    with pytest.raises(OperandError, match=r"args\[1\] is an array of another device"):
        launch(double, 1, 32, [x, other.zeros(32, np.uint32)])
    with pytest.raises(OperandError, match=r"args\[0\] is an array of another device"):
        launch(read, 1, 32, [x], target=other)
    with pytest.raises(TargetError, match="no argument is an array of a device"):
        launch(read, 1, 32, [np.zeros(32)])
    with pytest.raises(TargetError):
        launch(read, 1, 32, [x], target="H200")
    with pytest.raises(TargetError):
        wm.Device("sm_1")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda d: d.array(["a"]), "texts and Python objects"),
        (lambda d: d.array([[1], [1, 2]]), "array"),
        (lambda d: d.empty(-1), "shape is -1"),
        (lambda d: d.empty((2, 1.5)), "expected sizes"),
        (lambda d: d.empty(1 << 60), "more than any memory holds"),
        (lambda d: d.empty(2, "O"), "texts and Python objects"),
        (lambda d: d.zeros(2, "nonsense"), "not a type of elements"),
        (lambda d: d.zeros(2).set(np.zeros(2)), "holds float32; the values are float64"),
        (lambda d: d.zeros(2).set(np.zeros(3, "f4")), r"is \(2,\); the values are \(3,\)"),
    ],
)
def test_refused(make: Any, says: str) -> None:
    with pytest.raises(OperandError, match=says):
        make(wm.Device("sm_90"))


def test_an_output_beside_arrays_of_a_device() -> None:
    device, y = wm.Device("sm_90"), np.empty(32, np.uint32)
    x = device.array(np.arange(32, dtype=np.uint32))
    launch(double, 1, 32, [x, Output(y)])
    assert y.tolist() == [2 * n for n in range(32)]
    with pytest.raises(HazardError, match=r"args\[1\] is an Output, and no thread wrote any of it"):
        launch(lambda t, x, y: None, 1, 32, [x, Output(y)])
