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
from ptxas_cases import verdict

from lab.generators import operation_inputs
from lab.gpu.libraries import LibraryProduct, RecordedProduct, read_products, texts_of, write_products
from lab.gpu.row_jobs import OperationGpu, RowJob
from lab.gpu.runner import KernelGpu
from warpmma.errors import MetadataError, OperandError, ScaleError
from warpmma.formats import floating
from warpmma.hardware import MmaJob, mma_jobs, ptx_kernel, ptx_module
from warpmma.isa import instructions, parse

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


# Kernels of `mma`


@needs("ptxas")
@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"])
def test_kernels_of_instructions_assemble(target: str) -> None:
    known = [i for i in instructions(target) if i.ptx <= (9, 0)]  # what ptxas 13.0 reads
    jobs = [job for i in known for job in mma_jobs(i)]
    kernels = (ptx_kernel(i, f"k{n}", selector=s, ids=ids) for n, (i, s, ids) in enumerate(jobs))
    assert verdict(ptx_module(kernels, target, (9, 0)), target) == ""


def test_what_an_instruction_does_not_have_is_refused() -> None:
    sparse = parse("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
    scaled = parse("mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0")
    assert mma_jobs(sparse) == [MmaJob(sparse, 0), MmaJob(sparse, 1)]
    with pytest.raises(MetadataError, match="selector is 2; legal are 0, 1"):
        ptx_kernel(sparse, "k", selector=2)
    with pytest.raises(ScaleError, match="byte-id of A is 1; expected 0, 2"):
        ptx_kernel(scaled, "k", ids=(1, 0, 0, 0))


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
