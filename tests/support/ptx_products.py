"""A program of PTX with an `mma` in a loop, whose source is said to be gemm.cu: its line 77, line 14 of the text."""

__all__ = ["GEMM"]

GEMM = """.version 8.3
.target sm_80
.address_size 64
.visible .entry gemm(.param .u64 pa, .param .u64 pd, .param .u32 turns)
{
  .reg .pred p; .reg .b32 a<4>, b<2>, lane, n; .reg .f32 d<4>; .reg .b64 x, y, at;
  .loc 1 70 3
  ld.param.u64 x, [pa]; ld.param.u64 y, [pd]; ld.param.u32 n, [turns];
  mov.u32 lane, %laneid; mul.wide.u32 at, lane, 16; add.u64 x, x, at; add.u64 y, y, at;
  mov.f32 d0, 0f00000000; mov.f32 d1, d0; mov.f32 d2, d0; mov.f32 d3, d0;
again:
  ld.global.v4.b32 {a0, a1, a2, a3}, [x];
  .loc 1 77 5
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {d0, d1, d2, d3}, {a0, a1, a2, a3}, {a1, a2}, {d0, d1, d2, d3};
  add.u64 x, x, 512; sub.u32 n, n, 1; setp.ne.u32 p, n, 0;
  @p bra again;
  st.global.v4.f32 [y], {d0, d1, d2, d3};
  ret;
}
.file 1 "gemm.cu"
"""
