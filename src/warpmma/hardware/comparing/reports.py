"""What was compared with a GPU: counts by instruction, first differences, notes; a report that goes on later.

1. A report is the state of a comparison: a later run reads it and adds to it. It is of one GPU, driver, version of this
   package and seed; others do not go on with it.
2. Files are replaced as a whole: a run that is killed leaves the last one that was written. Beside the JSON there is
   the same as text.
3. A report has nothing of the user or the machine besides the names and versions in `device`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..._records import Shown
from ..._text import table
from ..._version import __version__
from ...errors import ArchiveError, shown

__all__ = ["MOST_BYTES", "Counts", "Report"]

MOST_BYTES = 1_000_000
"""Of a report."""

_WHAT, _VERSION = "warpmma compare", 1
_MOST_READ = 16 * MOST_BYTES


@dataclass(kw_only=True)
class Counts:
    """What was compared of one instruction.

    Attributes
    ----------
    outputs, differences : int
        Outputs compared with the GPU, and those that differ.
    sampled, wrong : int
        Outputs for which the kernel of `engine="cuda"`, which made the expected results, was compared with the CPU
        engine; those that differ.
    pieces : int
        Pieces of work that are done.
    """

    outputs: int = 0
    differences: int = 0
    sampled: int = 0
    wrong: int = 0
    pieces: int = 0


@dataclass(kw_only=True)
class Report(Shown):
    """A comparison with a GPU.

    Attributes
    ----------
    device : dict of str to str
        The GPU's name, its target and the versions of its driver and of NVRTC.
    seed : int
    seconds : float
        Of all runs.
    counts : dict
        By kind ("mma", "wgmma", "operation", "function", "fragment", "wmma", "atomic", "asynchronous", "access") and
        by name.
    first : dict of str to dict
        Of what differs, by name: operands and results as codes, and an explanation.
    left_out : dict of str to str
        What is not compared, and why.
    experiments : dict of str to dict
        Answers, by the name of an experiment.
    notes : list of str
    made_by : str
        The version of this package.
    """

    device: dict[str, str]
    seed: int
    seconds: float = 0.0
    counts: dict[str, dict[str, Counts]] = field(default_factory=dict)
    first: dict[str, dict[str, Any]] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    experiments: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    made_by: str = __version__

    @property
    def differences(self) -> int:
        """How many outputs differ, of all instructions, with those that differ between the engines."""
        return sum(x.differences + x.wrong for some in self.counts.values() for x in some.values())

    def of(self, kind: str, name: str) -> Counts:
        """Return the counts of an instruction, which can be added to."""
        return self.counts.setdefault(kind, {}).setdefault(name, Counts())

    def json(self) -> str:
        """Return it as JSON."""
        facts: dict[str, Any] = {
            "report": _WHAT, "version": _VERSION, "warpmma": self.made_by, "device": self.device, "seed": self.seed,
            "seconds": round(self.seconds, 1), "fields": list(Counts.__annotations__),
        }  # fmt: skip
        lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in facts.items()]
        for kind, some in sorted(self.counts.items()):
            rows = ",\n".join(f"  {json.dumps(name)}: {list(asdict(x).values())}" for name, x in sorted(some.items()))
            lines.append(f"{json.dumps(f'counts of {kind}')}: {{\n{rows}\n}}")
        for name in ("first", "left_out", "experiments", "notes"):
            lines.append(f"{json.dumps(name)}: {json.dumps(getattr(self, name), sort_keys=True)}")
        return "{\n" + ",\n".join(lines) + "\n}\n"

    @classmethod
    def parsed(cls, text: str, name: str) -> Report:
        """Read JSON; `ArchiveError` for anything but a report."""
        try:
            facts = json.loads(text)
            if not isinstance(facts, dict) or facts.get("report") != _WHAT:
                raise ArchiveError(f"{name} is not a report of `warpmma compare`")
            if facts["version"] != _VERSION or facts["fields"] != list(Counts.__annotations__):
                raise ArchiveError(f"{name} is a report of another version: {shown(facts['version'])}")
            counts = {
                key.removeprefix("counts of "): {row: Counts(**_numbers(facts["fields"], x)) for row, x in some.items()}
                for key, some in facts.items() if key.startswith("counts of ")
            }  # fmt: skip
            device = {str(key): str(x) for key, x in facts["device"].items()}
            found = cls(device=device, seed=int(facts["seed"]), seconds=float(facts["seconds"]), counts=counts)
            found.first, found.left_out = dict(facts["first"]), dict(facts["left_out"])
            found.experiments, found.notes = dict(facts["experiments"]), list(facts["notes"])
            found.made_by = str(facts["warpmma"])
        except ArchiveError:
            raise
        except Exception as error:  # whatever damaged JSON can raise
            raise ArchiveError(f"{name} is not a readable report: {type(error).__name__}: {error}") from None
        return found

    @classmethod
    def read(cls, path: Path) -> Report:
        """Read a file; `ArchiveError` for one that cannot be read, or is not a report."""
        try:
            if path.stat().st_size > _MOST_READ:
                raise ArchiveError(f"{path} has more than {_MOST_READ:,} bytes: it is not a report")
            text = path.read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "no text"
            raise ArchiveError(f"{path} cannot be read: {why}") from None
        return cls.parsed(text, str(path))

    def check_same(self, other: Report, name: str) -> None:
        """Raise `ArchiveError` unless another report can be gone on with (rule 1)."""
        for what, here, there in (
            ("GPU", self.device, other.device), ("seed", self.seed, other.seed),
            ("version of warpmma", self.made_by, other.made_by),
        ):  # fmt: skip
            if here != there:
                raise ArchiveError(f"{name} is of another {what}: {there}, now {here}; give another file")

    def write(self, path: Path) -> None:
        """Replace the file, and that of the text beside it (rule 2)."""
        for file, text in ((path, self.json()), (path.with_suffix(".txt"), f"{self.text()}\n")):
            beside = file.with_name(f".{file.name}.part")
            with beside.open("w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            beside.replace(file)

    def text(self) -> str:
        """Return tables: by kind, and of what differs."""
        cells = [("", "compared", "least outputs", "outputs", "differ")]
        for kind, some in sorted(self.counts.items()):
            rows = some.values()
            least = min((x.outputs for x in rows), default=0)
            bad = sum(x.differences + x.wrong for x in rows)
            cells.append(
                (kind, f"{len(some)}", f"{least:,}", f"{sum(x.outputs for x in rows):,}", f"{bad:,}")
            )  # fmt: skip
        lines = [", ".join(f"{key} {x}" for key, x in self.device.items()) + f", warpmma {self.made_by}", ""]
        lines += table(cells, left=[0])
        wrong = [(n, x) for some in self.counts.values() for n, x in some.items() if x.differences or x.wrong]
        for name, x in wrong:
            lines += ["", f"{name}: {x.differences:,} of {x.outputs:,} outputs differ"]
            if x.wrong:
                lines.append(f"{x.wrong:,} of {x.sampled:,} results of engine='cuda' differ from the CPU engine's")
            if explained := self.first.get(name, {}).get("explanation"):
                lines.append(str(explained))
        for name, answer in sorted(self.experiments.items()):
            lines += ["", f"experiment {name}: {answer.get('answer')}"]
        if self.left_out:
            lines += ["", "not compared:"]
            why: dict[str, list[str]] = {}
            for name, text in self.left_out.items():
                why.setdefault(text, []).append(name)
            lines += [f"  {_some(names)}: {text}" for text, names in why.items()]
        return "\n".join([*lines, *self.notes, "", self.summary()])

    def summary(self) -> str:
        """Say in one line how much was compared."""
        outputs = sum(x.outputs for some in self.counts.values() for x in some.values())
        names = sum(map(len, self.counts.values()))
        return f"{names:,} instructions, {outputs:,} outputs compared, {self.differences:,} differences"


def _some(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 8 else f"{', '.join(names[:6])} and {len(names) - 6} others"


def _numbers(fields: list[str], row: Any) -> Mapping[str, int]:
    if not isinstance(row, list) or not all(isinstance(x, int) and x >= 0 for x in row):
        raise ValueError(f"counts are {row!r}")
    return dict(zip(fields, row, strict=True))
