"""Record which descriptors of `wgmma` fault: `python -m lab.record.descriptor_faults --out FILE.npz`.

Each of 300 descriptors reads B of m64n8k16 in a process of its own, since a fault ends the process's use of the GPU.
Dynamic shared memory begins at 1,024 and has 1 to 227 KiB. Needs the driver and a GPU of sm_90.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lab.gpu.driver import Driver, DriverError
from warpmma.layouts import MatrixDescriptor

__all__ = ["AT", "Case", "cases", "faults"]

AT = 1024
_WINDOW = 1 << 18
_SIZES = (1 << 10, 4 << 10, 20 << 10, 48 << 10, 100 << 10, 227 << 10)
_COUNT, _AT_ONCE, _SECONDS = 300, 12, 60

_TEXT = """.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 region[];
.visible .entry k(.param .u64 d_, .param .u64 word_) {
    .reg .b64 %d, %word, %t; .reg .b32 %a<4>, %x; .reg .f32 %f<4>; .reg .pred %p;
    ld.param.u64 %d, [d_]; ld.param.u64 %word, [word_];
    mov.u32 %x, %tid.x; mov.u32 %a0, region; st.shared.b32 [%a0], 0;
    fence.proxy.async; bar.sync 0;
    mov.b32 %a0, 0x3C003C00; mov.b32 %a1, %a0; mov.b32 %a2, %a0; mov.b32 %a3, %a0;
    setp.eq.u32 %p, %x, %x;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16
        {%f0, %f1, %f2, %f3}, {%a0, %a1, %a2, %a3}, %word, !%p, 1, 1, 0;
    wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
    mul.wide.u32 %t, %x, 16; add.u64 %t, %d, %t; st.global.v4.f32 [%t], {%f0, %f1, %f2, %f3};
    ret;
}
"""


class Case(NamedTuple):
    """Bytes of dynamic shared memory, and the fields of a descriptor."""

    size: int
    start: int
    leading: int
    swizzle: int
    stride: int = 0

    @property
    def descriptor(self) -> MatrixDescriptor:
        """The descriptor."""
        return MatrixDescriptor(start=self.start, leading=self.leading, stride=self.stride, swizzle=self.swizzle)


def cases() -> list[Case]:
    """List descriptors around the end of a block's memory, around that of an SM's, and anywhere."""
    found = []
    for size in _SIZES:
        end = AT + size
        lasts = (
            *(end + x for x in (-16, 0, 16, 112, 128, 256, 1008, 1024, 2048, 4096)), 100 << 10, 200 << 10,
            (228 << 10) - 16, 228 << 10, 229 << 10, _WINDOW // 2, _WINDOW - 16,
        )  # fmt: skip
        found += [Case(size, last - 112, 0, 0) for last in lasts if 112 <= last < _WINDOW]
        seconds = (
            (AT, end - 128), (AT, end), (AT, end + 1024), (AT, _WINDOW - 1152), (AT, _WINDOW - 1024),
            (2048, _WINDOW - 1024), (0, 0), (512, 0), (896, 0), (0, AT),
        )  # fmt: skip
        found += [Case(size, first, (second - first) % _WINDOW, 0) for first, second in seconds]
    rng = np.random.default_rng(0)
    while len(found) < _COUNT:
        size, swizzle = int(rng.choice([1 << 10, 20 << 10, 100 << 10])), int(rng.choice([0, 32, 64, 128]))
        start, leading, stride = (16 * int(x) for x in rng.integers(1 << 14, size=3))
        found.append(Case(size, start, leading, swizzle, stride))
    return found


def faults(case: Case) -> bool:
    """Whether a descriptor faults: an access of eight lines by 16 bytes begins beyond the block's memory."""
    addresses = case.descriptor.addresses(8, 16, bits=16, major="K")
    return bool((addresses[0, ::8] >= AT + case.size).any())


def _run(number: int) -> str:
    """Run a case in this process; return what the driver says."""
    case, driver = cases()[number], Driver()
    kernel = driver.load(_TEXT, ["k"])["k"]
    d = driver.place(np.zeros(512, np.float32))
    words = [x.to_bytes(8, "little") for x in (d, case.descriptor.word)]
    try:
        driver.launch(kernel, [1], [128], words, shared=case.size)
        driver.synchronise(20)
    except DriverError as error:
        return str(error)
    return ""


def _in_a_process(number: int) -> str:
    command = [sys.executable, "-m", "lab.record.descriptor_faults", "--case", str(number)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=True)
    said: str = json.loads(done.stdout)
    return said


def main(arguments: list[str] | None = None) -> int:
    """Run all cases, or one; 1 if any does not do what `faults` says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, metavar="FILE.npz", help="cases, and which of them fault")
    parser.add_argument("--case", type=int, help="one case in this process; what the driver says as JSON")
    options = parser.parse_args(arguments)
    if options.case is not None:
        print(json.dumps(_run(options.case)))
        return 0
    if options.out is None:
        parser.error("--out is missing")
    every = cases()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        said = list(pool.map(_in_a_process, range(len(every))))
    came = np.array([bool(x) for x in said])
    np.savez_compressed(options.out, cases=np.array(every), faults=came, about=np.array(json.dumps(Driver.about())))
    wrong = [case for case, fault in zip(every, came, strict=True) if faults(case) != fault]
    print(
        f"{len(every)} descriptors, {came.sum()} fault: {sorted({x for x in said if x})}; {len(wrong)} as not expected"
    )
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
