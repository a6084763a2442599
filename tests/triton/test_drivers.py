"""A simulated device is Triton's driver for as long as it is active, and everything is as it was afterwards."""

# mypy: disable-error-code="untyped-decorator, no-untyped-def, no-untyped-call, name-defined"

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import skip_without

import warpmma as wm

tl: Any = pytest.importorskip("triton.language")
triton: Any = pytest.importorskip("triton")
VERSION = tuple(int(x) for x in triton.__version__.split(".")[:2])

SCRIPT = """
import sys
import numpy as np
import triton
import triton.language as tl
import warpmma

target = triton.runtime.driver.active.get_current_target()

@triton.jit
def one(x):
    tl.store(x, 1)

x = np.zeros(1, np.int32)
one[(1,)](x)
print(target.arch, x[0], sys.argv[1:], __name__)
"""


@triton.jit
def one(x):
    tl.store(x, 1)


def state() -> tuple[Any, ...]:
    names = vars(triton.runtime.driver)
    kernels, tuners = triton.runtime.jit.JITFunction, triton.runtime.autotuner.Autotuner
    active = names["_active"] if "_active" in names else names["active"]
    return active, triton.backends.backends["nvidia"], kernels.run, tuners.run


def test_another_thread_launches_and_makes_no_device_active() -> None:
    before = state()
    x, said = np.zeros(1, np.int32), []

    def work() -> None:
        one[(1,)](x)
        try:
            with wm.triton.device("sm_80"):
                raise AssertionError
        except wm.OperandError as error:
            said.append(str(error))

    with wm.triton.device("sm_90") as gpu:
        worker = threading.Thread(target=work)
        worker.start()
        worker.join()
    assert x[0] == 1 and len(gpu.launches) == 1
    assert "<TritonDevice sm_90a, PTX for sm_90: 1 launch> is active in another thread, MainThread" in said[0]
    assert all(a is b for a, b in zip(state(), before, strict=True))
    worker = threading.Thread(target=lambda: said.append(wm.triton.install("sm_80").target))
    worker.start()
    worker.join()
    assert said[1:] == ["sm_80"]
    with wm.triton.device("sm_90"):  # the thread of the outer one has ended
        one[(1,)](x)
    wm.triton.uninstall()
    assert all(a is b for a, b in zip(state(), before, strict=True))


def test_everything_is_put_back() -> None:
    before = state()
    with pytest.raises(ZeroDivisionError), wm.triton.device("sm_90"), wm.triton.device("sm_80"):
        assert all(a is not b for a, b in zip(state(), before, strict=True))
        raise ZeroDivisionError
    assert all(a is b for a, b in zip(state(), before, strict=True))


def test_the_innermost_is_active() -> None:
    driver = triton.runtime.driver
    with wm.triton.device("sm_90") as outer:
        assert driver.active.get_current_target() == triton.backends.compiler.GPUTarget("cuda", 90, 32)
        assert driver.active.get_current_device() == outer.number
        with wm.triton.device("sm_89") as inner:
            one[(1,)](np.zeros(1, np.int32))
            assert driver.active.get_current_target().arch == 89
            assert driver.active.utils.get_device_properties(0)["max_shared_mem"] == 99 << 10
            with pytest.raises(wm.OperandError, match="sm_90a, PTX for sm_90: 0 launches> is not the innermost"):
                outer.__exit__()
        assert driver.active.get_current_device() == outer.number and len(inner.launches) == 1
        with wm.triton.device("sm_90", ptx_target="sm_89") as third:
            assert third.number not in (inner.number, outer.number)


def test_installed_until_it_is_not() -> None:
    before = state()
    installed = wm.triton.install("sm_90", hazards="warn")
    try:
        one[(1,)](np.zeros(1, np.int32))
    finally:
        wm.triton.uninstall()
    assert len(installed.launches) == 1 and state()[0] is before[0]
    with wm.triton.device("sm_90"), pytest.raises(wm.OperandError, match="no simulated device is installed"):
        wm.triton.uninstall()


def run(*arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], env=os.environ | environment, capture_output=True, text=True, check=False
    )  # fmt: skip
    assert not done.returncode, done.stderr
    return done.stdout.strip()


def test_a_script_is_run_as_it_is(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    said = run("-m", "warpmma.triton", "--device", "sm_89,seed=3", str(script), "--more")
    assert said == "89 1 ['--more'] __main__"


@pytest.mark.skipif(VERSION < (3, 4), reason="before 3.4 Triton looks for no backends of others")
def test_the_environment_names_a_device(tmp_path: Path) -> None:
    """Triton finds it by an entry point, which this test writes: a checkout may have been installed before it was."""
    info = tmp_path / "door-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: door\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[triton.backends]\nwarpmma = warpmma.triton.backend\n")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    said = run(str(script), WARPMMA_TRITON="sm_90,ptx_target=sm_89", PYTHONPATH=paths)
    assert said == "89 1 [] __main__"
    code = "import sys, triton; print('warpmma.machine' in sys.modules, 'warpmma.triton.backend' in sys.modules)"
    assert run("-c", code, WARPMMA_TRITON="", PYTHONPATH=paths) == "False True"


def test_pytorch_is_told_of_the_simulated_gpu() -> None:
    skip_without("PyTorch")
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU, which answers")
    before = torch.cuda.get_device_capability
    with wm.triton.device("sm_90"):
        assert torch.cuda.get_device_capability() == (9, 0) and not torch.cuda.is_available()
        assert torch.cuda.get_device_properties(0).shared_memory_per_block_optin == 227 << 10
        assert torch.cuda.get_device_name() == "simulated sm_90a" and torch.cuda.current_device() == 0
        assert triton.runtime.driver.active.get_active_torch_device() == torch.device("cpu")
        torch.cuda.synchronize()
    assert torch.cuda.get_device_capability is before


@pytest.mark.parametrize("module", ["compiler", "driver"])
def test_the_backend_is_imported_before_triton(module: str) -> None:
    """Triton looks for backends when it is imported, and must not find a module that is only half imported."""
    done = subprocess.run(
        [sys.executable, "-c", f"import warpmma.triton.backend.{module}"], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
