"""The example of a network in fp8: what promotion is good for shows after a few steps, and the picture is drawn."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from oracles import skip_without

skip_without("PyTorch")
from torch_cases import torch  # noqa: E402

mlp: Any = import_module("mlp_fp8")
EXACT, PROMOTED, PLAIN = list(mlp.ARITHMETICS)[1:]


@cache
def results() -> dict[str, Any]:
    found: dict[str, Any] = mlp.main(["--steps", "4"])
    return found


def test_errors_of_the_gradient_are_of_three_kinds() -> None:
    """f32's bits; 13 bits where large numbers have not cancelled yet, in two of 16 parts of the sum or in all."""
    for exact, promoted, plain in zip(*(results()[name].errors for name in (EXACT, PROMOTED, PLAIN)), strict=True):
        assert exact < 0.01 < promoted < 0.4 < plain


def test_losses_and_instructions() -> None:
    assert {len(x.losses) for x in results().values()} == {4}
    assert results()["float32"].instructions == {} and results()["float32"].errors == []
    assert all("mma.sync" in i for i in results()[EXACT].instructions)
    assert all("wgmma" in i for name in (PROMOTED, PLAIN) for i in results()[name].instructions)
    # Forward e4m3 twice and backward e5m2 with e4m3 three times a step; after it the loss, forward again.
    assert sorted(results()[PLAIN].instructions.values()) == [3 * 4, 4 * 4]


def test_without_far_labels_they_hardly_differ() -> None:
    plain, exact = (mlp.train(mlp.ARITHMETICS[name], 2, far=0.0) for name in (PLAIN, EXACT))
    assert plain.errors[-1] < 0.05 and abs(plain.losses[-1] - exact.losses[-1]) < 0.01 * exact.losses[-1]


def test_the_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    mlp.draw(results(), tmp_path / "mlp.png")
    assert (tmp_path / "mlp.png").read_bytes()[:4] == b"\x89PNG"
    assert torch.is_grad_enabled()
