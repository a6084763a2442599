"""Record what PyTorch's `torch.compile` launches on a GPU: `python -m lab.record.torch_launches LAUNCHES.npz`.

Compiles the models of `lab.compare.torch_models` for this machine's GPU, forward and backward, and keeps each launch of
Triton's kernels with its PTX, its arguments, and all memory that the arguments point to, before and after it. That
includes the launches by which Inductor and templates measure configurations: those of a kernel are kept twice for each
model. `python -m lab.compare.torch_launches` repeats them on the simulator.

Needs a GPU, PyTorch and Triton (recorded with PyTorch 2.11 and Triton 3.6, whose names it replaces). Left out are
launches with scratch memory, with descriptors, or with more memory than `MOST`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

from lab.gpu.driver import Driver
from lab.programs.launches import Array
from lab.triton_programs.kept import plain_text
from lab.triton_programs.launching import Launched
from lab.triton_programs.snapshots import write

__all__ = ["Recorder"]

MOST = 16_000_000
"""Bytes of memory of a launch that is kept."""

SETTINGS: Mapping[str, Any] = {
    "compile_threads": 1, "use_static_cuda_launcher": False, "use_static_triton_launcher": False,
    "fx_graph_cache": False, "deterministic": True, "max_autotune_gemm_backends": "TRITON",
}  # fmt: skip
"""Inductor's, of those that the version has: launches go through Triton's launcher, and products are its kernels."""

_NUMBERS = {"fp32": "f32", "fp64": "f64", "f32": "f32", "f64": "f64", "i1": "u8", "i8": "u8", "i16": "u16",
            "i32": "u32", "i64": "u64", "u8": "u8", "u16": "u16", "u32": "u32", "u64": "u64"}  # fmt: skip


@dataclass
class Recorder:
    """Launches, under the name of the model that is running."""

    name: str = ""
    launches: list[tuple[str, Launched]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    kernels: dict[int, Any] = field(default_factory=dict)
    counts: Counter[tuple[str, int]] = field(default_factory=Counter)

    def launch(
        self,
        function: int,
        grid: tuple[int, int, int],
        given: Sequence[tuple[str, Any]] | None,
        call: Callable[[], Any],
    ) -> Any:
        """Launch a function of the driver by `call`, and keep the launch if the types and values are `given`."""
        kernel = self.kernels.get(function)
        if kernel is None or 0 in grid:
            return call()
        self.counts[self.name, function] += 1
        if self.counts[self.name, function] > 2:
            return call()
        known = _arguments(given) if given is not None and getattr(kernel.metadata, "num_ctas", 1) == 1 else None
        if known is None:
            self.left_out[kernel.name] += 1
            return call()
        arguments, storages = known
        before = _memory(storages)
        result = call()
        text = plain_text(kernel.asm["ptx"])
        head = text.split(f".entry {kernel.name}", 1)[1].split(")", 1)[0]
        arguments += [("u64", 0)] * (head.count(".param") - len(arguments))  # scratch memory, which it does not have
        self.launches.append((self.name, Launched(
            text=text, entry=kernel.name, grid=grid, block=(32 * kernel.metadata.num_warps,),
            arguments=tuple(arguments), shared=kernel.metadata.shared, report=None, seconds=0.0,
            before=before, after=_memory(storages),
        )))  # fmt: skip
        return result

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Keep the launches of Triton's kernels that happen within."""
        compiled, launcher = import_module("triton.compiler").CompiledKernel, _driver().CudaLauncher
        load, make, call = compiled._init_handles, launcher.__init__, launcher.__call__

        def loaded(kernel: Any) -> None:
            load(kernel)
            self.kernels[kernel.function] = kernel

        def made(it: Any, source: Any, metadata: Any) -> None:
            make(it, source, metadata)
            it.types = [str(x) for x in source.signature.values()]

        def called(it: Any, x: int, y: int, z: int, stream: int, function: int, *args: Any) -> Any:
            scratch = it.global_scratch_size or it.profile_scratch_size
            given = None if scratch else list(zip(it.types, args[len(args) - len(it.types) :], strict=True))
            return self.launch(function, (x, y, z), given, lambda: call(it, x, y, z, stream, function, *args))

        with (patch.object(compiled, "_init_handles", loaded), patch.object(launcher, "__init__", made),
              patch.object(launcher, "__call__", called)):  # fmt: skip
            yield


def _driver() -> Any:
    return import_module("triton.backends.nvidia.driver")


def _arguments(given: Sequence[tuple[str, Any]]) -> tuple[list[tuple[str, int | float]], list[Any]] | None:
    """Return arguments by type, and the storages that they point to; None if one has another type, or for too much."""
    arguments, storages = list[tuple[str, int | float]](), dict[int, Any]()
    for type_, value in given:
        if type_ == "constexpr":
            continue
        if type_.startswith("*") and value is None:
            arguments.append(("u64", 0))
        elif type_.startswith("*") and hasattr(value, "untyped_storage"):
            storage = value.untyped_storage()
            storages[storage.data_ptr()] = storage
            arguments.append(("u64", value.data_ptr()))
        elif type_ in _NUMBERS:
            kind = _NUMBERS[type_]
            arguments.append((kind, float(value) if kind[0] == "f" else int(value) % (1 << int(kind[1:]))))
        else:
            return None
    return None if sum(x.nbytes() for x in storages.values()) > MOST else (arguments, list(storages.values()))


def _memory(storages: Sequence[Any]) -> dict[int, Array]:
    """Return the bytes of storages, by address."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return {
        x.data_ptr(): torch.empty(0, dtype=torch.uint8, device=x.device).set_(x).cpu().numpy().copy() for x in storages
    }


def main(arguments: list[str] | None = None) -> int:
    """Record; 1 if a model fails, with what is recorded of the others stored."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="file for the launches")
    parser.add_argument("--only", default="", metavar="TEXT", help="models with this in their names")
    parser.add_argument("--seconds", type=float, default=1e9, help="after which no further model is begun")
    options = parser.parse_args(arguments)
    import torch

    from lab.compare import torch_models

    recorder, begin, failed = Recorder(), time.monotonic(), 0
    for setting, value in SETTINGS.items():
        if hasattr(torch._inductor.config, setting):
            setattr(torch._inductor.config, setting, value)
    with recorder.recording():
        for name, case in torch_models.CASES.items():
            if options.only not in name or time.monotonic() - begin > options.seconds:
                continue
            recorder.name, before = name, len(recorder.launches)
            torch.manual_seed(0)
            try:
                model, args = case.make()
                if isinstance(model, torch.nn.Module):
                    model = model.cuda()
                given = [x.detach().cuda().requires_grad_(x.requires_grad) for x in args]
                torch._dynamo.reset()
                torch_models.results(torch.compile(model, mode=case.mode), given)
            except Exception as error:  # a model that this version does not compile
                failed += 1
                print(f"{name}: {type(error).__name__}: {str(error)[:500]}", flush=True)
            print(f"{name}: {len(recorder.launches) - before} launches", flush=True)
    import triton

    write(options.out, recorder.launches, **Driver.about(), torch=torch.__version__, triton=triton.__version__)
    print(f"{options.out}: {len(recorder.launches)} launches; left out: {dict(recorder.left_out)}")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
