// Sums that show something at once, and what is typed in when an instruction is chosen first.

const F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32";
const HALF = "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16";
const FP8 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32";

export const PRESETS = [
  {
    name: "1 and two half ulps",
    says: "Eight products at a time, or sixteen: an A100 loses what an H100 keeps.",
    i: F16,
    t1: "sm_80",
    t2: "sm_90",
    a: "1, 6x0, 2x2^-24",
    b: "1",
    c: "0",
  },
  {
    name: "fp8 in 13 bits",
    says: "Ada adds fp8 with 13 bits after the largest product's first; later GPUs keep more.",
    i: FP8,
    t1: "sm_89",
    t2: "sm_120a",
    a: "256, 31x2",
    b: "256, 31x2",
    c: "0",
  },
  {
    name: "Cancellation",
    says: "What is small is cut before what is large cancels.",
    i: F16,
    t1: "sm_80",
    t2: "sm_90",
    a: "256, -256, 2^-4",
    b: "256, 256, 2^-5",
    c: "0",
  },
  {
    name: "fp8 in two halves",
    says: "On Hopper fp8 is software: two sums of every other pair, and an addition of C.",
    i: FP8,
    t1: "sm_90",
    t2: "sm_120a",
    a: "16, 2^-8, 2^-9, 13x2^-8",
    b: "16, 15x2^-8",
    c: "2^-15",
  },
  {
    name: "f16 rounded in between",
    says: "Every step rounds to D's format: the fewer steps, the fewer roundings.",
    i: HALF,
    t1: "sm_80",
    t2: "sm_90",
    a: "1, 7x0, 1",
    b: "1",
    c: "2048",
  },
  {
    name: "NaN",
    says: "Infinity times zero: the canonical NaN, whatever else is added.",
    i: F16,
    t1: "sm_80",
    t2: "sm_90",
    a: "inf, 1",
    b: "0, 1",
    c: "1",
  },
];

// A large value of each format, and small ones of A and B whose product falls below what the large one lets be kept.
const LARGE_AND_SMALL = {
  f64: ["1", "2^-27", "2^-27"],
  tf32: ["1", "2^-12", "2^-13"],
  f16: ["1", "2^-12", "2^-13"],
  bf16: ["1", "2^-12", "2^-13"],
  e5m2: ["1", "2^-12", "2^-13"],
  e4m3: ["16", "2^-8", "2^-9"],
  e3m2: ["16", "2^-4", "2^-4"],
  e2m3: ["7", "2^-3", "2^-3"],
  e2m1: ["6", "0.5", "0.5"],
  s8: ["100", "-3", "5"],
  u8: ["200", "3", "5"],
  s4: ["7", "-3", "5"],
  u4: ["15", "3", "5"],
  b1: ["1", "1", "1"],
};

export function firstValues(record) {
  const row = (format, side) => {
    const [large, ...small] = LARGE_AND_SMALL[format];
    return record.stored > 1 ? `${large}, ${record.stored - 1}x${small[side]}` : large;
  };
  const scales = record.blocks ? "1" : "";
  return { a: row(record.a, 0), b: row(record.b, 1), c: "0", sa: scales, sb: scales };
}
