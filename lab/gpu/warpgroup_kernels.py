"""PTX of kernels that execute one `wgmma` for each block of 128 threads.

`product_kernel` multiplies rows of A and columns of B of 32 bytes (64 of a sparse instruction's B) that it copies to
shared memory without a swizzle; `descriptor_kernel` reads an image of shared memory by descriptors that it is given.
"""

from __future__ import annotations

from typing import Literal

from warpmma.isa import WarpgroupInstruction

__all__ = ["Source", "descriptor_kernel", "product_kernel", "statement"]

Source = Literal["registers", "memory"]


def statement(
    instruction: WarpgroupInstruction, a: str, b: str, scale_d: str, *, signs: tuple[int, int] = (1, 1),
    turns: tuple[int, int] = (0, 0), selector: int = 0,
) -> str:  # fmt: skip
    """Write the instruction with D in %d0, %d1, ..., metadata in %meta and these operands."""
    i = instruction
    d = ", ".join(f"%d{r}" for r in range(i.layout("D").registers))
    after = [scale_d]
    if i.d_type != "s32":
        after += [str(sign) for sign in signs]
    if i.a_type in ("f16", "bf16"):
        after += [str(turn) for turn in (turns if not a.startswith("{") else turns[1:])]
    sparse = f"%meta, {selector}, " if i.sparse else ""
    return f"{i} {{{d}}}, {a}, {b}, {sparse}{', '.join(after)};"


def _head(name: str, parameters: tuple[str, ...], registers: int) -> str:
    wide = ",\n".join(f".param .u64 p_{x}" for x in parameters)
    return f""".visible .entry {name}({wide})
.maxntid 128
{{
.reg .b32 %d<{registers}>; .reg .b32 %a<4>; .reg .b32 %meta; .reg .b32 %r<24>; .reg .b64 %x<24>; .reg .pred %p<4>;
{"".join(f"ld.param.u64 %x{n}, [p_{x}];{chr(10)}" for n, x in enumerate(parameters))}mov.u32 %r0, %tid.x;
"""


_RUN = """wgmma.fence.sync.aligned;
{statement}
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
"""


def product_kernel(
    instruction: WarpgroupInstruction, name: str, *, source: Source = "registers", signs: tuple[int, int] = (1, 1),
    selector: int = 0,
) -> str:  # fmt: skip
    """Write a kernel of pairs of blocks of A (64 rows) and of B (256 columns, of which a block takes n).

    Its parameters, of 64 bits each: A `[block, 64, 32 bytes]`, B `[block, 256, 32 or 64 bytes]`, C `[block, register,
    128]` of n = 256, metadata `[block, 128]`, pairs `[pair, 2]` (C and metadata are those of A's block), D `[pair,
    register, 128]` of n = 256, scale-d. The grid has 256 / n blocks for each pair, whose slices of D lie one after the
    other.
    """
    i = instruction
    own, slices = i.layout("D").registers, 256 // i.n
    every, row = own * slices, 64 if i.sparse else 32
    chunks = i.n * row // 16  # of B, 16 bytes each
    per_row = row // 16
    a, lines = "{%a0, %a1, %a2, %a3}", []
    lines.append(_head(name, ("a", "b", "c", "meta", "pairs", "d", "scale"), own))
    lines.append(f""".shared .align 128 .b8 {name}_a[2048];
.shared .align 128 .b8 {name}_b[{i.n * row}];
mov.u32 %r1, %ctaid.x;
div.u32 %r2, %r1, {slices};
rem.u32 %r3, %r1, {slices};
mul.wide.u32 %x7, %r2, 8;
add.u64 %x7, %x4, %x7;
ld.global.v2.u32 {{%r4, %r5}}, [%x7];
mul.wide.u32 %x8, %r4, 2048;
add.u64 %x8, %x0, %x8;
mul.wide.u32 %x9, %r5, {256 * row};
add.u64 %x9, %x1, %x9;
mul.wide.u32 %x10, %r3, {i.n * row};
add.u64 %x9, %x9, %x10;
mov.u32 %r6, {name}_a;
mov.u32 %r7, {name}_b;
mul.wide.u32 %x10, %r0, 16;
add.u64 %x11, %x8, %x10;
ld.global.v4.u32 {{%r8, %r9, %r10, %r11}}, [%x11];
shr.u32 %r12, %r0, 1;
and.b32 %r13, %r0, 1;
mad.lo.u32 %r14, %r12, 16, %r6;
mad.lo.u32 %r14, %r13, 1024, %r14;
st.shared.v4.u32 [%r14], {{%r8, %r9, %r10, %r11}};
mov.u32 %r15, %r0;
FILL:
setp.ge.u32 %p0, %r15, {chunks};
@%p0 bra FILLED;
mul.wide.u32 %x10, %r15, 16;
add.u64 %x11, %x9, %x10;
ld.global.v4.u32 {{%r8, %r9, %r10, %r11}}, [%x11];
div.u32 %r12, %r15, {per_row};
rem.u32 %r13, %r15, {per_row};
mad.lo.u32 %r14, %r12, 16, %r7;
mad.lo.u32 %r14, %r13, {i.n * 16}, %r14;
st.shared.v4.u32 [%r14], {{%r8, %r9, %r10, %r11}};
add.u32 %r15, %r15, 128;
bra FILL;
FILLED:
fence.proxy.async.shared::cta;
bar.sync 0;
""")
    for r, base, leading in ((12, "%r6", 1024), (13, "%r7", i.n * 16)):
        lines.append(f"""shr.u32 %r{r}, {base}, 4;
cvt.u64.u32 %x{r}, %r{r};
or.b64 %x{r}, %x{r}, {(leading >> 4) << 16 | (128 >> 4) << 32};
""")
    if source == "memory":
        a = "%x12"
    else:  # row 16 w + g + 8 r0, bytes 4 t + 16 r1
        lines.append("""shr.u32 %r16, %r0, 5;
and.b32 %r17, %r0, 31;
shr.u32 %r18, %r17, 2;
mad.lo.u32 %r18, %r16, 16, %r18;
and.b32 %r19, %r0, 3;
mul.lo.u32 %r18, %r18, 32;
mad.lo.u32 %r18, %r19, 4, %r18;
cvt.u64.u32 %x14, %r18;
add.u64 %x14, %x8, %x14;
ld.global.u32 %a0, [%x14];
ld.global.u32 %a1, [%x14+256];
ld.global.u32 %a2, [%x14+16];
ld.global.u32 %a3, [%x14+272];
""")
    if i.sparse:
        lines.append("""mad.lo.u32 %r20, %r4, 128, %r0;
mul.wide.u32 %x15, %r20, 4;
add.u64 %x15, %x3, %x15;
ld.global.u32 %meta, [%x15];
""")
    lines.append(f"""cvt.u32.u64 %r21, %x6;
setp.ne.u32 %p1, %r21, 0;
mul.lo.u32 %r22, %r3, {own};
mul.wide.u32 %x16, %r4, {every};
cvt.u64.u32 %x17, %r22;
add.u64 %x16, %x16, %x17;
mul.lo.u64 %x16, %x16, 512;
mul.wide.u32 %x18, %r0, 4;
add.u64 %x16, %x16, %x18;
add.u64 %x16, %x2, %x16;
mul.wide.u32 %x19, %r2, {every};
add.u64 %x19, %x19, %x17;
mul.lo.u64 %x19, %x19, 512;
add.u64 %x19, %x19, %x18;
add.u64 %x19, %x5, %x19;
""")
    lines += [f"ld.global.u32 %d{r}, [%x16+{512 * r}];\n" for r in range(own)]
    lines.append(_RUN.format(statement=statement(i, a, "%x13", "%p1", signs=signs, selector=selector)))
    lines += [f"st.global.u32 [%x19+{512 * r}], %d{r};\n" for r in range(own)]
    lines.append("ret;\n}\n")
    return "".join(lines)


def descriptor_kernel(
    instruction: WarpgroupInstruction, name: str, *, of: Literal["A", "B"], transposed: bool = False
) -> str:  # fmt: skip
    """Write a kernel that reads A or B by descriptors from an image of shared memory.

    Its parameters, of 64 bits each: the image, whose bytes are copied to dynamic shared memory; its size, a multiple of
    16; descriptors `[count]`; their number; the four registers of A `[4, 128]`, or one descriptor of B; metadata
    `[128]`; D `[count, register, 128]`; where the image's address goes. D is not read.
    """
    i = instruction
    own = i.layout("D").registers
    a, b, turns = ("{%a0, %a1, %a2, %a3}", "%x12", (0, int(transposed)))
    if of == "A":
        a, b, turns = "%x12", "%x4", (int(transposed), 0)
    registers = """mul.wide.u32 %x8, %r0, 4;
add.u64 %x9, %x4, %x8;
ld.global.u32 %a0, [%x9];
ld.global.u32 %a1, [%x9+512];
ld.global.u32 %a2, [%x9+1024];
ld.global.u32 %a3, [%x9+1536];
""" * (of == "B")
    return "".join([
        f".extern .shared .align 1024 .b8 image_{name}[];\n",
        _head(name, ("image", "size", "words", "count", "other", "meta", "d", "at"), own),
        f"""mov.u32 %r1, image_{name};
cvt.u32.u64 %r2, %x1;
mul.lo.u32 %r3, %r0, 16;
FILL:
setp.ge.u32 %p0, %r3, %r2;
@%p0 bra FILLED;
cvt.u64.u32 %x8, %r3;
add.u64 %x9, %x0, %x8;
ld.global.v4.u32 {{%r4, %r5, %r6, %r7}}, [%x9];
add.u32 %r8, %r1, %r3;
st.shared.v4.u32 [%r8], {{%r4, %r5, %r6, %r7}};
add.u32 %r3, %r3, 2048;
bra FILL;
FILLED:
st.global.u32 [%x7], %r1;
fence.proxy.async.shared::cta;
bar.sync 0;
{registers}mul.wide.u32 %x8, %r0, 4;
add.u64 %x9, %x5, %x8;
ld.global.u32 %meta, [%x9];
cvt.u32.u64 %r9, %x3;
mov.u32 %r10, %ctaid.x;
setp.ne.u32 %p1, %r0, %r0;
NEXT:
setp.ge.u32 %p0, %r10, %r9;
@%p0 bra DONE;
mul.wide.u32 %x10, %r10, 8;
add.u64 %x11, %x2, %x10;
ld.global.u64 %x12, [%x11];
mul.wide.u32 %x13, %r10, {512 * own};
add.u64 %x13, %x13, %x6;
add.u64 %x13, %x13, %x8;
""",
        *(f"mov.b32 %d{r}, 0;\n" for r in range(own)),
        _RUN.format(statement=statement(i, a, b, "%p1", turns=turns)),
        *(f"st.global.u32 [%x13+{512 * r}], %d{r};\n" for r in range(own)),
        """mov.u32 %r11, %nctaid.x;
add.u32 %r10, %r10, %r11;
bra NEXT;
DONE:
ret;
}
""",
    ])  # fmt: skip
