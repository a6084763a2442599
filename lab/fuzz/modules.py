"""Valid modules, from which the hostile ones are derived."""

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

MATRICES = (
    HEAD
    + """// a tile, as Triton writes one: asynchronous copies, ldmatrix, mma, wmma, shuffles, atomics
.extern .shared .align 128 .b8 global_smem[];
.visible .entry tile(.param .u64 .ptr .global .align 16 given, .param .u64 out, .param .f32 scale)
.reqntid 32, 1, 1
{
    .reg .pred %p<6>;
    .reg .b16 %h<6>;
    .reg .b32 %r<40>;
    .reg .f32 %f<24>;
    .reg .f64 %d<4>;
    .reg .b64 %rd<12>;
    .shared .align 16 .b8 tiles[1024];
    .shared .align 8 .b64 bar;
    ld.param.u64 %rd1, [given]; ld.param.u64 %rd2, [out]; ld.param.f32 %f1, [scale];
    mov.u32 %r1, %tid.x; and.b32 %r1, %r1, 31; mul.wide.u32 %rd3, %r1, 16; add.s64 %rd4, %rd1, %rd3;
    mov.u32 %r2, tiles; mad.lo.s32 %r3, %r1, 16, %r2; mov.u32 %r4, bar;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 mbarrier.init.shared.b64 [%r4], 32;
    bar.sync 0;
    cp.async.cg.shared.global [%r3], [%rd4], 16;
    add.s32 %r5, %r3, 512;
    cp.async.ca.shared.global [%r5], [%rd4], 8, 4;
    cp.async.mbarrier.arrive.noinc.shared.b64 [%r4];
    cp.async.commit_group;
    cp.async.wait_group 0x0;
W:  mbarrier.test_wait.parity.shared.b64 %p2, [%r4], 0;
    @!%p2 bra W;
    bar.sync 0;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r6, %r7, %r8, %r9}, [%r3];
    ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r10, %r11}, [%r3];
    mov.f32 %f2, 0f00000000; mov.f32 %f3, %f2; mov.f32 %f4, %f2; mov.f32 %f5, %f2;
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
        { %f2, %f3, %f4, %f5 }, { %r6, %r7, %r8, %r9 }, { %r10, %r11 }, { %f2, %f3, %f4, %f5 };
    mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32
        {%r12, %r13, %r14, %r15}, {%r6, %r7, %r8, %r9}, {%r10, %r11}, {%r1, %r1, %r1, %r1};
    wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r16,%r17,%r18,%r19,%r20,%r21,%r22,%r23}, [%r2], 16;
    wmma.load.b.sync.aligned.col.m16n16k16.shared.f16 {%r24,%r25,%r26,%r27,%r28,%r29,%r30,%r31}, [%r2], 16;
    wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%f6,%f7,%f8,%f9,%f10,%f11,%f12,%f13},
        {%r16,%r17,%r18,%r19,%r20,%r21,%r22,%r23}, {%r24,%r25,%r26,%r27,%r28,%r29,%r30,%r31},
        {%f2,%f3,%f4,%f5,%f2,%f3,%f4,%f5};
    wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd2], {%f6,%f7,%f8,%f9,%f10,%f11,%f12,%f13}, 16;
    shfl.sync.bfly.b32 %f14, %f2, 16, 31, -1;
    mul.f32 %f15, %f14, %f1; add.f32 %f16, %f15, %f3; ex2.approx.ftz.f32 %f17, %f16;
    cvt.rn.bf16x2.f32 %r32, %f17, %f16; cvt.rn.f16.f32 %h1, %f16; fma.rn.f16 %h2, %h1, %h1, %h1;
    vote.sync.ballot.b32 %r33, %p2, -1; popc.b32 %r34, %r33; lop3.b32 %r35, %r32, %r33, %r34, 0x96;
    { .reg .b32 tmp; mov.b32 {%h3, %h4}, %r35; mov.b32 tmp, {%h4, %h3}; prmt.b32 %r36, tmp, %r35, 0x5410; }
    div.rn.f64 %d1, 0d3FF0000000000000, 0d4008000000000000; cvt.rzi.s32.f64 %r37, %d1;
    @%p1 atom.global.add.f32 %f18, [%rd2+2048], %f17;
    red.global.add.u32 [%rd2+2052], %r36;
    membar.gl;
    ret;
}
"""
)

MODULES = (SUMS, CALLS, MATRICES)
"""Each runs unchanged."""
