"""The table, the figures that are promised, and the raw numbers; the plot is in `plot`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

from . import plot
from .measure import INTERPRETER, Section

About = Mapping[str, object]

WIDTH = 98


@dataclass(frozen=True)
class Record:
    """One measurement.

    Attributes
    ----------
    section, label, unit : str
    seconds : tuple of float
        Of each round.
    work : float
        What one round does.
    reference : str, optional
        What it is compared with.
    reference_speed : float, optional
        In units of work a second.
    value : float, optional
        What is to be shown, if that is no time.
    beside : float, optional
        Size of the outputs, for memory.
    """

    section: str
    label: str
    unit: str
    seconds: tuple[float, ...]
    work: float = 1
    reference: str | None = None
    reference_speed: float | None = None
    value: float | None = None
    beside: float | None = None

    @classmethod
    def of(cls, info: Mapping[str, Any], seconds: Iterable[float]) -> Record:
        return cls(seconds=tuple(seconds), **info)

    @property
    def speed(self) -> float:
        """Units of work a second, in the best round."""
        return self.work / min(self.seconds)

    @property
    def ratio(self) -> float | None:
        """How many times as fast as the reference."""
        return self.speed / self.reference_speed if self.reference_speed else None

    @property
    def shown(self) -> tuple[str, str, str]:
        """The amount with its unit, the ratio, and what it is a ratio to."""
        if self.unit == "MiB":
            return f"{self.value or 0:,.1f} MiB", "", f"D: {self.beside or 0:,.0f} MiB"
        if self.ratio is None or self.reference_speed is None:
            return amount(self.speed, self.unit), "", ""
        reference = f"{self.reference}, {amount(self.reference_speed, self.unit)}"
        return amount(self.speed, self.unit), f"{short(self.ratio)} x", reference


@dataclass(frozen=True)
class Promise:
    """A figure that is promised: what it is, what it came to, and whether that is enough."""

    label: str
    came: str
    met: bool
    note: str = ""


def amount(speed: float, unit: str) -> str:
    """Speed in a unit, with a prefix: `12.3 G products/s`, or the time that one takes."""
    if unit == "us a call":
        return f"{1e6 / speed:,.1f} us"
    for prefix, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if speed >= scale:
            return f"{short(speed / scale)} {prefix}/s"
    return f"{short(speed)} /s"


def short(x: float) -> str:
    """Three digits."""
    return f"{x:,.0f}" if x >= 99.95 else f"{x:.1f}" if x >= 9.995 else f"{x:.2f}" if x >= 0.0995 else f"{x:.3f}"


def promises(records: Sequence[Record]) -> list[Promise]:
    """What the project promises, as far as it was measured."""
    by = {(r.section, r.label): r for r in records}
    found: list[Promise] = []
    for name in ("f16", "bf16"):
        record = by.get(("matmul, one thread", f"{name} 2048"))
        if record and record.ratio:
            found.append(Promise(f"matmul {name} 2048: 0.5 of limit.c", short(record.ratio), record.ratio >= 0.5))
        record = by.get(("against mmasim", f"matmul {name} 2048, one thread"))
        if record and record.ratio:
            found.append(Promise(f"matmul {name} 2048: 300 times mmasim", short(record.ratio), record.ratio >= 300))
    for label in ("f16 m16n8k16, sm_90", "bf16 m16n8k16"):
        record = by.get(("registers to registers", label))
        if record:
            came = amount(record.speed, record.unit)
            found.append(Promise(f"registers {label}: 1.5 M/s", came, record.speed >= 1.5e6))
    for engine, least in _FUNCTIONS.items():
        for form in ("ex2.approx.ftz.f32", "ex2.approx.f32"):
            record = by.get(("special functions", f"{form}, {engine}"))
            if record:
                came = amount(record.speed, record.unit)
                label = f"{form}, {engine}: {amount(least, record.unit)}"
                found.append(Promise(label, came, record.speed >= least))
            if record and record.ratio:
                label = f"{form}, {engine}: {_TIMES_NUMPY} times NumPy"
                found.append(Promise(label, short(record.ratio), record.ratio >= _TIMES_NUMPY))
    for call, times in _ONE_CALL.items():
        record = by.get(("latency", f"{call}, f16 m16n8k16, sm_90, native"))
        if record and record.ratio:
            came = amount(record.speed, record.unit)
            found.append(Promise(f"{call}, f16: {times} times NumPy", short(record.ratio), record.ratio >= times, came))
    for record in records:
        most = next((x for start, x in _MOST.items() if record.label.startswith(start)), None)
        if most and record.section == "options of matmul" and record.ratio:
            label = f"{record.label}: time at most {most}"
            found.append(Promise(label, short(1 / record.ratio), record.ratio >= 1 / most, f"of {record.reference}"))
        if (
            record.section == "kernels"
            and record.ratio
            and record.reference == INTERPRETER
            and "product" in record.label
        ):
            label = f"{record.label}: 3 times {INTERPRETER}"
            found.append(Promise(label, short(record.ratio), record.ratio >= 3))
    for name, kinds in kinds_of_input(records).items():
        worst = min(kinds.values()) / max(kinds.values())
        slowest = min(kinds, key=lambda x: kinds[x])
        if len(kinds) > 1:
            label = f"{name}: slowest input 1/8"
            found.append(Promise(label, f"1/{short(1 / worst)}", worst >= 1 / 8, f"{slowest} input"))
    return found


# Results a second: 500 and 23 million, 20 times NumPy, on a 2-core Sapphire Rapids.
_FUNCTIONS, _TIMES_NUMPY = {"native": 1e8, "numpy": 1e7}, 8
# 40 and 100 us on a 2-core Sapphire Rapids, where NumPy's engine takes 180 and 222.
_ONE_CALL = {"execute, one warp": 4.5, "mma": 2.2}
# By how a label begins: the most time of an option of matmul, or of what belongs to it, as a part of the reference's.
_MOST = {"e4m3 wgmma 2048: ": 1.3, **{f"quantize {x} 1024 x": 1.0 for x in ("mxf8f6f4", "mxf4", "nvfp4")}}


def missed(records: Sequence[Record]) -> list[str]:
    """Say which promises are not kept; that is no less so if none was put to the test."""
    found = promises(records)
    return [f"{p.label}: {p.came}" for p in found if not p.met] if found else ["nothing that is promised was measured"]


def kinds_of_input(records: Sequence[Record]) -> dict[str, dict[str, float]]:
    """Speed of each kind of input, as a part of that of normal ones, by what was computed."""
    found: dict[str, dict[str, float]] = {}
    for record in records:
        if record.section == "kinds of input" and record.ratio:
            name, kind = record.label.split(": ")
            found.setdefault(name, {})[kind] = 1.0 if kind == "normal" else record.ratio
    return found


SECTIONS = get_args(Section)
UNITS = {
    "promised": "at least that; of this run",
    "matmul, one thread": "products of two elements",
    "options of matmul": "products of two elements, or elements; ratios to the speed of what is named",
    "kinds of input": "matmul of 1024, with NumPy alone 128: products; registers: instructions",
    "registers to registers": "instructions, batches of 4,096 warps, one thread",
    "special functions": "results, of arrays of 262,144; ratios to the speed of what is named",
    "pipelines": "bytes copied, one launch",
    "scaling": "instructions, or products of matmul",
    "memory": "peak beyond inputs and outputs",
}


def show(records: Sequence[Record], about: About) -> None:
    """Print the table, with rich if it is there."""
    sections: dict[str, list[tuple[str, str, str, str]]] = {}
    for record in sorted(records, key=lambda r: SECTIONS.index(r.section)):
        sections.setdefault(record.section, []).append((record.label, *record.shown))
    head = f"warpmma {about['warpmma']}; {about['processor']}; {', '.join(_engines(about))}"
    note = "Best of several rounds, processor time (of threads: elapsed). Ratios: to what is named."
    promised = [(p.label, p.came, "met" if p.met else "MISSED", p.note) for p in promises(records)]
    if promised:
        sections["promised"] = promised
    titles = {name: f"{name} ({UNITS[name]})" if name in UNITS else name for name in sections}
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        _plain(sections, titles, head, note)
        return
    terminal = sys.stdout.isatty()
    console = Console(width=None if terminal else WIDTH, highlight=False)
    console.print(f"\n{head}\n{note}", markup=False)
    for name, rows in sections.items():
        table = Table(title=titles[name], title_justify="left", title_style="bold", box=None, width=WIDTH)
        table.add_column(ratio=1)
        table.add_column(justify="right", min_width=10)
        table.add_column(justify="right", min_width=8)
        table.add_column(min_width=24)
        table.show_header = False
        for row in rows:
            table.add_row(*row, style="red" if "MISSED" in row else None)
        console.print()
        console.print(table)


def _plain(
    sections: Mapping[str, list[tuple[str, str, str, str]]], titles: Mapping[str, str], head: str, note: str
) -> None:  # fmt: skip
    print(f"\n{head}\n{note}")
    for name, rows in sections.items():
        print(f"\n{titles[name]}")
        for label, speed, ratio, reference in rows:
            print(f"  {label:46}{speed:>13} {ratio:>9}  {reference}".rstrip())


def _engines(about: About) -> list[str]:
    engines = about["engines"]
    return [f"{x}: {y}" for x, y in engines.items()] if isinstance(engines, dict) else []


def write(records: Sequence[Record], about: About, folder: Path) -> list[Path]:
    """Write the raw numbers, and the plot where matplotlib is installed."""
    folder.mkdir(exist_ok=True)
    numbers = folder / "results.json"
    numbers.write_text(json.dumps({"about": about, "records": [asdict(r) for r in records]}, indent=1))
    return [numbers, *plot.draw(records, kinds_of_input(records), folder, about)]
