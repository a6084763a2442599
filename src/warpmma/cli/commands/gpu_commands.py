"""The commands `compare`, `record` and `contribute`: this machine's GPU beside the simulator.

1. Without a GPU that can be used, a command prints one line and ends with status 2.
2. The report of `compare` is the state of the comparison: a run that finds one goes on with it. It is written every few
   seconds and at the end, each time as a whole.
3. Ctrl-C and SIGTERM end a comparison as `--minutes` does: pieces of work that began are finished, and the report is
   written. A second signal ends it at once; the report is that of some seconds before.
"""

from __future__ import annotations

import argparse
import itertools
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import cpu_count
from pathlib import Path
from types import FrameType
from typing import Any

from ..._text import counted
from ...analysis import explain_codes
from ...errors import OperandError, UnsupportedError, WarpmmaError
from ...gpu import CudaGpu, alike, why_no_gpu
from ...gpu import gpu as first_gpu
from ...hardware import (
    EXPERIMENTS,
    MOST_BYTES,
    Asked,
    Campaign,
    ComparedGroup,
    Experiment,
    LaneDifference,
    MatrixDifference,
    Report,
    Room,
    Worker,
    answer,
    archive_of,
    device_of,
    experiments_of,
    matched,
    not_compared,
    process_worker,
    recorded,
    target_of,
    thread_worker,
)
from ...isa import instructions, parse_any
from ...sparsity import UNDEFINED_MEASURED
from ..output.output_files import write_file
from ..output.streams import followed, say, write

_REPORT = "warpmma-compare.json"
_OPERATIONS = ("function", "operation")
_ENGINE = "engine='cuda'"
_MOST_PROCESSES, _MEMORY = 16, 2 << 30  # on a GPU, and bytes of it for each
_TOLD_EVERY = 30.0  # seconds, where the error stream is not a terminal


def add_compare(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    parser.epilog = (
        "Exit status: 0 without differences, 1 with, 2 without a GPU or if it or the report cannot be used, 130 if "
        "interrupted before any was found."
    )
    parser.add_argument(
        "--instructions", default="*", metavar="PATTERN", help="mnemonics, with * and ?, or a part of them; default all"
    )
    parser.add_argument(
        "--outputs", type=_number, default=10**8, metavar="N",
        help="of each mma and wgmma; a tenth of it of each operation; from 1e8, the default, all operands of functions",
    )  # fmt: skip
    parser.add_argument("--minutes", type=float, metavar="M", help="stop after so long; the next run goes on")
    parser.add_argument(
        "--report", type=Path, default=Path(_REPORT), metavar="FILE",
        help=f"JSON, with a text beside it; a run goes on with the one that is there; default {_REPORT}",
    )  # fmt: skip
    parser.add_argument(
        "--experiments", nargs="?", const="*", metavar="NAME",
        help="list the experiments that settle what is derived, and run those for this GPU",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="of operands")
    parser.add_argument(
        "--processes", type=_number, metavar="N",
        help="that share the work; default one for each processor, at most 16 for each GPU, and as memory permits",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def _number(text: str) -> int:
    """Read a positive number, such as 1e9."""
    number = int(float(text))
    if number < 1:
        raise ValueError(text)
    return number


def run_compare(options: argparse.Namespace) -> int:
    """Compare every instruction, operation and function that this machine's GPU has with the simulator."""
    if options.experiments is not None:
        return _experiments(options)
    gpu = _gpu("compare")
    asked = _asked(gpu, options, options.instructions)
    compared = asked.comparisons()
    if not compared:
        raise OperandError(f"{asked.target} has no instruction like {asked.pattern}")
    report = _begun(gpu, options)
    report.left_out |= not_compared(asked.target, asked.pattern)
    stopped = _compared(gpu, report, asked, compared, options)
    write(report.json().removesuffix("\n") if options.json else report.text())
    return 1 if report.differences else 130 if stopped else 0


def _begun(gpu: CudaGpu, options: argparse.Namespace) -> Report:
    """Begin a report, or go on with the one that is there (rule 2)."""
    path: Path = options.report
    report = Report(device=device_of(gpu), seed=options.seed)
    if path.exists():
        found = Report.read(path)
        report.check_same(found, str(path))
        report = found
        say(f"warpmma: goes on with {path}")
    try:
        report.write(path)
    except OSError as error:
        raise OperandError(f"{path} cannot be written: {error.strerror}") from None
    return report


def _asked(gpu: CudaGpu, options: argparse.Namespace, pattern: str, kinds: tuple[str, ...] = ()) -> Asked:
    target = target_of(gpu.capability)
    return Asked(target=target, pattern=pattern, outputs=options.outputs, seed=options.seed, kinds=kinds)


def _compared(
    gpu: CudaGpu, report: Report, asked: Asked, compared: Sequence[ComparedGroup], options: argparse.Namespace
) -> bool:
    """Run a campaign; return whether a signal stopped it (rule 3)."""
    path = options.report
    until = time.monotonic() + 60 * options.minutes if options.minutes is not None else float("inf")
    stop, telling = threading.Event(), _Telling()
    campaign = Campaign(
        report=report, explain=lambda name, found: _explained(name, asked.target, found),
        save=lambda: report.write(path), tell=telling.tell, stop=stop,
    )  # fmt: skip
    with _stopped_by_signals(stop):
        campaign.run(compared, options.outputs, _workers(gpu, asked, compared, options.processes), until)
    telling.end()
    return stop.is_set()


def _workers(gpu: CudaGpu, asked: Asked, compared: Sequence[ComparedGroup], processes: int | None) -> list[Worker]:
    """Start workers: one in this process, or several in processes, in turns on all GPUs that are like the first."""
    if processes == 1:
        return [thread_worker(gpu, asked.target, compared)]
    room = {number: each.free_memory() for number, each in alike(gpu).items()}
    some = min(cpu_count() or 1, sum(min(_MOST_PROCESSES, free // _MEMORY) for free in room.values()))
    numbers = itertools.islice(itertools.cycle(room), processes or max(1, some))
    return [process_worker(number, asked) for number in numbers]


def _experiments(options: argparse.Namespace) -> int:
    """List experiments, and run those of the GPU's target; 1 if an answer is not the model's."""
    fits = matched(options.experiments)
    every = [x for x in EXPERIMENTS.values() if fits(x.name)]
    if not every:
        raise OperandError(f"there is no experiment like {options.experiments}; expected {', '.join(EXPERIMENTS)}")
    why = why_no_gpu()
    if why:
        write("\n".join(f"{x.name} ({_targets(x)}): {x.question}" for x in every))
        say(f"warpmma: {why.replace(_ENGINE, 'an experiment', 1)}")
        return 0
    gpu = _gpu("compare")
    target = target_of(gpu.capability)
    own = [x for x in experiments_of(target) if fits(x.name)]
    if others := [x for x in every if x not in own]:
        write("\n".join(f"{x.name} ({_targets(x)}): {x.question}" for x in others))
    report = _begun(gpu, options)
    as_model = True
    for x in own:
        outcome = _by_patterns(gpu, report, x, options) if x.candidates is None else _by_candidates(gpu, x, options)
        as_model = as_model and outcome["as the model"]
        report.experiments[x.name] = {"question": x.question, **outcome}
        report.write(options.report)
        write(f"{x.name}: {x.question}\n  {outcome['answer']}")
    if not own:
        say(f"warpmma: {target} has no such experiment")
    return int(not as_model)


def _targets(x: Experiment) -> str:
    return (
        ", ".join(x.targets) if len(x.targets) <= 8 else f"{', '.join(x.targets[:3])} and {len(x.targets) - 3} others"
    )


def _by_candidates(gpu: CudaGpu, x: Experiment, options: argparse.Namespace) -> dict[str, Any]:
    """Say which candidate equals the GPU in all outputs of all instructions."""
    target = target_of(gpu.capability)
    with Room(gpu, target, say) as room:
        found = list(followed(answer(room, x, target, options.seed), len(x.asked(target)), x.name))  # type: ignore[operator]
    kept: dict[str, list[str]] = {}
    for each in found:
        kept.setdefault(" or ".join(each.equal) or "none of the candidates", []).append(each.instruction)
    outputs, count = sum(each.outputs for each in found), len(found)
    texts = [f"{text} ({len(names)} of {counted(count, 'instruction')})" for text, names in kept.items()]
    models = x.candidates(parse_any(found[0].instruction), target)[0].answer if found else ""  # type: ignore[misc]
    return {
        "answer": f"{'; '.join(texts)}; {outputs:,} outputs", "instructions": kept,
        "as the model": all(x.candidates(parse_any(y.instruction), target)[0].answer in y.equal for y in found),  # type: ignore[misc]
        "model": models, "differences": {y.instruction: dict(y.differences) for y in found if len(y.equal) != 1},
    }  # fmt: skip


def _by_patterns(gpu: CudaGpu, report: Report, x: Experiment, options: argparse.Namespace) -> dict[str, Any]:
    """Say whether functions and operations are those of the model."""
    pattern = str(x.asked)
    asked = _asked(gpu, options, pattern, _OPERATIONS)
    _compared(gpu, report, asked, asked.comparisons(), options)
    counts = {n: c for kind in _OPERATIONS for n, c in report.counts.get(kind, {}).items() if matched(pattern)(n)}
    outputs, bad = sum(c.outputs for c in counts.values()), [n for n, c in counts.items() if c.differences]
    text = f"as the model: {outputs:,} outputs of {len(counts)}, 0 differences"
    if bad:
        text = f"{len(bad)} of {len(counts)} differ from the model: {', '.join(bad[:8])}"
    return {"answer": text, "as the model": not bad, "differ": bad}


def _gpu(command: str) -> CudaGpu:
    """Return the GPU (rule 1)."""
    if why := why_no_gpu():
        raise UnsupportedError(why.replace(_ENGINE, f"`warpmma {command}`", 1))
    return first_gpu()


class _Telling:
    """Progress on the error stream: one line that is written over on a terminal, elsewhere one now and then."""

    def __init__(self) -> None:
        self._seen = sys.stderr is not None and sys.stderr.isatty()
        self._last = time.monotonic()
        self._open = False

    def tell(self, line: str) -> None:
        """Show a line."""
        now = time.monotonic()
        if self._seen:
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()
            self._open = True
        elif now - self._last > _TOLD_EVERY:
            say(line)
            self._last = now

    def end(self) -> None:
        """End the line."""
        if self._open:
            say("")


@contextmanager
def _stopped_by_signals(stop: threading.Event) -> Iterator[None]:
    """Rule 3; in another thread than the main one signals stay as they are."""
    kept: dict[signal.Signals, Any] = {}

    def ask(number: int, frame: FrameType | None) -> None:
        stop.set()
        for each, handler in kept.items():
            signal.signal(each, handler)

    if threading.current_thread() is threading.main_thread():
        for each in (signal.SIGINT, signal.SIGTERM):
            kept[each] = signal.signal(each, ask)
    try:
        yield
    finally:
        for each, handler in kept.items():
            signal.signal(each, handler)


def _explained(name: str, target: str, found: MatrixDifference | LaneDifference) -> str:
    """Explain a difference: operands, each product, alignment, what the model says and what the GPU does."""
    if isinstance(found, LaneDifference):

        def codes(some: tuple[int, ...]) -> str:
            return " ".join(f"{x:#x}" for x in some) or "none"

        immediates = f", immediates {' '.join(map(str, found.immediates))}" if found.immediates else ""
        return f"operands {codes(found.given)}{immediates}: GPU {codes(found.gpu)}, model {codes(found.model)}"
    record = parse_any(name)
    head = (
        f"operands of style {found.style}, {found.variant}: GPU {found.gpu:#x}{_value(record, found.gpu)}, "
        f"model {found.model:#x}{_value(record, found.model)}"
    )
    try:
        told = explain_codes(
            record, target, found.a, found.b, found.c, rows=found.rows, scale_a=found.scale_a, scale_b=found.scale_b
        )
    except WarpmmaError:  # a kind of instruction whose sums are not explained

        def listed(some: tuple[int, ...] | None) -> str:
            return " ".join(f"{x:#x}" for x in some or ())

        return f"{head}\nA {listed(found.a)}\nB {listed(found.b)}\nC {found.c:#x}"
    return f"{head}\n{told.text(whole=True)}"


def _value(record: Any, code: int) -> str:
    import numpy as np

    fmt = record.format("D")
    value = fmt.decode(np.array([code], fmt.code_dtype))[0]
    return f" ({value!s})"


def add_record(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    parser.add_argument("out", type=Path, metavar="OUT.npz", help="the archive")
    parser.add_argument("--instructions", default="*", metavar="PATTERN", help="as of `compare`")
    parser.add_argument("--warps", type=_number, default=2, help="of each instruction and style of operands; default 2")
    parser.add_argument("--seed", type=int, default=0, help="of operands")
    parser.add_argument(
        "--undefined", action="store_true", help="sparse mma only, with metadata that PTX leaves undefined"
    )


def run_record(options: argparse.Namespace) -> int:
    """Record registers of every mma of this machine's GPU; `warpmma verify OUT.npz` replays them anywhere."""
    gpu = _gpu("record")
    target, about = target_of(gpu.capability), device_of(gpu)
    records = [x for x in instructions(target) if matched(options.instructions)(str(x))]
    if options.undefined:
        if target not in UNDEFINED_MEASURED:
            known = ", ".join(UNDEFINED_MEASURED)
            raise OperandError(
                f"--undefined is for {known}, whose undefined metadata is modelled; this GPU is {target}"
            )
        records = [x for x in records if x.sparse]
    if not records:
        kind = "sparse mma" if options.undefined else "mma"
        raise OperandError(f"{target} has no {kind} like {options.instructions}")
    more = {"undefined": options.undefined}
    with Room(gpu, target, say) as room:
        made = followed(recorded(room, records, options.warps, options.seed, **more), len(records), "recording")
        data = archive_of(made, target, f"{about['gpu']}, driver {about['driver']}, CUDA {about['cuda']}", **more)
    write_file(options.out, lambda stream: stream.write(data))
    many = counted(len(records), "instruction")
    write(f"{options.out}: {many} of {target}; `warpmma verify {options.out}` replays it")
    return 0


def add_contribute(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    parser.add_argument("report", type=Path, metavar="REPORT.json", help="what `warpmma compare` wrote")
    parser.add_argument("--output", type=Path, metavar="FILE", help="default warpmma-GPU.json")


def run_contribute(options: argparse.Namespace) -> int:
    """Pack a report of `warpmma compare` into one file, and say where to send it."""
    report = Report.read(options.report)
    kept = replace(report, first=dict(sorted(report.first.items())[:_MOST_FIRST]))
    text = kept.json()
    if len(text.encode()) > MOST_BYTES:
        raise OperandError(f"{options.report} has {len(text.encode()):,} bytes; expected at most {MOST_BYTES:,}")
    name = re.sub(r"[^a-z0-9]+", "-", f"{report.device.get('gpu', '')} {report.device.get('target', '')}".lower())
    path: Path = options.output or Path(f"warpmma-{name.strip('-')}.json")
    write_file(path, lambda stream: stream.write(text.encode()))
    about = ", ".join(f"{key} {x}" for key, x in kept.device.items())
    write(f"{path}: {kept.summary()}, of {about}. It has nothing else of this machine or its user. {_WHERE}")
    return 0


_WHERE = (
    "Please attach it to an issue of the project (docs/your_gpu.md says how): `python -m lab.record.evidence` makes "
    "evidence of it."
)
_MOST_FIRST = 50  # differences that are explained in a contribution
