"""Launches: from parameter bytes to what ran."""

from __future__ import annotations

from ..ptx import PtxEntry
from .active_gpu import ActiveGpu, CuteLaunch
from .launch_configs import LaunchConfig


def launch(session: ActiveGpu, entry: PtxEntry, config: LaunchConfig, params: bytes) -> None:
    """Run a kernel on a device, and list it among its launches."""
    __tracebackhide__ = True
    device = session.device
    with session.memory.mapped(device, params):
        report = entry.launch(
            device, config.grid, config.block, params=params, shared=config.shared, cluster=config.cluster,
            cooperative=config.cooperative, **session.options,
        )  # fmt: skip
    session.launches.append(
        CuteLaunch(
            name=entry.name, grid=config.grid, block=config.block, cluster=config.cluster or (1, 1, 1),
            shared=config.shared, cooperative=config.cooperative, params=params, entry=entry, device=device,
            report=report,
        )
    )  # fmt: skip
