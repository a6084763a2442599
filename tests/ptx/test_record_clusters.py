"""An H200's results for clusters that kernels declare (`python -m lab.record.clusters`)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from oracles import needs

import warpmma as wm
from lab.record.clusters import BLOCKS, CUDA, DECLARED, THREADS, WORDS, text
from warpmma.errors import PtxError

FOUND = json.loads((Path(__file__).parents[1] / "data/h200_clusters.json").read_text())
REFUSED = {  # and what an H200 gives for a launch that names no size: rank and size of each block, or an error
    "size_2": [[0, 2], [1, 2]] * 2,
    "explicit_2": [[0, 2], [1, 2]] * 2,
    "blocks_2": [[0, 2], [1, 2]] * 4,
    "explicit": "cluster misconfiguration",
    "explicit_rank_8": "cluster misconfiguration",
    "rank_8": [[0, 1]] * 4,  # the launch would say 1 to 8, and a launch here cannot
}


def ranks_and_sizes(found: list[list[int]]) -> list[list[int]]:
    return [row[2:4] for row in found]


@pytest.mark.parametrize("name", [name for name in DECLARED if name not in REFUSED])
def test_blocks_that_are_clusters_know_what_they_know_on_an_h200(name: str) -> None:
    y = np.zeros((BLOCKS, len(WORDS)), np.uint32)
    module = wm.ptx.load(text(other_ranks=False))
    assert not next(x for x in module.check().entries if x.name == name).problems
    module[name].launch(wm.Device("sm_90"), BLOCKS, THREADS, [y])
    assert y[:, :-1].tolist() == [row[:-1] for row in FOUND["ptx"][f"{name} launched with no size"]]


@pytest.mark.parametrize("name", REFUSED)
def test_clusters_of_more_blocks_are_refused(name: str) -> None:
    found, expected = FOUND["ptx"][f"{name} launched with no size"], REFUSED[name]
    assert expected in found if isinstance(expected, str) else ranks_and_sizes(found) == expected
    with pytest.raises(PtxError, match="clusters"):
        wm.ptx.load(text())[name].launch(wm.Device("sm_90"), BLOCKS, THREADS, [np.zeros(64, np.uint32)])


@needs("nvcc")
def test_clusters_of_cuda(tmp_path: Path) -> None:
    file = tmp_path / "clusters.cu"
    file.write_text(CUDA)
    module, device = wm.cuda.load(file, arch="sm_90", compiler="nvcc"), wm.Device("sm_90")
    for name in ("undeclared", "dims_of_1", "bounds_of_1"):
        y = np.zeros((BLOCKS, 2), np.uint32)
        module[name].launch(device, BLOCKS, THREADS, [y])
        assert y.tolist() == FOUND["cuda"][f"{name} launched with no size"] == [[0, 1]] * BLOCKS
    assert FOUND["cuda"]["dims_of_2 launched with no size"] == [[0, 2], [1, 2]] * 2
    for name in ("dims_of_2", "dims_open", "bounds_of_8"):
        with pytest.raises(PtxError, match="clusters"):
            module[name].launch(device, BLOCKS, THREADS, [np.zeros(8, np.uint32)])
