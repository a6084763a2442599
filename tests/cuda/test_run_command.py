"""The command `run` on CUDA C++: names of parameters, templates, what was left out, hazards."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from warpmma.cli import main
from warpmma.cuda import nvrtc
from warpmma.cuda.pieces import parameter_names

pytestmark = pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()), reason=nvrtc.why_no_nvrtc())

SOURCE = """#include <cstdio>
template <int N>
__global__ void scale(const float *__restrict__ x, float *y, int n)
{
    __shared__ float tile[128];
    int i = threadIdx.x;
    tile[i] = x[i];
    if (i == 3) printf("hello %d\\n", n);
#ifdef BARRIER
    __syncthreads();
#endif
    if (i < n) y[i] = tile[n - 1 - i] * N;
}
int main() { scale<2><<<1, 128>>>(nullptr, nullptr, 0); }
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "scale.cu").write_text(SOURCE)
    return str(tmp_path / "scale.cu")


def test_a_race_is_found(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", file, "--grid", "1", "--block", "128", "--target", "sm_90",
               "--arg", "n=128", "--arg", "y=out:f32[128]", "--arg", "x=f32[128]:range"]  # fmt: skip
    assert main(command) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "compiled by NVRTC 13.0 for sm_80 left out as the host's: main (line 14)" in said and "hello 128" in said
    assert "scale.cu:12: ld.shared.f32" in said and "race" in said and "1 hazard" in said
    assert main([*command, "--option=-DBARRIER"]) == 0
    said = capsys.readouterr().out
    assert "254 252 250 248 ..." in said and "no hazard" in said
    assert main([*command, "--option=-DBARRIER", "--kernel", "scale<3>"]) == 0
    assert "381 378 375 372 ..." in capsys.readouterr().out


def test_what_does_not_compile(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(file).write_text("__global__ void k(int *x) { *x = y; }")
    assert main(["run", file, "--grid", "1", "--block", "1"]) == 2
    assert '"y" is undefined' in capsys.readouterr().err
    Path(file).write_text("template <int N> __global__ void k(int *x) { *x = N; }\n__global__ void other() { }\n")
    assert main(["run", file, "--grid", "1", "--block", "1", "--kernel", "k"]) == 2
    said = capsys.readouterr().err
    assert "has no entry 'k'" in said and "; k is a template" in said and said.count("\n") == 1


def test_the_documented_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    root = Path(__file__).parents[2]
    (command,) = re.findall(r"^\$ warpmma (run .*\n(?:>.*\n)*)", (root / "docs" / "cuda.md").read_text(), re.MULTILINE)
    command = command.replace("\\\n>", "")
    monkeypatch.chdir(root)
    arguments = [*command.split(), "--save", str(tmp_path / "sums.npz")]
    assert main(arguments) == 1
    said = capsys.readouterr().out
    assert "block_sum of examples/cuda/block_sum.cu on sm_80" in said and "1 hazard\n" in said
    assert max(map(len, said.splitlines())) < 120
    assert main([*arguments, "--option=-DSYNCWARP"]) == 0
    with np.load(tmp_path / "sums.npz") as arrays:
        padded = np.append(arrays["x"], np.zeros(24, np.float32))
        assert np.allclose(arrays["sums"], padded.reshape(4, 256).sum(1), atol=1e-4)


def test_names_of_parameters() -> None:
    text = """namespace a { __global__ void k(void (*f)(int, int), const std::map<int, int> &m, int n = f(1, 2)) { } }
    extern "C" __global__ __launch_bounds__(128) void k(float x[], int) { } __global__ void none(void) { }"""
    assert parameter_names(text, "none") == [()]
    assert parameter_names(text, "k") == [("f", "m", "n"), ("x", "")]
