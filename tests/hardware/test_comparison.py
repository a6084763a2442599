"""The parts of a comparison with a GPU, without one: the runner on a mock, kernels, and products of libraries."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arrays import Array, same
from oracles import needs

from lab.generators import instruction_inputs, metadata_words, operation_inputs
from lab.gpu.instruction_jobs import InstructionGpu, MmaJob, mma_jobs
from lab.gpu.libraries import LibraryProduct, RecordedProduct, read_products, texts_of, write_products
from lab.gpu.move_kernels import MoveGpu, move_kernel
from lab.gpu.row_jobs import OperationGpu, RowJob, row_immediates
from lab.gpu.runner import KernelGpu
from warpmma.errors import OperandError
from warpmma.formats import floating
from warpmma.hardware import ptx_module, row_kernel
from warpmma.isa import parse
from warpmma.operations import matrix_moves, operation

pytestmark = pytest.mark.quick

Does = Callable[[str, tuple[int, ...], tuple[int, ...], list[Array]], None]


class Stub:
    """An assembler that copies, and a GPU whose kernels do what a test says."""

    def __init__(self) -> None:
        self.sources: list[str] = []
        self.launched: list[tuple[str, tuple[int, ...], tuple[int, ...], tuple[tuple[int, ...], ...]]] = []
        self.drivers = "580.159.04\n580.159.04\n"
        self.does: Does = lambda *_: None
        runtime = types.SimpleNamespace(getDeviceProperties=lambda number: {"name": b"NVIDIA H200"})
        self.cupy = types.SimpleNamespace(
            asarray=self.asarray, RawModule=self.loaded, cuda=types.SimpleNamespace(runtime=runtime)
        )

    def run(self, command: list[str], **_: Any) -> Any:
        if command[0] == "nvidia-smi":
            return types.SimpleNamespace(stdout=self.drivers)
        assert command[0] == "ptxas" and command[3] == "-o"
        text = Path(command[2]).read_text()
        assert f".target {command[1].removeprefix('-arch=')}\n" in text
        self.sources.append(text)
        Path(command[4]).write_text(text)
        return types.SimpleNamespace(stdout="")

    def asarray(self, x: Array, order: str) -> Any:
        copy = np.array(x, order="C")
        return types.SimpleNamespace(array=copy, get=lambda: copy)

    def loaded(self, path: str) -> Any:
        text = Path(path).read_text()

        def function(name: str) -> Any:
            (taken,) = re.findall(rf"\.entry {name}\((.*?)\)", text)

            def launch(grid: tuple[int, ...], block: tuple[int, ...], given: tuple[Any, ...]) -> None:
                assert len(given) == taken.count(".param .u64")
                self.launched.append((name, grid, block, tuple(x.array.shape for x in given)))
                self.does(text, grid, block, [x.array for x in given])

            return launch

        return types.SimpleNamespace(get_function=function)


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Stub:
    made = Stub()
    monkeypatch.setitem(sys.modules, "cupy", made.cupy)
    monkeypatch.setattr(subprocess, "run", made.run)
    return made


def test_kernels_are_assembled_in_parts_and_found_by_their_keys(stub: Stub) -> None:
    def emit(key: int) -> Callable[[str], str]:
        return lambda name: f".visible .entry {name}(.param .u64 x) {{ // {key}\n}}"

    gpu = KernelGpu({key: emit(key) for key in range(40)}, "sm_90a", (8, 3))
    assert len(stub.sources) == 16
    assert sorted(int(key) for text in stub.sources for key in re.findall(r"// (\d+)", text)) == list(range(40))
    assert all(text.startswith(".version 8.3\n.target sm_90a\n") for text in stub.sources)

    def write(text: str, grid: Any, block: Any, given: list[Array]) -> None:
        given[0][...] = len(stub.launched)

    stub.does = write
    zeros = np.zeros(3)
    (first,), (second,) = (gpu.launch(key, 2, 32, [zeros], [0]) for key in (39, 0))
    assert (first == 1).all() and (second == 2).all() and not zeros.any()
    assert [name for name, *_ in stub.launched] == ["k39", "k0"]
    assert gpu.device == "NVIDIA H200, driver 580.159.04"
    stub.drivers = ""
    assert gpu.device == "NVIDIA H200, driver unknown"


def test_a_gpu_is_reached_through_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ImportError, match=r"^kernels reach a GPU through CuPy \(cupy-cuda13x\): import of cupy halted"):
        KernelGpu({}, "sm_90", (8, 0))


def test_no_kernels_are_nothing(stub: Stub) -> None:
    assert isinstance(KernelGpu({}, "sm_90", (8, 0)), KernelGpu) and not stub.sources


def test_instructions_run_a_warp_to_a_block(stub: Stub) -> None:
    i = parse("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
    jobs = mma_jobs(i)
    assert jobs == [MmaJob(i, 0), MmaJob(i, 1)]
    gpu = InstructionGpu(jobs, "sm_90a")
    assert stub.sources[0].startswith(".version 8.8\n")
    rng = np.random.default_rng(0)
    given = instruction_inputs(i, "sm_90a", "near", 3, rng) | {"e": metadata_words(i, "sm_90a", 3, rng)}

    def write(text: str, grid: Any, block: Any, arrays: list[Array]) -> None:
        for name, x in zip("abc", arrays, strict=False):
            same(x, given[name])
        assert (arrays[3] == 0xDEADBEEF).all()
        same(arrays[4], given["e"])
        arrays[3][...] = arrays[2] + np.uint32("%e, 0x1" in text)

    stub.does = write
    for job in jobs:
        same(gpu.run(job, given), given["c"] + np.uint32(job.selector))
    assert {(grid, block) for _, grid, block, _ in stub.launched} == {((3,), (32,))}


def test_operations_run_a_thread_to_a_lane(stub: Stub) -> None:
    jobs = [RowJob("add.f32", (), 512, 1), RowJob("lop3.b32", (0xE8,), 96, 1), RowJob("activemask.b32", (), 64)]
    gpu = OperationGpu(jobs, "sm_90a")

    def write(text: str, grid: Any, block: Any, arrays: list[Array]) -> None:
        arrays[-1][...] = sum(x.astype(np.uint32) for x in arrays[:-1]) + np.uint32(1)

    stub.does = write
    for job in jobs:
        given = operation_inputs(job.mnemonic, job.lanes, job.seed)
        (got,) = gpu.run(job, given)
        same(got, np.sum([np.zeros((job.lanes // 32, 32), np.uint32), *given], axis=0, dtype=np.uint32) + np.uint32(1))
    assert [(grid, block) for _, grid, block, _ in stub.launched] == [((2,), (256,)), ((3,), (32,)), ((2,), (32,))]


def test_moves_give_registers_or_memory(stub: Stub) -> None:
    load, store = (next(m for m in matrix_moves("sm_90a") if m.direction == way) for way in ("load", "store"))
    gpu = MoveGpu([load, store], "sm_90a", size=512)
    memory, addresses = np.zeros((2, 512), np.uint8), np.zeros((2, 32), np.uint32)

    def write(text: str, grid: Any, block: Any, arrays: list[Array]) -> None:
        arrays[3][...] = 9

    stub.does = write
    for move, shape in ((load, (2, load.registers, 32)), (store, (2, 512))):
        got = gpu.run(move, memory, np.zeros((2, move.registers, 32), np.uint32), addresses)
        assert got.shape == shape and (got == 9).all()


@needs("ptxas")
def test_kernels_of_moves_and_immediates_assemble(tmp_path: Path) -> None:
    moves = [move_kernel(move, f"m{i}") for i, move in enumerate(matrix_moves("sm_100a"))]
    rows = [operation(name) for name in ("lop3.b32", "shfl.sync.up.b32", "vote.sync.ballot.b32")]
    kernels = [row_kernel(r, f"r{i}", x) for i, r in enumerate(rows) for x in row_immediates(r)[-1:]]
    source = tmp_path / "k.ptx"
    source.write_text(ptx_module([*moves, *kernels], "sm_100a", (9, 0)))
    command = ["ptxas", "-arch=sm_100a", str(source), "-o", str(tmp_path / "k.cubin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


# Products of libraries


def test_products_are_written_and_read(tmp_path: Path) -> None:
    case = LibraryProduct("matmul", "f16", "f16", "model", 8, 16, 64, 3)
    a, b = case.inputs()
    assert a.shape == (8, 64) and b.shape == (64, 16) and a.dtype == np.uint16 and not a.flags.writeable
    ones = np.ones((3, 4), np.uint16)
    kept = RecordedProduct(case, slice(0, 8, 3), slice(0, 16, 5), ones, ("k",), True, case.digest())
    write_products(tmp_path / "x.npz", [kept], {"device": "a GPU"})
    assert texts_of(tmp_path / "x.npz") == {"device": "a GPU"}
    (read,) = read_products(tmp_path / "x.npz")
    assert (read.case, read.rows, read.columns, read.kernels) == (case, kept.rows, kept.columns, ("k",))
    same(read.expected, kept.expected)
    assert read.digest == LibraryProduct("linear", "f16", "f32", "model", 8, 16, 64, 3).digest()
    assert read.digest != LibraryProduct("matmul", "f16", "f16", "model", 8, 16, 64, 4).digest()
    same(read.parts()[0], a[::3])
    same(read.parts()[1], b[:, ::5])


def test_inputs_are_of_known_types_and_kinds() -> None:
    with pytest.raises(OperandError, match="dtype is 'f8'; expected 'f16', 'bf16', 'e4m3' or 'f32'"):
        LibraryProduct("matmul", "f8", "f16", "hard", 8, 8, 8, 1)
    with pytest.raises(OperandError, match="out is 'f17'; expected 'f16'"):
        LibraryProduct("matmul", "f16", "f17", "hard", 8, 8, 8, 1)
    with pytest.raises(OperandError, match="kind is 'harder'; expected 'normal', 'model' or 'hard'"):
        LibraryProduct("matmul", "f16", "f16", "harder", 8, 8, 8, 1)  # type: ignore[arg-type]
    for kind, dtype in itertools.product(("normal", "model", "hard"), ("f16", "bf16", "e4m3", "f32")):
        product = LibraryProduct("matmul", dtype, "f32", kind, 8, 8, 512, 1)  # type: ignore[arg-type]
        for codes in product.inputs():
            assert np.isfinite(floating(dtype).decode(codes)).all()
