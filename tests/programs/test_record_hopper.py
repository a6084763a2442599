"""Public kernels for sm_90a write what an H200 wrote; compiling them needs nvcc and the package nvidia-cutlass."""

from __future__ import annotations

import hashlib
import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from oracles import needs

from lab.programs.archive import Recording, difference, kept, read, write
from lab.programs.cutlass_cases import headers, text_hash
from lab.programs.hopper_cases import LAUNCHES, compiled, described, hopper_cases, run_of
from lab.programs.hopper_inputs import filled
from lab.programs.hopper_kernels import HOPPER_RECORDED, KERNELS, REPORTED
from lab.programs.launches import Struct
from lab.programs.simulating import simulate
from lab.programs.texts import read_text
from lab.record.hopper import main
from warpmma import ptx
from warpmma.layouts import TensorMap

CUTLASS = [name for name, kernel in KERNELS.items() if kernel.source == "collectives.cu"]
PAGE = Path(__file__).parents[2] / "docs" / "programs.md"


@cache
def recording() -> Recording:
    return read(HOPPER_RECORDED)


@pytest.mark.filterwarnings("ignore::warpmma.machine.HazardWarning")
@needs("nvcc")
@pytest.mark.skipif(headers() is None, reason="no package nvidia-cutlass")
@pytest.mark.parametrize("name", CUTLASS)
@pytest.mark.alike(15)
def test_kernel_writes_what_an_h200_wrote(name: str, tmp_path: Path) -> None:
    package = headers()
    assert package is not None
    text, program = compiled(name, [package, package.parent / "tools" / "util" / "include"], tmp_path)
    stored = json.loads(read_text(LAUNCHES))[name]
    assert text_hash(text) == stored["sha256"]
    made = json.loads(json.dumps([described(program, text, size) for size in KERNELS[name].sizes]))
    assert list(map(but_padding, made)) == list(map(but_padding, stored["launches"]))
    module: Any = ptx.load(text)
    for size, launch in zip(KERNELS[name].sizes, made, strict=True):
        case = f"{name} {'x'.join(map(str, size))}"
        kind = REPORTED.get(case, "")
        hazards = {kind: "warn"} if kind else "error"
        outputs, _, reports = simulate(module, run_of(launch), target="sm_90a", hazards=hazards)
        assert {hazard.kind for report in reports for hazard in report.hazards} == ({kind} if kind else set())
        for array, output in outputs.items():
            assert difference(output, recording().outputs[case][array]) == "", (case, array)


def but_padding(launch: dict[str, Any]) -> dict[str, Any]:
    """Return a launch with the number of bytes of its parameters in place of the bytes: some are padding."""
    steps = [step | {"parameters": list(map(len, step["parameters"]))} for step in launch["steps"]]
    return launch | {"steps": steps}


def test_every_launch_is_recorded_and_on_the_page() -> None:
    about = recording().about
    assert "H200" in about["gpu"]
    assert about["driver"]
    cases = {str(case): case for case in hopper_cases()}
    assert set(recording().outputs) == set(cases)
    assert set(about["texts"]) == {case.program for case in cases.values()} == set(KERNELS)
    assert set(cases) >= set(REPORTED)
    page = PAGE.read_text()
    assert all(f"| {name} |" in page for name in KERNELS)
    assert f"{len(KERNELS)} public kernels" in page
    assert f"{len(cases)} launches" in page


def test_another_gpu_is_noted_if_its_bytes_are_the_same(tmp_path: Path) -> None:
    (noted,) = recording().about["same"]
    assert "H100" in noted["gpu"]
    assert f"{noted['launches']} of them" in PAGE.read_text()
    ours, theirs = tmp_path / "ours.npz", tmp_path / "theirs.npz"
    about = {"gpu": "A", "driver": "1", "texts": {"k": "t"}}
    outputs = {"k 1": {"y": kept(np.arange(3))}, "k 2": {"y": kept(np.arange(4))}}
    write(ours, Recording(about, outputs, {}))
    one = {"k 1": outputs["k 1"]}
    for changes, found, result in (
        ({}, one, 0), ({"texts": {"k": "u"}}, one, 1), ({}, one | {"k 2": {"y": kept(np.arange(5))}}, 1),
    ):  # fmt: skip
        write(theirs, Recording(about | {"gpu": "B"} | changes, found, {}))
        assert main(["unused", "--out", str(ours), "--same", str(theirs)]) == result
        assert read(ours).about["same"] == [{"gpu": "B", "driver": "1", "launches": 1}]


def test_launches_have_their_buffers_and_maps() -> None:
    """Every address in parameters and stored arrays is one of a buffer, within it."""
    maps = 0
    for case in hopper_cases():
        run = case.make()
        sizes = {name: 0 if isinstance(x, Struct) else x.nbytes for name, x in run.arrays.items()}
        for given in [*(x for step in run.steps for x in step.arguments), *run.arrays.values()]:
            for part in given.parts if isinstance(given, Struct) else ():
                if isinstance(part, tuple):
                    assert 0 <= part[1] <= max(sizes[part[0]], 1 << 12), (case, part)
        assert run.outputs
    for stored in json.loads(read_text(LAUNCHES)).values():
        maps += sum(launch["maps"] for launch in stored["launches"])
    assert maps > 100


HOST = """#!{python}
import os, struct, sys
high = int(sys.argv[-1])
at = lambda number, offset: (high << 8 | number) << 32 | offset
mark = 0x4D41505F4D41505F
print("map 6 2", at(0, 256), "64 32 128 32 16 1 1 0 2 0 0")
print("launch 3 1 1 128 2 1 1 4096")
words = [mark, 0, mark, *[0] * 13, at(1, 16), high, int.from_bytes(os.urandom(4)) << 32 | 7]
print("parameters", struct.pack("<19Q", *words).hex())
print("parameters", "09000000")
print("buffer 0 a f16 4096 ")
print("buffer 1 b out 64 ")
print("buffer 2 c bytes 8", struct.pack("<Q", at(0, 32)).hex())
"""
ENTRY = """.visible .entry k(
    .param .align 64 .b8 k_param_0[152],
    .param .u32 k_param_1
)
{ ret; }"""


def test_a_host_program_is_described(tmp_path: Path) -> None:
    """Addresses, those in maps too, become places in buffers; what changes from run to run is padding."""
    program = tmp_path / "host"
    program.write_text(HOST.format(python=sys.executable))
    program.chmod(0o755)
    launch = described(program, ENTRY, (5,))
    (step,) = launch["steps"]
    shape = (step["entry"], step["grid"], step["block"], step["cluster"], step["shared"])
    assert shape == ("k", [3, 1, 1], 128, [2, 1, 1], 4096)
    map_ = TensorMap(0, (16, 32), type="f16", shape=(32, 64), strides=(128,), swizzle=64).encoded
    assert step["pointers"] == [{"0": ("a", 256), "128": ("b", 16)}, {}]
    assert step["parameters"] == [(map_ + bytes(16) + (7).to_bytes(8, "little")).hex(), "09000000"]
    stored = {"name": "c", "kind": "bytes", "bytes": 8, "data": "0" * 16, "pointers": {"0": ("a", 32)}}
    assert launch["buffers"][2] == stored
    run = run_of(launch)
    struct, number = run.steps[0].arguments
    assert isinstance(struct, Struct)
    assert [part for part in struct.parts if isinstance(part, tuple)] == [("a", 256), ("b", 16)]
    assert number == 9
    assert run.outputs == ("b",)


def test_a_host_program_that_launches_otherwise_each_time_is_refused(tmp_path: Path) -> None:
    program = tmp_path / "host"
    program.write_text(HOST.format(python=sys.executable).replace('"launch 3', '"launch", os.getpid(), "'))
    program.chmod(0o755)
    with pytest.raises(ValueError, match="twice in the same way"):
        described(program, ENTRY, (5,))


DIGESTS = {
    "f16": "75cede671eb1d5f8",
    "bf16": "7eebad6e77402779",
    "f32": "fd54fb5aa156998c",
    "f64": "f4015ac1605287a5",
    "s8": "5e019692584d4b77",
    "s4": "5e019692584d4b77",
    "s32": "f6f4f35e4b68f5e6",
    "e4m3": "9839c9dfe6a92072",
    "e5m2": "0fda7bcb08e0d219",
    "meta8": "de8c7b6879252725",
}


@pytest.mark.parametrize("kind", DIGESTS)
def test_inputs_are_the_same_on_every_machine(kind: str) -> None:
    made = filled(kind, 70, 1024)
    assert made.nbytes == 1024
    assert hashlib.sha256(made.tobytes()).hexdigest()[:16] == DIGESTS[kind]


def test_inputs_are_finite_and_metadata_legal() -> None:
    types = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "bf16": ml_dtypes.bfloat16}
    for kind, dtype in types.items():
        values = filled(kind, 70, 4096).view(dtype).astype(np.float32)
        assert np.isfinite(values).all()
        assert (np.abs(values) >= 2.0**-6).all()
    nibbles = filled("meta16", 70, 1024)
    assert all(x & 3 < x >> 2 & 3 for x in [*(nibbles & 15).tolist(), *(nibbles >> 4).tolist()])
