"""Find the NaN that marks an out-of-bounds element for `fma.rn.oob`: `python -m lab.measure.oob_nan --help`.

Needs the GPU (sm_90 or later), `ptxas` on the PATH and CuPy. PTX ISA 9.1 says that the result is 0 if an operand is an
"OOB-NaN", but not which code that is. This tries every code of f16 and bf16 as each operand, prints those whose result
differs from the same `fma` without `.oob`, and stores all results.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lab.gpu.runner import KernelGpu

_OTHERS = {"f16": (0x3C00, 0xC000, 0x7E00), "bf16": (0x3F80, 0xC000, 0x7FC0)}  # 1, -2, NaN
_FORMS = {"plain": "", "oob": ".oob", "relu": ".oob.relu"}


def kernel(form: str, type_: str, name: str) -> str:
    """Return a kernel that applies a form of `fma` to three arrays."""
    lines = [f".visible .entry {name}(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 pd) {{"]
    lines += [".reg .u64 %p, %o;", ".reg .u32 %t, %b, %n;", ".reg .b16 %a, %x, %c, %d;"]
    lines += ["mov.u32 %b, %ctaid.x;", "mov.u32 %n, %ntid.x;", "mov.u32 %t, %tid.x;", "mad.lo.u32 %t, %b, %n, %t;"]
    lines.append("mul.wide.u32 %o, %t, 2;")
    for register, parameter in (("a", "a"), ("x", "b"), ("c", "c")):
        lines += [f"ld.param.u64 %p, [p{parameter}];", "add.u64 %p, %p, %o;", f"ld.global.b16 %{register}, [%p];"]
    lines += [f"fma.rn{_FORMS[form]}.{type_} %d, %a, %x, %c;", "ld.param.u64 %p, [pd];", "add.u64 %p, %p, %o;"]
    return "\n".join([*lines, "st.global.b16 [%p], %d;", "ret;", "}"])


def main(arguments: list[str] | None = None) -> int:
    """Print the codes; 1 if there are none."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--out", type=Path, help="keep all results here, as an archive of NumPy")
    options = parser.parse_args(arguments)
    keys = [(form, type_) for form in _FORMS for type_ in _OTHERS]
    kernels = {key: partial(kernel, *key) for key in keys}
    gpu = KernelGpu(kernels, options.target, (8, 1))
    kept: dict[str, Any] = {}
    codes, found = np.arange(1 << 16, dtype=np.uint16), False
    for form, type_ in keys[len(_OTHERS) :]:
        for role in range(3):
            for other in _OTHERS[type_]:
                given = [np.full_like(codes, other) for _ in range(3)]
                given[role] = codes
                results = [
                    gpu.launch((f, type_), 256, 256, (*given, np.zeros_like(codes)), [3])[0] for f in ("plain", form)
                ]
                label = f"{type_} {form} operand {role} others {other:#06x}"
                kept[label] = np.stack(results)
                expected = results[0] if form == "oob" else np.where(results[0] >> 15, 0, results[0])
                differ = codes[expected != results[1]]
                found |= len(differ) > 0
                shown = ", ".join(f"{c:#06x} -> {results[1][c]:#06x}" for c in differ[:6].tolist())
                print(f"{label}: {len(differ)} differ: {shown}")
    if options.out:
        np.savez_compressed(options.out, **kept)
    return int(not found)


if __name__ == "__main__":
    sys.exit(main())
