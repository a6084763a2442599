"""Run Triton's own tutorials on the simulator: `python -m lab.compare.triton_tutorials FOLDER`.

FOLDER has the files of `python/tutorials` of Triton's sources, which are not in its package. They run unchanged, with
these substitutions: tensors are PyTorch's on the CPU, and `torch.cuda` describes the simulated device, as in
`warpmma.triton`; benchmarks are skipped (`Mark.run`); PyTorch's layer norm, with which 05 compares, computes in f32 as
on a GPU. 06 launches kernels only in its tests and benchmarks, so its `test_op` is called. Prints launches,
instructions and seconds, like the table of docs/triton_kernels.md.

`--launches FILE` stores launches with their memory, for `python -m lab.compare.launches`, whose `replay.json` is in
`tests/data/h200_triton_tutorials.json`; `--compare` lists the launches that leave the same memory as on the H200.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import warpmma as wm
from lab.triton_programs.kept import plain_text
from lab.triton_programs.launching import Launched, watched
from lab.triton_programs.snapshots import digest, left_there, memory, write


def _attention(names: dict[str, Any]) -> None:
    """Call the test of tutorial 06 at its smallest size, in every mode."""
    for causal in (False, True):
        names["test_op"](1, 2, 128, 64, causal, False, "bwd", "triton-fp16")
        names["test_op"](1, 2, 128, 64, causal, False, "fwd", "triton-fp8")


def _layer_norm(names: dict[str, Any]) -> None:
    """Call the test of tutorial 05 again with no two rows sharing a lock: then the order does not matter."""
    names["test_layer_norm"](128, 1000, names["torch"].float16)


RECORDED = Path(__file__).parents[2] / "tests" / "data" / "h200_triton_tutorials.json"
TUTORIALS: dict[str, Callable[[dict[str, Any]], None]] = {
    "01-vector-add": lambda names: None,
    "02-fused-softmax": lambda names: None,
    "03-matrix-multiplication": lambda names: None,
    "04-low-memory-dropout": lambda names: None,
    "05-layer-norm": _layer_norm,
    "06-fused-attention": _attention,
    "08-grouped-gemm": lambda names: None,
}
"""Tutorials, and the functions to call after running them."""


@contextmanager
def on_the_cpu() -> Iterator[list[str]]:
    """Redirect allocations in CUDA memory to the CPU, and skip benchmarks; the result lists their names."""
    import torch
    import triton.testing

    left: list[str] = []
    empty, layer_norm = torch.empty, torch.nn.functional.layer_norm

    def on_cpu(*sizes: Any, **options: Any) -> Any:
        return empty(*sizes, **{**options, "device": "cpu"} if options.get("device") == "cuda" else options)

    def in_f32(x: Any, shape: Any, weight: Any, bias: Any, eps: float) -> Any:
        # On the CPU PyTorch sums f16 in f16: for 1,151 rows the error is 0.06, where tutorial 05 allows 0.01.
        return layer_norm(x.float(), shape, weight.float(), bias.float(), eps)

    with ExitStack() as stack:
        for where, name, made in (
            (torch, "empty", on_cpu),
            (torch.nn.functional, "layer_norm", in_f32),
            (triton.testing.Mark, "run", lambda self, **_: left.append(self.fn.__name__)),
        ):
            stack.enter_context(patch.object(where, name, made))
        # With this, tutorial 06 tries one configuration instead of 36.
        stack.enter_context(patch.dict(os.environ, {"PYTEST_VERSION": "0"}))
        yield left


def run(
    path: Path, finish: Callable[[dict[str, Any]], None], target: str, hazards: Any, look: Any
) -> tuple[list[Launched], float]:
    """Run a tutorial; return its launches, and seconds."""
    torch = import_module("torch")  # before a device answers for `torch.cuda`
    torch.manual_seed(0)
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)  # so that unwritten memory is always the same, too
    start = time.perf_counter()
    wm.triton.install(target, ptx_target=_PTX, hazards=hazards, threads=1)
    try:
        with watched(look) as launches, on_the_cpu() as left:
            finish(runpy.run_path(str(path), run_name=path.stem))
    finally:
        wm.triton.uninstall()
        torch.use_deterministic_algorithms(before)
    print(f"  left out: {', '.join(left)}" if left else "  nothing left out", flush=True)
    return launches, time.perf_counter() - start


_PTX = ("sm_80", "sm_89")  # for which Triton wrote what was recorded


def compare(kept: list[tuple[str, Launched]]) -> int:
    """Print which launches match the H200; return how many do not although the H200 gave the same twice."""
    expected = {one["name"]: one for one in json.loads(RECORDED.read_text())["launches"]}
    counts: Counter[str] = Counter()
    for name, one in kept:
        there = expected.get(name)
        if there is None or digest(plain_text(one.text))[:20] != there["text"]:
            said = "is of another PTX than what was recorded"
        # Variables of the module exist there since the launch: the GPU has its own.
        elif left_there({start: one.after[start] for start in one.before}) == there["left"]:
            said = "leaves what it left on the H200"
        else:
            said = "DIFFERS" if there["repeatable"] else "differs, as the H200 does from itself"
        counts[said] += 1
        print(f"  {name} {said}", flush=True)
    print("; ".join(f"{n} x {said}" for said, n in counts.items()))
    return counts["DIFFERS"]


def main(arguments: list[str] | None = None) -> int:
    """Run tutorials; 1 if one fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="python/tutorials of Triton's sources")
    parser.add_argument("--only", default="", metavar="PREFIX", help="of the tutorials' names: 03")
    parser.add_argument("--target", default="sm_90", help="whose bits are computed (%(default)s)")
    parser.add_argument(
        "--hazards", default="off", choices=("error", "warn", "off"), help="of every launch (%(default)s)"
    )
    parser.add_argument("--compare", action="store_true", help="compare memory with what an H200 left")
    parser.add_argument("--launches", type=Path, metavar="FILE", help="keep launches with their memory")
    options = parser.parse_args(arguments)
    kept: list[tuple[str, Launched]] = []
    failed = 0
    for name, finish in TUTORIALS.items():
        if not name.startswith(options.only):
            continue
        print(name, flush=True)
        try:
            look = memory if options.launches or options.compare else lambda device: None
            launches, seconds = run(options.folder / f"{name}.py", finish, options.target, options.hazards, look)
        except Exception:
            traceback.print_exc()
            failed += 1
            continue
        instructions = sum(sum(one.report.costs.instructions.values()) for one in launches)
        print(f"  {len(launches)} launches, {instructions:,} instructions, {seconds:.1f} s, "
              f"launches {sum(one.seconds for one in launches):.1f} s of a core", flush=True)  # fmt: skip
        kept += [(f"{name[:2]} {one.entry} {i}", one) for i, one in enumerate(launches)]
    if options.compare:
        failed += compare(kept)
    if options.launches:
        write(options.launches, kept)
        print(f"{options.launches}: {options.launches.stat().st_size} bytes, {len(kept)} launches")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
