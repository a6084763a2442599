"""Runs of programs on the simulator."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import warpmma as wm

from .launches import Array, Run, contents

__all__ = ["simulate"]


def simulate(
    module: Any, run: Run, target: str = "sm_90", **options: Any
) -> tuple[dict[str, Array], list[str], list[Any]]:
    """Run all steps on a new device; return outputs, the printed lines, sorted, and each launch's report."""
    device = wm.Device(target)
    placed: dict[str, Any] = {}
    for name, array in run.arrays.items():
        placed[name] = device.array(contents(array, lambda other: placed[other].address))

    def argument(given: Any) -> Any:
        if isinstance(given, str):
            return placed[given]
        return given.packed(lambda name: placed[name].address) if hasattr(given, "packed") else given

    reports, text = [], io.StringIO()
    with contextlib.redirect_stdout(text):
        for step in run.steps:
            arguments = [argument(given) for given in step.arguments]
            wide = {} if step.cluster is None else {"cluster": step.cluster}
            entry = module[step.entry]
            reports.append(
                entry.launch(device, step.grid, step.block, arguments, shared=step.shared, **wide, **options)
            )
    return {name: placed[name].numpy() for name in run.outputs}, sorted(text.getvalue().splitlines()), reports
