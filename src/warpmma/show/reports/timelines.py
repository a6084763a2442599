"""Timelines of asynchronous work: text, JSON and a picture.

1. A picture has a row for each warp of a block, or for warps that did the same at the same steps, and one for each
   agent that completes operations. Bars in the rows of warps are waits, in those of agents operations, one below the
   other where they overlap.
2. The axis counts steps, and 1 step is 1 pixel, if the picture is then not too narrow or too wide. Of a longer timeline
   the first `_MOST` steps are drawn, unless `steps` names others.
"""

from __future__ import annotations

import json as json_
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..._arguments import is_integer, members
from ..._text import ranges, table
from ...errors import OperandError, shown
from ...machine import Site, Timeline, TimelineEvent, TimelineOperation
from ..drawing.drawing import Theme, box, document, group, line, path, text_width
from ..drawing.drawing import text as words

_DOES = {
    "commit": "commits a group", "fence": "fences", "barrier": "arrives", "init": "makes", "arrive": "arrives at",
    "expect": "expects bytes at",
}  # fmt: skip

# Text and JSON


def text(timeline: Timeline) -> str:
    """List all that happened, by block and step."""
    return "\n".join(_listed(timeline, block) for block in timeline.blocks)


def _listed(timeline: Timeline, block: int) -> str:
    lines: list[tuple[int, int, str, str, str]] = []
    for i, x in enumerate(_operations(timeline, block)):
        ends = "not complete" if x.completed is None else f"complete at {x.completed}"
        reads = "" if x.read is None or x.read == x.completed else f"has read at {x.read}, "
        size = f", {x.bytes:,} bytes" if x.bytes else ""
        says = f"issues {x.text}{size}, for {x.agent or 'nothing'}; {reads}{ends}"
        lines.append((x.issued, i, _who(x.warps), says, x.site.place))
    for wait in _waits(timeline, block):
        says = f"waits at {wait.agent}" + (", without end" if wait.end is None else f" until {wait.end}")
        lines.append((wait.begin, len(lines), _who(wait.warps), says, wait.site.place))
    waited = {(wait.end, wait.agent, wait.warps) for wait in _waits(timeline, block)}
    for event in _events(timeline, block):
        if event.kind == "phase":
            lines.append((event.step, len(lines), "", f"{event.agent}: {event.text}", ""))
        elif event.kind == "pass" and (event.step, event.agent, event.warps) not in waited:
            says = f"finds {event.agent} complete" if event.agent.startswith("mbarrier") else "waits for its groups"
            lines.append((event.step, len(lines), _who(event.warps), f"{says}: {event.text}", _place(event.site)))
        elif event.kind in _DOES:
            what = f"{_DOES[event.kind]}{' ' * bool(event.agent)}{event.agent}"
            lines.append((event.step, len(lines), _who(event.warps), f"{what}: {event.text}", _place(event.site)))
    rows = [(f"{at:,}", who, what, where) for at, _, who, what, where in sorted(lines)]
    found = "\n".join(x.rstrip() for x in table([("step", "who", "what", "line"), *rows], left=(1, 2, 3)))
    return f"Block {block}, by steps of the simulator: time is not simulated\n{found}\n"


def json(timeline: Timeline) -> str:
    """Write everything as a JSON document."""
    return json_.dumps(
        {
            "blocks": list(timeline.blocks),
            "events": [
                {"step": x.step, "kind": x.kind, "block": x.block, "warps": list(x.warps), "agent": x.agent,
                 "line": _place(x.site), "text": x.text}
                for x in timeline.events
            ],
            "operations": [
                {"block": x.block, "warps": list(x.warps), "agent": x.agent, "line": x.site.place, "text": x.text,
                 "bytes": x.bytes, "issued": x.issued, "read": x.read, "completed": x.completed}
                for x in timeline.operations
            ],
        },
        indent=1,
    )  # fmt: skip


def _operations(timeline: Timeline, block: int) -> list[TimelineOperation]:
    return [x for x in timeline.operations if x.block == block]


def _events(timeline: Timeline, block: int) -> list[TimelineEvent]:
    return [x for x in timeline.events if x.block == block]


def _who(warps: Sequence[int]) -> str:
    return f"warp{'s' * (len(warps) > 1)} {ranges(warps)}"


def _place(site: Site | None) -> str:
    return "" if site is None else site.place


class _Wait(NamedTuple):
    """A wait at an mbarrier; `end` is None if it never ended."""

    begin: int
    end: int | None
    warps: tuple[int, ...]
    agent: str
    site: Site


def _waits(timeline: Timeline, block: int) -> list[_Wait]:
    """Pair looks without success with those that succeed, warp by warp; join those of several warps."""
    begun: dict[tuple[int, str], TimelineEvent] = {}
    found: dict[tuple[int, int | None, str], list[Any]] = {}

    def ended(warp: int, agent: str, end: int | None) -> None:
        if (start := begun.pop((warp, agent), None)) is not None:
            found.setdefault((start.step, end, agent), [start.site]).append(warp)

    for x in _events(timeline, block):
        for warp in x.warps:
            if x.kind == "wait":
                begun.setdefault((warp, x.agent), x)
            elif x.kind == "pass":
                ended(warp, x.agent, x.step)
    for warp, agent in [*begun]:
        ended(warp, agent, None)
    return [
        _Wait(begin, end, tuple(sorted(warps)), agent, site)
        for (begin, end, agent), (site, *warps) in sorted(found.items(), key=lambda item: item[0][0])
    ]


# The picture

_LEFT, _RIGHT, _ROW, _BAR, _TOP = 120, 24, 26, 13, 122
_LEAST, _WIDEST, _MOST = 760, 1400, 2800

_MARKS = {
    "issue": ("series0", "issues an operation"), "arrive": ("series2", "arrives at an mbarrier"),
    "commit": ("series3", "commits a group"), "pass": ("series1", "a wait ends"),
    "fence": ("pale", "a fence"), "barrier": ("strong", "a barrier, or a complete phase"),
}  # fmt: skip
_AS = {"init": "barrier", "expect": "arrive"}


class _Scale(NamedTuple):
    first: int
    last: int
    unit: float
    left: float

    def x(self, step: int) -> float:
        return self.left + (min(max(step, self.first), self.last) - self.first) * self.unit

    def shows(self, begin: int, end: int | None = None) -> bool:
        return begin <= self.last and (begin if end is None else end) >= self.first


def svg(timeline: Timeline, block: int | None = None, steps: Sequence[int] | None = None, theme: Theme = "auto") -> str:
    """Draw a block (rules 1 and 2)."""
    chosen = timeline.blocks[0] if block is None else block
    if not is_integer(chosen) or chosen not in timeline.blocks:
        raise OperandError(f"block is {shown(block)}; recorded are {ranges(sorted(timeline.blocks))}")
    sections = {"warps": _warp_rows(timeline, chosen), "what completes": _agent_rows(timeline, chosen)}
    left = max([_LEFT, *(26 + text_width(row.label, 11) for rows in sections.values() for row in rows)])
    scale, all_steps = _scale(timeline, chosen, steps, left)
    body, y = _axis(scale), float(_TOP)
    for section, rows in sections.items():
        y += 20
        body.append(words(16, y, section, size=12, weight="bold"))
        y += 6
        for row in rows:
            drawn, height = row.drawn(y, scale)
            body += drawn
            y += height
    title = f"Asynchronous work of block {chosen}"
    says = f"Steps {scale.first:,} to {scale.last:,}" + (f" of {all_steps:,}" if scale.last < all_steps else "")
    says += " of the simulator, which are instructions: time is not simulated."
    more = "An operation completes as late as it may: when a thread waits for its group, or all threads wait."
    head = [words(16, 30, title, size=17, weight="bold"), words(16, 52, says, size=12), words(16, 70, more, size=12)]
    width = scale.left + (scale.last - scale.first) * scale.unit + _RIGHT
    return document([*head, *_legend(94), *body], max(width, 700), y + 16, title, theme=theme, description=says)


def _scale(timeline: Timeline, block: int, steps: object, left: float) -> tuple[_Scale, int]:
    last = max(
        [x.step for x in _events(timeline, block)]
        + [x.completed or x.issued for x in _operations(timeline, block)], default=1,
    )  # fmt: skip
    begin = min(
        [x.step for x in _events(timeline, block)] + [x.issued for x in _operations(timeline, block)], default=0
    )
    first, end = begin, min(last, begin + _MOST)
    if steps is not None:
        given = members(steps, 2)
        if given is None or len(given) != 2 or not all(is_integer(x) and x >= 0 for x in given) or given[0] >= given[1]:
            raise OperandError(f"steps is {shown(steps)}; expected the first and the last, such as (0, 1000)")
        first, end = (int(x) for x in given)
    unit = min(max(1, _LEAST / max(end - first, 1)), _WIDEST / max(end - first, 1))
    return _Scale(first, end, unit, left), last


def _axis(scale: _Scale) -> list[str]:
    span = scale.last - scale.first
    each = next(n * 10**e for e in range(12) for n in (1, 2, 5) if n * 10**e * scale.unit >= 60)
    found = []
    for step in range(-(-scale.first // each) * each, scale.last + 1, each):
        found.append(words(scale.x(step), _TOP, f"{step:,}", size=10, anchor="middle", fill="pale"))
        found.append(line(scale.x(step), _TOP + 4, scale.x(step), _TOP + 9, "faint"))
    found.append(line(scale.left, _TOP + 9, scale.left + span * scale.unit, _TOP + 9, "faint"))
    return found


def _legend(y: float) -> list[str]:
    found, x = [], 16.0
    for fill, meaning in (("fraction", "a copy"), ("free", "a product"), ("lost", "a wait")):
        found += [box(x, y - 10, 22, 12, fill), words(x + 27, y, meaning, size=11)]
        x += 38 + text_width(meaning, 11)
    for kind, (_, meaning) in _MARKS.items():
        found += [_mark(kind, x + 5, y - 4), words(x + 13, y, meaning, size=11)]
        x += 26 + text_width(meaning, 11)
    return found


def _mark(kind: str, x: float, y: float, note: str = "") -> str:
    """Draw a small mark; shapes differ, too."""
    colour = _MARKS[kind][0]
    shapes = {
        "issue": f"M{x - 4:g} {y - 5:g}L{x + 4:g} {y:g}L{x - 4:g} {y + 5:g}Z",
        "arrive": f"M{x:g} {y - 5:g}L{x + 4:g} {y:g}L{x:g} {y + 5:g}L{x - 4:g} {y:g}Z",
        "commit": f"M{x - 3:g} {y - 5:g}L{x + 2:g} {y - 5:g}L{x + 2:g} {y + 5:g}L{x - 3:g} {y + 5:g}",
        "pass": f"M{x - 4:g} {y + 4:g}L{x + 4:g} {y + 4:g}L{x:g} {y - 5:g}Z",
        "fence": f"M{x - 2:g} {y - 6:g}L{x - 2:g} {y + 6:g}M{x + 2:g} {y - 6:g}L{x + 2:g} {y + 6:g}",
        "barrier": f"M{x:g} {y - 8:g}L{x:g} {y + 8:g}",
    }
    filled = colour if kind in ("issue", "arrive", "pass") else "none"
    return path(shapes[kind], colour, fill=filled, weight=2 if kind in ("barrier", "commit") else 1, note=note)


class _Bar(NamedTuple):
    begin: int
    end: int | None
    fill: str
    label: str
    note: str
    data: dict[str, object]


class _Point(NamedTuple):
    step: int
    kind: str  # of `_MARKS`, or "phase"
    note: str


class _Row(NamedTuple):
    """A row of the picture."""

    label: str
    bars: list[_Bar]
    points: list[_Point]

    def drawn(self, y: float, scale: _Scale) -> tuple[list[str], float]:
        """Draw it; return also how high it is."""
        lanes = _stacked(self.bars)
        height = max(_ROW, len(lanes) * _BAR + 10)
        right = scale.x(scale.last)
        body = [box(scale.left, y + 2, right - scale.left, height - 4, "panel", stroke="none"),
                words(scale.left - 10, y + height / 2 + 4, self.label, size=11, anchor="end")]  # fmt: skip
        for i, lane in enumerate(lanes):
            top = y + (height - len(lanes) * _BAR) / 2 + i * _BAR
            for bar in lane:
                if scale.shows(bar.begin, scale.last if bar.end is None else bar.end):
                    body.append(self._bar(bar, top, scale))
        for point in self.points:
            if scale.shows(point.step):
                x = scale.x(point.step)
                if point.kind == "phase":
                    body.append(path(f"M{x:g} {y + 2:g}L{x:g} {y + height - 2:g}", "strong", weight=2, note=point.note))
                else:
                    body.append(_mark(point.kind, x, y + height / 2, point.note))
        return body, height

    @staticmethod
    def _bar(bar: _Bar, top: float, scale: _Scale) -> str:
        x, end = scale.x(bar.begin), scale.x(scale.last if bar.end is None else bar.end)
        wide = max(end - x, 2)
        parts = [box(x, top + 1, wide, _BAR - 2, bar.fill, weight=1, dashed=bar.end is None)]
        if bar.label and text_width(bar.label, 9) + 6 < wide:
            parts.append(words(x + 4, top + _BAR - 4, bar.label, size=9))
        return group(parts, note=bar.note, data=bar.data)


def _stacked(bars: Iterable[_Bar]) -> list[list[_Bar]]:
    """Place bars into as few lanes as they need without overlapping."""
    lanes: list[list[_Bar]] = []
    for bar in sorted(bars, key=lambda x: x.begin):
        for lane in lanes:
            last = lane[-1].end
            if last is not None and last <= bar.begin:
                lane.append(bar)
                break
        else:
            lanes.append([bar])
    return lanes


def _warp_rows(timeline: Timeline, block: int) -> list[_Row]:
    """Return a row for the warps that do the same."""
    waits, events, operations = _waits(timeline, block), _events(timeline, block), _operations(timeline, block)
    rows: dict[str, tuple[list[int], _Row]] = {}
    for warp in sorted({w for x in events for w in x.warps} | {w for x in operations for w in x.warps}):
        bars = [
            _Bar(x.begin, x.end, "lost", "", f"{_who(x.warps)} waits at {x.agent}, {x.site.place}", {"wait": x.agent})
            for x in waits
            if warp in x.warps
        ]
        points = [
            _Point(x.issued, "issue", f"{x.text}, {x.site.place}: step {x.issued}")
            for x in operations
            if warp in x.warps
        ]
        points += [
            _Point(x.step, _AS.get(x.kind, x.kind), f"{x.text} {x.agent}, {_place(x.site)}: step {x.step}")
            for x in events
            if warp in x.warps and x.kind != "wait"
        ]
        row = _Row("", bars, sorted(points))
        known = rows.setdefault(repr(row).replace(f"of warp {warp}", ""), ([], row))
        known[0].append(warp)
    return [_Row(_who(warps), row.bars, row.points) for warps, row in rows.values()]


def _agent_rows(timeline: Timeline, block: int) -> list[_Row]:
    """Return a row for each agent: its operations, arrivals and phases; of its mbarriers those of other blocks, too."""
    mbarriers = {
        x.agent: None for x in _events(timeline, block) if x.kind in ("init", "phase", "wait", "pass")
        and x.agent.startswith("mbarrier")
    }  # fmt: skip
    others = {x.agent: None for x in _operations(timeline, block) if not x.agent.startswith("mbarrier")}
    found = []
    for agent in (*mbarriers, *others):
        bars = [
            _operation(x) for x in timeline.operations if x.agent == agent and (agent in mbarriers or x.block == block)
        ]
        points = [
            _Point(
                x.step, "phase" if x.kind == "phase" else "arrive",
                f"{_who(x.warps) + ': ' if x.warps else ''}{x.text}, {_place(x.site)}: step {x.step}",
            )
            for x in timeline.events
            if x.agent == agent and x.kind in ("phase", "arrive", "expect")
        ]  # fmt: skip
        found.append(_Row(agent.removesuffix(f" of block {block}"), bars, points))
    return found


def _operation(x: TimelineOperation) -> _Bar:
    size = f", {x.bytes:,} bytes" if x.bytes else ""
    end = "not complete" if x.completed is None else f"complete at step {x.completed}"
    return _Bar(
        x.issued, x.completed, "free" if x.text.startswith("wgmma") else "fraction",
        f"line {x.site.line}{size}",
        f"{x.text}{size}, block {x.block}, {_who(x.warps)}, {x.site.place}: issued at step {x.issued}, {end}",
        {"agent": x.agent, "issued": x.issued, "completed": "" if x.completed is None else x.completed},
    )  # fmt: skip
