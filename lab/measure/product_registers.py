"""Measure registers of `wgmma` that are touched without a fence or a wait: `python -m lab.measure.product_registers`.

On an sm_90a GPU with CuPy and ptxas. Each case is a kernel in PTX in its right form and in others: a fence or a wait is
missing. Forms are compiled at -O3, -O1 and -O0, run, and compared with the right form, register by register. Stored is,
by case, form and level, in how many threads a register was wrong; null was not run. `--texts FOLDER` only writes them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.gpu.driver import Driver

__all__ = ["LEVELS", "RECORDED", "arguments", "forms", "main", "text"]

RECORDED = Path(__file__).parents[2] / "tests" / "data" / "h200_product_registers.json"
LEVELS = ("O3", "O1", "O0")
_TRIALS = {"O3": 2000, "O1": 300, "O0": 300}
SHARED = 65536
_FENCE, _COMMIT = "wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;"
_WAIT = "wgmma.wait_group.sync.aligned 0;"
_DONE = _COMMIT + _WAIT
_SUMS = 136  # registers that D is taken from

_HEAD = """.version 8.6
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 tile[];
.visible .entry k(.param .u64 data, .param .u64 c, .param .u64 ref, .param .u64 bad, .param .u32 trials,
.param .u32 mode) {{
.reg .f32 %f<{sums}>; .reg .f32 %e<8>; .reg .b32 %a<8>; .reg .b32 %r<16>; .reg .b32 %meta; .reg .b64 %d<16>;
.reg .b64 %da<4>; .reg .b64 %db<4>; .reg .pred %p<8>;
mov.u32 %r0, %tid.x;
ld.param.u64 %d0, [data]; ld.param.u64 %d1, [c]; ld.param.u64 %d2, [ref]; ld.param.u64 %d3, [bad];
ld.param.u32 %r1, [trials]; ld.param.u32 %r2, [mode];
mov.u32 %r3, tile; mov.u32 %r4, 0; mad.wide.u32 %d4, %r0, 16, %d0; mad.lo.u32 %r5, %r0, 16, %r3;
FILL: ld.global.v4.u32 {{%r6,%r7,%r8,%r9}}, [%d4]; st.shared.v4.u32 [%r5], {{%r6,%r7,%r8,%r9}};
add.u64 %d4, %d4, 2048; add.u32 %r5, %r5, 2048; add.u32 %r4, %r4, 1; setp.lt.u32 %p0, %r4, 32; @%p0 bra FILL;
fence.proxy.async.shared::cta; bar.sync 0;
shr.u32 %r3, %r3, 4; and.b32 %r3, %r3, 0x3fff; cvt.u64.u32 %d5, %r3; or.b64 %d5, %d5, 0x4000004000010000;
{descriptors}
mad.wide.u32 %d6, %r0, 1024, %d1; mad.wide.u32 %d7, %r0, 1024, %d2;
and.b32 %r4, %r0, 1; setp.eq.u32 %p1, %r4, 0; mov.u32 %r10, 0; mov.u32 %r11, 0;
TRIAL:
{load}
ld.volatile.global.v4.u32 {{%a0,%a1,%a2,%a3}}, [%d6+640]; ld.volatile.global.v4.u32 {{%a4,%a5,%a6,%a7}}, [%d6+656];
ld.volatile.global.v4.f32 {{%e0,%e1,%e2,%e3}}, [%d6+672];
ld.volatile.global.u32 %meta, [%d6+688]; and.b32 %meta, %meta, 0; or.b32 %meta, %meta, 0x44444444;
{body}
setp.ne.u32 %p3, %r2, 0; @%p3 bra COMPARE;
{store}
st.global.v4.u32 [%d7+640], {{%a0,%a1,%a2,%a3}};
bra NEXT;
COMPARE: mov.u32 %r12, 0;
{compare}
add.u32 %r11, %r11, %r12;
NEXT: add.u32 %r10, %r10, 1; setp.lt.u32 %p0, %r10, %r1; @%p0 bra TRIAL;
cvt.u64.u32 %d8, %r11; red.global.add.u64 [%d3], %d8;
ret; }}
"""


def text(body: str) -> str:
    """Return the kernel that executes statements between its loads and its comparison."""
    quads = [(4 * i, "{" + ",".join(f"%f{j}" for j in range(i, i + 4)) + "}") for i in range(0, _SUMS, 4)]
    places = [(4 * i, f"%f{i}") for i in range(_SUMS)] + [(640 + 4 * i, f"%a{i}") for i in range(4)]
    compare = "ld.global.u32 %r13, [%d7+{}]; mov.b32 %r14, {}; setp.ne.u32 %p4, %r13, %r14; @%p4 mov.u32 %r12, 1;"
    found = _HEAD.format(
        sums=_SUMS, body=body,
        descriptors="".join(f"add.u64 %da{i}, %d5, {2 * i}; add.u64 %db{i}, %d5, {1024 + 2 * i};" for i in range(4)),
        load="".join(f"ld.volatile.global.v4.f32 {x}, [%d6+{at}];" for at, x in quads),
        store="".join(f"st.global.v4.f32 [%d7+{at}], {x};" for at, x in quads),
        compare="".join(compare.format(at, x) for at, x in places),
    )  # fmt: skip
    return found.replace(";", ";\n")


_F16 = "f32.f16.f16"
_D = {
    "const": "mov.f32 {}, 0f3f800000;", "move": "mov.f32 {}, %e1;", "sum": "add.f32 {}, %e0, %e1;",
    "load": "ld.global.f32 {}, [%d6+676];", "update": "add.f32 {0}, {0}, %e1;",
    "guarded_move": "@%p1 mov.f32 {}, %e1;", "guarded_update": "@%p1 add.f32 {0}, {0}, %e1;",
    "read": "st.global.f32 [%d6+700], {};",
}  # fmt: skip
_A = {
    "move": "mov.b32 %a0, %a4;", "update": "xor.b32 %a0, %a0, %a4;", "load": "ld.global.b32 %a0, [%d6+656];",
    "guarded_move": "@%p1 mov.b32 %a0, %a4;", "guarded_update": "@%p1 xor.b32 %a0, %a0, %a4;",
    "guarded_all": "".join(f"@%p1 xor.b32 %a{i}, %a{i}, %a{4 + i};" for i in range(4)),
}  # fmt: skip


def _product(
    n: int, types: str = _F16, k: int = 16, *, first: int = 0, regs: bool = False, step: int = 0, scale: int = 1,
    sparse: bool = False,
) -> str:  # fmt: skip
    d = ",".join(f"%f{first + i}" for i in range(n // 2))
    a = "{%a0,%a1,%a2,%a3}" if regs else f"%da{step}"
    tail = ",".join("1100"[: 4 - regs] if types in (_F16, "f32.bf16.bf16") else "11")
    sp, meta = (".sp", "%meta, 0, ") if sparse else ("", "")
    return f"wgmma.mma_async{sp}.sync.aligned.m64n{n}k{k}.{types} {{{d}}}, {a}, %db{step}, {meta}{scale}, {tail};"


def _pairs() -> dict[str, tuple[str, str]]:
    """Two products that have registers of D in common."""
    p, e4m3, tf32 = _product, ("f32.e4m3.e4m3", 32), ("f32.tf32.tf32", 8)
    return {
        "n256_n8": (p(256), p(8, step=1)), "n8_n256": (p(8), p(256, step=1)),
        "n256_n8_at_124": (p(256), p(8, first=124)), "n256_n8_at_60": (p(256), p(8, first=60)),
        "n8_n16": (p(8), p(16, step=1)), "n16_n8_at_4": (p(16), p(8, first=4)), "n128_n256": (p(128), p(256, step=1)),
        "n256_n128_at_64": (p(256), p(128, first=64)), "n16_n16_at_4": (p(16), p(16, first=4, step=1)),
        "n256_n256_at_8": (p(256), p(256, first=8, step=1)),
        "f16_bf16": (p(256), p(256, "f32.bf16.bf16", step=1)), "f16_tf32": (p(256), p(256, *tf32, step=1)),
        "tf32_f16": (p(256, *tf32), p(256, step=1)), "f16_e4m3": (p(256), p(256, *e4m3, step=1)),
        "e4m3_f16": (p(256, *e4m3), p(256, step=1)), "n8_f16_e4m3": (p(8), p(8, *e4m3, step=1)),
        "n8_e4m3_f16": (p(8, *e4m3), p(8, step=1)), "n8_f16_tf32": (p(8), p(8, *tf32, step=1)),
        "f16_sparse": (p(256), p(256, k=32, sparse=True, step=1)),
        "sparse_f16": (p(256, k=32, sparse=True), p(256, step=1)),
        "n8_f16_sparse": (p(8), p(8, k=32, sparse=True, step=1)),
        "descriptor_registers": (p(256), p(256, regs=True, step=1)),
        "registers_descriptor": (p(256, regs=True), p(256, step=1)),
        "n256_n8_registers": (p(256), p(8, regs=True, step=1)), "n256_e4m3_n8_f16": (p(256, *e4m3), p(8, step=1)),
        "n256_n8_e4m3": (p(256), p(8, *e4m3, step=1)), "n256_n8_overwritten": (p(256), p(8, scale=0, step=1)),
        "n256_n8_overwritten_at_124": (p(256), p(8, first=124, scale=0)),
    }  # fmt: skip


def forms() -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield each case with the statements of its forms, the right one first."""
    for n in (8, 256):
        chain = "".join(_product(n, step=i) for i in range(4))
        yield f"n{n}_first", {"right": _FENCE + chain + _DONE, "no_fence": chain + _DONE}
        last, some = _product(n, step=3), _FENCE + chain
        for at in (0, n // 2 - 1):
            for name, template in _D.items():
                yield from _touched(f"n{n}", f"d{at}_{name}", some, template.format(f"%f{at}"), last)
        regs = _product(n, regs=True, step=2)
        for name, what in _A.items():
            yield from _touched(f"n{n}", f"a_{name}", some + regs, what, regs.replace("%db2", "%db3"))
    for name, (first, second) in _pairs().items():
        yield f"pair_{name}", {
            "right": _FENCE + first + _DONE + _FENCE + second + _DONE, "no_fence": _FENCE + first + second + _DONE,
            "committed_no_fence": _FENCE + first + _COMMIT + second + _DONE,
            "fence": _FENCE + first + _FENCE + second + _DONE,
            "waited_no_fence": _FENCE + first + _DONE + second + _DONE,
        }  # fmt: skip


def _touched(size: str, name: str, some: str, what: str, last: str) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield what touches a register between products, and behind the last one."""
    yield f"{size}_{name}", {
        "right": some + _DONE + what + _FENCE + last + _DONE, "waited_no_fence": some + _DONE + what + last + _DONE,
        "pending_no_fence": some + what + last + _DONE, "pending_fence": some + what + _FENCE + last + _DONE,
        "pending_committed_fence": some + _COMMIT + what + _FENCE + last + _DONE,
    }  # fmt: skip
    yield f"{size}_last_{name}", {"right": some + _DONE + what, "pending": some + _COMMIT + what + _WAIT}


def arguments() -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return float16 `[32768]`, the tiles, and uint32 `[128, 256]`, what each thread loads: small integers."""
    rng = np.random.default_rng(1)
    data = rng.integers(-3, 4, 32768).astype(np.float16)
    c = np.zeros((128, 256), np.uint32)
    c[:, :160] = rng.integers(-9, 10, (128, 160)).astype(np.float32).view(np.uint32)
    c[:, 160:168] = rng.integers(-3, 4, (128, 16)).astype(np.float16).view(np.uint32)
    c[:, 168:172] = rng.integers(1, 10, (128, 4)).astype(np.float32).view(np.uint32)
    return data, c


def _measure(level: str, folder: Path) -> tuple[int, dict[str, dict[str, int]]]:
    """Run all forms at a level; return how many threads each had, and in how many of them a register was wrong."""
    import cupy as cp  # type: ignore[import-untyped, import-not-found, unused-ignore]

    data, c = map(cp.asarray, arguments())
    blocks = cp.cuda.runtime.getDeviceProperties(0)["multiProcessorCount"] * 3

    def run(statements: str, grid: int, trials: int, mode: int, ref: Any) -> int:
        path = folder / "k.ptx"
        path.write_text(text(statements))
        cubin = folder / "k.cubin"
        subprocess.run(["ptxas", "-arch", "sm_90a", f"-{level}", path, "-o", cubin], check=True, capture_output=True)
        kernel = cp.RawModule(path=str(cubin)).get_function("k")
        kernel.max_dynamic_shared_size_bytes = SHARED
        bad = cp.zeros(1, np.uint64)
        given = data, c, ref, bad, np.uint32(trials), np.uint32(mode)
        kernel((grid,), (128,), given, shared_mem=SHARED)
        cp.cuda.runtime.deviceSynchronize()
        return int(bad.get()[0])

    found: dict[str, dict[str, int]] = {}
    for case, some in forms():
        ref = cp.zeros((128, 256), np.uint32)
        run(some["right"], 1, 1, 0, ref)
        found[case] = {form: run(x, blocks, _TRIALS[level], 1, ref) for form, x in some.items()}
    return blocks * 128 * _TRIALS[level], found


def main(given: Sequence[str] | None = None) -> int:
    """Run the command line; see `--help`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=Path, help="write the texts here, and run nothing")
    parser.add_argument("--out", type=Path, default=RECORDED)
    options = parser.parse_args(given)
    if options.texts is not None:
        options.texts.mkdir(parents=True, exist_ok=True)
        for case, some in forms():
            for form, statements in some.items():
                (options.texts / f"{case}.{form}.ptx").write_text(text(statements))
        return 0
    with TemporaryDirectory() as place:
        runs = {level: _measure(level, Path(place)) for level in LEVELS}
    found = {case: {form: [runs[level][1][case][form] for level in LEVELS] for form in some} for case, some in forms()}
    threads = {level: run[0] for level, run in runs.items()}
    about = {**Driver.about(), "levels": LEVELS, "threads": threads}
    options.out.write_text(json.dumps({**about, "wrong": found}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
