"""Triton's driver for a simulated GPU."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

from .. import ptx
from ..isa import TARGETS, Target
from ..machine import MULTIPROCESSORS
from .active_device import current
from .benchmarking import DEVICE_INTERFACE, NO_CACHE, count_instructions
from .interface import TritonInterface
from .simulated_launches import Launcher

_REGISTERS = re.compile(r"\.reg\s+\.(b16|b32|b64|f32|f64)\s+%\w+<(\d+)>")
_THREADS = re.compile(r"\.(?:reqntid|maxntid)\s+(\d+)")
_CLOCK = 1_000_000  # kHz, invented, as is the width of the bus


def utilities(most_threads: bool) -> SimpleNamespace:
    """Return a driver's `utils`, whose `load_binary` also returns the most threads of a block if requested."""

    def load_binary(name: str, text: bytes, shared: int, device: int) -> tuple[Any, ...]:
        """Read PTX: module, entry, registers of a thread (see `_registers`), spills, and most threads."""
        module = ptx.load(text, f"{name}.ptx")
        entry = ptx.PtxEntry(module, module[name].name, index_name="program_id")
        loaded = module, entry, _registers(text.decode(), TARGETS[current().target]), 0
        return (*loaded, 1024) if most_threads else loaded

    def properties(device: Any = None) -> dict[str, int]:
        """Return what the target has, and invented clocks."""
        target = TARGETS[current().target]
        return {
            "max_shared_mem": target.shared_per_block, "max_num_regs": target.registers_per_block,
            "multiprocessor_count": MULTIPROCESSORS, "warpSize": 32, "sm_clock_rate": _CLOCK, "mem_clock_rate": _CLOCK,
            "mem_bus_width": 4096,
        }  # fmt: skip

    return SimpleNamespace(
        load_binary=load_binary, get_device_properties=properties,
        unload_module=lambda module: None,  # Python frees it
        get_device_capability=lambda device=None: current().capability,
        set_printf_fifo_size=lambda size: None,  # what kernels print is not kept in a buffer
    )  # fmt: skip


def _registers(text: str, target: Target) -> int:
    """Return what the text declares, in registers of 32 bits; at most what as many threads can have.

    ptxas needs fewer. Those who ask compute how many blocks a multiprocessor holds.
    """
    declared = sum(int(n) * (2 if "64" in kind else 1) for kind, n in _REGISTERS.findall(text))
    threads = [int(n) for n in _THREADS.findall(text)] or [128]
    return max(16, min(declared, 255, target.registers_per_block // max(threads) // 8 * 8))


@cache
def driver_class(triton: TritonInterface) -> type[Any]:
    """Make the class of drivers, which is Triton's; instances are given a function to call when Triton asks them."""

    def init(self: Any, asked: Callable[[], None]) -> None:
        self.asked, self.utils = asked, utilities(triton.most_threads)

    def target(self: Any) -> Any:
        self.asked()
        return triton.target("cuda", TARGETS[current().ptx_target].number, 32)

    def torch_device(self: Any) -> Any:
        import torch

        self.asked()
        return torch.device("cuda", 0) if current().cuda_on_cpu else torch.device("cpu")

    answers = {
        "__init__": init,
        "is_active": classmethod(lambda cls: False),
        "launcher_cls": lambda self, source, metadata: Launcher(source, metadata),
        "map_python_to_cpp_type": _not_compiled,
        "assemble_tensormap_to_arg": lambda self, tensormaps_info, args: args,
        "get_current_target": target,
        "get_active_torch_device": torch_device,
        "get_current_device": lambda self: current().number,
        "set_current_device": lambda self, device: None,  # the `with` says which device it is
        "get_current_stream": lambda self, device=None: 0,
        "get_device_capability": lambda self, device=None: current().capability,
        "get_device_interface": lambda self: DEVICE_INTERFACE,
        "get_benchmarker": lambda self: count_instructions,
        "get_empty_cache_for_benchmark": lambda self: NO_CACHE,
        "clear_cache": lambda self, cache: None,  # caches are not simulated
    }
    return type("SimulatedDriver", (triton.driver_base,), answers)


def _not_compiled(self: Any, ty: str) -> str:
    raise NotImplementedError
