"""CUDA C++: texts that are compiled, where there is a compiler."""

from __future__ import annotations

from typing import Any

from warpmma.cuda import CudaModule, load

from . import surface
from .calls import Entry
from .hostile import Rng, pick

__all__ = ["ENTRIES", "INNER"]

TEXT = 'extern "C" __global__ void add(int *x, int n)\n{\n    if (threadIdx.x < n) x[threadIdx.x] += 1;\n}\n'


def _load(
    source: Any, *, arch: Any = "sm_80", options: Any = (), names: Any = (), compiler: Any = "auto", name: Any = ""
) -> Any:  # fmt: skip
    """Compile by NVRTC alone: nvcc takes a second."""
    if isinstance(compiler, str) and compiler in ("auto", "nvcc"):
        compiler = "nvrtc"
    return load(source, arch=arch, options=options, names=names, compiler=compiler, name=name)


def _made(rng: Rng) -> dict[str, Any]:
    return {
        "source": TEXT, "arch": pick(rng, ("sm_80", "sm_90a")), "compiler": "nvrtc", "name": pick(rng, ("", "k.cu")),
        "options": pick(rng, ([], ["-DN=3"])), "names": pick(rng, ([], ["add"])),
    }  # fmt: skip


ENTRIES = (
    Entry(
        name="warpmma.cuda:load", call=_load, make=_made, weight=0.3, pure=False, fixed=("compiler",),
        needs="cuda.bindings",
    ),
)  # fmt: skip

INNER = {
    "warpmma.cuda:CudaModule": "made by `load`",
    **dict.fromkeys(
        (f"warpmma.cuda:CudaModule.{x}" for x in surface.public_functions(CudaModule)), "as of `PtxModule`"
    ),
}
