"""The pipeline over a cluster of `examples/cluster_pipeline.py`, its twin in CUDA C++, and mistakes in the twin."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma.cuda import nvrtc
from warpmma.machine import HazardError

pipeline: Any = import_module("cluster_pipeline")
SOURCE = Path(pipeline.__file__).parent / "cuda" / "cluster_pipeline.cu"
NVRTC = pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()), reason=nvrtc.why_no_nvrtc())


def test_the_kernel_in_python(capsys: pytest.CaptureFixture[str]) -> None:
    pipeline.main(twin=False)
    assert capsys.readouterr().out == "equal\n"


def run(source: str, **options: Any) -> tuple[Any, Any]:
    """Run a kernel of CUDA C++; return its sums and those of NumPy."""
    x = np.arange((pipeline.TILES * pipeline.ROWS - 5) * 64, dtype=np.float32).reshape(-1, 64) % 251
    w = np.arange(4 * pipeline.TILES, dtype=np.float32).reshape(4, -1) % 7 - 3
    device = wm.Device("sm_90a")
    box = wm.TensorMap(device.array(x), (pipeline.ROWS // pipeline.CLUSTER, pipeline.COLUMNS))
    y = device.empty((4, pipeline.ROWS, pipeline.COLUMNS), np.float32)
    module = wm.cuda.load(source, arch="sm_90a", name="cluster_pipeline.cu")
    module["cluster_pipeline"].launch(device, 4, pipeline.THREADS, [box, device.array(w), y], **options)
    return y.numpy(), pipeline.expected(x, w)


@NVRTC
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_twin(seed: int) -> None:
    np.testing.assert_array_equal(*run(SOURCE.read_text(), seed=seed))


HISTOGRAM = """#include <cooperative_groups.h>
extern "C" __global__ void histogram(int* bins, int each, const int* x, int n) {
    extern __shared__ int own[];
    const auto cluster = cooperative_groups::this_cluster();
    for (int i = threadIdx.x; i < each; i += blockDim.x) own[i] = 0;
    cluster.sync();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
        atomicAdd(cluster.map_shared_rank(own, x[i] / each) + x[i] % each, 1);
    cluster.sync();
    for (int i = threadIdx.x; i < each; i += blockDim.x) atomicAdd(bins + cluster.block_rank() * each + i, own[i]);
}"""


@NVRTC
def test_a_histogram_in_the_shared_memory_of_a_cluster() -> None:
    x, bins = np.random.default_rng(0).integers(0, 64, 4096).astype(np.int32), np.zeros(64, np.int32)
    device, args = wm.Device("sm_90"), [bins, 16, x, x.size]
    module = wm.cuda.load(HISTOGRAM, arch="sm_90")
    module["histogram"].launch(device, 8, 128, args, shared=64, cluster=4)
    assert (bins == np.bincount(x, minlength=64)).all()
    module = wm.cuda.load(HISTOGRAM[::-1].replace("sync"[::-1], "num_blocks"[::-1], 1)[::-1], arch="sm_90")
    with pytest.raises(HazardError, match=r"race: .*(rule A18|barrier.cluster)"):
        module["histogram"].launch(device, 8, 128, args, shared=64, cluster=4)


@NVRTC
@pytest.mark.parametrize(
    ("right", "wrong", "kinds"),
    [
        ("if (turn) wait(in_shared(&empty[s])", "if (turn < 0) wait(in_shared(&empty[s])", ("race", "pending")),
        ("wait(in_shared(&full[s]), (tile / STAGES) & 1);", "", ("pending", "race", "poison", "barrier")),
        ('"r"(BYTES) : "memory");', '"r"(BYTES / 2) : "memory");', ("pending", "race", "barrier", "deadlock")),
        ("(1 << CLUSTER) - 1)", "1 << rank)", ("deadlock",)),
        ("(1 << CLUSTER) - 1)", "(2 << CLUSTER) - 1)", ("bounds",)),
        ("other = 0; other < CLUSTER", "other = rank; other < rank + 1", ("deadlock",)),
        ('"r"(CLUSTER * THREADS)', '"r"(THREADS)', ("barrier", "race", "pending")),
        ("in_block(in_shared(&empty[s]), other)", "in_block(in_shared(&empty[s]), other + 1)", ("bounds",)),
        ("    }\n    cluster.sync();\n    float", "    }\n    __syncthreads();\n    float", ("race", "barrier")),
    ],
)
def test_mistakes_are_reported(right: str, wrong: str, kinds: tuple[str, ...]) -> None:
    text = SOURCE.read_text()
    assert text.count(right) == 1
    with pytest.raises(HazardError) as error:
        run(text.replace(right, wrong))
    assert error.value.hazard.kind in kinds, error.value
