"""`wgmma` on registers and shared memory: against whole products, a slow reference, and rules of PTX."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from arrays import Array

import warpmma as wm
from warpmma.arithmetic import compute, recipe
from warpmma.errors import MetadataError, OperandError, TargetError
from warpmma.execution import codes_in_registers, in_registers
from warpmma.execution.shared_operands import bits_apart, in_words
from warpmma.isa import WarpgroupInstruction, parse_warpgroup, warpgroup_instructions
from warpmma.layouts import MatrixDescriptor
from warpmma.sparsity import legal_codes, metadata_layout, pack_metadata, pattern, positions, selectors

HEAD, SPARSE = "wgmma.mma_async.sync.aligned", "wgmma.mma_async.sp.sync.aligned"
SOME = [i for i in warpgroup_instructions() if i.n in (8, 48)]
F16 = f"{HEAD}.m64n8k16.f32.f16.f16"
each = pytest.mark.parametrize("i", SOME, ids=str)


def codes(i: WarpgroupInstruction, operand: Any, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    fmt = i.format(operand)
    return rng.integers(0, 1 << fmt.bits, shape, dtype=np.uint64).astype(fmt.code_dtype)


def operands(i: WarpgroupInstruction, batch: int = 2) -> tuple[Array, Array, Array, dict[str, Any]]:
    """Make A (stored elements), B and C, and metadata with its selector."""
    rng = np.random.default_rng(list(str(i).encode()))
    a = codes(i, "A", (batch, 64, i.k // (1 + i.sparse)), rng)
    b, c = codes(i, "B", (batch, i.k, i.n), rng), codes(i, "C", (batch, 64, i.n), rng)
    if not i.sparse:
        return a, b, c, {}
    selector = selectors(i)[-1]
    nibbles = rng.choice(sorted(legal_codes(i)), (batch, 64, i.k // pattern(i).width))
    garbage = rng.integers(0, 1 << 32, 128, dtype=np.uint32)
    words = pack_metadata(np.stack([nibbles & 3, nibbles >> 2], -1), i, selector=selector, into=garbage)
    return a, b, c, {"metadata": words, "selector": selector}


def by_codes(i: WarpgroupInstruction, a: Array, b: Array, c: Array, more: dict[str, Any]) -> Array:
    """Compute codes of D by the recipe alone, an element at a time."""
    own, found = recipe(i, "sm_90a"), []
    if i.a_type == "b1":
        a, b = in_words(a), in_words(b.swapaxes(-1, -2)).swapaxes(-1, -2)
    for n in range(len(a)):
        rows = b[n][None].repeat(64, 0)
        if more:
            chosen = positions(more["metadata"][n], i, selector=more["selector"])
            rows = b[n][chosen]
        found.append(compute(own, a[n].T[..., None], rows.swapaxes(0, 1), c[n]))
    return np.array(found)


@each
@pytest.mark.parametrize("engine", ["numpy", "native"])
@pytest.mark.alike(2)
def test_all_forms_compute_the_recipe(i: WarpgroupInstruction, engine: Any) -> None:
    if engine not in wm.engines():
        pytest.skip("the native engine is not built")
    a, b, c, more = operands(i)
    expected = by_codes(i, a, b, c, more)
    of_a, of_c = wm.load(i, "A", a), wm.load(i, "C", c)
    quarters = [np.moveaxis(x.reshape(*x.shape[:2], 4, 32), 2, 1) for x in (of_a, of_c)]
    call: dict[str, Any] = {"target": "sm_90a", "engine": engine, **more}
    majors: list[Any] = ["K", "MN"] if i.format("B").bits == 16 else ["K"]
    major: Any
    for swizzle, major in [(0, majors[-1]), (32, "K"), (64, majors[-1]), (128, "K")]:
        of_b = wm.load(i, "B", b, swizzle=swizzle, major=major)
        assert (
            of_b.memory.dtype == np.uint8 and of_b.memory.shape == (2, b[0].size * i.format("B").bits // 8)
        ) or swizzle
        for x in (of_a, quarters[0], wm.load(i, "A", a, swizzle=swizzle, major=major)):
            d = wm.execute(i, x, of_b, of_c, **call)
            assert d.shape == (2, i.layout("D").registers, 128) and d.dtype == np.uint32
            np.testing.assert_array_equal(wm.store(i, "D", d).view(expected.dtype), expected)
    np.testing.assert_array_equal(wm.execute(i, of_a, of_b, quarters[1], **call), d)
    np.testing.assert_array_equal(wm.mma(i, a, b, c, **call).view(expected.dtype), expected)


@each
def test_scale_d_and_signs(i: WarpgroupInstruction) -> None:
    a, b, c, more = operands(i)
    of_a, of_b, of_c = (wm.load(i, name, x) for name, x in zip("ABC", (a, b, c), strict=True))  # type: ignore[arg-type]
    call: dict[str, Any] = {"target": "sm_90a", **more}
    without = wm.execute(i, of_a, of_b, of_c, scale_d=False, **call)
    np.testing.assert_array_equal(without, wm.execute(i, of_a, of_b, np.zeros_like(of_c), **call))
    fmt = i.format("A")
    if i.d_type == "s32":
        for name in ("imm_a", "imm_b"):
            sign: dict[str, Any] = {name: -1}
            with pytest.raises(OperandError, match=f"{name} is -1, but PTX negates floating-point operands only"):
                wm.execute(i, of_a, of_b, of_c, **call, **sign)
        return
    flip = a.dtype.type(1 << (fmt.code_dtype.itemsize * 8 - 1))
    np.testing.assert_array_equal(
        wm.execute(i, of_a, of_b, of_c, imm_a=-1, **call), wm.execute(i, wm.load(i, "A", a ^ flip), of_b, of_c, **call)
    )
    np.testing.assert_array_equal(
        wm.execute(i, of_a, of_b, of_c, imm_b=-1, **call), wm.execute(i, of_a, wm.load(i, "B", b ^ flip), of_c, **call)
    )


@each
def test_load_and_store_are_inverse(i: WarpgroupInstruction) -> None:
    a, b, c, _ = operands(i)
    for operand, x in (("A", a), ("C", c), ("D", c)):
        back = wm.store(i, operand, wm.load(i, operand, x))  # type: ignore[arg-type]
        np.testing.assert_array_equal(back.view(x.dtype), x)
    for operand, x in (("A", a), ("B", b)):
        for swizzle in (0, 32, 64, 128):
            back = wm.store(i, operand, wm.load(i, operand, x, swizzle=swizzle))  # type: ignore[arg-type]
            np.testing.assert_array_equal(back.view(x.dtype), x)


@each
def test_registers_by_warp_are_the_same(i: WarpgroupInstruction) -> None:
    rng = np.random.default_rng(3)
    for operand in ("A", "C", "D"):
        layout = i.layout(operand)
        dtype = layout.packing.dtype
        words = rng.integers(0, 1 << 8 * dtype.itemsize, (3, layout.registers, 128), dtype=np.uint64).astype(dtype)
        by_warp = np.moveaxis(words.reshape(3, layout.registers, 4, 32), 2, 1)
        found = codes_in_registers(i, operand, by_warp, by_warp=True)
        np.testing.assert_array_equal(found, codes_in_registers(i, operand, words))
        if i.format(operand).bits > 1:
            np.testing.assert_array_equal(in_registers(i, operand, found, by_warp=True), by_warp)


def test_tf32_halves_are_mixed_as_the_hardware_does() -> None:
    """Any nibble: i0 names the half that becomes the low one of what the stored element is multiplied by."""
    i = parse_warpgroup(f"{SPARSE}.m64n8k16.f32.tf32.tf32")
    rng = np.random.default_rng(3)
    a = np.zeros((64, 8), np.uint32)
    a[np.arange(64), np.arange(64) % 8] = 0x3F800000
    b = rng.integers(1 << 29, 1 << 30, (16, 8), dtype=np.uint32)
    indices = rng.integers(0, 4, (64, 8, 2))
    words = pack_metadata(indices, i, selector=1)
    c = np.zeros((4, 128), np.uint32)
    for engine in wm.engines():
        d = wm.execute(
            i, wm.load(i, "A", a), wm.load(i, "B", b), c, target="sm_90a", metadata=words, selector=1,
            undefined="hardware", engine=engine,  # type: ignore[arg-type]
        )  # fmt: skip
        found = wm.store(i, "D", d).view(np.uint32)
        for m in range(64):
            group = m % 8
            halves = b[2 * group : 2 * group + 2]
            parts = np.stack([halves & 0xFFFF, halves >> 16], axis=1).reshape(4, 8)
            low, high = parts[indices[m, group]]
            code = (low | high << 16) & 0xFFFFE000
            normal = (code >> 23 & 255 > 0) & (code >> 23 & 255 < 255)
            np.testing.assert_array_equal(found[m][normal], code[normal])
    with pytest.raises(MetadataError, match="metadata nibble"):
        wm.execute(
            i, wm.load(i, "A", a), wm.load(i, "B", b), c, target="sm_90a", metadata=words, selector=1
        )  # fmt: skip


def test_a_dense_matrix_is_compressed() -> None:
    i = parse_warpgroup(f"{SPARSE}.m64n8k32.f32.f16.f16")
    rng = np.random.default_rng(5)
    dense = wm.sparsity.prune(rng.standard_normal((64, 32)).astype(np.float16), i)
    b = rng.standard_normal((32, 8)).astype(np.float16)
    d = wm.mma(i, dense, b, target="sm_90a")
    np.testing.assert_allclose(d, dense.astype(np.float64) @ b, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(d, wm.matmul(dense, b, target="sm_90a", instruction=i))


@pytest.mark.parametrize(
    ("types", "selector", "row", "group", "place"),
    [
        # facts of an H200: t = 2 sel + c, nibble q of the low half: group 4c + q of row g; high half: row g + 8
        ("m64n8k32.f32.f16.f16", 0, 0, 0, (0, 0)), ("m64n8k32.f32.f16.f16", 1, 16 + 9, 6, (32 + 7, 24)),
        ("m64n8k16.f32.tf32.tf32", 1, 48 + 3, 5, (96 + 15, 4)), ("m64n8k64.s32.s8.s8", 0, 32 + 10, 13, (64 + 11, 20)),
    ],
)  # fmt: skip
def test_metadata_are_where_an_h200_reads_them(
    types: str, selector: int, row: int, group: int, place: tuple[int, int]
) -> None:
    i = f"{SPARSE}.{types}"
    found = wm.where(i, "metadata", row, group, selector=selector)
    assert (found.lane, found.low, found.register) == (*place, 0)
    assert metadata_layout(i).shape[-2] == 64 and metadata_layout(i).lanes == 128
    cells = wm.what(i, "metadata", lane=found.lane, selector=selector)
    assert (row, group) in [(x.row, x.column) for x in cells]


def test_descriptors_may_differ_between_warpgroups() -> None:
    rng = np.random.default_rng(1)
    memory = rng.integers(0, 120, 4096).astype(np.uint8)
    i = parse_warpgroup(f"{HEAD}.m64n8k32.s32.u8.u8")
    a = np.eye(64, 32, dtype=np.uint8)
    descriptors = [MatrixDescriptor(start=1024 + 128 * n, leading=512, stride=16 * n) for n in range(6)]
    words = np.array([d.word | 1 << 46 for d in descriptors], np.uint64).reshape(2, 3)
    b = wm.SharedOperand(memory, words, at=1024)
    d = wm.store(i, "D", wm.execute(i, wm.load(i, "A", a), b, np.zeros((4, 128), np.uint32), target="sm_90a"))
    assert d.shape == (2, 3, 64, 8)
    for x, one in zip(d.reshape(6, 64, 8), descriptors, strict=True):
        np.testing.assert_array_equal(x[:32].T, memory[one.addresses(8, 32, bits=8, major="K") - 1024])


def test_single_bits_are_packed_lowest_first() -> None:
    bits = np.zeros((2, 64), np.uint8)
    bits[0, 33] = bits[1, 0] = 1
    words = in_words(bits)
    assert words.tolist() == [[0, 2], [1, 0]]
    np.testing.assert_array_equal(bits_apart(words), bits)


A, C = np.zeros((4, 128), np.uint32), np.zeros((4, 128), np.uint32)
B = wm.load(F16, "B", np.zeros((16, 8), np.float16))


def run(a: Any = A, b: Any = B, c: Any = C, instruction: str = F16, target: str = "sm_90a", **more: Any) -> Any:
    return wm.execute(instruction, a, b, c, target=target, **more)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: run(target="sm_90"), "is not legal on sm_90"),
        (lambda: run(b=np.zeros((4, 128), np.uint32)), "B is 'ndarray'; expected a SharedOperand: it lies in shared"),
        (lambda: run(a=A[:2]), "registers of A are (2, 128); expected [..., 4, 128] or [..., 4, 4, 32]"),
        (lambda: run(c=C.view(np.float32)), "registers of C are float32; expected uint32 (use .view(np.uint32))"),
        (lambda: run(scale_d=2), "scale_d is 2; expected a bool"),
        (lambda: run(imm_a=0), "imm_a is 0; expected 1 or -1"),
        (lambda: run(metadata=np.zeros(128, np.uint32)), "takes no metadata"),
        (lambda: run(selector=1), "is dense: it takes no selector; got 1"),
        (lambda: run(scale_a=np.zeros(32, np.uint32)), "takes no scale_a (it is of block-scaled mma)"),
        (lambda: run(instruction=f"{SPARSE}.m64n8k32.f32.f16.f16"), "needs metadata"),
        (lambda: run(instruction=f"{SPARSE}.m64n8k32.f32.f16.f16", metadata=np.zeros(32, np.uint32),
                     b=wm.load(f"{SPARSE}.m64n8k32.f32.f16.f16", "B", np.zeros((32, 8), np.float16))),
         "metadata is uint32 (32,); expected uint32 [..., 128] or [..., 4, 32]"),
        (lambda: run(b=wm.SharedOperand(np.zeros(200, np.uint8), MatrixDescriptor(start=0, leading=128, stride=256))),
         "reads B[12, 4] at address 0xc8 of shared memory, and 28 elements of 128 outside of what is given; expected "
         "addresses 0x0 to 0xc7"),
        (lambda: run(b=wm.SharedOperand(np.zeros(4096, np.uint8), 0, at=1024)), "reads B[0, 0] at address 0x0 of"),
        (lambda: run(a=np.zeros((3, 4, 128), np.uint32), c=np.zeros((2, 4, 128), np.uint32)),
         "batches do not broadcast"),
        (lambda: wm.SharedOperand(np.zeros(4), 0), "memory of a shared operand is float64 (4,); expected uint8"),
        (lambda: wm.SharedOperand(np.zeros(4, np.uint8), -1), "descriptor is -1; expected 64 bits"),
        (lambda: wm.SharedOperand(np.zeros(4, np.uint8), np.zeros(2)), "descriptor is float64 (2,); expected uint64"),
        (lambda: wm.SharedOperand(np.zeros(4, np.uint8), 0, transposed=1),  # type: ignore[arg-type]
         "transposed is 1; expected a bool"),
        (lambda: wm.SharedOperand(np.zeros(4, np.uint8), 0, at=1 << 18), "at is 262144; expected an address"),
        (lambda: wm.load(F16, "B", np.zeros((16, 8), np.float16), swizzle=16), "swizzle is 16; expected one of 0, 32"),
        (lambda: wm.load(F16, "B", np.zeros((16, 8), np.float16), major="N"),  # type: ignore[arg-type]
         "major is 'N'; expected 'K' or 'MN'"),
        (lambda: wm.load(F16, "C", np.zeros((64, 8), np.float32), swizzle=32), "takes no swizzle of C"),
        (lambda: wm.load(f"{HEAD}.m64n8k32.s32.s8.s8", "B", np.zeros((32, 8), np.int8), major="MN"),
         "B is transposed; PTX transposes types of 16 bits, not s8"),
        (lambda: wm.store(F16, "D", B), "D is in registers; expected those, got a SharedOperand"),
        (lambda: wm.execute("m16n8k16 f32 f16", A, A, A, target="sm_90", imm_a=-1), "takes no imm_a (it is of wgmma)"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(call: Any, message: str) -> None:
    with pytest.raises((OperandError, TargetError, MetadataError), match=re.escape(message)):
        call()


def test_a_batch_of_none() -> None:
    """Of no warpgroups, and of two dimensions one of which is empty."""
    for lead in ((0,), (2, 0)):
        a = np.zeros((*lead, 4, 128), np.uint32)
        for scale_d in (True, False):
            assert run(a=a, scale_d=scale_d).shape == (*lead, 4, 128)
        assert (
            wm.mma(F16, np.zeros((*lead, 64, 16), np.float16), np.zeros((16, 8), np.float16), target="sm_90a").size == 0
        )


def test_where_c_is_not_read_its_batch_counts() -> None:
    assert run(c=np.zeros((5, 4, 128), np.uint32), scale_d=False).shape == (5, 4, 128)
