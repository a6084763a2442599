"""Benchmarking: where the DSL measures time, warp instructions are counted instead.

The rules:

1. `cute.testing.benchmark` runs a function once, in place of warm-ups and iterations, and returns the number of warp
   instructions of its launches; `cute.testing.tune` chooses the configuration with the fewest, of equal ones the first.
   The same launch always counts the same.
2. There are no caches that workspaces would have to fill: one is enough.
3. `tune` skips a configuration that raises an error, which is the DSL's own rule: what is not simulated, and hazards,
   too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .active_gpu import current
from .cute_interface import CuteInterface

_OPTIONS = ("warmup_iterations", "iterations", "use_cold_l2", "print_verbose", "current_stream")


def counting_functions(cute: CuteInterface) -> Iterator[tuple[Any, str, Any]]:
    """Return what is replaced in the DSL's modules of benchmarks."""
    for module in (cute.testing, cute.former_testing):
        yield module, "benchmark", _benchmark
        yield module, "get_workspace_count", _one_workspace
    yield cute.testing, "_benchmark_for_autotune", _benchmark_for_autotune


def _benchmark(
    callable: Callable[..., Any], *, kernel_arguments: Any = None, workspace_generator: Any = None, **_: Any
) -> float:
    given = kernel_arguments if workspace_generator is None else workspace_generator()
    return _counted(callable, *given.args, **given.kwargs)


def _one_workspace(one_workspace_bytes: int, warmup_iterations: int, iterations: int) -> int:
    return 1


def _benchmark_for_autotune(callable: Callable[..., Any], *args: Any, **options: Any) -> float:
    return _counted(callable, *args, **{name: x for name, x in options.items() if name not in _OPTIONS})


def _counted(function: Callable[..., Any], *args: Any, **options: Any) -> float:
    """Run a function, and return the number of instructions that warps executed."""
    before = current().instructions
    function(*args, **options)
    return float(current().instructions - before)
