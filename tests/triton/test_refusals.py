"""Kernels that cannot run: the error is one line that says what to do."""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, no-untyped-call, name-defined"

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from oracles import skip_without

import warpmma as wm

tl: Any = pytest.importorskip("triton.language")
triton: Any = pytest.importorskip("triton")


@triton.jit
def copied(x, out, n):
    tl.store(out, tl.load(x) + n)


X = np.zeros(1, np.float32)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.zeros(1, np.complex64), r"^x is of complex64, which Triton does not take; it takes bfloat16, "),
        (np.zeros(1, "datetime64[s]"), r"^x is of datetime64\[s\], which Triton does not take"),
        (np.float32(1), r"^x is np.float32\(1.0\); Triton takes numbers of Python: give x.item\(\)$"),
    ],
)
def test_arguments(given: Any, message: str) -> None:
    with wm.triton.device("sm_90"), pytest.raises(wm.OperandError, match=message):
        copied[(1,)](given, X, 1)


def test_a_tensor_that_is_elsewhere() -> None:
    skip_without("PyTorch")
    import torch

    with wm.triton.device("sm_90"):
        with pytest.raises(wm.OperandError, match=r"^out is a tensor on meta; .* give out.cpu\(\)$"):
            copied[(1,)](X, out=torch.zeros(1, device="meta"), n=1)
        with pytest.raises(wm.OperandError, match=r"^x is a tensor of layout torch.sparse_coo"):
            copied[(1,)](torch.zeros(1).to_sparse(), X, 1)


def test_a_grid_of_no_integers() -> None:
    with (
        wm.triton.device("sm_90"),
        pytest.raises(wm.OperandError, match=r"the grid is \(1.5, 1, 1\); expected integers"),
    ):
        copied[(1.5,)](X, X, 1)


def test_a_compiled_kernel_with_too_few_arguments() -> None:
    x, out = np.ones(1, np.float32), np.zeros(1, np.float32)
    with wm.triton.device("sm_90"):
        compiled = copied[(1,)](x, out, 2)
        with pytest.raises(wm.OperandError, match=r"^a compiled kernel takes x, out, n: 2 arguments are given$"):
            compiled[(1, 1, 1)](x, out)
        out[:] = 0
        compiled[(1, 1, 1)](x, out, 2)
    assert out[0] == 3


@pytest.mark.parametrize(
    ("target", "ptx_target", "message"),
    [
        ("sm_80", "sm_90", "ptx_target is 'sm_90', later than sm_80, which does not run it"),
        ("sm_100", "sm_90", "Triton writes sm_90a, which sm_100 does not run; give ptx_target='sm_80' or 'sm_89'"),
        ("H100", None, "sm_90"),
    ],
)
def test_targets(target: str, ptx_target: str | None, message: str) -> None:
    with pytest.raises(wm.TargetError, match=message):
        wm.triton.device(target, ptx_target=ptx_target)
    with pytest.raises(wm.TargetError, match="Triton writes PTX for sm_90a, which a device of sm_90 does not run"):
        wm.triton.device(wm.Device("sm_90"), ptx_target="sm_90")


def test_an_interface_that_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    from warpmma.triton import interface

    interface._found.cache_clear()
    monkeypatch.delattr(triton.runtime.autotuner, "Autotuner")
    message = (
        rf"^Triton {triton.__version__} has no triton.runtime.autotuner.Autotuner; warpmma.triton knows 3.2 to 3.9"
    )
    with pytest.raises(wm.UnsupportedError, match=message):
        wm.triton.device("sm_90")
    monkeypatch.undo()
    wm.triton.device("sm_90")


def test_the_interpreter() -> None:
    code = "import warpmma as wm, triton; wm.triton.device('sm_90')"
    asked = os.environ | {"TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=asked, capture_output=True, text=True, check=False)
    assert "UnsupportedError: TRITON_INTERPRET is set, so Triton runs kernels as Python on NumPy" in done.stderr


def test_no_launch_without_a_device() -> None:
    with wm.triton.device("sm_90") as gpu:
        compiled = copied.warmup(X, X, 1, grid=(1,))
    with pytest.raises(wm.OperandError, match=r"no simulated device is active: launch inside `with"):
        compiled.run(1, 1, 1, 0, compiled.function, compiled.packed_metadata, None, None, None, X, X, 1)
    assert gpu.launches == []
