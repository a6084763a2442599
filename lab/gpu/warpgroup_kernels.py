"""PTX of kernels that execute one `wgmma` after the other, reading an image of shared memory by given descriptors."""

from __future__ import annotations

from typing import Literal

from warpmma.isa import WarpgroupInstruction, printed

__all__ = ["descriptor_kernel"]


def _head(name: str, parameters: tuple[str, ...], registers: int) -> str:
    wide = ",\n".join(f".param .u64 p_{x}" for x in parameters)
    return f""".visible .entry {name}({wide})
.maxntid 128
{{
.reg .b32 %d<{registers}>; .reg .b32 %a<4>; .reg .b32 %meta; .reg .b32 %r<24>; .reg .b64 %x<24>; .reg .pred %p<4>;
{"".join(f"ld.param.u64 %x{n}, [p_{x}];{chr(10)}" for n, x in enumerate(parameters))}mov.u32 %r0, %tid.x;
"""


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
    names = {
        "a-desc": "%x12", "b-desc": "%x12" if of == "B" else "%x4", "metadata": "%meta", "selector": "0",
        "scale-d": "%p1", "imm-scale-a": "1", "imm-scale-b": "1", "imm-trans-a": str(int(transposed and of == "A")),
        "imm-trans-b": str(int(transposed and of == "B")),
    }  # fmt: skip
    operands = printed(i.signatures[of == "B"], lambda name: names.get(name, f"%{name}"))
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
        f"wgmma.fence.sync.aligned;\n{i} {operands};\n",
        "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n",
        *(f"st.global.u32 [%x13+{512 * r}], %d{r};\n" for r in range(own)),
        """mov.u32 %r11, %nctaid.x;
add.u32 %r10, %r10, %r11;
bra NEXT;
DONE:
ret;
}
""",
    ])  # fmt: skip
