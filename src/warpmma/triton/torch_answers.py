"""What a PyTorch without a GPU is asked about its GPU, answered for the simulated one.

The rules:

1. As long as a device is active and PyTorch has no GPU, the functions of `torch.cuda` below answer. `is_available`
   still says no: no tensor can be made on "cuda", unless the CPU stands for it (`cuda_as_cpu`).
2. The capability is that of the target which Triton compiles for: code asks to know what the compiler may use.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

from ..isa import TARGETS
from .active_device import current


def has_gpu(torch: Any) -> bool:
    """Whether PyTorch has a GPU, whatever answers for it."""
    count = getattr(torch._C, "_cuda_getDeviceCount", None)  # a PyTorch for the CPU lacks it
    return count is not None and count() > 0


def machine_memory(device: Any = None) -> tuple[int, int]:
    """Return free and all bytes of this machine's memory, in which tensors lie."""
    page = os.sysconf("SC_PAGE_SIZE")
    return os.sysconf("SC_AVPHYS_PAGES") * page, os.sysconf("SC_PHYS_PAGES") * page


class TorchAnswers:
    """Answers that stand in `torch.cuda`, and what was there before."""

    def __init__(self) -> None:
        self._before: dict[str, Any] = {}

    def give(self) -> None:
        """Answer from now on, if PyTorch was imported and has no GPU."""
        torch = sys.modules.get("torch")
        cuda = getattr(torch, "cuda", None)
        if self._before or cuda is None or has_gpu(torch):
            return
        for name, answer in self._answers().items():
            self._before[name] = getattr(cuda, name)
            setattr(cuda, name, answer)

    def take_back(self) -> None:
        """Put back what was there."""
        for name, x in self._before.items():
            setattr(sys.modules["torch"].cuda, name, x)
        self._before.clear()

    def _answers(self) -> dict[str, Callable[..., Any]]:
        def properties(device: Any = None) -> SimpleNamespace:
            target = TARGETS[current().target]
            major, minor = current().capability
            return SimpleNamespace(
                name=f"simulated {target}", major=major, minor=minor, multi_processor_count=132, warp_size=32,
                max_threads_per_multi_processor=target.threads_per_sm, regs_per_multiprocessor=65536,
                shared_memory_per_block=target.static_shared, shared_memory_per_multiprocessor=target.shared_per_sm,
                shared_memory_per_block_optin=target.shared_per_block, total_memory=machine_memory()[1],
            )  # fmt: skip

        return {
            "current_device": lambda: 0,
            "device": lambda device=None: nullcontext(),
            "get_device_capability": lambda device=None: current().capability,
            "get_device_name": lambda device=None: f"simulated {current().target}",
            "get_device_properties": properties,
            "synchronize": lambda device=None: None,
        }
