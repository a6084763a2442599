"""Two processes under the override: a product split along k over ranks is `split_k`, and gradients are averaged."""

from __future__ import annotations

from pathlib import Path

from oracles import skip_without

skip_without("PyTorch")
from two_ranks import compare  # noqa: E402


def test_two_processes(tmp_path: Path) -> None:
    compare(tmp_path, "cpu")
