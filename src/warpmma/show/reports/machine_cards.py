"""Cards of what runs: launches, devices, and what a module of PTX needs."""

from __future__ import annotations

from ..._text import counted
from ...machine import Device, Launch
from ...ptx import ModuleNeeds
from ..drawing.cards import card, opened, preformatted
from . import conflicts, launches, needs

_MOST = 12


def launch_html(launch: Launch) -> str:
    """Show the tables of a launch, and the line of shared memory with the most conflicts as a picture."""
    costs = launch.costs
    rows = [
        ("instructions of warps", f"{sum(costs.instructions.values()):,}"),
        ("bytes moved", f"{sum(costs.bytes.values()):,}"),
        ("hazards", f"{len(launch.hazards):,}"),
        ("wavefronts lost to conflicts", f"{sum(entry.conflicts for entry in costs.sites.values()):,}"),
    ]
    parts = [opened("Tables", preformatted(launches.text(launch)), now=True)]
    if launch.printed:
        parts.append(opened("Printed", preformatted(launch.printed)))
    worst = max(costs.sites.values(), key=lambda entry: entry.conflicts, default=None)
    if worst is not None and worst.conflicts:
        title = f"The most conflicts of banks: {worst.site.place}, {worst.site.mnemonic}"
        parts.append(opened(title, conflicts.svg(launch, worst.site)))
    return card("Launch", rows, parts)


def device_html(device: Device) -> str:
    """Show what lies in a device's memory."""
    regions = device.space.regions
    rows = [(region.name, f"<code>{region.start:#x}</code>, {len(region.data):,} bytes") for region in regions[:_MOST]]
    if len(regions) > _MOST:
        rows.append(("\N{HORIZONTAL ELLIPSIS}", f"{len(regions)} in all"))
    return card(f"Device {device.target}", [("memory", counted(len(regions), "piece")), *rows])


def needs_html(of: ModuleNeeds) -> str:
    """Show the table of what a module's entries need."""
    return card("", parts=[preformatted(needs.module_text(of))])
