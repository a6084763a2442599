"""What an H200 traps on in tensor copies, each beside a twin that is correct (facts: warpgroup.md 3.2, docs)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.errors import OperandError
from warpmma.layouts import Im2colBox, TensorMap, replace_field
from warpmma.machine import HazardError, HazardWarning

KERNEL = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[256], .param .u64 x, .param .u64 y) {{
.reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %d<9>;
.shared .align 1024 .b8 s[4096]; .shared .align 128 .b8 n[128]; .shared .align 8 .b64 m;
mov.b64 %d1, map; cvta.param.u64 %d1, %d1; ld.param.u64 %d2, [x]; ld.param.u64 %d5, [y];
mov.b64 %d3, s; mov.b64 %d4, n; cvta.shared.u64 %d4, %d4;
mbarrier.init.shared.b64 [m], 1; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;
{}
ret; }}
"""
LOAD = "cp.async.bulk.tensor.{}d.shared::cluster.global{}.mbarrier::complete_tx::bytes"
STORE = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group"
WAIT = "W: mbarrier.try_wait.parity.shared.b64 %p2, [m], 0; @!%p2 bra W;"
DONE = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"


def load(at: str = "s", where: str = "%d1", place: str = "0, 8", size: int = 1024) -> str:
    expect = f"mbarrier.arrive.expect_tx.shared.b64 %d8, [m], {size};"
    return f"{expect} {LOAD.format(2, '')} [{at}], [{where}, {{{place}}}], [m]; {WAIT}"


def image(place: str, offsets: str = "1, 1") -> str:
    expect = "mbarrier.arrive.expect_tx.shared.b64 %d8, [m], 256;"
    return f"{expect} {LOAD.format(4, '.im2col')} [s], [%d1, {{{place}}}], [m], {{{offsets}}}; {WAIT}"


def store(place: str = "0, 8", at: str = "s") -> str:
    """Load a box, which writes what is stored."""
    return f"{load()} {STORE} [%d1, {{{place}}}], [{at}]; {DONE}"


def reduce(operation: str) -> str:
    name = f"cp.reduce.async.bulk.tensor.2d.global.shared::cta.{operation}.bulk_group"
    return f"{load()} {name} [%d1, {{0, 0}}], [s]; {DONE}"


def run(body: str, change: Any = bytes, shift: int = 0, kind: str = "tile", **options: Any) -> Any:
    device = wm.Device("sm_90a")
    held = device.array(np.ones((64, 64), np.float16))
    made = TensorMap(held, (16, 32), swizzle=64)
    if kind == "u16":
        made = TensorMap(held, (16, 32), type="u16")
    if kind == "image":
        box = Im2colBox(lower=(-1, -1), upper=(-1, -1), channels=8, pixels=16)
        made = TensorMap(held.address, box, type="f16", shape=(2, 5, 6, 8))
    param = bytes(shift) + change(made.encoded)
    out = device.zeros(64, np.uint32)
    body = body.replace("%d1,", f"%d{6 if shift else 1},")
    text = KERNEL.format(f"add.u64 %d6, %d1, {shift}; {body}")
    return wm.ptx.load(text)["k"].launch(device, 1, 1, [param.ljust(256, b"\0"), held, out], **options)


def changed(field: str, value: int, ordinal: int | None = None) -> Any:
    return lambda encoded: replace_field(encoded, field, value, ordinal)


def raw(word: int, bits: int) -> Any:
    def change(encoded: bytes) -> bytes:
        words = np.frombuffer(encoded, np.uint64).copy()
        words[word] |= np.uint64(bits)
        return words.tobytes()

    return change


FAULTS = [
    ("box at 64 bytes", load("s+64"), load("s+128"), {}, {}, "misaligned", "multiple of 128"),
    ("box beyond shared memory", load("s+1048448"), load("s+2944"), {}, {}, "bounds", "shared"),
    ("map at 32 bytes", load(), load(), {"shift": 32}, {"shift": 64}, "misaligned", "multiple of 64"),
    ("map in shared memory", load(where="%d4"), load(), {}, {}, "bounds", "not in shared"),
    ("c0 not on 16 bytes", load(place="4, 8"), load(place="8, 8"), {}, {}, "bounds", "is 4: byte 8 of a row"),
    ("rank of the map", load(), load(), {"change": changed("rank", 2)}, {}, "bounds", "has 3 dimensions"),
    ("mode of the map", image("0, 0, 0, 0").replace(".im2col", ".tile").replace(", {1, 1};", ";"), image("0, 0, 0, 0"),
     {"kind": "image"}, {"kind": "image"}, "bounds", "of mode im2col, and the instruction of mode tiled"),
    ("interleave 3", load(), load(), {"change": raw(1, 3 << 11)}, {}, "bounds", "interleave 3; expected 0 to 2"),
    ("row of 6 bytes", load(), load(), {"change": changed("box_dim", 3, 0)}, {}, "bounds", "multiple of 16 bytes"),
    ("w before the box of pixels", image("0, -2, 0, 0"), image("0, -1, 0, 0"), {"kind": "image"}, {"kind": "image"},
     "bounds", "from the lower corner"),
    ("h behind the box of pixels", image("0, 0, 4, 0"), image("0, 0, 3, 0"), {"kind": "image"}, {"kind": "image"},
     "bounds", "from the lower corner"),
    ("offset of 8 bits", image("0, 0, 0, 0", "256, 0"), image("0, 0, 0, 0", "255, 0"), {"kind": "image"},
     {"kind": "image"}, "bounds", "integers from 0 to 255"),
    ("store before the tensor", store("0, -1"), store("0, 63"), {}, {}, "bounds", "negative start traps"),
    ("store from 64 bytes", store("0, 0", "s+64"), store("0, 0"), {}, {}, "misaligned", "multiple of 128"),
    ("reduction of a type", reduce("inc"), reduce("add"), {}, {}, "bounds", "of f16, which .inc does not combine"),
    ("reduction of u16", reduce("add"), reduce("add"), {"kind": "u16"}, {}, "bounds", "of u16, which .add"),
    ("tensor beyond its array", load(place="0, 56"), load(place="0, 56"),
     {"change": changed("global_dim", 80, 1)}, {}, "bounds", "array"),
    ("value of a field", "tensormap.replace.tile.box_dim.global.b1024.b32 [%d5], 0, 257;",
     "tensormap.replace.tile.box_dim.global.b1024.b32 [%d5], 0, 256;", {}, {}, "bounds",
     "expected an integer, 1 to 256"),
    ("ordinal of a stride", "tensormap.replace.tile.global_stride.global.b1024.b64 [%d5], 4, 16;",
     "tensormap.replace.tile.global_stride.global.b1024.b64 [%d5], 3, 16;", {}, {}, "bounds", "the ordinal is 4"),
    ("part of a warp", "@%p1 tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
     "[%d5], [n], 128;", load(), {}, {}, "divergent", "all 32 lanes"),
    ("another block", load().replace("[m]; W", "[m], 2; W").replace("::bytes ", "::bytes.multicast::cluster "),
     load().replace("[m]; W", "[m], 1; W").replace("::bytes ", "::bytes.multicast::cluster "), {}, {}, "bounds",
     "a mask with ranks beyond the cluster, which has 1"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("faulty", "correct", "bad", "good", "kind", "says"), [x[1:] for x in FAULTS], ids=[x[0] for x in FAULTS]
)
def test_faults_and_their_twins(faulty: str, correct: str, bad: Any, good: Any, kind: str, says: str) -> None:
    with pytest.raises(HazardError) as error:
        run(faulty, **bad)
    assert error.value.hazard.kind == kind
    assert says in str(error.value), str(error.value)
    run(correct, **good)


def test_a_wrong_count_never_ends() -> None:
    for size in (1008, 1040):
        with pytest.raises(HazardError) as error:
            run(load(size=size))
        assert error.value.hazard.kind in ("deadlock", "barrier")


def test_a_copy_that_traps_copies_nothing_after_a_warning() -> None:
    body = f"{LOAD.format(2, '')} [s], [%d1, {{4, 8}}], [m]; {STORE} [%d1, {{4, 0}}], [s]; {DONE}"
    with pytest.warns(HazardWarning, match="bounds"):
        run(body, hazards="warn")


def test_bits_that_are_not_measured_are_refused() -> None:
    with pytest.raises(wm.UnsupportedError, match="bit 22 is set"):
        run(load(), change=raw(1, 1 << 22))


def test_a_map_is_no_other_argument() -> None:
    with pytest.raises(OperandError, match="is 8 bytes; expected 256"):
        wm.ptx.load(KERNEL.format(""))["k"].launch(wm.Device("sm_90a"), 1, 1, [bytes(8), 0, 0])
