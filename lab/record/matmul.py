"""Record the results of PyTorch's matrix products on this machine's GPU: `python -m lab.record.matmul --help`.

Needs an sm_90 GPU and PyTorch; was run on an H200 with PyTorch 2.11. The inputs come from seeds, by
`lab.gpu.libraries`, which also defines the archive and reads it. `--device cpu` runs anywhere, for trying it out; no
kernels are then recorded.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lab.gpu.libraries import LibraryProduct, RecordedProduct, read_products, texts_of, write_products

Array = npt.NDArray[Any]
Kind = Literal["normal", "model", "hard"]

_NAMES = {"f16": "float16", "bf16": "bfloat16", "e4m3": "float8_e4m3fn", "f32": "float32"}

# Functions by their names in the archive.
CALLS = {
    "matmul": "a @ b, both row-major, default settings",
    "matmul-full": "the same, allow_{fp16,bf16}_reduced_precision_reduction = False",
    "matmul-lt": "as matmul, with preferred_blas_library('cublaslt')",
    "matmul-lt-full": "as matmul-full, with preferred_blas_library('cublaslt')",
    "matmul-whole": "as matmul-lt, allow_{fp16,bf16}_reduced_precision_reduction = (False, False): no splitting of k",
    "linear": "a @ w.T with row-major w, that is with column-major b; default settings",
    "mm-f32": "torch.mm(a, b, out_dtype=torch.float32)",
    "scaled-fast": "torch._scaled_mm(a, b, 1, 1, use_fast_accum=True), column-major b",
    "scaled": "torch._scaled_mm(a, b, 1, 1, use_fast_accum=False), column-major b",
}

_HALF_SHAPES = [
    (128, 128, 256),
    (256, 512, 1024),
    (256, 256, 4096),
    (64, 64, 64),
    (2048, 64, 512),
    (64, 2048, 512),
    (512, 512, 64),
    (128, 128, 8192),
    (2048, 2048, 2048),
    (200, 328, 1000),
    (72, 136, 520),
    (16, 4096, 4096),
    (512, 768, 768),
    (384, 640, 2560),
    (24, 40, 88),
    (104, 56, 4104),
    (640, 384, 3072),
    (1, 4096, 1024),
    (1024, 1024, 1024),
    (100, 100, 100),
    (33, 17, 65),
    (4096, 1024, 256),
]
_FP8_SHAPES = [
    (128, 128, 256),
    (256, 512, 1024),
    (256, 256, 1024),
    (256, 256, 4096),
    (64, 64, 64),
    (2048, 64, 512),
    (64, 2048, 512),
    (512, 512, 64),
    (128, 128, 8192),
    (2048, 2048, 2048),
    (208, 336, 1008),
    (80, 144, 528),
    (16, 4096, 4096),
    (512, 768, 768),
    (384, 640, 2560),
    (32, 48, 112),
    (112, 64, 4112),
    (640, 384, 3072),
    (1, 4096, 1024),
    (1024, 1024, 1024),
    (4096, 1024, 256),
]
_MODEL_SHAPES = {(256, 512, 1024), (256, 256, 4096), (200, 328, 1000), (208, 336, 1008), (512, 768, 768)}
_LONG_SHAPES = {
    (256, 256, 4096), (128, 128, 8192), (16, 4096, 4096), (384, 640, 2560), (104, 56, 4104), (112, 64, 4112),
    (640, 384, 3072), (2048, 64, 512), (256, 512, 1024),
}  # fmt: skip


def cases() -> Iterator[LibraryProduct]:
    """Yield what to record; cases with the same inputs follow one another."""
    for seed, (m, n, k) in enumerate(_HALF_SHAPES, 1):
        kinds: list[Kind] = ["hard", "normal", *(["model"] if (m, n, k) in _MODEL_SHAPES else [])]  # type: ignore[list-item]
        for dtype in ("f16", "bf16"):
            for kind in kinds:
                calls = ["matmul"]
                if kind == "hard":
                    calls += ["matmul-full", "linear", "mm-f32"]
                    calls += ["matmul-lt", "matmul-lt-full", "matmul-whole"] if (m, n, k) in _LONG_SHAPES else []
                for call in calls:
                    yield LibraryProduct(call, dtype, "f32" if call == "mm-f32" else dtype, kind, m, n, k, seed)
    for seed, (m, n, k) in enumerate(_FP8_SHAPES, 101):
        kinds = ["hard", "normal", *(["model"] if (m, n, k) in _MODEL_SHAPES else [])]  # type: ignore[list-item]
        for kind in kinds:
            for out in ("bf16", "f16", "f32") if kind == "hard" else ("bf16",):
                yield LibraryProduct("scaled-fast", "e4m3", out, kind, m, n, k, seed)
                if kind == "hard" and out != "f16":
                    yield LibraryProduct("scaled", "e4m3", out, kind, m, n, k, seed)


class Library:
    """PyTorch on one device."""

    def __init__(self, device: str) -> None:
        import torch

        self._torch: Any = torch
        self.device = device

    def texts(self) -> dict[str, str]:
        """Device, driver and versions."""
        torch = self._torch
        found = {"torch": str(torch.__version__)}
        if self.device != "cuda":
            return {"device": "CPU", **found}
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        driver = subprocess.run(query, check=True, capture_output=True, text=True).stdout.split()[0]
        name = torch.cuda.get_device_name()
        found |= {"device": f"{name}, driver {driver}, CUDA {torch.version.cuda}", "driver": driver, "gpu": name}
        found["cuda"] = str(torch.version.cuda)
        torch.ones(8, 8, device="cuda").half().matmul(torch.ones(8, 8, device="cuda").half())  # loads cuBLAS
        mapped = Path("/proc/self/maps").read_text(encoding="utf-8").split()
        path = next((x for x in mapped if "libcublasLt" in x), "")
        if path:
            version = ctypes.CDLL(path).cublasLtGetVersion
            version.restype = ctypes.c_size_t
            found["cublaslt"] = str(version())
        for package in ("nvidia-cublas", "nvidia-cublas-cu12"):
            try:
                found["cublas"] = metadata.version(package)
            except metadata.PackageNotFoundError:
                continue
        return found

    def upload(self, codes: Array, dtype: str, column_major: bool) -> Any:
        """Return a tensor with these codes."""
        torch = self._torch
        stored = np.ascontiguousarray(codes.T if column_major else codes)
        signed = stored.view(f"i{stored.itemsize}").copy()  # PyTorch does not accept read-only arrays
        tensor = torch.from_numpy(signed).to(self.device).view(getattr(torch, _NAMES[dtype]))
        return tensor.t() if column_major else tensor

    def product(self, case: LibraryProduct) -> Callable[[], Any]:
        """Return a function that computes a case; the settings are in effect from now on."""
        torch = self._torch
        column_major = case.call in ("linear", "scaled", "scaled-fast")
        a, b = case.inputs()
        x, y = self.upload(a, case.dtype, False), self.upload(b, case.dtype, column_major)
        self._set(case.call)
        out = getattr(torch, _NAMES[case.out])
        if case.call in ("scaled", "scaled-fast"):
            one = torch.ones((), dtype=torch.float32, device=self.device)
            fast = case.call == "scaled-fast"
            return lambda: torch._scaled_mm(x, y, one, one, out_dtype=out, use_fast_accum=fast)
        if case.call == "mm-f32":
            return lambda: torch.mm(x, y, out_dtype=out)
        return lambda: x @ y

    def _set(self, call: str) -> None:
        if self.device != "cuda":
            return
        cuda = self._torch.backends.cuda
        whole = call == "matmul-whole"
        allowed = (False, False) if whole else not call.endswith("-full")
        # First a library that accepts any setting, then the settings, then the requested library.
        cuda.preferred_blas_library("cublaslt")
        cuda.matmul.allow_fp16_reduced_precision_reduction = allowed
        cuda.matmul.allow_bf16_reduced_precision_reduction = allowed
        cuda.matmul.allow_fp16_accumulation = False
        if not whole and not call.startswith("matmul-lt"):
            cuda.preferred_blas_library("default")

    def profiled(self, function: Callable[[], Any]) -> tuple[Any, tuple[str, ...]]:
        """Call a function; return its result and the kernels that ran."""
        torch = self._torch
        if self.device != "cuda":
            return function(), ()
        activity = torch.profiler.ProfilerActivity
        with torch.profiler.profile(activities=[activity.CPU, activity.CUDA]) as profile:
            result = function()
            torch.cuda.synchronize()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            profile.export_chrome_trace(str(path))
            events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
        ran = [e for e in events if e.get("cat") in ("kernel", "gpu_memset", "gpu_memcpy")]
        ran.sort(key=lambda e: float(e["ts"]))
        return result, tuple(_kernel(e) for e in ran)

    def record(self, case: LibraryProduct, limit: int) -> RecordedProduct:
        """Compute a case and keep at most `limit` outputs, at equal strides."""
        torch = self._torch
        function = self.product(case)
        result, kernels = self.profiled(function)
        words = {2: torch.int16, 4: torch.int32}[result.element_size()]
        again = [function() for _ in range(2)]
        repeatable = all(torch.equal(result.view(words), x.view(words)) for x in again)
        rows, columns = kept(case.m, case.n, limit)
        codes = result.view(words).cpu().numpy()[rows, columns]
        expected = np.ascontiguousarray(codes).view(f"u{codes.itemsize}")
        return RecordedProduct(case, rows, columns, expected, kernels, repeatable, case.digest())


def kept(m: int, n: int, limit: int) -> tuple[slice, slice]:
    """Return rows and columns of at most `limit` outputs, at odd strides, which reach every position of a tile.

    Examples
    --------
    >>> kept(128, 128, 16384)
    (slice(0, 128, 1), slice(0, 128, 1))
    >>> kept(2048, 2048, 16384)
    (slice(0, 2048, 17), slice(0, 2048, 17))
    """
    step = 1
    while -(-m // min(step, m)) * -(-n // min(step, n)) > limit:
        step += 2
    return slice(0, m, min(step, m)), slice(0, n, min(step, n))


def selected(recorded: RecordedProduct) -> RecordedProduct | None:
    """Return the part of a recorded product that the tests keep, if any."""
    case = recorded.case
    split = len(recorded.kernels) > 1 or case.call == "matmul-whole"
    match case.call:
        case "matmul":
            wanted = case.kind == "hard" or (case.dtype == "bf16") == (case.seed % 2 == 1) or case.kind == "model"
        case "matmul-full" | "matmul-lt":
            wanted = split
        case "matmul-lt-full":
            wanted = False
        case "linear" | "matmul-whole":
            wanted = split or case.k % 64 > 0
        case "mm-f32" | "scaled":
            wanted = case.out == "f32" or split
        case _:
            wanted = True
    if not wanted or (case.kind == "normal" and case.n * case.k > 1 << 23):  # slow to make
        return None
    # Some small outputs whole: every position of every tile.
    whole = case.call in ("matmul", "scaled-fast", "scaled") and case.m * case.n <= 12000 and case.kind == "hard"
    rows, columns = recorded.expected.shape
    r, c = kept(rows, columns, rows * columns if whole and case.out != "f16" else 600)

    def further(old: slice, new: slice) -> slice:
        return slice(old.start, old.stop, old.step * new.step)

    return replace(
        recorded, rows=further(recorded.rows, r), columns=further(recorded.columns, c),
        expected=np.ascontiguousarray(recorded.expected[r, c]),
    )  # fmt: skip


def _kernel(event: dict[str, Any]) -> str:
    values = event.get("args", {})
    sizes = [f"{x} {'x'.join(str(y) for y in values[x])}" for x in ("grid", "block") if x in values]
    return ", ".join([str(event["name"]), *sizes])


def main(arguments: list[str] | None = None) -> int:
    """Record; 1 if a case could not be computed."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(["calls:", *(f"  {name}: {text}" for name, text in CALLS.items())]),
    )  # fmt: skip
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="archive to write")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--outputs", type=int, default=16384, help="most outputs kept of a product (%(default)s)")
    parser.add_argument("--only", default="", metavar="TEXT", help="only cases whose name contains this")
    parser.add_argument("--seconds", type=float, default=480, help="stop with what there is after (%(default)s)")
    parser.add_argument("--select", type=Path, metavar="ARCHIVE", help="record nothing: take from it what tests keep")
    options = parser.parse_args(arguments)
    if options.select:
        taken = [part for part in map(selected, read_products(options.select)) if part is not None]
        write_products(options.out, taken, texts_of(options.select))
        print(f"{len(taken)} selected, {options.out.stat().st_size} bytes")
        return 0
    os.environ.setdefault("KINETO_LOG_LEVEL", "4")
    start = time.monotonic()
    library = Library(options.device)
    about = library.texts()
    print(about, flush=True)
    recorded: list[RecordedProduct] = []
    failed = 0
    for case in cases():
        if options.only not in case.name:
            continue
        if time.monotonic() - start > options.seconds:
            print(f"out of time before {case.name}")
            failed += 1
            break
        try:
            recorded.append(library.record(case, options.outputs))
        except (RuntimeError, ValueError, NotImplementedError, TypeError) as error:  # unsupported combinations
            print(f"{case.name}: {' '.join(str(error).split())[:150]}", flush=True)
            failed += 1
            continue
        last = recorded[-1]
        mark = "" if last.repeatable else " NOT REPEATABLE"
        print(f"{time.monotonic() - start:6.1f} {case.name}{mark}: {' | '.join(last.kernels)}", flush=True)
    write_products(options.out, recorded, about)
    print(f"{len(recorded)} recorded, {failed} failed, {options.out.stat().st_size} bytes")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
