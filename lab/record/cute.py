"""The CuTe DSL's own examples, simulated and on a GPU: `python -m lab.record.cute FOLDER --help`.

They are scripts of NVIDIA's repository `cutlass`, in its folder `examples/python/CuTeDSL`, and are not stored here.

* `--examples THERE` runs them in the simulator with hazards as errors, each in a process of its own, with the CPU for
  PyTorch's "cuda" (`cuda="cpu"`), and writes the launches of each to FOLDER: PTX, sizes, parameter bytes, memory
  before and after. An example that verifies its result does so. It needs the extra `cute` and PyTorch.
* `--gpu` launches that PTX with those parameters on this machine's GPU, and compares memory byte for byte. It needs
  only the driver. `--keep FILE` writes hashes of the launches that are equal, with the names of GPU and driver.
* `--compare` compares the launches of FOLDER with those of an H200, which are `tests/data/h200_cute.json`.

The rules:

1. Of each kernel of an example, the first launch that changes memory is written: where the result is there already, a
   comparison would show nothing.
2. On the GPU, memory lies at other addresses, equal modulo 512. Every word of 64 bits, in the parameters and in tables
   of addresses, that leads into memory of the simulated launch leads to the same byte there. So does the first word of
   a tensor map. Tables that the kernel has written are compared with the addresses moved back.
3. All launches of an example are compared separately, each from the memory that the simulator had before it.
4. What is kept of a launch has none of NVIDIA's code: its sizes, and hashes of memory that it only reads, and of memory
   that it changes, afterwards. They are sorted, as addresses are others in every process. For the same reason tables of
   addresses have no hash, and parameters neither, whose padding is whatever was there.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import json
import os
import runpy
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from lab.programs.launches import Array
from lab.programs.pointers import Allocation, moved

_MODULO = 512
_SECONDS = 600  # that an example may take in the simulator, or a launch on a GPU
_SEED = 1  # of PyTorch's random numbers
NOT_RECORDED = "not recorded"
RECORDED = Path(__file__).parents[2] / "tests" / "data" / "h200_cute.json"


@dataclass(frozen=True, kw_only=True)
class Case:
    """An example with arguments.

    `without` are pieces of its source that are left out, for a reason in `docs/cute.md`, and `fails` is the kind of the
    hazard with which it ends, after the launches that are compared.
    """

    example: str
    arguments: str
    without: tuple[str, ...] = ()
    fails: str = ""


_AMPERE, _HOPPER = "cute/ampere/kernel/", "cute/hopper/kernel/"
_ONCE = "--iterations 1 --warmup_iterations 0"
_TVM = (", enable_tvm_ffi=True", " --enable-tvm-ffi")

CASES = {
    "elementwise_add": Case(example=f"{_AMPERE}elementwise/elementwise_add.py", arguments="--M 61 --N 250"),
    "elementwise_apply": Case(
        example=f"{_AMPERE}elementwise/elementwise_apply.py", arguments="--M 64 --N 256 --op mul"
    ),
    "elementwise_add_autotune": Case(
        example="cute/ampere/tutorial/elementwise_add_autotune.py", arguments=f"--M 64 --N 256 {_ONCE}"
    ),
    "memcpy_simt": Case(example="cute_ext/ampere/memcpy_simt_universal_copy.py", arguments=""),
    "sgemm": Case(example=f"{_AMPERE}dense_gemm/sgemm.py", arguments=f"--mnk 256,128,40 {_ONCE}"),
    "tensorop_gemm": Case(example=f"{_AMPERE}dense_gemm/tensorop_gemm.py", arguments="--mnkl 256,128,96,2"),
    "tensorop_gemm k-major": Case(
        example=f"{_AMPERE}dense_gemm/tensorop_gemm.py",
        arguments="--mnkl 136,128,64,1 --ab_dtype BFloat16 --c_dtype BFloat16 --a_major k --b_major k",
    ),
    "flash_attention_v2": Case(
        example=f"{_AMPERE}attention/flash_attention_v2.py",
        arguments=f"--batch_size 1 --seqlen_q 160 --seqlen_k 160 --num_head 2 --head_dim 64 --is_causal {_ONCE}",
    ),
    "hstu_attention": Case(
        example=f"{_AMPERE}attention/hstu_attention.py",
        arguments="--batch_size 1 --seqlen_q 128 --seqlen_kv 128 --num_head 1 --head_dim 64 --is_causal",
    ),
    "dense_gemm": Case(
        example=f"{_HOPPER}dense_gemm/dense_gemm.py",
        arguments="--mnkl 256,128,192,2 --tile_shape_mn 128,128 --cluster_shape_mn 1,1",
    ),
    "dense_gemm cluster": Case(
        example=f"{_HOPPER}dense_gemm/dense_gemm.py",
        arguments="--mnkl 256,256,128,1 --tile_shape_mn 128,128 --cluster_shape_mn 2,2 --a_major m --b_major n",
    ),
    "dense_gemm_persistent": Case(
        example=f"{_HOPPER}dense_gemm/dense_gemm_persistent.py",
        arguments="--mnkl 256,256,128,1 --tile_shape_mn 128,128 --cluster_shape_mn 2,1",
    ),
    "dense_gemm_fp8_2xacc": Case(
        example=f"{_HOPPER}dense_gemm/dense_gemm_fp8_2xacc.py",
        arguments="--mnkl 128,128,384,1 --tile_shape_mn 128,128 --cluster_shape_mn 1,1",
    ),
    "dense_gemm_fp8_gelu_persistent": Case(
        example=f"{_HOPPER}dense_gemm/dense_gemm_fp8_gelu_persistent.py",
        arguments="--mnkl 128,128,256,1 --tile_shape_mn 128,128 --cluster_shape_mn 1,1",
    ),
    "fmha": Case(
        example=f"{_HOPPER}attention/fmha.py",
        arguments="--q_shape 1,192,2,64 --k_shape 1,192,2,64 --mma_tile_shape_mn 64,128 --is_causal",
    ),
    "grouped_gemm": Case(
        example=f"{_HOPPER}grouped_gemm/grouped_gemm.py",
        arguments="--num_groups 2 --problem_sizes_mnkl ((128,128,64,1),(64,128,128,1)) --tile_shape_mn 128,128 "
        "--cluster_shape_mn 1,1",
        fails="bounds",
    ),
    "cta_norm": Case(example=f"{_HOPPER}cta_norm/cta_norm.py", arguments="--M 5 --N 1024", without=_TVM),
}  # fmt: skip


class Recorder:
    """Launches, with the memory that their parameters lead to."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name, self.rows = folder, name, list[dict[str, Any]]()

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Write the launches within the context (rule 1)."""
        from warpmma.cute import CuteDevice

        with patch.object(CuteDevice, "launch", self._wrapped(CuteDevice.launch)):
            yield

    def _wrapped(self, launch: Any) -> Any:
        def recorded(session: Any, entry: Any, config: Any, params: bytes) -> None:
            if any(row["entry"] == entry.name for row in self.rows):
                launch(session, entry, config, params)
                return
            pieces = session.memory._reached(params)
            before = [np.asarray(x).copy() for x in pieces]
            launch(session, entry, config, params)
            if any(not np.array_equal(x, np.asarray(y)) for x, y in zip(before, pieces, strict=True)):
                self._write(entry, config, params, pieces, before, session.launches[-1].report)

        return recorded

    def _write(self, entry: Any, config: Any, params: bytes, pieces: Any, before: Any, report: Any) -> None:
        row = {
            "case": self._name, "entry": entry.name, "grid": config.grid, "block": config.block,
            "cluster": config.cluster, "shared": config.shared, "cooperative": config.cooperative,
            "parameters": [(x.offset, x.size) for x in entry.parameters],
            "pieces": [(x.start, x.stop, x.addresses) for x in pieces],
            "instructions": sum(report.costs.instructions.values()),
            "undecided": len(report.undecided), "unpredicted": len(report.unpredicted),
        }  # fmt: skip
        arrays = {f"before{i}": x for i, x in enumerate(before)}
        arrays |= {f"after{i}": np.asarray(x).copy() for i, x in enumerate(pieces)}
        text = np.frombuffer(entry.module.source.text.encode(), np.uint8)
        path = self._folder / f"{self._name.replace(' ', '_')}_{len(self.rows)}.npz"
        about = np.frombuffer(json.dumps(row).encode(), np.uint8)
        np.savez_compressed(path, about=about, text=text, params=np.frombuffer(params, np.uint8), **arrays)
        self.rows.append(row)


def simulate(name: str, examples: Path, folder: Path) -> None:
    """Run an example in this process, and write its launches."""
    import torch

    from warpmma import cute

    case = CASES[name]
    torch.manual_seed(_SEED)
    path = examples / case.example
    text = path.read_text()
    for piece in case.without:
        text = text.replace(piece, "")
    sys.argv, recorder = [str(path), *case.arguments.split()], Recorder(folder, name)
    with tempfile.TemporaryDirectory() as place, cute.device("sm_90", cuda="cpu"), recorder.recording():
        changed = Path(place) / path.name
        changed.write_text(text)
        start = time.process_time()  # after the imports of PyTorch and the DSL
        try:
            runpy.run_path(str(changed if case.without else path), run_name="__main__")
        finally:
            print(f"\n{time.process_time() - start:.1f} s", flush=True)


def _apart(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run this module in a process of its own, which fails if it does not end in time."""
    command = [sys.executable, "-m", "lab.record.cute", *map(str, arguments)]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False, **options)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, -1, "", f"killed after {_SECONDS} s")


def simulate_all(names: list[str], examples: Path, folder: Path) -> int:
    """Run examples, each in a process of its own; return how many fail that are not known to."""
    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in names:
        there = str((examples / CASES[name].example).parent)  # where Python looks for modules of a script
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([there, os.environ.get("PYTHONPATH", "")])}
        done = _apart(folder, "--examples", examples, "--one", name, env=environment)
        last = (done.stderr.strip().splitlines() or [""])[-1]
        fails = CASES[name].fails
        right = done.returncode == 0 if not fails else f": {fails}:" in last
        failed += not right
        verdict = "runs" if done.returncode == 0 else last
        seconds = (done.stdout.strip().splitlines() or ["0 s"])[-1]
        print(f"{name}: {verdict}, kernels written: {len(rows_of(folder, name))}, {seconds}", flush=True)
    return failed


def rows_of(folder: Path, name: str) -> list[Path]:
    """Return the files of an example."""
    return sorted(folder.glob(f"{name.replace(' ', '_')}_[0-9].npz"))


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return what a file says of its launch, and its arrays."""
    with np.load(path) as archive:
        kept = {name: archive[name] for name in archive.files}
    return json.loads(kept["about"].tobytes()), kept


def compare_on_gpu(driver: Any, path: Path) -> str:
    """Launch what a file describes on the GPU; say what differs, nothing if all bytes are equal."""
    row, kept = _read(path)
    if row["cooperative"]:
        return "a cooperative launch, which the driver here does not launch"
    pieces = [Allocation(start=start, size=stop - start) for start, stop, _ in row["pieces"]]
    holds_addresses = [addresses for _, _, addresses in row["pieces"]]
    places = dict[int, int]()
    for piece in pieces:
        base = driver.place(np.zeros(piece.size + 2 * _MODULO, np.uint8))
        places[piece.start] = base + (piece.start - base) % _MODULO
    for i, (piece, addresses) in enumerate(zip(pieces, holds_addresses, strict=True)):
        data = kept[f"before{i}"]
        driver.put(places[piece.start], moved(data, pieces, places) if addresses else data)
    params = moved(kept["params"], pieces, places).tobytes()
    given = [params[at : at + size] for at, size in row["parameters"]]
    function = driver.load(kept["text"].tobytes(), [row["entry"]])[row["entry"]]
    driver.launch(function, row["grid"], row["block"], given, row["shared"], row["cluster"])
    driver.synchronise()
    wrong = []
    there = [Allocation(start=places[piece.start], size=piece.size) for piece in pieces]
    back = {place: start for start, place in places.items()}
    for i, (piece, addresses) in enumerate(zip(there, holds_addresses, strict=True)):
        expected = kept[f"after{i}"]
        found = driver.fetch(piece.start, expected)
        if addresses:
            found = moved(found, there, back)
        if count := int((found != expected).sum()):
            wrong.append(f"{count} of {expected.size} bytes of piece {i}")
    return "; ".join(wrong)


def described(path: Path) -> dict[str, Any]:
    """Return what is kept of a launch (rule 4)."""
    row, kept = _read(path)
    read, written = list[str](), list[str]()
    for i, (_, _, addresses) in enumerate(row["pieces"]):
        before, after = kept[f"before{i}"], kept[f"after{i}"]
        content = "addresses" if addresses else hashlib.sha256(after.tobytes()).hexdigest()[:20]
        (read if np.array_equal(before, after) else written).append(f"{after.size} {content}")
    return {
        "launch": path.stem, "arguments": CASES[row["case"]].arguments if row["case"] in CASES else "",
        **{name: row[name] for name in ("grid", "block", "cluster", "shared", "cooperative", "instructions")},
        "parameters": [size for _, size in row["parameters"]],
        "read": sorted(read), "written": sorted(written),
    }  # fmt: skip


def keep(target: Path, paths: list[Path], about: dict[str, str]) -> None:
    """Write what is kept of launches, and where they left that memory."""
    lines = ",\n".join(f"  {json.dumps(described(path))}" for path in paths)
    target.write_text(f'{json.dumps({**about, "seed": _SEED})[:-1]}, "launches": [\n{lines}\n]}}\n')


def differences(path: Path, recorded: Path) -> str:
    """Say in what a launch differs from the recorded one; an empty text if it does not."""
    known = {one["launch"]: one for one in json.loads(recorded.read_text())["launches"]}
    if path.stem not in known:
        return NOT_RECORDED
    found = described(path)
    wrong = [name for name, value in known[path.stem].items() if found[name] != value]
    return f"differs: {', '.join(wrong)}" if wrong else ""


def compare_recorded(names: list[str], folder: Path) -> int:
    """Compare launches with those of an H200 and print a row for each; return how many differ."""
    failed = 0
    for path in (path for name in names for path in rows_of(folder, name)):
        wrong = differences(path, RECORDED)
        failed += wrong not in ("", NOT_RECORDED)
        print(f"{path.stem}: {wrong or 'as on the H200'}", flush=True)
    return failed


def compare_all(names: list[str], folder: Path, kept: Path | None) -> int:
    """Launch on the GPU and print a row for each launch, each in a process of its own; return how many differ."""
    failed, equal = 0, list[Path]()
    for path in (path for name in names for path in rows_of(folder, name)):
        done = _apart(folder, "--gpu-one", path)
        verdict = done.stdout.strip() or f"FAILED {done.returncode} {done.stderr.strip()[-800:]}"
        failed += verdict != "equal"
        if verdict == "equal":
            equal.append(path)
        print(f"{path.stem}: {verdict}", flush=True)
    if kept is not None:
        from lab.gpu.driver import Driver

        keep(kept, equal, Driver.about())
    return failed


def main(arguments: list[str] | None = None) -> int:
    """Simulate, or compare on a GPU; 1 if something fails or differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the launches are")
    parser.add_argument("--examples", type=Path, metavar="THERE", help="the folder examples/python/CuTeDSL of cutlass")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="examples, with * and ?")
    parser.add_argument("--gpu", action="store_true", help="launch on this machine's GPU")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="with --gpu: write hashes of the launches there")
    parser.add_argument("--compare", action="store_true", help="compare with the launches of an H200")
    parser.add_argument("--one", metavar="NAME", help="with --examples: one example, in this process")
    parser.add_argument("--gpu-one", type=Path, metavar="FILE", help="one launch on the GPU, from this process")
    options = parser.parse_args(arguments)
    names = fnmatch.filter(CASES, options.only)
    if options.one:
        simulate(options.one, options.examples, options.folder)
        return 0
    if options.gpu_one:
        from lab.gpu.driver import Driver

        print(compare_on_gpu(Driver(), options.gpu_one) or "equal", flush=True)
        os._exit(0)
    if options.gpu:
        return int(compare_all(names, options.folder, options.keep) > 0)
    if options.compare:
        return int(compare_recorded(names, options.folder) > 0)
    if options.examples is None:
        parser.error("--examples THERE, --compare or --gpu")
    return int(simulate_all(names, options.examples, options.folder) > 0)


if __name__ == "__main__":
    sys.exit(main())
