"""Pictures of bank conflicts: the lanes that each bank serves in each wavefront."""

from __future__ import annotations

import numpy as np

from ..._text import ranges
from ...machine import BANKS, BankPattern, Costs, Launch, SharedSite, Site, Swizzle, no_site
from ..drawing.drawing import Theme, box, document, text

_WORD = 4


def schedule(pattern: BankPattern, swizzle: Swizzle | None = None) -> list[list[dict[int, list[int]]]]:
    """Return which lanes each bank serves in each wavefront.

    Returns
    -------
    list of list of dict
        For each phase in which any lane takes part, its wavefronts; each from banks to the lanes that it serves there.
    """
    address = pattern.address if swizzle is None else np.where(pattern.address >= 0, swizzle(pattern.address), -1)
    lanes = pattern.lanes
    phases = []
    for start in range(0, 32, lanes):
        queues: dict[int, dict[int, list[int]]] = {}  # by bank and word: the lanes that want it
        for lane in range(start, start + lanes):
            if address[lane] >= 0:
                for word in range(int(address[lane]) // _WORD, (int(address[lane]) + pattern.size - 1) // _WORD + 1):
                    queues.setdefault(word % BANKS, {}).setdefault(word, []).append(lane)
        if queues:
            phase: list[dict[int, list[int]]] = [{} for _ in range(max(map(len, queues.values())))]
            for bank, words in queues.items():
                for wave, served in zip(phase, words.values(), strict=False):
                    wave[bank] = served
            phases.append(phase)
    return phases


_CELL, _ROW, _LEFT, _RIGHT, _GAP = 30, 22, 150, 24, 10


def svg(launch: Launch, site: Site | int, theme: Theme = "auto") -> str:
    """Picture one line's accesses to shared memory: the worst one, and the same with the advised swizzle.

    Every row is a wavefront, every column a bank; a box names the lanes that the bank serves. Without conflicts a phase
    is one row.

    The site is one of `launch.costs.sites`, or a line of the kernel with one such access; else an `OperandError`.
    """
    costs = launch.costs
    entry = _find(costs, site)
    pattern = max(entry.patterns.values(), key=lambda each: (each.wavefronts - each.phases, each.times))
    swizzle = costs.advice().get(entry.site)
    title = f"{entry.site.place}: {entry.site.mnemonic}"
    summary = (
        f"{_some(entry.accesses, 'access', 'es')} by warps, {_some(entry.wavefronts, 'wavefront')}, "
        f"{_some(entry.conflicts, 'wavefront')} lost to conflicts."
    )
    many = len(entry.patterns)
    more = "" if entry.complete else " or more"
    shown = "" if many == 1 else f" Shown: the worst of {many}{more} different accesses."
    rules = (
        "Columns are the banks of shared memory. Rows are wavefronts, in each of which a bank serves one word of 4 "
        "bytes; numbers in boxes are the lanes it serves.",
        "A phase is a part of the warp that asks for 128 bytes at most. Without conflicts, it takes one wavefront.",
    )
    body = [text(16, 30, title, size=17, weight="bold"), text(16, 54, summary + shown)]
    body += [text(16, 76 + 18 * i, rule, size=12) for i, rule in enumerate(rules)]
    y = 120
    legend = [
        ("free", "these lanes get their word at once (several lanes in a box want the same word)"),
        ("lost", "a conflict: they want another word of the same bank, and wait"),
    ]
    x = 16
    for fill, meaning in legend:
        body += [box(x, y - 12, 22, 15, fill), text(x + 28, y, meaning, size=12)]
        x += 560
    panels: list[tuple[str, Swizzle | None]] = [("As it is", None)]
    if swizzle is not None:
        panels.append((f"With {swizzle}", swizzle))
    elif entry.conflicts:
        y += 20
        none = "No XOR swizzle is known that frees this line and does no harm to others that access the same memory."
        body.append(text(16, y, none, size=12))
    for heading, each in panels:
        drawn, y = _panel(y + 34, heading, pattern, each)
        body += drawn
    width, height = _LEFT + BANKS * _CELL + _RIGHT, y + 16
    return document(body, width, height, title, theme=theme)


def _find(costs: Costs, site: Site | int) -> SharedSite:
    found = [entry for key, entry in costs.sites.items() if isinstance(site, Site | int) and site in (key, key.line)]
    if len(found) != 1:
        raise no_site(site, costs.sites, len(found))
    return found[0]


def _panel(y: int, heading: str, pattern: BankPattern, swizzle: Swizzle | None) -> tuple[list[str], int]:
    """Draw one schedule; return also where it ends."""
    phases = schedule(pattern, swizzle)
    waves = sum(map(len, phases))
    heading += f" \N{EM DASH} {_some(len(phases), 'phase')}, {_some(waves, 'wavefront')}"
    body = [text(16, y, heading, weight="bold"), text(_LEFT - 10, y + 24, "bank", size=11, anchor="end", fill="pale")]
    body += [
        text(_LEFT + bank * _CELL + _CELL / 2, y + 24, str(bank), size=11, anchor="middle", fill="pale")
        for bank in range(BANKS)
    ]
    y += 32
    for number, phase in enumerate(phases):
        label = f"phase {number}" if len(phases) > 1 else ""
        body.append(text(16, y + 15, label, size=12))
        for turn, wave in enumerate(phase):
            body.append(text(_LEFT - 10, y + 15, f"wavefront {turn}", size=11, anchor="end", fill="pale"))
            body += _row(y, wave, "lost" if turn else "free")
            y += _ROW
        y += _GAP
    return body, y - _GAP


def _row(y: int, wave: dict[int, list[int]], fill: str) -> list[str]:
    """Draw a wavefront; banks in a row that serve the same lanes make one box."""
    idle: list[str] = []
    body: list[str] = []
    bank = 0
    while bank < BANKS:
        served, end = wave.get(bank), bank + 1
        if served is None:
            idle.append(box(_LEFT + bank * _CELL, y, _CELL, _ROW, "idle", stroke="faint"))
        else:
            while end < BANKS and wave.get(end) == served:
                end += 1
            x, width = _LEFT + bank * _CELL, (end - bank) * _CELL
            banks = f"bank {bank}" if end == bank + 1 else f"banks {bank} to {end - 1}"
            note = f"{banks}: lane{'s' * (len(served) > 1)} {ranges(served, ',')}"
            body.append(box(x, y, width, _ROW, fill, note=note))
            label = ranges(served, ",")
            if len(label) * 5.8 > width:  # all of them are in the note
                label = f"{len(served)}\N{MULTIPLICATION SIGN}"
            size = 11 if len(label) * 6.8 <= width else 9
            body.append(text(x + width / 2, y + 15, label, size=size, anchor="middle"))
        bank = end
    return idle + body


def _some(count: int, noun: str, plural: str = "s") -> str:
    return f"{count:,} {noun}{plural * (count != 1)}"
