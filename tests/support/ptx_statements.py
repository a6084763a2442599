"""Statements of PTX that ptxas accepts for sm_90, and statements that it refuses: one kernel has registers for all."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["REFUSED", "TAKEN", "kernel", "kernels"]

MODULE = """.version 9.0
.target sm_90
.address_size 64
.global .align 16 .b32 gl[8];
.const .align 16 .b32 cn[8];
"""
ENTRY = """.visible .entry {}(.param .u64 p, .param .u64 q)
{{
.shared .align 16 .b32 sh[64]; .local .align 16 .b32 lc[8];
.reg .pred %p<9>; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .f64 %fd<9>;
.reg .b128 %q<4>; .reg .v2 .b32 %v;
"""


def kernel(statement: str, name: str = "k") -> str:
    """Return a kernel with a statement, which may branch to L."""
    return f"{MODULE}{_entry(statement, name)}"


def _entry(statement: str, name: str) -> str:
    return f"{ENTRY.format(name)}{statement}\nL: ret;\n}}\n"


def kernels(statements: Sequence[str]) -> tuple[str, dict[int, str]]:
    """Return a module with a kernel for each statement, and the statement that each line is for."""
    entries = [_entry(x, f"k{i}") for i, x in enumerate(statements)]
    lines = [x for x, entry in zip(statements, entries, strict=True) for _ in entry.splitlines()]
    return MODULE + "".join(entries), dict(enumerate(lines, 1 + len(MODULE.splitlines())))


TAKEN = """
ld.global.u32 %r1, [%rd1];
ld.global.u32 %r1, [%rd1+4];
ld.global.v2.u32 {%r1, %r2}, [%rd1];
ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+16];
ld.u32 %r1, [%rd1];
ld.shared.u32 %r1, [%r2];
ld.shared.u32 %r1, [sh+4];
ld.shared.b64 %rd2, [%rd1];
ld.const.u32 %r1, [cn];
ld.local.u32 %r1, [lc];
ld.param.u64 %rd1, [p];
ld.param.u32 %r1, [p+4];
ld.param.v2.u32 {%r1, %r2}, [p];
ld.global.nc.u32 %r1, [%rd1];
ld.global.L1::no_allocate.u32 %r1, [%rd1];
ld.global.L2::cache_hint.u32 %r1, [%rd1], %rd2;
ld.volatile.global.u32 %r1, [%rd1];
ld.relaxed.gpu.global.u32 %r1, [%rd1];
ld.acquire.sys.global.u32 %r1, [%rd1];
ld.global.b8 %h1, [%rd1];
ldu.global.u32 %r1, [%rd1];
st.global.u32 [%rd1], %r1;
st.global.u32 [%rd1+4], 7;
st.global.v2.u32 [%rd1], {%r1, %r2};
st.global.v4.f32 [%rd1], {%f1, %f2, %f3, %f4};
st.shared.u32 [sh], %r1;
st.local.u32 [lc], %r1;
st.u32 [%rd1], %r1;
st.release.gpu.global.u32 [%rd1], %r1;
st.global.L2::cache_hint.u32 [%rd1], %r1, %rd2;
st.volatile.shared.u32 [%r1], %r2;
atom.global.add.u32 %r1, [%rd1], %r2;
atom.global.cas.b32 %r1, [%rd1], %r2, %r3;
atom.shared.exch.b32 %r1, [sh], %r2;
atom.global.add.f32 %f1, [%rd1], %f2;
atom.add.noftz.f16x2 %r1, [%rd1], %r2;
atom.acq_rel.gpu.global.max.s32 %r1, [%rd1], %r2;
atom.global.inc.u32 %r1, [%rd1], %r2;
red.global.add.u32 [%rd1], %r2;
red.shared.or.b32 [sh], %r2;
red.relaxed.gpu.global.add.f32 [%rd1], %f1;
bar.sync 0;
bar.sync 1, 64;
bar.sync %r1;
bar.arrive 1, 64;
barrier.sync 0;
barrier.cta.sync.aligned 0;
bar.red.popc.u32 %r1, 0, %p1;
bar.red.and.pred %p1, 0, %p2;
bar.warp.sync 0xffffffff;
barrier.cluster.arrive;
barrier.cluster.wait.aligned;
membar.gl;
fence.acq_rel.gpu;
fence.sc.cta;
fence.proxy.async;
vote.sync.any.pred %p1, %p2, 0xffffffff;
vote.sync.ballot.b32 %r1, %p1, 0xffffffff;
shfl.sync.idx.b32 %r1, %r2, 0, 31, 0xffffffff;
shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, 0xffffffff;
match.any.sync.b32 %r1, %r2, 0xffffffff;
match.all.sync.b32 %r1|%p1, %r2, 0xffffffff;
activemask.b32 %r1;
redux.sync.add.u32 %r1, %r2, 0xffffffff;
elect.sync %r1|%p1, 0xffffffff;
ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r5];
ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r1}, [%r5];
stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r5], {%r1, %r2};
movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;
mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f5,%f6,%f7,%f8};
mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd1,%fd2}, {%fd3}, {%fd4}, {%fd5,%fd6};
mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r1,%r2},{%r1,%r2},{%r5,%r6},{%r7,%r8}, %r8, 0;
wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%r1], 16;
wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%rd1];
wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%rd1], {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, %r1;
cp.async.ca.shared.global [%r1], [%rd1], 16;
cp.async.cg.shared.global [%r1], [%rd1], 16, %r2;
cp.async.ca.shared.global [%r1], [%rd1], 4, %p1;
cp.async.cg.shared.global.L2::128B [%r1], [%rd1], 16;
cp.async.ca.shared.global.L2::cache_hint [%r1], [%rd1], 16, %rd2;
cp.async.commit_group;
cp.async.wait_group 1;
cp.async.wait_all;
cp.async.mbarrier.arrive.shared.b64 [%r1];
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], %r2, [%r3];
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], %r2;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
cp.async.bulk.wait_group.read 0;
cp.async.bulk.prefetch.L2.global [%rd1], %r1;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r1], %r2;
st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r1], %r2, [%r3];
mbarrier.init.shared.b64 [%r1], 32;
mbarrier.inval.shared.b64 [%r1];
mbarrier.arrive.shared.b64 %rd1, [%r1];
mbarrier.arrive.shared.b64 %rd1, [%r1], 2;
mbarrier.arrive.shared.b64 _, [%r1];
mbarrier.arrive.expect_tx.shared.b64 %rd1, [%r1], 16;
mbarrier.arrive_drop.shared.b64 %rd1, [%r1];
mbarrier.test_wait.shared.b64 %p1, [%r1], %rd1;
mbarrier.try_wait.shared.b64 %p1, [%r1], %rd1;
mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2;
mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r2, 100;
mbarrier.test_wait.parity.shared.b64 %p1, [%r1], 0;
mbarrier.expect_tx.shared::cta.b64 [%r1], 8;
mbarrier.complete_tx.shared::cta.b64 [%r1], 8;
mbarrier.pending_count.b64 %r1, %rd1;
prefetch.global.L2 [%rd1];
prefetchu.L1 [%rd1];
applypriority.global.L2::evict_normal [%rd1], 128;
discard.global.L2 [%rd1], 128;
createpolicy.fractional.L2::evict_last.b64 %rd1, 0.5;
createpolicy.fractional.L2::evict_first.b64 %rd1;
createpolicy.range.L2::evict_last.L2::evict_unchanged.b64 %rd1, [%rd2], 1024, 2048;
createpolicy.cvt.L2.b64 %rd1, 7;
cvta.global.u64 %rd1, %rd2;
cvta.to.shared.u64 %rd1, %rd2;
cvta.shared.u64 %rd1, sh;
isspacep.shared %p1, %rd1;
mapa.shared::cluster.u32 %r1, %r2, 0;
mapa.u64 %rd1, %rd2, 0;
getctarank.u64 %r1, %rd1;
getctarank.shared::cluster.u32 %r1, %r2;
nanosleep.u32 100;
nanosleep.u32 %r1;
pmevent 3;
griddepcontrol.wait;
trap;
brkpt;
exit;
ret;
mov.u32 %r1, %r2;
mov.u32 %r1, 7;
mov.u32 %r1, %tid.x;
mov.u64 %rd1, sh;
mov.u64 %rd1, gl;
mov.u64 %rd1, gl+4;
mov.b64 %rd1, {%r1, %r2};
mov.b64 {%r1, %r2}, %rd1;
mov.b32 %r1, {%h1, %h2};
mov.b64 {%r1, _}, %rd1;
mov.v2.u32 {%r1, %r2}, {%r3, %r4};
mov.pred %p1, %p2;
mov.f32 %f1, 0f3F800000;
add.s32 %r1, %r2, %r3;
add.s32 %r1, %r2, -1;
add.cc.u32 %r1, %r2, %r3;
addc.u32 %r1, %r2, %r3;
mad.lo.s32 %r1, %r2, %r3, %r4;
mad.wide.u32 %rd1, %r1, %r2, %rd2;
mul.wide.s16 %r1, %h1, %h2;
fma.rn.f32 %f1, %f2, %f3, %f4;
setp.lt.s32 %p1, %r1, %r2;
setp.lt.and.s32 %p1|%p2, %r1, %r2, %p3;
setp.eq.f32 %p1, %f1, 0f00000000;
set.lt.u32.f32 %r1, %f1, %f2;
selp.b32 %r1, %r2, %r3, %p1;
slct.s32.f32 %r1, %r2, %r3, %f1;
cvt.u32.u64 %r1, %rd1;
cvt.rn.f16.f32 %h1, %f1;
cvt.rn.f16x2.f32 %r1, %f1, %f2;
cvt.rni.s32.f32 %r1, %f1;
cvt.u8.u32 %h1, %r1;
prmt.b32 %r1, %r2, %r3, %r4;
prmt.b32.f4e %r1, %r2, %r3, %r4;
shf.l.wrap.b32 %r1, %r2, %r3, %r4;
bfe.u32 %r1, %r2, %r3, %r4;
bfi.b32 %r1, %r2, %r3, 4, 5;
lop3.b32 %r1, %r2, %r3, %r4, 0x96;
lop3.or.b32 %r1|%p1, %r2, %r3, %r4, 0x96, %p2;
dp4a.u32.u32 %r1, %r2, %r3, %r4;
sad.u32 %r1, %r2, %r3, %r4;
popc.b32 %r1, %r2;
fns.b32 %r1, %r2, %r3, %r4;
vadd.u32.u32.u32 %r1, %r2.b0, %r3.h1;
vadd2.s32.s32.s32 %r1, %r2, %r3, %r4;
tanh.approx.f32 %f1, %f2;
testp.finite.f32 %p1, %f1;
and.pred %p1, %p2, !%p3;
not.pred %p1, %p2;
@%p1 add.s32 %r1, %r2, %r3;
@!%p1 bra L;
bra L;
bra.uni L;
bmsk.clamp.b32 %r1, %r2, %r3;
szext.wrap.s32 %r1, %r2, %r3;
copysign.f32 %f1, %f2, %f3;
div.full.f32 %f1, %f2, %f3;
ex2.approx.ftz.f32 %f1, %f2;
alloca.u64 %rd1, 32;
stacksave.u64 %rd1;
stackrestore.u64 %rd1;
clz.b64 %r1, %rd1;
ld.global.u32 {%r1}, [%rd1];
ld.global.v2.u32 %v, [%rd1];
ld.global.u32 %r1, gl[3];
mov.u64 %rd1, gl[2];
ld.global.b128 %q1, [%rd1];
atom.global.exch.b128 %q1, [%rd1], %q2;
cp.async.ca.shared.global [%r1], [%rd1], 16, !%p1;
cp.async.ca.shared.global.L2::cache_hint [%r1], [%rd1], 16, %p2, %rd2;
bar.red.popc.u32 %r1, 0, 64, %p1;
mov.v2.b32 %v, {%r1, %r2};
mov.b64 %rd1, %v;
mov.b128 %q1, {%rd1, %rd2};
mov.b32 %r1, 0f3F800000;
mov.b64 %rd1, 0.5;
mov.pred %p1, 5;
and.b32 %r1, %r2, 0f3F800000;
add.f32 %f1, %f2, 0d3FF0000000000000;
setp.eq.u32 _|%p1, %r1, %r2;
mov.b64 {%r1, _}, %rd1;
atom.global.add.u32 _, [%rd1], %r2;
ld.param::entry.u64 %rd1, [p];
shfl.sync.idx.b32 %r1|_, %r2, 0, 31, 0xffffffff;
ld.global.v2.u32 {%r1, _}, [%rd1];
cvt.u64.u32 %rd1, %tid.x;
mov.u16 %h1, %tid.x;
barrier.sync.aligned 0;
barrier.aligned.sync 0;
barrier.arrive.aligned 0, 32;
barrier.red.aligned.and.pred %p1, 0, %p2;
barrier.cluster.arrive.relaxed.aligned;
cvta.to.u64.shared %rd1, %rd2;
createpolicy.fractional.b64.L2::evict_last %rd1;
mbarrier.arrive.noComplete.release.cta.shared.b64 %rd1, [%r1], 4;
mbarrier.arrive.cta.relaxed.shared.b64 %rd1, [%r1];
mbarrier.arrive.expect_tx.shared.release.cta.b64 %rd1, [%r1], 4;
mbarrier.try_wait.parity.acquire.cluster.shared.b64 %p1, [%r1], 1, 5;
mbarrier.try_wait.relaxed.cta.shared.b64 %p1, [%r1], %rd2;
mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%r1], 4;
cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 1048560;
red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.or.b32 [%r1], %r2, [%r3];
prefetchu.L1 [gl];
""".strip().splitlines()
"""Statements that ptxas takes."""

REFUSED = {
    "ld.global.u32 %r1, [%rd1, %r2];": "%r2 follows an address in its brackets; expected [address] alone",
    "ld.param.u64 %rd1, [p, 4];": "4 follows an address in its brackets",
    "st.global.u32 [%rd1+4, %r2], 7;": "%r2 follows an address in its brackets",
    "cp.async.ca.shared.global [%r1], [%rd1, {%r2}], 16;": "{%r2} follows an address in its brackets",
    "ld.global.u32 %r1, [%rd1], %r2;": "got 3 operands; expected d0, [p]",
    "ld.shared.u32 %r1, sh+4;": "sh+4 is not an address; expected [register+bytes] or [variable+bytes]",
    "ld.param.u64 %rd1, p;": "p is not an address",
    "st.shared.u32 %rd1, %r1;": "%rd1 is not an address",
    "ld.global.u32 %r1, [%r2];": "%r2 has 32 bits; generic and global addresses have 64",
    "mov.u64 %rd1, [sh];": "[sh] is an address in brackets; expected a register or a number",
    "setp.lt.s32 %p1, %r1, [%r2];": "[%r2] is an address in brackets",
    "add.u64 %rd1, gl, 4;": "gl is an address; expected a register, into which mov puts it",
    "cvta.to.global.u64 %rd1, gl;": "gl is an address",
    "mov.f32 %f1, sh;": "sh is an address",
    "add.s32 %r1, {%r2}, %r3;": "{%r2} stands where one register is expected",
    "atom.global.add.f32 %f1, [%rd1], {%f2};": "{%f2} stands where one register is expected",
    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 %r1, [%r5];": "%r1 stands where a vector is expected",
    "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd1,%fd2}, %fd3, {%fd4}, {%fd5,%fd6};":
        "%fd3 stands where a vector is expected",
    "ld.global.b128 {%rd1, %rd2}, [%rd1];": "{%rd1, %rd2} stands where one register is expected",
    "ld.param.u32 {%r1, %r2}, [p];": "got 2 registers; expected 1",
    "ld.param.gpu.u64 %rd1, [p];": "'ld.param.gpu.u64' is not a simulated instruction",
    "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd1,%fd2}, {%fd3}, {%fd4}, {%fd5,%fd6}, 7;":
        "got 5 operands; expected {d0, d1}, {a0}, {b0}, {c0, c1}",
    "cp.async.cg.shared.global [%r1], [%rd1], 16, %r2, gl;": "got 5 operands; expected [p], [q], size",
    "cp.async.ca.shared.global [%r1], [%rd1], -4;": "size is -4; expected 4 or 8 or 16",
    "cp.async.wait_group 1, 2;": "got 2 operands; expected n",
    "cp.async.commit_group 1;": "got 1 operand; expected none",
    "bar.sync 1, 64, 3;": "got 3 operands; expected a{, b}",
    "bar.warp.sync 3, 4;": "got 2 operands; expected membermask",
    "bar.red.popc.u32 %r1, 0, 64, 32, %p1;": "got 5 operands; expected d, a{, b}, p",
    "bar.sync 0f3F800000;": "0f3F800000 stands where an immediate is expected",
    "ret 3;": "got 1 operand; expected none",
    "ret.sync;": "expected ret or ret.uni",
    "bra.rn L;": "expected bra or bra.uni",
    "mov.ftz.b64 %rd1, {%r1, %r2};": "'mov.ftz.b64' is not a simulated operation",
    "mov.v2.uni.u32 {%r1, %r2}, {%r3, %r4};": "'mov.uni.u32' is not a simulated operation",
    "mov.u32 {%r1, %r2}, {%r3, %r4};": "got vectors of [2, 2] registers; expected mov.v2 or mov.v4",
    "mov.v8.b16 {%h1,%h2,%h3,%h4,%h5,%h6,%h7,%h8}, {%h8,%h7,%h6,%h5,%h4,%h3,%h2,%h1};": "mov.v8.b16",
    "mov.v4.f64 {%fd1,%fd2,%fd3,%fd4}, {%fd1,%fd2,%fd3,%fd4};": "of 128 bits at most",
    "mov.v2.v2.u32 {%r1, %r2}, {%r3, %r4};": "got vectors of [2, 2] registers",
    "mov %r1, %r2;": "'mov' is not a simulated operation",
    "add.f32 %f1, %f2, 5;": "5 stands where a float is expected, as 5.0",
    "add.u32 %r1, %r2, 0.5;": "0d3FE0000000000000 stands where an integer is expected",
    "mov.b32 %r1, 0.5;": "stands where an integer or a float of 32 bits is expected",
    "mov.b64 %rd1, 0f3F800000;": "0f3F800000 stands where an integer or a float of 64 bits is expected",
    "add.f16 %h1, %h2, 0.5;": "stands where a register of f16 is expected",
    "fma.rn.f16x2 %r1, %r2, %r3, 5;": "5 stands where a register of f16x2 is expected",
    "st.global.f32 [%rd1], 5;": "5 stands where a float is expected, as 5.0",
    "st.global.v2.u32 [%rd1], {%r1, %r2+4};": "%r2+4 is a sum in braces; expected a register or a number",
    "ld.global.v2.u32 {%r1, %rd2}, [%rd1];": "{%r1, %rd2} has registers of b32 and b64; expected one width",
    "ld.shared.v2.b64 %q1, [%r1];": "%q1 stands where a vector is expected",
    "add.u32 %r1, %tid.x, 1;": "%tid.x is a special register; expected a register, into which mov puts it",
    "ld.global.u32 %r1, [16];": "[+16] is a number, which is an address in .local alone",
    "ld.shared.u32 %r1, [gl];": "gl lies in .global; expected an address in .shared",
    "ld.global.u32 _, [%rd1];": "_ stands where a register is expected: its result cannot be discarded",
    "mbarrier.arrive.shared::cluster.b64 %rd1, [%r1];": "%rd1 stands where _ is expected",
    "elect.sync %r1, 0xffffffff;": "got 2 operands; expected d0|d1, a0",
    "vadd4.u32.u32.u32 %r1, %r2, %r3, 7;": "7 stands where a register is expected",
    "bar.sync 16;": "a is 16; expected 0 to 15",
    "bar.arrive 1, 0;": "b is 0; expected 32 to",
    "popc.b32 _, %r1;": "_ stands where a register is expected: its result cannot be discarded",
    "st.param.u64 [p], %rd1;": "p is a parameter of k, which is read alone",
    "{ .param .b32 x; ld.param.b32 %r1, [x]; }": "x is a .param that no call gives as a result",
    "ld.global.u32 %r1, [gl[3]];": "expected a register, a variable or a number as an address",
    "ld.u32 %r1, [cn];": "cn lies in .const; expected an address in .global, .shared or .local",
    "ld.u64 %rd1, [p];": "p lies in .param; expected an address in .global, .shared or .local",
    "prefetchu.L1 [sh];": "sh lies in .shared; expected an address in .global",
    "barrier.aligned.red.and.pred %p1, 0, %p2;": "'barrier.aligned.red.and.pred' is not a simulated instruction",
    "barrier.aligned.arrive 0, 32;": "'barrier.aligned.arrive' is not a simulated instruction",
    "cvta.shared.to.u64 %rd1, %rd2;": "'cvta.shared.to.u64' is not a simulated operation",
    "createpolicy.L2.cvt.b64 %rd1, %rd2;": "'createpolicy.L2.cvt.b64' is not a simulated instruction",
    "mbarrier.test_wait.relaxed.cta.parity.shared.b64 %p1, [%r1], %r2;": "is not a simulated instruction",
    "mbarrier.try_wait.parity.relaxed.shared.b64 %p1, [%r1], %r2;": "is not a simulated instruction",
    "mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 2;": "a1 is 2; expected 0 or 1",
    "mbarrier.test_wait.parity.shared.b64 %p1, [%r1], WARP_SZ;": "a1 is 32; expected 0 or 1",
    "mbarrier.arrive_drop.cta.shared.b64 %rd1, [%r1];": "is not a simulated instruction",
    "mbarrier.arrive.release.shared.b64 %rd1, [%r1];": "is not a simulated instruction",
    "mbarrier.arrive.noComplete.relaxed.cta.shared.b64 %rd1, [%r1], 4;": "is not a simulated instruction",
    "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], 17;":
        "size is 17; expected 0 to 1048560, a multiple of 16",
    "cp.async.bulk.prefetch.L2.global [%rd1], 8;": "a1 is 8; expected 0 to 1048560, a multiple of 16",
    "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.or.b32 [%r1], {%r2}, [%r3];":
        "{%r2} stands where one register is expected",
    "ret; ;": "expected a statement, found ';'",
}  # fmt: skip
"""Statements that ptxas refuses, and what we say of each."""
