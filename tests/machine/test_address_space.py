"""The address space of a device: lookups of addresses, and the cost of changes."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import warpmma as wm
from warpmma.errors import OperandError
from warpmma.machine.memory.address_space import AddressSpace, Region

COPY = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry copy(.param .u64 from, .param .u64 to)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<3>;
    ld.param.u64 %rd1, [from];
    ld.param.u64 %rd2, [to];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd1, %rd1, %rd3;
    add.s64 %rd2, %rd2, %rd3;
    ld.global.u32 %r2, [%rd1];
    st.global.u32 [%rd2], %r2;
    ret;
}
"""


def of_process(data: np.ndarray) -> range:
    at = data.__array_interface__["data"][0]
    return range(at, at + data.size)


def test_tables_are_those_of_the_regions_whatever_comes_and_goes() -> None:
    space, random = AddressSpace(), np.random.default_rng(0)
    held: list[Region] = []
    memory = np.zeros(1 << 16, np.uint8)
    for step in range(1500):
        if len(held) > 200 or (held and random.random() < 0.4):
            space.remove(held.pop(int(random.integers(len(held)))))
        elif random.random() < 0.5:
            held.append(
                space.place(Region(name=str(step), start=0, data=np.zeros(int(random.integers(300)), np.uint8)))
            )
        else:
            first = int(random.integers(1 << 15)) * 2
            part = memory[first : first + int(random.integers(1, 40))]
            region = Region(name=str(step), start=(1 << 40) + first, data=part, held=of_process(part))
            shares = [x for x in held if set(x.held) & set(region.held)]
            if shares:
                with pytest.raises(OperandError, match="overlaps"):
                    space.place_at(region, "test")
                within = next((x for x in shares if set(region.held) <= set(x.held)), None)
                if within is None:
                    with pytest.raises(OperandError, match="shares a part of its memory"):
                        space.holder(region.held, "x")
                else:
                    assert space.holder(region.held, "x") is within
            else:
                assert space.holder(region.held, "x") is None
                held.append(space.place_at(region, "test"))
        expected = sorted(held, key=lambda x: x.start)
        assert space.regions == expected
        assert space.bounds[0].tolist() == [x.start for x in expected]
        assert space.bounds[1].tolist() == [x.stop for x in expected]
        if expected:
            some = expected[int(random.integers(len(expected)))]
            assert space.find(some.start) is (some if some.data.size else None)
            assert space.find(some.stop) is not some


def test_a_change_looks_at_few_regions_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    device, memory = wm.Device("sm_80"), np.zeros((1000, 64), np.uint8)
    looks: list[Region] = []
    for each in memory:
        device.map(each, each.ctypes.data)
    x, y, more = device.zeros(32, np.uint32), device.zeros(32, np.uint32), np.zeros(64, np.uint8)

    def stop(region: Region) -> int:
        looks.append(region)
        return region.start + region.data.size

    monkeypatch.setattr(Region, "stop", property(stop))
    device.map(more, more.ctypes.data).free()
    wm.ptx.load(COPY)["copy"].launch(device, 1, 32, [x, y])
    wm.ptx.load(COPY)["copy"].launch(device, 1, 32, [x, np.zeros(32, np.uint32)])
    assert 0 < len(looks) < 50


def test_a_launch_on_arrays_of_the_device_does_not_change_its_tables() -> None:
    device = wm.Device("sm_80")
    x, y = device.array(np.arange(32, dtype=np.uint32)), device.zeros(32, np.uint32)
    before = device.space.bounds
    wm.ptx.load(COPY)["copy"].launch(device, 1, 32, [x, y])
    assert device.space.bounds is before and (y.numpy() == np.arange(32)).all()


def test_parameters_of_launches_that_run_at_once_are_each_their_own() -> None:
    text = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry pick(.param .align 8 .b8 given[16], .param .u64 to)
{
    .reg .b64 %rd<5>;
    .reg .b32 %r<4>;
    .reg .pred %p<2>;
    mov.b64 %rd1, given;
    mov.u32 %r2, 0;
    mov.b64 %rd4, 0;
again:
    ld.param.u64 %rd2, [%rd1+8];
    add.s64 %rd4, %rd4, %rd2;
    add.s32 %r2, %r2, 1;
    setp.lt.s32 %p1, %r2, 40;
    @%p1 bra again;
    ld.param.u64 %rd3, [to];
    st.global.u64 [%rd3], %rd4;
    ret;
}
"""
    device, entry, wrong = wm.Device("sm_80"), wm.ptx.load(text)["pick"], []
    outs = [device.zeros(1, np.uint64) for _ in range(4)]

    def run(number: int) -> None:
        for turn in range(6):
            value = 1000 * number + turn
            entry.launch(device, 1, 1, [np.array([7, value], np.uint64).tobytes(), outs[number]])
            if outs[number].numpy()[0] != 40 * value:
                wrong.append((number, turn))

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong
