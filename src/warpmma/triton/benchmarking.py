"""Benchmarking: where Triton measures time, warp instructions are counted instead.

The rules:

1. The time of a run is the number of warp instructions of its launches. The same launch always counts the same.
2. Every configuration of an autotuned kernel runs once, and the one with the fewest instructions is chosen; of equal
   ones the first. A configuration that exceeds the target's shared memory counts as infinite, as in Triton, and so do
   clusters where Triton writes for a target without them. `do_bench`, `warmup` and `rep` of the kernel are ignored.
3. The choice is cached for the pair of targets, and neither for another pair nor for a real GPU.
4. `triton.testing.do_bench` counts at least 100, so that a function without launches runs only a few times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from types import SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

from .._cuda_as_cpu import InstructionEvent
from ..errors import UnsupportedError
from .active_device import current
from .argument_checks import given_to_triton

_chosen: WeakKeyDictionary[Any, dict[int, dict[Any, Any]]] = WeakKeyDictionary()


def count_instructions(
    call: Callable[[], Any], *, quantiles: Sequence[float] | None = None, **_: Any
) -> float | list[float]:
    """Run once, and count the instructions that warps execute: a number, or as many as quantiles are requested."""
    before = current().instructions
    try:
        call()
        executed = float(current().instructions - before)
    except UnsupportedError:
        executed = inf
    return executed if quantiles is None else [executed for _ in quantiles]


DEVICE_INTERFACE = SimpleNamespace(
    synchronize=lambda device=None: None, current_device=lambda: current().number,
    get_device_capability=lambda device=None: current().capability, Event=lambda **_: InstructionEvent(current),
)  # fmt: skip
"""What `triton.testing.do_bench` uses of `torch.cuda`."""

NO_CACHE = SimpleNamespace(zero_=lambda: None)
"""The cache that is cleared between runs; none is simulated."""


def tuned_by_counting(run: Any, dtypes: Mapping[str, str]) -> Any:
    """Return `Autotuner.run` by rules 2 and 3."""

    def counted_run(self: Any, *args: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        known = _chosen.setdefault(self, {}).setdefault(current().number, {})
        names = vars(self)
        before = {name: names[name] for name in ("cache", "do_bench") if name in names}
        names |= {"cache": known, "do_bench": count_instructions}
        try:
            given, named = given_to_triton(self.arg_names, args, options, dtypes)
            return run(self, *given, **named)
        finally:
            del names["do_bench"]
            names |= before

    return counted_run
