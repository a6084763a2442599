"""An `mma` inside of a kernel is explained from the registers that it had: its result is what the lane got."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from arrays import Array
from ptx_products import GEMM

import warpmma as wm
from lab.generators import instruction_inputs, metadata_words
from warpmma import ptx
from warpmma.isa import Instruction
from warpmma.kernel import Launch, Watch, launch
from warpmma.machine import WatchedProduct
from warpmma.sparsity import selectors

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
MX = "kind::mxf8f6f4.block_scale"
MNEMONICS = {
    F16: "sm_90",
    "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32": "sm_80",
    "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32": "sm_70",
    "mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16": "sm_80",
    "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64": "sm_90",
    "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32": "sm_80",
    "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc": "sm_80",
    "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32": "sm_90",
    "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3": "sm_120a",
    f"mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.{MX}.f32.e4m3.e5m2.f32.ue8m0": "sm_120a",
}  # fmt: skip


def multiplied(i: Instruction, target: str, turns: int = 3, hazards: Any = "error", **watch: Any) -> Launch:
    """Two blocks of two warps that go round a loop, each turn with operands of its own, from C = 0 on."""
    rng = np.random.default_rng(5)
    drawn = instruction_inputs(i, target, "bits" if i.d_type == "s32" else "near", 2 * 2 * turns, rng)
    if i.sparse:
        drawn["metadata"] = metadata_words(i, target, 2 * 2 * turns, rng)
    names = [x for x in ("a", "b", "metadata", "sa", "sb") if x in drawn]
    given = {x: np.ascontiguousarray(drawn[x].reshape(2, 2, turns, -1, 32)) for x in names}
    counts = {x: given[x].shape[3] for x in names}
    wide = i.layout("D").packing.width

    def kernel(t: Any, *arrays: Any) -> None:
        warp = t.ctaid[0] * 2 + t.warpid
        d: Any = [t.constant(0, f"b{wide}")] * i.layout("C").registers
        for turn in range(turns):
            read = {}
            for name, array in zip(names, arrays, strict=True):
                bits = 8 * given[name].itemsize
                places = [((warp * turns + turn) * counts[name] + r) * 32 + t.laneid for r in range(counts[name])]
                read[name] = [t(f"ld.global.b{bits}", array + place * (bits // 8)) for place in places]
            more: list[Any] = [*read["metadata"], selectors(i)[-1]] if i.sparse else []
            if i.block_scale:
                more += [*read["sa"], (0, 0), *read["sb"], (0, 0)]
            d = t(str(i), read["a"], read["b"], d, *more)

    return launch(kernel, 2, 64, [given[x] for x in names], target=target, hazards=hazards, watch=Watch(**watch))


def lanes_of(product: WatchedProduct) -> list[tuple[int, int, int, int]]:
    """Lane, register, index and code of some elements that an execution gave."""
    layout = product.layout("D")
    found = []
    for lane in (0, 13, 31):
        for register in (0, layout.registers - 1):
            word = int(product.registers["D"][register, lane])
            for at, cell in enumerate(layout.holds(lane, register)):
                found.append((lane, register, at, word >> cell.low & (1 << (cell.high - cell.low + 1)) - 1))
    return found


@pytest.mark.parametrize("mnemonic", MNEMONICS)
def test_every_lane_is_explained_by_what_it_got(mnemonic: str) -> None:
    report = multiplied(wm.parse(mnemonic), MNEMONICS[mnemonic])
    assert len(report.watched) == 2 * 2 * 3
    for product in (report.watched[0], report.watched[-1], report.watched[5]):
        where: Any = {"block": product.block, "warp": product.warp, "occurrence": product.occurrence}
        chains = product.instruction.c_type == product.instruction.d_type
        for lane, register, index, code in lanes_of(product):
            told = wm.explain_launch(report, lane=lane, register=register, index=index, **where)
            assert told.result == code
            assert told.site == product.place
            cell = product.layout("D").holds(lane, register)[index]
            assert (told.row, told.column, told.matrix) == (cell.row, cell.column, cell.matrix)
            again = wm.explain_launch(report, row=cell.row, column=cell.column, matrix=cell.matrix, **where)
            assert again == told
            if chains:
                whole = wm.explain_launch(report, lane=lane, register=register, index=index, chain=True, **where)
                assert whole.result == code
                assert len(whole.a) == len(told.a) * (product.occurrence + 1)


@pytest.mark.parametrize("hazards", ["error", "off", "warn"])
def test_what_is_kept_is_what_is_watched(hazards: str) -> None:
    i = wm.parse(F16)
    everything = multiplied(i, "sm_90", hazards=hazards).watched
    places = [(x.block, x.warp, x.occurrence) for x in everything]
    assert sorted(places) == [(b, w, n) for b in range(2) for w in range(2) for n in range(3)]
    for watch in ({"block": 1}, {"warp": 0}, {"occurrence": 2}, {"block": 0, "warp": 1, "occurrence": 1}):
        found = multiplied(i, "sm_90", hazards=hazards, **watch).watched
        expected = [x for x in everything if all(getattr(x, name) == value for name, value in watch.items())]
        assert [x.place for x in found] == [x.place for x in expected]
        for x, y in zip(found, expected, strict=True):
            for name in x.registers:
                np.testing.assert_array_equal(x.registers[name], y.registers[name])
    assert len(multiplied(i, "sm_90", most=5).watched) == 5
    assert multiplied(i, "sm_90", line=1).watched == ()
    [line] = {x.site.line for x in everything}
    assert len(multiplied(i, "sm_90", line=line).watched) == 12
    with pytest.raises(ValueError, match="read-only"):
        everything[0].registers["A"][0, 0] = 1


def test_two_targets_part_inside_of_a_kernel() -> None:
    report = multiplied(wm.parse(F16), "sm_90", block=0, warp=0)
    told = wm.explain_launch(report, lane=3, chain=True, occurrence=2, against="sm_80")
    assert told.against is not None
    assert told.parting is not None
    assert f"test_in_launches.py:{report.watched[0].site.line}, block 0, warp 0, occurrence 2" in told.text()
    assert told.site in told.json()


@pytest.mark.parametrize("line", [77, 14])
def test_a_program_of_ptx_is_explained_by_its_source_and_by_its_text(line: int) -> None:
    """Lines of the source that `.loc` names, and of the text."""
    device = wm.Device("sm_90")
    a = device.array(np.random.default_rng(1).standard_normal((4, 32, 8)).astype(np.float16))
    d = device.empty((32, 4), np.float32)
    entry = ptx.load(GEMM)["gemm"]
    report = entry.launch(device, 1, 32, [a, d, np.uint32(4)], watch=Watch(line=line, warp=0))
    assert [x.occurrence for x in report.watched] == [0, 1, 2, 3]
    result = d.numpy()
    for lane, register in ((0, 0), (17, 3), (31, 1)):
        told = wm.explain_launch(report, line=line, occurrence=3, lane=lane, register=register, chain=True)
        assert told.result == result[lane, register].view(np.uint32)
        assert told.site == "gemm.cu:77, block 0, warp 0, occurrence 3"
        assert len(told.steps) == 4
    assert wm.Device("sm_90") is not device
    quiet = entry.launch(device, 1, 32, [a, d, np.uint32(4)])
    assert quiet.watched == ()


def test_a_chain_must_be_one() -> None:
    def kernel(t: Any) -> None:
        one, zero = t.constant(0x3C003C00, "b32"), t.constant(0, "b32")
        for _ in range(2):
            t(F16, [one] * 4, [one] * 2, [zero] * 4)

    report = launch(kernel, 1, 32, [], target="sm_90", watch=Watch())
    assert wm.explain_launch(report, lane=0, occurrence=1).value == 16
    with pytest.raises(wm.OperandError, match="its C is not the D of occurrence 0, for this element"):
        wm.explain_launch(report, lane=0, occurrence=1, chain=True)


def test_what_a_kernel_changes_beside_an_element_does_not_break_its_chain() -> None:
    def kernel(t: Any) -> None:
        one, zero = t.constant(0x3C003C00, "b32"), t.constant(0, "b32")
        d: Any = [zero] * 4
        for _ in range(3):
            d = t(F16, [one] * 4, [one] * 2, [*d[:3], zero])

    report = launch(kernel, 1, 32, [], target="sm_90", watch=Watch())
    told = wm.explain_launch(report, lane=0, occurrence=2, chain=True)
    assert told.value == 48
    assert len(told.a) == 48
    with pytest.raises(wm.OperandError, match="its C is not the D of occurrence 1, for this element"):
        wm.explain_launch(report, lane=0, register=3, occurrence=2, chain=True)


def unrolled(a: Array, starts: tuple[float, ...] = (0.0, 0.0)) -> tuple[Launch, Array]:
    """As a compiler unrolls a loop: accumulators in turn, each turn at a place of its own in the text of one line."""
    turns, many = a.shape[:2]
    text = [".version 8.3", ".target sm_80", ".address_size 64", ".visible .entry gemm(.param .u64 pa, .param .u64 pd)",
            "{", ".reg .b32 a<4>, lane; .reg .b64 x, y, at;", "ld.param.u64 x, [pa]; ld.param.u64 y, [pd];",
            "mov.u32 lane, %laneid; mul.wide.u32 at, lane, 16; add.u64 x, x, at; add.u64 y, y, at;"]  # fmt: skip
    for s, start in enumerate(starts):
        number = f"0f{np.float32(start).view(np.uint32):08X}"
        text.append(f".reg .f32 d{s}_<4>; {' '.join(f'mov.f32 d{s}_{r}, {number};' for r in range(4))}")
    for turn in range(turns):
        for s in range(many):
            sums = ", ".join(f"d{s}_{r}" for r in range(4))
            text += [f"ld.global.v4.b32 {{a0, a1, a2, a3}}, [x + {(turn * many + s) * 512}];", ".loc 1 77 5",
                     f"{F16} {{{sums}}}, {{a0, a1, a2, a3}}, {{a1, a2}}, {{{sums}}};"]  # fmt: skip
    for s in range(many):
        text.append(f"st.global.v4.f32 [y + {s * 512}], {{{', '.join(f'd{s}_{r}' for r in range(4))}}};")
    device = wm.Device("sm_90")
    d = device.empty((many, 32, 4), np.float32)
    entry = ptx.load("\n".join([*text, "ret;", "}", '.file 1 "gemm.cu"', ""]))["gemm"]
    return entry.launch(device, 1, 32, [device.array(a), d], watch=Watch(line=77)), d.numpy()


def operands(turns: int, many: int) -> Array:
    return np.random.default_rng(3).standard_normal((turns, many, 32, 8)).astype(np.float16)


@pytest.mark.parametrize("starts", [(0.0, 0.0), (0.5, -3.0), (0.0, 0.0, 1.0)])
def test_a_chain_follows_its_accumulator_through_an_unrolled_loop(starts: tuple[float, ...]) -> None:
    turns, many = 4, len(starts)
    report, result = unrolled(operands(turns, many), starts)
    assert [x.occurrence for x in report.watched] == list(range(turns * many))
    for s in range(many):
        for lane, register in ((0, 0), (17, 3), (31, 1)):
            at: Any = {"line": 77, "occurrence": (turns - 1) * many + s, "lane": lane, "register": register}
            told = wm.explain_launch(report, chain=True, **at)
            assert told.result == result[s, lane, register].view(np.uint32)
            single = wm.explain_launch(report, line=77, occurrence=s, lane=lane, register=register)
            assert (len(told.a), told.c) == (turns * len(single.a), single.c)
            assert told.a[: len(single.a)] == single.a
    with pytest.raises(wm.OperandError, match="its C is not the D of occurrence 0"):
        wm.explain_launch(report, occurrence=1, lane=0, chain=True)


def test_a_tile_of_zeros_is_not_taken_for_what_went_before() -> None:
    """What gave zero does not go before each accumulator that begins with zero; within one it changes nothing."""
    a = operands(3, 3)
    a[:, 0] = 0
    a[1, 2] = 0
    report, result = unrolled(a, (0.0, 0.0, 0.0))
    for s in (1, 2):
        told = wm.explain_launch(report, occurrence=6 + s, lane=9, register=2, chain=True)
        assert (told.result, len(told.a)) == (result[s, 9, 2].view(np.uint32), 48)


def test_accumulators_that_cannot_be_told_apart() -> None:
    """Of the same operands either is right; of others that gave the same, none."""
    a = operands(3, 2)
    a[:, 1] = a[:, 0]
    report, result = unrolled(a)
    told = wm.explain_launch(report, occurrence=5, lane=9, register=2, chain=True)
    assert (told.result, len(told.a)) == (result[1, 9, 2].view(np.uint32), 48)
    a = np.ones((2, 2, 32, 8), np.float16)
    a[0, 1] = -1
    assert "its C is the D of occurrences 0 and 1, of different operands" in wrong(
        unrolled(a)[0], occurrence=3, lane=0, chain=True
    )


def wrong(report: Launch | Any, **more: Any) -> str:
    with pytest.raises(wm.OperandError) as caught:
        wm.explain_launch(report, **more)
    return str(caught.value)


def test_wrong_arguments() -> None:
    report = multiplied(wm.parse(F16), "sm_90")
    assert "launch is 3; expected what kernel.launch" in wrong(3)
    assert "several were watched, say line, block and warp: test_in_launches.py:" in wrong(report, lane=0)
    one: Any = {"block": 0, "warp": 1}
    assert "occurrence 7 was not watched; there is test_in_launches.py:" in wrong(report, occurrence=7, lane=0, **one)
    assert "no such product was watched; there is" in wrong(report, block=5, lane=0)
    assert "warp is 'x'; expected a number from 0 on" in wrong(report, warp="x", lane=0)
    assert "expected lane and register of D's fragment, or row and column of D" in wrong(report, **one)
    assert "expected lane and register" in wrong(report, row=1, **one)
    assert "expected lane and register" in wrong(report, row=1, column=1, lane=1, **one)
    assert "lane 32 is out of range; expected 0 to 31" in wrong(report, lane=32, **one)
    assert "register 4 is out of range; expected 0 to 3" in wrong(report, lane=3, register=4, **one)
    assert "index is 1; a register of D holds 1, expected 0 to 0" in wrong(report, lane=3, index=1, **one)
    with pytest.raises(wm.TargetError, match="sm_70"):
        wm.explain_launch(report, lane=0, against="sm_70", **one)
    unwatched = multiplied(wm.parse(F16), "sm_90", line=1)
    assert "nothing was watched; mma were executed at test_in_launches.py:" in wrong(unwatched, lane=0)
    idle = launch(lambda t: None, 1, 32, [], target="sm_90")
    assert "nothing was watched; and no mma, wmma.mma or wgmma was executed" in wrong(idle, lane=0)


@pytest.mark.parametrize("watch", [{"line": -1}, {"block": "x"}, {"most": None}, {"mnemonic": 3}, {"warp": True}])
def test_wrong_watches(watch: dict[str, Any]) -> None:
    with pytest.raises(wm.OperandError, match="watch: "):
        Watch(**watch)
    with pytest.raises(wm.OperandError, match=r"watch is 3; expected a Watch, such as Watch\(line=31"):
        launch(lambda t: None, 1, 32, [], target="sm_90", watch=3)  # type: ignore[arg-type]


def test_a_part_of_the_mnemonic_is_watched() -> None:
    def kernel(t: Any) -> None:
        one, zero = t.constant(0, "b32"), t.constant(0, "b32")
        t(F16, [one] * 4, [one] * 2, [zero] * 4)
        t(F16.replace("k16", "k8"), [one] * 2, [one], [zero] * 4)

    report = launch(kernel, 1, 32, [], target="sm_90", watch=Watch(mnemonic="m16n8k8"))
    found: list[Array] = [x.registers["A"] for x in report.watched]
    assert [x.shape for x in found] == [(2, 32)]
