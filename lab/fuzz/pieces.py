"""Malformed and hostile declarations and statements: one per line."""

OUTSIDE = r"""
.global .u64 a = b; .global .u64 b = a;
.global .u64 a = a;
.global .u64 a = {a, a+8, a-99999999999999};
.global .u64 a[2] = {1, 2, 3};
.const .b8 c[65537];
.const .b8 c[4000000000];
.global .b8 g[1 << 62];
.global .b8 g[1099511627776];
.global .b8 g[-1];
.global .b8 g[0];
.global .b8 g[1 / 0];
.global .align 3 .b8 g[4];
.global .align 0 .b8 g[4];
.global .align 4611686018427387904 .b8 g[4];
.global .align -8 .b8 g[4];
.global .b8 g[65536][65536][65536];
.global .u8 g[4] = {256, -129, 0xFF(g)};
.global .b8 x; .global .b8 x;
.func f(); .func f(.param .b32 x);
.func f() { ret; } .func f() { ret; }
.func f() { call f; } .func g() { call f; }
.extern .func vprintf();
.extern .shared .b8 s[4];
.shared .b8 s[300000];
.shared .align 65536 .b8 s[4];
.local .b8 l[99999999999];
.entry sums() { ret; }
.entry e(.param .b8 p[99999]) { ret; }
.entry e(.param .b8 p[-4]) { ret; }
.entry e(.reg .b32 r) { ret; }
.entry e(.param .u64 p, .param .u64 p) { ret; }
.entry e() .maxntid 0 { ret; }
.entry e() .maxntid { ret; }
.entry e() .reqntid 4294967297, 2, 2 { ret; }
.entry e() .maxntid 99999999999999999999 { ret; }
.version 8.0
.version 99.9
.target sm_90a
.target sm_999
.target sm_80, sm_90
.address_size 32
.file -1 "x"
.file 99999999999999999999 "x"
.alias a, b;
.section .x { .b8 1, 2
.section .x { }}
.global .texref t;
.visible .global .f32 f = 1e999;
.global .f16 h = 1.0;
.global .v3 .u8 v;
.weak
@
.pragma "";
.pragma "unterminated
/* unterminated
// unterminated
\
#define x
#line 7
""".strip().split("\n")
"""Lines at module level."""

INSIDE = r"""
brx.idx %r1, ts;
mov.u32 %r2, 77777; brx.idx %r2, ts;
t2: .branchtargets ; brx.idx %r1, t2;
brx.idx 9, ts;
t3: .branchtargets nowhere; brx.idx %r1, t3;
bra nowhere;
L: L: bra L;
$L__loop:
bra ts;
bra %r1;
call (x), y, (z);
call %rd1, (), nothing;
mov.u64 %rd1, 0; call %rd1, prototype;
call vprintf;
t5: .calltargets nowhere; call %rd1, (), t5;
t6: .calltargets factorial; call (%r1), %rd1, (%r1), t6;
mov.u32 %r1, %nosuch;
mov.u32 %r1, sums;
mov.u64 %rd1, %rd1+8;
mov.u64 %rd1, 0; ld.global.u32 %r1, [%rd1];
mov.u64 %rd1, -1; ld.u32 %r1, [%rd1];
ld.global.u32 %r1, [18446744073709551615];
mov.u64 %rd1, 18446744073709551614; ld.global.u32 %r1, [%rd1];
mov.u32 %r1, 99999999; st.shared.u32 [%r1], 1;
st.local.u32 [1 << 40], %r1;
ld.global.v4.u64 {%rd1, %rd1, %rd1, %rd1}, [%rd1];
ld.param.u32 %r1, [nothing];
ld.const.u32 %r1, [other+99999];
bar.sync 16;
bar.sync 0, 33;
bar.sync %r1, %r1;
bar.sync 1, 4294967295;
barrier.sync.aligned -1;
shfl.sync.idx.b32 %r1, %r1, 0, 31, 0;
vote.sync.all.pred %p1, %p1, 99999999999;
@%r1 ret;
@!%p1 @%p1 ret;
div.u32 %r1, %r1, 0;
rem.s32 %r1, -2147483648, -1;
shl.b32 %r1, %r1, 4294967295;
bfe.u32 %r1, %r1, 999, 999;
prmt.b32 %r1, %r1, %r1, 0xFFFFFFFF;
lop3.b32 %r1, %r1, %r1, %r1, 256;
fns.b32 %r1, %r1, 99, -99;
cp.async.wait_group -1;
cp.async.wait_group 4294967296;
nanosleep.u32 4294967295;
trap;
brkpt;
exit
mbarrier.init.shared.b64 [%rd1], 0;
mbarrier.init.shared.b64 [%rd1], 99999999;
mov.u32 %r1, 0; mbarrier.arrive.shared.b64 %rd1, [%r1];
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r1}, [%r1];
movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r1;
wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r1}, [%rd1], -1;
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {}, {}, {}, {};
cvt.rn.f32.f32.f32 %f1, %f1;
.reg .b32 %r<0>;
.reg .b32 %r<-5>;
.reg .v4 .b64 %q<99999999999>;
.reg .b999 %x;
.shared .b8 big[240000];
.local .align 4096 .b8 big[600000];
{ { { ret; }
}
add.s32 %r1 %r1 %r1
mov.b32 {%r1, %r1}, %rd1;
alloca.u32 %r1, 99999999, 4;
activemask.b32 1;
prefetch.global.L1 [1];
isspacep.shared %p1, 7;
;;;;;;;;
createpolicy.fractional.L2::evict_last.b64 %rd1, 7.5;
L9: .callprototype _ (.param .b8 _[99999999999]);
red.global.add.u32 [%rd1], %r1, %r1;
atom.global.cas.b128 %rd1, [%rd1], %rd1, %rd1;
ret.uni.uni;
_;
""".strip().split("\n")
"""Lines in a function body."""
