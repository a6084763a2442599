"""An H200's results for clusters that kernels declare and launches request (`python -m lab.record.clusters`)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from oracles import needs

import warpmma as wm
from lab.record.clusters import BLOCKS, CUDA, THREADS, WORDS, text
from warpmma.errors import OperandError

FOUND = json.loads((Path(__file__).parents[1] / "data/h200_clusters.json").read_text())
NOTHING = 0xFFFFFFFF


def launched(module: wm.ptx.PtxModule, launch: str, words: int) -> list[list[int]] | None:
    """Return what a launch writes, named as in the recording; None if it is refused."""
    name, _, size = launch.partition(" launched with ")
    y = np.full((BLOCKS * 2, words), NOTHING, np.uint32)
    cluster = None if size == "no size" else int(size)
    try:
        module[name].launch(wm.Device("sm_90"), BLOCKS, THREADS, [y], cluster=cluster)
    except OperandError as error:
        assert "cluster" in str(error)
        return None
    return [row for row in y.tolist() if row[0] != NOTHING]


def recorded(found: list[list[int]] | str) -> list[list[int]] | None:
    if isinstance(found, str):
        assert "cluster misconfiguration" in found
        return None
    return found


@pytest.mark.parametrize("launch", FOUND["ptx"])
def test_blocks_know_their_clusters_as_on_an_h200(launch: str) -> None:
    assert launched(wm.ptx.load(text()), launch, len(WORDS)) == recorded(FOUND["ptx"][launch])


@needs("nvcc")
def test_clusters_of_cuda(tmp_path: Path) -> None:
    file = tmp_path / "clusters.cu"
    file.write_text(CUDA)
    module = wm.cuda.load(file, arch="sm_90", compiler="nvcc")
    for launch, found in FOUND["cuda"].items():
        assert launched(module, launch, 2) == recorded(found), launch
