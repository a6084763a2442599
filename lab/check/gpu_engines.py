"""Compare products on this machine's GPU with the native engine: what `python -m lab.check.engines --gpu` runs.

A job is one instruction over outer products of rows of A and columns of B, in one style of operands; as some styles
want it, row i, column i and C[i, i] belong together. The GPU computes it by the kernel of `engine="cuda"` and, with
`--hardware`, by its own instruction too, while the native engine does. A case is a recipe or, with `--hardware`, an
instruction of the GPU. The one with the fewest outputs comes next, and a state file counts outputs over many runs.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.check.campaign import Campaign, Case, Job, Outcome
from lab.generators import recipe_cases
from warpmma.arithmetic import FusedDotAdd, GroupedDotAdd, IntegerSum, Recipe, recipe
from warpmma.arithmetic.dispatch import native
from warpmma.formats import FORMATS
from warpmma.gpu import (
    NOTHING,
    CudaGpu,
    Matrices,
    ProductForm,
    ProductKernel,
    ProductLaunch,
    gpu,
    hardware_kernel,
    kernel_of,
)
from warpmma.hardware import drawn_nibbles, outer_codes
from warpmma.isa import TARGETS, MatrixInstruction, instructions, warpgroup_instructions
from warpmma.sparsity import SORTED_CODES, sparse_a

__all__ = [
    "SIDE", "Campaign", "Case", "Job", "Options", "Outcome", "drawn", "hardware_cases", "recipe_cases_of_gpu", "run",
]  # fmt: skip

Array = npt.NDArray[Any]
Rng = np.random.Generator

SIDE = 2048  # rows and columns of a job
_SAVED_EVERY = 10.0  # seconds


def recipe_cases_of_gpu() -> list[Case]:
    """List every recipe, with each k that it is used with, dense and, if its unit has them, sparse."""
    found: dict[tuple[Recipe, int, int], str] = {}
    for x in recipe_cases():
        found[x.recipe, x.k, x.blocks] = str(x)
    for i in warpgroup_instructions():
        for target in i.targets:
            found.setdefault((recipe(i, target), i.k // 2 if i.sparse else i.k, 0), f"{target} {i}")
    return [
        Case(name=f"{name}{', sparse' if width else ''}", recipe=how, k=k, scales=scales, width=width)
        for (how, k, scales), name in found.items()
        for width in ((0, 4) if isinstance(how.unit, FusedDotAdd | GroupedDotAdd | IntegerSum) else (0,))
    ]


def hardware_cases(capability: tuple[int, int]) -> list[Case]:
    """List every instruction of a GPU without block scales, once for each recipe that its targets have for it."""
    found: dict[tuple[MatrixInstruction, Recipe], str] = {}
    for target in (x.name for x in TARGETS.values() if x.capability == capability):
        for i in (*instructions(target), *warpgroup_instructions(target)):
            if not i.block_scale:
                found[i, recipe(i, target)] = target
    return [
        Case(
            name=f"hardware {target} {i}", recipe=how, k=i.k // 2 if i.sparse else i.k,
            width=sparse_a(i).pattern.width if i.sparse else 0, instruction=i, target=target,
        )
        for (i, how), target in found.items()
    ]  # fmt: skip


def drawn(job: Job, rng: Rng, side: int) -> dict[str, Array]:
    """Draw codes as `native.product` takes them, of `side` rows and columns."""
    case = job.case
    x = outer_codes(case.recipe, case.k, side, job.style, rng, case.scales, sparse=bool(case.width))
    of_c = x.pop("c")  # C[i, j] is the element i + j
    c = np.lib.stride_tricks.as_strided(of_c, (1, side, side), (0, of_c.itemsize, of_c.itemsize), writeable=False)
    given = {"c": c, **{name: array[None] for name, array in x.items()}}
    if case.width:
        given["chosen"] = _chosen(case, rng, side)[None]
    return given


def _chosen(case: Case, rng: Rng, rows: int) -> Array:
    """Choose the rows that stored elements of A meet: mostly their partners, in a tenth of the rows any."""
    groups = case.k * 2 // case.width
    codes = SORTED_CODES if case.instruction is None else sparse_a(case.instruction).legal_codes(case.target)
    nibbles = drawn_nibbles(codes, rows, groups, rng)
    if case.instruction is not None:
        return sparse_a(case.instruction).rows_met(nibbles)
    places = np.stack([nibbles & 3, nibbles >> 2], axis=-1) + 4 * np.arange(groups, dtype=np.uint8)[:, None]
    swapped = rng.random(rows) < 0.1  # i0 > i1, which some instructions have
    places[swapped] = places[swapped][..., ::-1]
    return places.reshape(rows, case.k).astype(np.uint8)


class Room:
    """What one thread has on the GPU: a stream, memory for operands and results, and pinned copies of both.

    Nothing is allocated for each job: that would make all threads wait.
    """

    def __init__(self, on: CudaGpu) -> None:
        self._gpu = on
        self._sizes = {"in": 0, "out": 0}
        self._here: dict[str, Array] = {}
        self._there: dict[str, int] = {}
        with on.current() as driver:
            self._stream = int(_done(driver.cuStreamCreate(1)))  # CU_STREAM_NON_BLOCKING

    def _reserve(self, name: str, size: int) -> None:
        if size <= self._sizes[name]:
            return
        with self._gpu.current() as driver:
            address = int(_done(driver.cuMemHostAlloc(size, 0)))
            self._there[name] = int(_done(driver.cuMemAlloc(size)))
        self._here[name] = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
        self._sizes[name] = size

    def start(self, kernels: Sequence[ProductKernel], given: dict[str, Array], result: np.dtype[Any]) -> None:
        """Copy operands, launch kernels and copy their results, all without waiting."""
        held, end = dict[str, tuple[int, Array, tuple[int, int, int]]](), 0
        for name, x in given.items():
            memory, strides = _memory(x)
            held[name], end = (end, memory, strides), end + -(-memory.nbytes // 256) * 256
        _, m, n = given["c"].shape
        self._reserve("in", end)
        self._reserve("out", len(kernels) * m * n * result.itemsize)
        for offset, memory, _ in held.values():
            self._here["in"][offset : offset + memory.nbytes] = memory.reshape(-1).view(np.uint8)
        of = {name: Matrices(self._there["in"] + offset, strides) for name, (offset, _, strides) in held.items()}
        for kernel in kernels:
            self._gpu.loaded(kernel)
        k = given["b"].shape[1]
        with self._gpu.current() as driver:
            copied = driver.cuMemcpyHtoDAsync(self._there["in"], self._here["in"].ctypes.data, end, self._stream)
            _done(copied)
        for number, kernel in enumerate(kernels):
            d = self._there["out"] + number * m * n * result.itemsize
            self._gpu.launch(
                ProductLaunch(
                    kernel=kernel, shape=(1, m, n, given["a"].shape[2]), a=of["a"], b=of["b"], c=of["c"], d=d,
                    slices=(0, k), chosen=of.get("chosen", NOTHING), scale_a=of.get("scale_a", NOTHING),
                    scale_b=of.get("scale_b", NOTHING),
                    blocks=given["scale_a"].shape[2] if "scale_a" in given else 0,
                ), self._stream,
            )  # fmt: skip
        size = len(kernels) * m * n * result.itemsize
        with self._gpu.current() as driver:
            _done(driver.cuMemcpyDtoHAsync(self._here["out"].ctypes.data, self._there["out"], size, self._stream))
        self._results = self._here["out"][:size].view(result).reshape(len(kernels), 1, m, n)

    def wait(self) -> Array:
        """Return results, `[kernel, 1, m, n]`, which the next start overwrites."""
        with self._gpu.current() as driver:
            _done(driver.cuStreamSynchronize(self._stream))
        return self._results


def _memory(x: Array) -> tuple[Array, tuple[int, int, int]]:
    """Return the memory of a matrix `[1, rows, columns]`, contiguous, and strides in elements."""
    _, rows, columns = x.shape
    row, column = (s // x.itemsize for s in x.strides[1:])
    if row == column == 1 and rows > 1 and columns > 1:  # C
        return np.concatenate([x[0, 0], x[0, -1, 1:]]), (0, 1, 1)
    if row == 1:
        return np.ascontiguousarray(x[0].T), (0, 1, rows)
    return np.ascontiguousarray(x[0]), (0, columns, 1)


def _done(answer: tuple[Any, ...]) -> Any:
    code, *rest = answer
    if int(code):
        raise RuntimeError(f"the CUDA driver fails: {code}")
    return rest[0] if rest else None


_mine = threading.local()


def compare(job: Job, seed: int, side: int) -> Outcome:
    """Run one job."""
    rng = np.random.default_rng([seed, job.number])
    case, given = job.case, drawn(job, rng, side)
    if not hasattr(_mine, "room"):
        _mine.room, _mine.expected, _mine.differs = Room(gpu()), np.empty(0, np.uint8), np.empty(0, bool)
    form = ProductForm(recipe=case.recipe, k=case.k, width=case.width, scales=case.scales, result=case.recipe.d)
    kernels = {"cuda": kernel_of(form)}
    if case.instruction is not None:
        kernels["hardware"] = hardware_kernel(case.instruction, case.target, form)
    result = FORMATS[case.recipe.d].code_dtype
    _mine.room.start(list(kernels.values()), given, result)
    if len(_mine.expected) < side * side * result.itemsize:
        _mine.expected, _mine.differs = np.empty(side * side * 8, np.uint8), np.empty(side * side, bool)
    expected = _mine.expected[: side * side * result.itemsize].view(result).reshape(1, side, side)
    native.product(case.recipe, k=case.k, scales=case.scales, out=expected, **given)  # type: ignore[arg-type]
    differences, first = 0, ""
    for name, got in zip(kernels, _mine.room.wait(), strict=True):
        differs = np.not_equal(got, expected, out=_mine.differs[: side * side].reshape(1, side, side))
        if differs.any():
            differences += int(differs.sum())
            place = tuple(int(x) for x in np.argwhere(differs)[0])
            values = f"{name} {int(got[place]):#x}, native {int(expected[place]):#x}"
            first = first or f"{case.name}, {job.style}, seed {seed}, job {job.number}, {place}: {values}"
    return Outcome(side * side, differences, first)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of the command."""

    outputs: float
    seed: int
    threads: int
    hardware: bool = False
    state: Path | None = None
    minutes: float | None = None


def run(options: Options) -> int:
    """Run the comparison, on a machine with a GPU.

    Returns
    -------
    int
        0 if nothing differs, 1 if anything does, 2 for a state file that cannot be continued, 130 if interrupted.
    """
    try:
        campaign = Campaign.read(options.state, options.seed)
    except (OSError, ValueError, KeyError) as error:
        print(error, file=sys.stderr)
        return 2
    cases = hardware_cases(gpu().capability) if options.hardware else recipe_cases_of_gpu()
    begin, before = time.monotonic(), sum(campaign.outputs[case.name] for case in cases)
    until = begin + 60 * options.minutes if options.minutes else float("inf")
    interrupted = not _until(campaign, cases, options, until)
    campaign.write(options.state)
    print(file=sys.stderr)
    if interrupted:
        print("interrupted; so far:")
    print("\n".join(campaign.report(cases)))
    outputs, bad = (sum(of[case.name] for case in cases) for of in (campaign.outputs, campaign.differences))
    ways = "by its own instructions and by engine='cuda', each" if options.hardware else "by engine='cuda',"
    seconds, more = time.monotonic() - begin, outputs - before
    print(
        f"{outputs:,} outputs of {gpu().name} {ways} compared with the native engine: {bad:,} differences; "
        f"{more:,} of them in this run, {more / seconds / 1e6:.0f} million in a second"
    )
    return 1 if bad else 130 if interrupted else 0


def _until(campaign: Campaign, cases: Sequence[Case], options: Options, until: float) -> bool:
    """Run jobs until there are enough outputs or it is time; False if interrupted."""
    begin = saved = time.monotonic()
    todo, running = campaign.endless(cases, SIDE**2), dict[Future[Outcome], Case]()
    done = started = 0
    each = SIDE**2

    def collect() -> int:
        found = 0
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            case, outcome = running.pop(future), future.result()
            campaign.add(case, outcome)
            found += outcome.outputs
            if outcome.first:
                print(f"\n{outcome.first}", flush=True)
        return found

    with ThreadPoolExecutor(options.threads) as pool:
        try:
            while True:
                while started < options.outputs and len(running) < 2 * options.threads and time.monotonic() < until:
                    job = next(todo)
                    running[pool.submit(compare, job, campaign.seed, SIDE)] = job.case
                    started += each
                if not running:
                    return True
                done += collect()
                now = time.monotonic()
                bad = sum(campaign.differences.values())
                rate = done / max(1e-9, now - begin) / 1e6
                text = f"{done:,} outputs, {bad:,} differ, {now - begin:.0f} s, {rate:.0f} million in a second"
                print(f"\r{text}", end="", file=sys.stderr, flush=True)
                if now - saved > _SAVED_EVERY:
                    campaign.write(options.state)
                    saved = now
        except KeyboardInterrupt:
            for future in running:
                future.cancel()
            with suppress(KeyboardInterrupt):
                while running := {x: case for x, case in running.items() if not x.cancelled()}:
                    collect()
            return False
