"""A simulated GPU for commands that want a GPU."""

from __future__ import annotations

import pytest
from compared_gpu import ComparedGpu

from warpmma.cli.commands import gpu_commands


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> ComparedGpu:
    simulated = ComparedGpu()
    monkeypatch.setattr(gpu_commands, "first_gpu", lambda: simulated)
    monkeypatch.setattr(gpu_commands, "why_no_gpu", lambda: "")
    return simulated
