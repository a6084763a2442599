"""A kernel of PTX with one `wgmma`: its text, operands, and launches."""

from __future__ import annotations

from typing import Any

import numpy as np

import warpmma as wm
from warpmma.isa import parse_warpgroup
from warpmma.layouts import MatrixDescriptor

LANES = 128
ROOM = 32768  # bytes of a tile

TEXT = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 tiles, .param .u64 given, .param .u64 out, .param .u64 of_a, .param .u64 of_b)
{{
.reg .pred %p, %scale, %late; .reg .b64 %x, %y, %z, %da, %db, %at; .reg .b32 %t, %i, %v, %to, %m, %w, %a<4>;
.reg .b{width} %d<{count}>;
.shared .align 1024 .b8 tile[{bytes}];
ld.param.u64 %x, [tiles]; ld.param.u64 %y, [given]; ld.param.u64 %z, [out];
ld.param.u64 %da, [of_a]; ld.param.u64 %db, [of_b];
mov.u32 %t, %tid.x; shr.u32 %w, %t, 5; mov.u32 %i, %t;
FILL:
mul.wide.u32 %at, %i, 4; add.u64 %at, %at, %x; ld.global.u32 %v, [%at];
mov.u32 %to, tile; mad.lo.u32 %to, %i, 4, %to; st.shared.u32 [%to], %v;
add.u32 %i, %i, 128; setp.lt.u32 %p, %i, {words}; @%p bra FILL;
{fence}
{barrier}
mul.wide.u32 %at, %t, 4; add.u64 %y, %y, %at;
{loads}
setp.eq.u32 %scale, %t, %t;
{before}
wgmma.fence.sync.aligned;
{products}
{commit}
{after}
{wait}
{then}
mul.wide.u32 %at, %t, 4; add.u64 %z, %z, %at;
{stores}
END: ret;
}}
"""
SOUND = {
    "fence": "fence.proxy.async.shared::cta;", "barrier": "bar.sync 0;", "before": "", "commit":
    "wgmma.commit_group.sync.aligned;", "after": "", "wait": "wgmma.wait_group.sync.aligned 0;", "then": "",
}  # fmt: skip


def text(name: str, *, registers: bool, more: str = "", times: int = 1, **parts: str) -> str:
    """Write a kernel: registers of C, of A if they are given, and metadata come from memory; D goes there."""
    i = parse_warpgroup(name)
    count, width = i.layout("D").registers, i.layout("D").packing.width
    fragments = [f"%d{n}" for n in range(count)] + [f"%a{n}" for n in range(4) if registers] + ["%m"] * i.sparse
    loads = [f"ld.global.b32 {x}, [%y+{4 * LANES * n}];" for n, x in enumerate(fragments)]
    d = "{" + ", ".join(fragments[:count]) + "}"
    a = "{%a0, %a1, %a2, %a3}" if registers else "%da"
    product = f"{i} {d}, {a}, %db, {'%m, 0, ' * i.sparse}%scale{more};"
    stores = [f"st.global.b32 [%z+{4 * LANES * n}], {x};" for n, x in enumerate(fragments[:count])]
    return TEXT.format(
        width=width, count=count, bytes=2 * ROOM, words=2 * ROOM // 4, loads="\n".join(loads),
        products="\n".join([product] * times), stores="\n".join(stores), **{**SOUND, **parts},
    )  # fmt: skip


def codes(name: str, rng: np.random.Generator, *, registers: bool) -> dict[str, Any]:
    """Return random operands whose sums stay small: bytes of tiles, registers, and descriptors."""
    i = parse_warpgroup(name)
    small = {"f16": 0xBBFF, "bf16": 0xBFFF, "tf32": 0xBFFFFFFF, "e4m3": 0xBF, "e5m2": 0xBF}
    fmt = i.a_type
    tiles = rng.integers(0, 1 << 32, 2 * ROOM // 4, np.uint64).astype(np.uint32).view(np.uint8)
    if fmt in small:
        words = tiles.view({8: np.uint8, 16: np.uint16, 32: np.uint32}[i.format("A").bits if fmt != "tf32" else 32])
        words &= words.dtype.type(small[fmt])
    c = rng.standard_normal((i.layout("D").registers, LANES)).astype(np.float32).view(np.uint32)
    if i.d_type == "f16":
        c = rng.standard_normal((*c.shape, 2)).astype(np.float16).view(np.uint32)[..., 0]
    if i.d_type == "s32":
        c = rng.integers(0, 1000, c.shape).astype(np.uint32)
    a = tiles[: 4 * 4 * LANES].view(np.uint32).reshape(4, LANES).copy()
    legal = np.array([0x4, 0x8, 0x9, 0xC, 0xD, 0xE], np.uint32)
    metadata = sum(legal[rng.integers(0, 6, LANES)] << np.uint32(4 * n) for n in range(8))
    return {"tiles": tiles, "c": c, "a": a if registers else None, "metadata": metadata if i.sparse else None}


FORMS = [  # what follows scale-d; whether A is in registers; the swizzle; 1 if A is transposed, plus 2 if B is
    ("m64n64k16.f32.f16.f16", ", 1, 1, 0, 0", False, 128, 0), ("m64n64k16.f32.f16.f16", ", 1, -1, 0", True, 64, 0),
    ("m64n24k16.f16.f16.f16", ", -1, 1, 1, 1", False, 128, 3),
    ("m64n256k16.f32.bf16.bf16", ", 1, 1, 0, 1", False, 32, 2), ("m64n8k8.f32.tf32.tf32", ", 1, 1", False, 0, 0),
    ("m64n96k32.f32.e4m3.e5m2", ", 1, 1", True, 128, 0),
    ("m64n128k32.f32.e4m3.e4m3", ", 1, 1", False, 64, 0), ("m64n64k32.s32.s8.u8", "", False, 32, 0),
    ("m64n32k256.s32.b1.b1.and.popc", "", False, 128, 0), ("sp.m64n64k32.f32.f16.f16", ", 1, 1, 0, 0", False, 128, 0),
    ("sp.m64n16k64.f32.e5m2.e5m2", ", 1, 1", True, 64, 0),
]  # fmt: skip


def mnemonic(form: str) -> str:
    """Return the mnemonic of a form."""
    sparse = "sp." * form.startswith("sp.")
    return f"wgmma.mma_async.{sparse}sync.aligned.{form.removeprefix('sp.')}"


def descriptor(start: int, swizzle: int) -> int:
    """Return a descriptor with whose steps no tile of a form leaves its room."""
    return MatrixDescriptor(start=start, leading=2048, stride=max(16, swizzle) * 8, swizzle=swizzle).word


def run(kernel: str, given: dict[str, Any], words: tuple[int, int], blocks: int = 1, **options: Any) -> Any:
    """Launch it; return registers of D."""
    return launched(kernel, given, words, blocks, **options)[0]


def launched(
    kernel: str, given: dict[str, Any], words: tuple[int, int], blocks: int = 1, **options: Any
) -> tuple[Any, wm.machine.Launch]:
    """Launch it; return registers of D, and the report."""
    registers = [x.reshape(-1, LANES) for x in (given["c"], given["a"], given["metadata"]) if x is not None]
    out = np.zeros_like(given["c"])
    device = wm.Device("sm_90a")
    args = [given["tiles"].view(np.uint32), np.concatenate(registers), out, *words]
    report = wm.ptx.load(kernel)["k"].launch(device, blocks, LANES, args, **options)
    return out, report


F16 = mnemonic("m64n64k16.f32.f16.f16")
WORDS = descriptor(0, 128), descriptor(ROOM, 128)
