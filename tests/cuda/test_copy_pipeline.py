"""The four stages of `examples/copy_pipeline.py` and of its twin in CUDA C++, and mistakes in both waits."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.cuda import nvrtc
from warpmma.machine import HazardError

pipeline: Any = import_module("copy_pipeline")
SOURCE = Path(pipeline.__file__).parent / "cuda" / "copy_pipeline.cu"
NVRTC = pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()), reason=nvrtc.why_no_nvrtc())


def test_the_kernel_in_python(capsys: pytest.CaptureFixture[str]) -> None:
    pipeline.main(twin=False)
    assert capsys.readouterr().out == "equal\n"


def run(source: str) -> tuple[Any, Any]:
    """Run a kernel of CUDA C++; return its sums and those of NumPy."""
    x = np.arange((pipeline.TILES * pipeline.ROWS - 5) * 64, dtype=np.float32).reshape(-1, 64) % 251
    device = wm.Device("sm_90a")
    box = wm.TensorMap(device.array(x), (pipeline.ROWS, pipeline.COLUMNS))
    y = device.empty((pipeline.ROWS, pipeline.COLUMNS), np.float32)
    module = wm.cuda.load(source, arch="sm_90a", name="copy_pipeline.cu")
    module["copy_pipeline"].launch(device, 1, pipeline.THREADS, [box, y])
    return y.numpy(), pipeline.expected(x)


@NVRTC
def test_the_twin() -> None:
    np.testing.assert_array_equal(*run(SOURCE.read_text()))


@NVRTC
@pytest.mark.parametrize(
    ("right", "wrong", "kinds"),
    [
        ("if (turn) wait(in_shared(&empty[s])", "if (turn < 0) wait(in_shared(&empty[s])", ("race", "pending")),
        ("wait(in_shared(&full[s]), (tile / STAGES) & 1);", "", ("pending", "race", "poison", "barrier")),
        ('"r"(BYTES) : "memory");', '"r"(BYTES + 16) : "memory");', ("deadlock", "barrier")),
    ],
)
def test_mistakes_are_reported(right: str, wrong: str, kinds: tuple[str, ...]) -> None:
    text = SOURCE.read_text()
    assert text.count(right) == 1
    with pytest.raises(HazardError) as error:
        run(text.replace(right, wrong))
    assert error.value.hazard.kind in kinds, error.value
