"""Modules that are right: what the others are made of."""

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"

SUMS = (
    HEAD
    + """// sums of rows, through shared memory
.global .align 8 .u64 table[4] = {other, other+8, generic(other), 0xFF};
.const .align 4 .f32 other[2][2] = {{1.0, 0f3F000000}, {-1.5}};
.extern .shared .align 16 .b8 dynamic[];
.visible .entry sums(.param .u64 .ptr .global .align 16 out, .param .u32 n)
.maxntid 128
{
    .reg .pred %p<4>;
    .reg .b32 %r<12>;
    .reg .f32 %f<8>;
    .reg .b64 %rd<8>;
    .shared .align 4 .f32 part[32];
    .loc 1 10 3
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
    mov.u64 %rd2, part;
    mul.wide.u32 %rd3, %r2, 4;
    add.s64 %rd4, %rd2, %rd3;
    cvt.rn.f32.u32 %f1, %r2;
    st.shared.f32 [%rd4], %f1;
    bar.sync 0;
    mov.u32 %r3, 0;
    mov.f32 %f2, 0f00000000;
    setp.ne.u32 %p2, %r2, %r2;
$L__loop:
    .pragma "nounroll";
    .loc 2 4 1, function_name $L__info, inlined_at 1 10 3
    shl.b32 %r4, %r3, 2;
    cvt.u64.u32 %rd5, %r4;
    add.s64 %rd6, %rd2, %rd5;
    ld.shared.f32 %f3, [%rd6];
    mul.f32 %f4, %f3, 0f40000000;
    add.f32 %f2, %f2, %f4;
    add.s32 %r3, %r3, 1;
    setp.lt.and.u32 %p1, %r3, %r1, !%p2;
    setp.lt.u32 %p1|%p3, %r3, %r1;
    @%p1 bra $L__loop;
    { .reg .pred p; .reg .b32 t;
      setp.eq.u32 p, %r2, 0;
      @!p bra DONE;
      cvta.to.global.u64 %rd1, %rd1;
      st.global.v2.f32 [%rd1+(1+1)*4], {%f2, %f1};
    DONE: }
    ret;
}
.file 1 "sums.cu"
.file 2 "header.cuh"
.section .debug_str { $L__info: .b8 115, 117, 109, 0 }
"""
)

CALLS = (
    HEAD
    + """.extern .func (.param .b32 r) vprintf (.param .b64 format, .param .b64 arguments);
.global .align 1 .b8 text[4] = {37, 100, 10, 0};
.func (.param .b32 result) factorial (.param .b32 n)
{
    .reg .b32 %r<6>; .reg .pred %p<2>;
    ld.param.u32 %r1, [n];
    setp.le.u32 %p1, %r1, 1;
    mov.u32 %r2, 1;
    @%p1 bra END;
    sub.s32 %r3, %r1, 1;
    { .param .b32 a; .param .b32 b;
      st.param.b32 [a], %r3;
      call.uni (b), factorial, (a);
      ld.param.b32 %r4, [b]; }
    mul.lo.s32 %r2, %r4, %r1;
END:
    st.param.b32 [result], %r2;
    ret;
}
.visible .entry calls(.param .u64 out, .param .align 8 .b8 given[16])
{
    .reg .b32 %r<8>; .reg .b64 %rd<8>; .local .align 8 .b8 frame[8];
    ts: .branchtargets FIRST, SECOND;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [given+4];
    and.b32 %r2, %r1, 1;
    brx.idx %r2, ts;
FIRST:
SECOND:
    mov.u32 %r3, 5;
    { .param .b32 a; .param .b32 b;
      st.param.b32 [a], %r3;
      prototype: .callprototype (.param .b32 _) _ (.param .b32 _);
      mov.u64 %rd2, factorial;
      call (b), %rd2, (a), prototype;
      ld.param.b32 %r4, [b]; }
    mov.u64 %rd3, frame;
    cvta.local.u64 %rd4, %rd3;
    st.local.u32 [%rd3], %r4;
    mov.u64 %rd5, text;
    { .param .b64 a; .param .b64 b; .param .b32 c;
      st.param.b64 [a], %rd5;
      st.param.b64 [b], %rd4;
      call.uni (c), vprintf, (a, b);
      ld.param.b32 %r5, [c]; }
    red.global.add.u32 [%rd1], %r4;
    atom.global.cas.b32 %r6, [%rd1], 0, 0x10U;
    exit;
}
"""
)

MODULES = (SUMS, CALLS)
"""Each runs as it is."""
