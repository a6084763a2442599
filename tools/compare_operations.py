"""Compare every operation around `mma` with the GPU, lane by lane: `python tools/compare_operations.py --help`.

Needs the GPU, `ptxas` on the PATH and CuPy; was run on an H200. A row of `warpmma.kernel.operations()` says by itself
how it is run: its `syntax` becomes a PTX kernel with a thread for each lane, its types say what is loaded and stored.
`--record FILE` keeps some lanes of every operation, for tests on machines without a GPU (`recorded` reads them).

Where a row takes immediates, each is run with values 0 to 255; a module of rows can name others in a dictionary
`IMMEDIATES`, mnemonic -> sequence of tuples. Where a row has a membermask, half of the warps get a partial one, and the
lanes that it does not name skip the instruction. Inputs are made in `operation_inputs.py`.
"""

from __future__ import annotations

import argparse
import fnmatch
import itertools
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).parent))
from operation_inputs import BITS, DTYPES, inputs, signature

from warpmma.operations import Operation, operation, operations
from warpmma.registers import LANES

Array = npt.NDArray[Any]

# Kernels


def statement(row: Operation, immediates: Sequence[int] = ()) -> str:
    """Return the instruction with its operands: registers `%d0`.., `%a0`.. and numbers."""
    values = iter(immediates)
    names = {f"d{i}": f"%d{i}" for i in range(len(row.outputs))}
    for i, kind in enumerate(row.inputs):
        names[f"a{i}"] = str(next(values)) if kind == "imm" else f"%a{i}"
    operands = re.sub(r"\b[ad][0-9]+\b", lambda match: names[match[0]], row.syntax)
    return f"{row.mnemonic} {operands};"


def kernel(row: Operation, name: str, immediates: Sequence[int] = ()) -> str:
    """Return a kernel that executes an operation on each lane; parameters are addresses of its inputs and outputs."""
    operands = [
        *((f"a{i}", k, "ld") for i, k in enumerate(row.inputs)),
        *((f"d{i}", k, "st") for i, k in enumerate(row.outputs)),
    ]
    operands = [x for x in operands if x[1] != "imm"]
    lines = [f".visible .entry {name}({', '.join(f'.param .u64 p{x}' for x, _, _ in operands)}) {{"]
    lines += [
        ".reg .u64 %address, %offset;",
        ".reg .u32 %t, %block, %width, %one;",
        ".reg .pred %out;",
        ".reg .b16 %byte;",
    ]
    lines += [
        "mov.u32 %block, %ctaid.x;",
        "mov.u32 %width, %ntid.x;",
        "mov.u32 %t, %tid.x;",
        "mad.lo.u32 %t, %block, %width, %t;",
    ]
    parts: dict[str, list[str]] = {"ld": [], "st": []}
    for x, kind, move in operands:
        byte = narrow(row, x)
        lines.append(f".reg .{'b8' if byte else kind} %{x};")
        size = BITS.get(kind, 8) // 8
        add = [
            f"ld.param.u64 %address, [p{x}];",
            f"mul.wide.u32 %offset, %t, {size};",
            "add.u64 %address, %address, %offset;",
        ]
        if kind == "pred":
            load = ["ld.global.u8 %byte, [%address];", f"setp.ne.b16 %{x}, %byte, 0;"]
            store = [f"selp.b16 %byte, 1, 0, %{x};", "st.global.u8 [%address], %byte;"]
        elif byte:
            load = ["ld.global.b16 %byte, [%address];", f"cvt.u8.u16 %{x}, %byte;"]
            store = [f"cvt.u16.u8 %byte, %{x};", "st.global.b16 [%address], %byte;"]
        else:
            load, store = [f"ld.global.{kind} %{x}, [%address];"], [f"st.global.{kind} [%address], %{x};"]
        parts[move] += add + (load if move == "ld" else store)
    if row.membermask and row.inputs[-1] == "b32":
        mask = f"%a{len(row.inputs) - 1}"
        parts["ld"] += ["mov.u32 %one, %laneid;", "shl.b32 %one, 1, %one;", f"and.b32 %one, %one, {mask};"]
        parts["ld"] += ["setp.eq.u32 %out, %one, 0;", "@%out bra DONE;"]
    return "\n".join([*lines, *parts["ld"], statement(row, immediates), *parts["st"], "DONE:", "ret;", "}"])


def narrow(row: Operation, operand: str) -> bool:
    """Whether PTX wants a `.b8` register, which is a byte of a wider one of ours: two e2m1."""
    words = row.mnemonic.split(".")
    return "e2m1x2" in words and (operand == "d0") == (words.index("e2m1x2") == len(words) - 2)


def module(kernels: Sequence[str], target: str, version: tuple[int, int]) -> str:
    """Put kernels together into a PTX module."""
    return f".version {version[0]}.{version[1]}\n.target {target}\n.address_size 64\n" + "\n".join(kernels) + "\n"


# Both sides


def immediates(row: Operation) -> list[tuple[int, ...]]:
    """Return the immediates that a row is run with; one empty tuple where it takes none."""
    number = row.inputs.count("imm")
    if number and row.membermask and row.inputs[-1] == "imm":
        return [(*x, 0xFFFFFFFF) for x in itertools.product(*[range(0, 256, 17)] * (number - 1))]
    return [()] if not number else [(x,) * number for x in range(256)]


class Job(NamedTuple):
    """A row with its immediates."""

    mnemonic: str
    immediates: tuple[int, ...]
    lanes: int
    seed: int

    def __str__(self) -> str:
        return " ".join([self.mnemonic, *map(str, self.immediates)])


def simulated(row: Operation, given: Sequence[Array], values: Sequence[int]) -> tuple[Array, ...]:
    """Execute a row on registers and immediates."""
    return row(*_operands(row, given, values), undefined="zero")


def _operands(row: Operation, given: Sequence[Array], values: Sequence[int]) -> list[Any]:
    arrays, numbers = iter(given), iter(values)
    return [next(numbers) if kind == "imm" else next(arrays) for kind in row.inputs]


def _ours(job: Job) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    given = inputs(job.mnemonic, job.lanes, job.seed)
    return given, simulated(operation(job.mnemonic), given, job.immediates)


def compared(row: Operation, given: Sequence[Array], values: Sequence[int]) -> Array:
    """Lanes whose results mean something: that their membermask names, and that PTX does not leave undefined."""
    lanes: Array = np.ones((1, LANES), bool)
    if row.membermask and row.inputs[-1] == "b32":
        lanes = ((given[-1] >> np.arange(LANES, dtype=np.uint32)) & np.uint32(1)).astype(bool)
    return lanes & ~row.undefined_lanes(*_operands(row, given, values)) if row.lanes else lanes


class Gpu:
    """The kernels of all jobs, compiled once."""

    def __init__(self, jobs: Sequence[Job], target: str) -> None:
        import cupy

        self._cupy = cupy
        names = {(j.mnemonic, j.immediates): f"k{i}" for i, j in enumerate(jobs)}
        version = max((8, 0), *(operation(j.mnemonic).ptx for j in jobs))
        texts = {n: kernel(operation(m), n, values) for (m, values), n in names.items()}
        parts = [list(texts)[i::16] for i in range(16)]
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(16) as pool:
            cubins = list(
                pool.map(
                    lambda p: _compile(Path(folder), [texts[n] for n in p], target, version), [p for p in parts if p]
                )
            )
            modules = [cupy.RawModule(path=str(x)) for x in cubins]
            where = {n: m for m, part in zip(modules, [p for p in parts if p], strict=True) for n in part}
            self._functions = {key: where[n].get_function(n) for key, n in names.items()}

    @property
    def device(self) -> str:
        """GPU and driver."""
        properties = self._cupy.cuda.runtime.getDeviceProperties(0)
        done = subprocess.run(
            ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"], capture_output=True, text=True
        )
        return (
            f"{properties['name'].decode()}, driver {done.stdout.strip().splitlines()[0] if done.stdout else 'unknown'}"
        )

    def run(self, job: Job, given: Sequence[Array]) -> tuple[Array, ...]:
        """Execute a job, a thread to a lane."""
        cupy, row = self._cupy, operation(job.mnemonic)
        lanes = len(given[0]) * LANES if given else job.lanes
        shape = (lanes // LANES, LANES)
        block = 256 if lanes % 256 == 0 else LANES
        out = [cupy.zeros(shape, DTYPES[kind]) for kind in row.outputs]
        there = [cupy.asarray(x) for x in given]
        self._functions[job.mnemonic, job.immediates]((lanes // block,), (block,), (*there, *out))
        return tuple(x.get() for x in out)


def _compile(folder: Path, kernels: Sequence[str], target: str, version: tuple[int, int]) -> Path:
    with tempfile.NamedTemporaryFile("w", suffix=".ptx", dir=folder, delete=False) as file:
        file.write(module(kernels, target, version))
    cubin = Path(file.name).with_suffix(".cubin")
    subprocess.run(["ptxas", f"-arch={target}", file.name, "-o", str(cubin)], check=True)
    return cubin


# Recordings


class Recorder:
    """Collects lanes; rows with the same inputs and types of outputs share arrays."""

    def __init__(self, lanes: int) -> None:
        self._lanes, self._groups = lanes, {}  # type: ignore[var-annotated]

    def add(self, job: Job, given: Sequence[Array], got: Sequence[Array]) -> None:
        """Keep the first lanes of a job."""
        row, warps = operation(job.mnemonic), self._lanes // LANES
        key = (signature(row), row.outputs)
        group = self._groups.setdefault(key, ([x[:warps] for x in given], [], []))
        group[1].append(str(job))
        group[2].append([x[:warps] for x in got])

    def save(self, path: Path, device: str) -> None:
        """Write an archive of arrays without pickles."""
        arrays = {"device": np.array(device)}
        for i, (given, names, got) in enumerate(self._groups.values()):
            arrays |= {f"{i}|rows": np.array(names)} | {f"{i}|a{k}": x for k, x in enumerate(given)}
            arrays |= {f"{i}|d{k}": np.stack([x[k] for x in got]) for k in range(len(got[0]))}
        np.savez_compressed(path, **arrays)  # type: ignore[arg-type]


def recorded(path: Path) -> Iterator[tuple[str, tuple[int, ...], tuple[Array, ...], tuple[Array, ...]]]:
    """Yield mnemonic, immediates, input and output registers of every operation in an archive."""
    with np.load(path) as archive:
        arrays = dict(archive)
    for i in sorted({key.split("|")[0] for key in arrays if "|" in key}, key=int):
        given = _numbered(arrays, f"{i}|a")
        got = _numbered(arrays, f"{i}|d")
        for number, text in enumerate(arrays[f"{i}|rows"].tolist()):
            mnemonic, *values = text.split()
            yield mnemonic, tuple(int(x) for x in values), given, tuple(x[number] for x in got)


def _numbered(arrays: dict[str, Array], prefix: str) -> tuple[Array, ...]:
    return tuple(
        arrays[f"{prefix}{k}"] for k in itertools.takewhile(lambda k: f"{prefix}{k}" in arrays, itertools.count())
    )


def different(lanes: Array, got: Sequence[Array], expected: Sequence[Array]) -> Array:
    """Lanes among those compared in which any output differs."""
    unequal = np.any([x != y for x, y in zip(got, expected, strict=True)], axis=0)
    result: Array = unequal & lanes
    return result


def example(given: Sequence[Array], got: Sequence[Array], expected: Sequence[Array], place: Any) -> str:
    """Describe one lane."""

    def show(arrays: Sequence[Array]) -> str:
        return " ".join(f"{int(x[tuple(place)]):#0{2 * x.dtype.itemsize + 2}x}" for x in arrays)

    return f"warp {place[0]} lane {place[1]}: in {show(given)}, gpu {show(got)}, ours {show(expected)}"


def main(arguments: list[str] | None = None) -> int:
    """Run the comparison; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--lanes", type=int, default=1 << 20, help="lanes for each operation, over all its immediates")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="mnemonics, with * and ?")
    parser.add_argument("--modules", default="", help="modules of rows, such as floats,conversions")
    parser.add_argument("--record", type=Path, metavar="FILE", help="record some lanes of each operation here")
    parser.add_argument("--keep", type=int, default=64, help="lanes to record for each operation")
    parser.add_argument("--examples", type=int, default=1, help="differing lanes to print for each operation")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=16)
    options = parser.parse_args(arguments)
    modules = [import_module(f"warpmma.operations.{n}") for n in options.modules.split(",") if n]
    wanted = {mnemonic for module in modules for form in module.FORMS for mnemonic in form.mnemonics}
    rows = [r for r in operations(options.target) if fnmatch.fnmatch(r.mnemonic, options.only)]
    rows = [r for r in rows if not wanted or r.mnemonic in wanted]
    if not rows:
        print("no such operation")
        return 2
    jobs = []
    for row in sorted(rows, key=signature):
        values = immediates(row)
        # Where lanes are left out, or their results are undefined, enough of them remain.
        lanes = -(-options.lanes * (2 if row.membermask else 1) // len(values) // 256) * 256
        jobs += [Job(row.mnemonic, x, lanes, options.seed) for x in values]
    start = time.monotonic()
    totals: dict[str, list[int]] = {}
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        # A few at a time: the results of all would not fit the memory.
        waiting, pending = iter(jobs), []
        pending = [(job, pool.submit(_ours, job)) for job in itertools.islice(waiting, 3 * options.workers)]
        gpu, recorder = Gpu(jobs, options.target), Recorder(options.keep)
        print(f"{len(rows)} operations, {len(jobs)} kernels built after {time.monotonic() - start:.0f} s", flush=True)
        while pending:
            job, future = pending.pop(0)
            given, expected = future.result()
            for job_next in itertools.islice(waiting, 1):
                pending.append((job_next, pool.submit(_ours, job_next)))
            row, got = operation(job.mnemonic), gpu.run(job, given)
            lanes = compared(row, given, job.immediates)
            bad = different(lanes, got, expected)
            total = totals.setdefault(row.mnemonic, [0, 0])
            total[0] += int(np.broadcast_to(lanes, bad.shape).sum())
            total[1] += int(bad.sum())
            for place in np.argwhere(bad)[: options.examples]:
                print(f"  {bad.sum():7d} {job}: {example(given, got, expected, place)}", flush=True)
            recorder.add(job, given, got)
    number, differences = (sum(x[i] for x in totals.values()) for i in (0, 1))
    least = min(x[0] for x in totals.values())
    if options.record:
        recorder.save(options.record, gpu.device)
    print(f"{gpu.device}: {len(totals)} operations, {number} lanes (at least {least} each), {differences} differences")
    print(f"{sum(x[1] > 0 for x in totals.values())} operations differ; {time.monotonic() - start:.0f} s")
    return int(differences > 0)


if __name__ == "__main__":
    sys.exit(main())
