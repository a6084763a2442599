"""Reports on a launch: tables and JSON; cards of launches and devices."""

from __future__ import annotations

import json as json_
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from ..._text import counted, table
from ...arithmetic import engine_text, engines
from ...machine import KINDS, Device, Launch, SharedSite, Site, Swizzle
from ..drawing.cards import card, opened, preformatted
from .conflicts import svg

_MOST = 12  # pieces of memory in a card

# Text


def text(launch: Launch) -> str:
    """Write tables: instructions by mnemonic, bytes moved, accesses to shared memory, and hazards.

    Where the native engine was not built, the last line says so.
    """
    costs = launch.costs
    instructions: Counter[str] = Counter()
    moved: Counter[tuple[str, str]] = Counter()
    for site, count in costs.instructions.items():
        instructions[site.mnemonic] += count
    for (site, space), count in costs.bytes.items():
        moved[space, site.mnemonic] += count
    advice = costs.advice()
    parts = [
        _table(
            "Instructions, executed by warps", ("times", "instruction"),
            ((f"{n:,}", x) for x, n in instructions.most_common()),
        ),
        _table("Bytes moved", ("bytes", "space", "instruction"), ((f"{n:,}", *x) for x, n in sorted(moved.items()))),
        _table(
            "Shared memory: accesses by warps",
            ("accesses", "phases", "wavefronts", "conflicts", "line", "instruction", "a swizzle that frees it"),
            (
                (*(f"{n:,}" for n in (entry.accesses, entry.phases, entry.wavefronts, entry.conflicts)),
                 site.place, site.mnemonic, _advised(entry, advice.get(site)))
                for site, entry in sorted(costs.sites.items(), key=lambda item: (-item[1].conflicts, item[0].line))
            ),
        ),
        _table("Arrays accessed as another type than they hold", ("",), ((str(one),) for one in launch.retyped)),
        _table("Hazards: of each kind and line, the first", ("",), ((str(hazard),) for hazard in launch.hazards)),
        _table("Counted", ("lanes", ""), ((f"{n:,}", f"{kind}: {KINDS[kind]}") for kind, n in launch.counts.items())),
        _table(
            "Harmless: reads that depend on luck, and decide nothing", ("lanes", "hazard", "line", "other line"),
            (
                (f"{n:,}", kind, _line(site), "" if other is None else _line(other))
                for (kind, site, other), n in launch.harmless.items()
            ),
        ),
        _table(
            "Where order is open: lanes", ("lanes", "line", "instruction"),
            ((f"{n:,}", site.place, site.mnemonic) for site, n in launch.order.items()),
        ),
        _table(
            "Lanes of a warp met from two lines", ("times", "lines", "instruction"),
            ((f"{n:,}", f"{a.place}, {b.place}", a.mnemonic) for (a, b), n in launch.joined.items()),
        ),
        _table(
            "Not predicted: what ptxas fuses or computes, and here that changes bits", ("",),
            ((str(one),) for one in launch.unpredicted),
        ),
        _table(
            "Not predicted: what ptxas fuses or computes, and here that changes nothing", ("line", "instruction"),
            ((site.place, site.mnemonic) for site in _unchanged(launch)),
        ),
        _table("Notes", ("",), ((note,) for note in launch.notes)),
    ]  # fmt: skip
    if "native" not in engines():
        parts.append(f"engine: {engine_text()}")
    return "\n\n".join(part for part in parts if part) + "\n"


def _unchanged(launch: Launch) -> list[Site]:
    """List what is not decided and has the same bits."""
    changed = {one.site for one in launch.unpredicted}
    return [site for site in launch.undecided if site not in changed]


def _advised(entry: SharedSite, swizzle: Swizzle | None) -> str:
    return "" if not entry.conflicts else str(swizzle or "none.found")


def _table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay out columns, numbers to the right; empty without rows."""
    cells = [tuple(head), *rows]
    if len(cells) == 1:
        return ""
    words = [i for i, x in enumerate(cells[1]) if not x.replace(",", "").isdigit()]
    return "\n".join([title, "-" * len(title), *(f"  {line}" for line in table(cells, words) if line)])


def _line(site: Site) -> str:
    return site.what


# JSON


def json(launch: Launch) -> str:
    """Write all that was counted, by line of the kernel, as a JSON document.

    Its keys are "sites", one for each line and instruction, in the order in which they were first met: "file", "line",
    "mnemonic", "text" and "column" (of PTX: file, line and column of the text, and the column again), "instructions",
    "bytes" by space, and "shared" of accesses to shared memory; "barriers"; "hazards"; and "counts" of those that are
    counted alone; "harmless", reads that depend on luck and decide nothing, with "kind", "site", "other" and "lanes";
    "retyped", arrays that were accessed as another type; "order", the sites of atomics whose order mattered, with
    "lanes"; "undecided", sites of sums that ptxas may fuse or not, and of functions that it may compute or not;
    "unpredicted", those of them where that changes bits, with all of `Unpredicted`; "joined", pairs of "sites" from
    which lanes of one warp executed a `.sync` instruction together, with "times"; and "notes".
    """
    costs = launch.costs
    advice = costs.advice()

    def shared(entry: SharedSite) -> dict[str, Any]:
        swizzle = advice.get(entry.site)
        return {
            "accesses": entry.accesses, "phases": entry.phases, "wavefronts": entry.wavefronts,
            "conflicts": entry.conflicts, "swizzle": asdict(swizzle) if swizzle else None,
        }  # fmt: skip

    sites = [
        {
            **asdict(site),
            "instructions": count,
            "bytes": {space: n for (at, space), n in costs.bytes.items() if at == site},
            "shared": shared(costs.sites[site]) if site in costs.sites else None,
        }
        for site, count in costs.instructions.items()
    ]
    found = {"sites": sites, "barriers": costs.barriers, "hazards": [asdict(hazard) for hazard in launch.hazards],
             "counts": dict(launch.counts),
             "harmless": [{"kind": kind, "site": asdict(site), "other": other and asdict(other), "lanes": n}
                          for (kind, site, other), n in launch.harmless.items()],
             "retyped": [asdict(one) for one in launch.retyped],
             "order": [{**asdict(site), "lanes": n} for site, n in launch.order.items()],
             "unpredicted": [asdict(one) for one in launch.unpredicted],
             "undecided": [asdict(site) for site in launch.undecided],
             "joined": [{"sites": [asdict(a), asdict(b)], "times": n} for (a, b), n in launch.joined.items()],
             "notes": list(launch.notes)}  # fmt: skip
    return json_.dumps(found, indent=2)


# Cards


def launch_html(launch: Launch) -> str:
    """Show the tables of a launch, and the line of shared memory with the most conflicts as a picture."""
    costs = launch.costs
    rows = [
        ("instructions of warps", f"{sum(costs.instructions.values()):,}"),
        ("bytes moved", f"{sum(costs.bytes.values()):,}"),
        ("hazards", f"{len(launch.hazards):,}"),
        ("wavefronts lost to conflicts", f"{sum(entry.conflicts for entry in costs.sites.values()):,}"),
    ]
    parts = [opened("Tables", preformatted(text(launch)), now=True)]
    if launch.printed:
        parts.append(opened("Printed", preformatted(launch.printed)))
    worst = max(costs.sites.values(), key=lambda entry: entry.conflicts, default=None)
    if worst is not None and worst.conflicts:
        title = f"The most conflicts of banks: {worst.site.place}, {worst.site.mnemonic}"
        parts.append(opened(title, svg(launch, worst.site)))
    return card("Launch", rows, parts)


def device_html(device: Device) -> str:
    """Show the memory of a device."""
    regions = device.space.regions
    rows = [(region.name, f"<code>{region.start:#x}</code>, {len(region.data):,} bytes") for region in regions[:_MOST]]
    if len(regions) > _MOST:
        rows.append(("\N{HORIZONTAL ELLIPSIS}", f"{len(regions)} in all"))
    return card(f"Device {device.target}", [("memory", counted(len(regions), "piece")), *rows])
