"""Tiles of matrix instructions: their PTX assembles, and a simulated GPU gives what the model expects."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from compared_gpu import ComparedGpu
from oracles import needs

from warpmma.errors import UnsupportedError
from warpmma.hardware import MatrixComparison, Room, matrix_groups, ptx_module
from warpmma.hardware.comparing import matrix_cases
from warpmma.hardware.comparing.tile_kernels import columns_of, tile_kernel, variants_of
from warpmma.isa import MatrixInstruction, instructions, parse_any, warpgroup_instructions

FORMS = {
    "sm_70": ("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f16", "mma.sync.aligned.m8n8k4.col.row.f16.f16.f16.f16"),
    "sm_90a": (
        "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64.rz",
        "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.and.popc",
        "mma.sync.aligned.m16n8k64.row.col.satfinite.s32.s4.u4.s32",
        "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16",
        "mma.sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32",
        "wgmma.mma_async.sync.aligned.m64n24k16.f16.f16.f16",
        "wgmma.mma_async.sync.aligned.m64n16k256.s32.b1.b1.and.popc",
        "wgmma.mma_async.sp.sync.aligned.m64n8k64.f32.e4m3.e5m2",
        "wgmma.mma_async.sp.sync.aligned.m64n40k16.f32.tf32.tf32",
        "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.bf16.bf16",
    ),
    "sm_120a": (
        "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
        "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e2m1.f32.ue8m0",
    ),
}  # fmt: skip
CAPABILITIES = {"sm_70": (7, 0), "sm_90a": (9, 0), "sm_120a": (12, 0)}


@pytest.fixture(autouse=True)
def by_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(form: object) -> Any:
        raise UnsupportedError("no NVRTC")

    monkeypatch.setattr(matrix_cases, "kernel_of", refused)


@pytest.mark.parametrize(("target", "name"), [(target, name) for target, some in FORMS.items() for name in some])
def test_every_variant_gives_what_is_expected(target: str, name: str) -> None:
    record: Any = parse_any(name)
    (group,) = matrix_groups(target, [record])
    with Room(ComparedGpu(target, CAPABILITIES[target]), target) as room:
        comparison = MatrixComparison(group, 20, 0)  # no whole number of tiles
        for number in range(max(5, len(variants_of(record)) + 1)):  # of five pieces, one has no C
            ((mnemonic, found),) = comparison.run(room, number)
            assert (mnemonic, found.outputs, found.differences, found.first) == (name, 400, 0, None)  # type: ignore[union-attr]


def test_groups_have_every_instruction_once() -> None:
    for target in ("sm_75", "sm_90a", "sm_120a"):
        every: Sequence[MatrixInstruction] = (*instructions(target), *warpgroup_instructions(target))
        found = [record for group in matrix_groups(target) for record in group.records]
        assert sorted(map(str, found)) == sorted(map(str, every))
    assert max(len(group.records) for group in matrix_groups("sm_90a")) == 32  # every n of a wgmma


def test_pieces_depend_on_their_number_alone() -> None:
    (group,) = matrix_groups("sm_90", [parse_any("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")])
    first, again, other = (matrix_cases.draw(group, "ties", 16, [0, number]) for number in (3, 3, 4))
    assert first.a.tobytes() == again.a.tobytes() != other.a.tobytes()
    assert columns_of(group.records[0]) == 8


@needs("ptxas")
@pytest.mark.parametrize(("target", "step"), [("sm_75", 1), ("sm_90a", 60), ("sm_120a", 16)])
def test_kernels_assemble(target: str, step: int, tmp_path: Path) -> None:
    known = [i for i in (*instructions(target), *warpgroup_instructions(target)) if i.ptx <= (9, 0)][::step]
    kernels = [tile_kernel(i, f"k{n}_{m}", v) for n, i in enumerate(known) for m, v in enumerate(variants_of(i))]
    source = tmp_path / "k.ptx"
    source.write_text(ptx_module(kernels, target, (9, 0)))
    words = ["ptxas", "-O1", f"-arch={target}", str(source), "-o", str(tmp_path / "k.cubin")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
