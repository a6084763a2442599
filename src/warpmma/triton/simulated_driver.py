"""What Triton asks its driver, answered for a simulated GPU."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from .. import ptx
from ..isa import TARGETS
from .active_device import current
from .benchmarking import Benchmarker, DeviceInterface, NoCache
from .interface import TritonInterface
from .simulated_launches import Launcher

_REGISTERS = re.compile(r"\.reg\s+\.(b16|b32|b64|f32|f64)\s+%\w+<(\d+)>")
_THREADS = re.compile(r"\.(?:reqntid|maxntid)\s+(\d+)")
_CLOCK = 1_000_000  # kHz, invented, as is the width of the bus


class Utilities:
    """What a driver's `utils` are asked for.

    Parameters
    ----------
    most_threads : bool
        Whether `load_binary` returns that, too.
    """

    def __init__(self, most_threads: bool) -> None:
        self._most_threads = most_threads

    def load_binary(self, name: str, text: bytes, shared: int, device: int) -> tuple[Any, ...]:
        """Read PTX. Returned are module, entry, registers of a thread (see `_registers`), spills, and most threads."""
        module = ptx.load(text, f"{name}.ptx")
        entry = ptx.PtxEntry(module, module[name].name, index_name="program_id")
        loaded = module, entry, _registers(text.decode()), 0
        return (*loaded, 1024) if self._most_threads else loaded

    def unload_module(self, module: Any) -> None:
        """Do nothing: Python frees it."""

    def get_device_properties(self, device: Any = None) -> dict[str, int]:
        """Return what the target has; 132 multiprocessors, as `%nsmid`, and invented clocks."""
        target = TARGETS[current().target]
        return {
            "max_shared_mem": target.shared_per_block, "max_num_regs": target.registers_per_block,
            "multiprocessor_count": 132, "warpSize": 32, "sm_clock_rate": _CLOCK, "mem_clock_rate": _CLOCK,
            "mem_bus_width": 4096,
        }  # fmt: skip

    def get_device_capability(self, device: Any = None) -> tuple[int, int]:
        """Return the compute capability that Triton compiles for."""
        return current().capability

    def set_printf_fifo_size(self, size: int) -> None:
        """Do nothing: what kernels print is not kept in a buffer."""


def _registers(text: str) -> int:
    """Return what the text declares, in registers of 32 bits; at most what as many threads can have.

    ptxas needs fewer. Those who ask compute how many blocks a multiprocessor holds.
    """
    declared = sum(int(n) * (2 if "64" in kind else 1) for kind, n in _REGISTERS.findall(text))
    threads = [int(n) for n in _THREADS.findall(text)] or [128]
    return max(16, min(declared, 255, 65536 // max(threads) // 8 * 8))


@cache
def driver_class(triton: TritonInterface) -> type[Any]:
    """Make the class of drivers, which is Triton's."""

    class SimulatedDriver(triton.driver_base):  # type: ignore[misc, name-defined]
        """A driver of simulated devices."""

        def __init__(self, asked: Callable[[], None]) -> None:
            self._asked = asked
            self.utils = Utilities(triton.most_threads)

        def launcher_cls(self, source: Any, metadata: Any) -> Launcher:
            return Launcher(source, metadata)

        @classmethod
        def is_active(cls) -> bool:
            return False

        def map_python_to_cpp_type(self, ty: str) -> str:
            raise NotImplementedError

        def get_current_target(self) -> Any:
            self._asked()
            return triton.target("cuda", TARGETS[current().ptx_target].number, 32)

        def get_current_device(self) -> int:
            return current().number

        def set_current_device(self, device: int) -> None:
            """Stay where it is: the `with` says which device it is."""

        def get_current_stream(self, device: Any = None) -> int:
            return 0

        def get_device_capability(self, device: Any = None) -> tuple[int, int]:
            return self.utils.get_device_capability()

        def assemble_tensormap_to_arg(self, tensormaps_info: Any, args: Any) -> Any:
            return args

        def get_active_torch_device(self) -> Any:
            import torch

            self._asked()
            return torch.device("cuda", 0) if current().cuda_on_cpu else torch.device("cpu")

        def get_device_interface(self) -> Any:
            return DeviceInterface()

        def get_benchmarker(self) -> Any:
            return Benchmarker()

        def get_empty_cache_for_benchmark(self) -> Any:
            return NoCache()

        def clear_cache(self, cache: Any) -> None:
            """Do nothing: no cache is simulated."""

    return SimulatedDriver
