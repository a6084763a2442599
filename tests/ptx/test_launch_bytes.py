"""A launch as bytes: parameters by offset, memory and variables by address, attributes of the grid."""

from __future__ import annotations

import struct
from collections import Counter
from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.errors import OperandError
from warpmma.machine import Grid, LaunchOptions
from warpmma.machine.memory import retyping
from warpmma.ptx import load
from warpmma.ptx.launch import entry_launch, modules

HEAD = ".version 8.0 .target sm_80 .address_size 64 "
TEXT = (
    HEAD
    + """
.global .align 4 .u32 table[4] = {1, 2, 3, 4};
.const .align 4 .u32 factor = 10;
.visible .entry scaled(.param .u8 skip, .param .u64 .ptr .global .align 4 to, .param .align 4 .b8 two[8]) {
    .reg .b32 %r<6>; .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [to];
    ld.param.u32 %r1, [two];
    ld.param.u32 %r2, [two+4];
    mov.u32 %r3, %tid.x;
    mul.wide.u32 %rd2, %r3, 4;
    mov.u64 %rd3, table;
    add.u64 %rd3, %rd3, %rd2;
    ld.global.u32 %r4, [%rd3];
    mad.lo.u32 %r4, %r4, %r1, %r2;
    ld.const.u32 %r5, [factor];
    mul.lo.u32 %r4, %r4, %r5;
    add.u64 %rd1, %rd1, %rd2;
    st.global.u32 [%rd1], %r4;
    ret;
}"""
)


def case() -> tuple[wm.Device, Any, int]:
    device = wm.Device("sm_80")
    return device, load(TEXT)["scaled"], device.allocate(16)


def words(device: wm.Device, address: int) -> list[int]:
    return [int(x) for x in np.frombuffer(device.read(address, 16), np.uint32)]


def test_parameters_are_records_with_offsets() -> None:
    _, entry, _ = case()
    found = [(x.name, x.type, x.offset, x.size, x.space) for x in entry.parameters]
    assert found == [("skip", "u8", 0, 1, ""), ("to", "u64", 8, 8, "global"), ("two", "b8", 16, 8, "")]


def test_parameters_say_what_a_mangled_name_says() -> None:
    text = HEAD + ".entry _Z5scalePKffi(.param .u64 a_param_0, .param .f32 a_param_1, .param .u32 a_param_2) { ret; }"
    first, second, third = load(text)["scale"].parameters
    assert (first.declared, first.element, first.size) == ("const float*", "float32", 8)
    assert (second.declared, second.element, second.offset) == ("float", "", 8)
    assert (third.declared, third.offset, third.size) == ("int", 12, 4)


def test_bytes_are_what_values_become() -> None:
    device, entry, to = case()
    entry.launch(device, 1, 4, [0, to, struct.pack("<II", 2, 1)])
    expected = words(device, to)
    assert expected == [30, 50, 70, 90]
    device.write(to, bytes(16))
    report = entry.launch(device, 1, 4, params=struct.pack("<B7xQII", 0, to, 2, 1))
    assert words(device, to) == expected
    assert sum(report.costs.instructions.values()) == 14


@pytest.mark.parametrize(
    ("params", "says"),
    [
        (bytes(23), r"<ptx>:4:17: params is 23 bytes; expected 24 for scaled\(\.u8 skip, "),
        (bytes(25), "params is 25 bytes; expected 24"),
        ([0], "params is list; expected bytes, 24 for scaled"),
    ],
)
def test_bytes_of_another_size_are_refused(params: Any, says: str) -> None:
    device, entry, _ = case()
    with pytest.raises(OperandError, match=says):
        entry.launch(device, 1, 4, params=params)


def test_args_and_params_exclude_each_other() -> None:
    device, entry, _ = case()
    for args in ([1], {"skip": 1}, np.zeros(3), None):
        with pytest.raises(OperandError, match="both args and params are given"):
            entry.launch(device, 1, 4, args, params=bytes(24))


def test_variables_are_read_and_written_by_offset() -> None:
    device, entry, to = case()
    variables = entry.module.variables(device)
    assert {name: x.nbytes for name, x in variables.items()} == {"table": 16, "factor": 4}
    assert device.read(variables["table"].address + 4, 8) == struct.pack("<II", 2, 3)
    device.write(variables["table"].address + 12, struct.pack("<I", 100))
    device.write(variables["factor"], struct.pack("<I", 1))
    entry.launch(device, 1, 4, params=struct.pack("<B7xQII", 0, to, 1, 0))
    assert words(device, to) == [1, 2, 3, 100]
    with pytest.raises(OperandError, match=r"8 bytes from .* end 4 bytes past table \(16 bytes from"):
        device.read(variables["table"].address + 12, 8)


def test_attributes_of_a_launch_are_those_of_its_grid() -> None:
    device, entry, to = case()
    params = struct.pack("<B7xQII", 0, to, 1, 0)
    entry.launch(device, 1, 4, params=params, cluster=(1, 1, 1), cooperative=True)
    for cluster in (2, (1, 2)):
        with pytest.raises(OperandError, match=r"cluster is .*: 2 blocks; on sm_\d+ expected 1 at most"):
            entry.launch(device, 2, 4, params=params, cluster=cluster)
    with pytest.raises(OperandError, match="cluster is 0; expected one to three positive integers"):
        entry.launch(device, 1, 4, params=params, cluster=0)
    for given in (1, None, "yes", np.zeros(2)):
        with pytest.raises(OperandError, match=r"cooperative is .*; expected True or False"):
            entry.launch(device, 1, 4, params=params, cooperative=given)
    plain, cooperative = (Grid.checked(4096, 1024, 0, "sm_80", cooperative=x) for x in (False, True))
    assert len(list(plain.batches())) == 128
    assert list(cooperative.batches()) == [range(4096)]
    assert list(cooperative.batches(4000)) == [range(4000), range(4000, 4096)]


COUNTER = (
    HEAD
    + """
.visible .entry meet(.param .u64 counter, .param .u32 blocks) {
    .reg .b32 %r<4>; .reg .b64 %rd<2>; .reg .pred %p;
    ld.param.u64 %rd1, [counter];
    ld.param.u32 %r1, [blocks];
    atom.global.add.u32 %r2, [%rd1], 1;
AGAIN:
    ld.volatile.global.u32 %r3, [%rd1];
    setp.lt.u32 %p, %r3, %r1;
    @%p bra AGAIN;
    ret;
}"""
)


def test_all_blocks_of_a_given_launch_synchronize() -> None:
    device, entry = wm.Device("sm_80"), load(COUNTER)["meet"]
    blocks = 40  # of 1,024 threads: 32 of them are resident together unless the launch is cooperative
    counter = device.zeros(1, np.uint32)
    entry.launch(device, blocks, 1024, [counter, 1024 * blocks], cooperative=True)
    assert counter.numpy().tolist() == [1024 * blocks]
    with pytest.raises(wm.machine.HazardError, match="deadlock"):
        entry.launch(device, blocks, 1024, [device.zeros(1, np.uint32), 1024 * blocks])


def test_what_launches_have_in_common_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: Counter[str] = Counter()

    def count(owner: Any, name: str) -> None:
        before = getattr(owner, name)

        def counted(*given: Any, **named: Any) -> Any:
            made[name] += 1
            return before(*given, **named)

        monkeypatch.setattr(owner, name, counted)

    for owner, name in (
        (modules, "link"), (modules, "PreparedEntry"), (modules, "Signature"), (modules, "check_device"),
        (entry_launch.PreparedEntry, "_grid"), (retyping, "_float_of"), (LaunchOptions, "__post_init__"),
    ):  # fmt: skip
        count(owner, name)
    device, module, memory = wm.Device("sm_80"), load(TEXT), np.zeros(4, np.uint32)
    for _ in range(3):
        module["scaled"].launch(device, 1, 4, [0, memory, struct.pack("<II", 1, 0)])
        module["scaled"].launch(device, 1, 4, [0, memory, struct.pack("<II", 2, 0)])
    assert memory.tolist() == [20, 40, 60, 80]
    once = {"link": 1, "PreparedEntry": 1, "Signature": 1, "check_device": 1, "_grid": 1}
    assert {name: made[name] for name in once} == once
    steps = len(module.linked("scaled", device, "ptxas").program.steps)
    assert 0 < made["_float_of"] <= steps and made["__post_init__"] == 0
    module["scaled"].launch(device, (1, 1), 4, [0, memory, struct.pack("<II", 1, 0)], seed=1)
    assert made["__post_init__"] == 1 and made["_grid"] == 2


def test_numbers_that_equal_integers_are_checked_each_time() -> None:
    device, entry, to = case()
    params = struct.pack("<B7xQII", 0, to, 1, 0)
    entry.launch(device, 1, 1, params=params)
    for grid, block, shared in ((True, 1, 0), (1, True, 0), (1, 1, False), (1.0, 1, 0), ((True,), 1, 0), (1, 1, 0.0)):
        with pytest.raises(OperandError, match=r"is (True|False|1.0|0.0|.True,.); "):
            entry.launch(device, grid, block, params=params, shared=shared)
    with pytest.raises(OperandError, match="seed is False"):
        entry.launch(device, 1, 1, params=params, seed=False)
