"""A kernel with `wgmma` runs through every door without further options: `load`, the shell, the `gpu` fixture."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import warpmma as wm
from warpmma.cli import main
from warpmma.cuda import nvrtc
from warpmma.kernel import Watch
from warpmma.machine import Launch
from warpmma.testing import Gpu

pytestmark = pytest.mark.quick

Capture = pytest.CaptureFixture[str]
NVRTC = pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()), reason=nvrtc.why_no_nvrtc())

WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
SOURCE = """
__device__ unsigned long long descriptor(const void* tile) {  // no swizzle: core matrices of 8 rows by 16 bytes
    return (unsigned long long)(__cvta_generic_to_shared(tile) >> 4) | 8ull << 16 | 16ull << 32;
}
extern "C" __global__ void product(const unsigned short* a, const unsigned short* b, float* d) {
    __shared__ alignas(128) unsigned short left[64 * 16], right[8 * 16];
    const int t = threadIdx.x, lane = t % 32;
    for (int i = t; i < 64 * 16; i += 128) left[i / 128 * 128 + i % 16 / 8 * 64 + i / 16 % 8 * 8 + i % 8] = a[i];
    right[t % 16 / 8 * 64 + t / 16 * 8 + t % 8] = b[t];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    float c[4] = {};
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "l"(descriptor(left)), "l"(descriptor(right)));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int i = 0; i < 4; i++)
        d[(t / 32 * 16 + lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2] = c[i];
}
"""


def operands() -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal((rows, 16)).astype(np.float16) for rows in (64, 8))
    right = wm.matmul(a, b.T, instruction=WGMMA, target="sm_90a")
    return a, b, np.zeros((64, 8), np.float32), right


@NVRTC
def test_load() -> None:
    a, b, d, right = operands()
    module = wm.cuda.load(SOURCE, arch="sm_90a")
    report = module["product"].launch(wm.Device("sm_90a"), 1, 128, [a, b, d], watch=Watch())
    np.testing.assert_array_equal(d, right)
    told = wm.explain_launch(report, warp=2, lane=5, register=3)
    assert told.value == d[told.row, told.column] and (told.row, told.column) == (41, 3)


@NVRTC
def test_the_fixture() -> None:
    a, b, d, right = operands()
    gpu = Gpu("sm_90a")
    report: Launch = gpu.launch(gpu.load(SOURCE), 1, 128, [a, b, d], watch=Watch(), timeline=True)
    np.testing.assert_array_equal(d, right)
    assert len(report.watched) == 1 and report.timeline is not None and len(report.timeline.operations) == 1


@NVRTC
def test_the_fixture_under_pytest(tmp_path: Path) -> None:
    (tmp_path / "product.cu").write_text(SOURCE)
    (tmp_path / "test_product.py").write_text("""
import numpy as np

def test_product(gpu):
    a, b, d = np.ones((64, 16), np.float16), np.ones((8, 16), np.float16), np.zeros((64, 8), np.float32)
    gpu.launch(gpu.load("product.cu"), 1, 128, [a, b, d])
    assert (d == 16).all()
""")
    call = [sys.executable, "-m", "pytest", "-p", "warpmma.testing.plugin", "--warpmma-target", "sm_90a"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(call, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def run(folder: Path, file: str, *more: str) -> int:
    given = ["--arg", "a=f16[64,16]:ones", "--arg", "b=f16[8,16]:ones", "--arg", "d=out:f32[64,8]"]
    return main(["run", str(folder / file), "--grid", "1", "--block", "128", *given, *more])


@NVRTC
@pytest.mark.parametrize("more", [("--target", "sm_90a"), ("--arch", "sm_90a")])
def test_the_shell_compiles(tmp_path: Path, capsys: Capture, more: tuple[str, str]) -> None:
    (tmp_path / "product.cu").write_text(SOURCE)
    picture = tmp_path / "timeline.svg"
    assert run(tmp_path, "product.cu", *more, "--timeline", str(picture)) == 0
    said = capsys.readouterr().out
    assert "for sm_90a" in said and "16 16 16 16" in said
    assert "wgmma of warps 0-3" in picture.read_text() and ElementTree.parse(picture) is not None


@NVRTC
def test_the_shell_runs_ptx(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "product.ptx").write_text(wm.cuda.load(SOURCE, arch="sm_90a").ptx)
    arguments = [f"--arg=param_{i}={x}" for i, x in enumerate(("f16[64,16]:ones", "f16[8,16]:ones", "out:f32[64,8]"))]
    call = ["run", str(tmp_path / "product.ptx"), "--grid", "1", "--block", "128", *arguments]
    listed = tmp_path / "timeline.json"
    line = next(n for n, x in enumerate(SOURCE.splitlines(), 1) if ': "+f"(c[0])' in x)
    assert main([*call, "--timeline", str(listed), "--explain", f"{line} warp=1 row=3 column=4"]) == 0
    assert "16 products a step" in capsys.readouterr().out
    assert len(json.loads(listed.read_text())["operations"]) == 1
    text = tmp_path / "timeline.txt"
    assert main([*call, "--timeline", str(text)]) == 0 and "issues wgmma.m64n8k16" in text.read_text()
    assert main([*call, "--timeline", "timeline.png"]) == 2
    assert "--timeline 'timeline.png': expected a file *.svg, *.txt or *.json" in capsys.readouterr().err


@NVRTC
def test_an_older_target_says_what_is_missing(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "product.cu").write_text(SOURCE)
    assert run(tmp_path, "product.cu") == 2
    assert "sm_90a" in capsys.readouterr().err
