"""The command `run`: one launch of a kernel of a `.cu` or `.ptx` file, its hazards and its costs."""

from __future__ import annotations

import argparse
import json
import re
import textwrap
import time
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from ..._text import table
from ...analysis import Explanation
from ...cuda import CudaModule, arch_for
from ...cuda import load as load_cuda
from ...errors import KernelError, LimitError, OperandError, WarpmmaError, shown
from ...machine import Device, HazardError, HazardWarning, Launch, Limit
from ...ptx import PtxEntry, PtxModule, source_name
from ...ptx import load as load_ptx
from ..output.output_files import add_files, files_of, write_file
from ..output.streams import say, write
from .kernel_arguments import KernelArgument, KernelProduct, arguments_of, ordered

_WIDTH = 118
_FILES = ("svg",)
_EPILOG = """arguments:
  x=f32[1024]:normal        an array: f16 bf16 f32 f64 e4m3 e5m2 s8..s64 u8..u64, with zeros, ones, range,
                            uniform, normal, a number or FILE.npy
  y=out:f32[32,64]          an array that holds nothing before the launch
  n=1024  scale=0.5         numbers, in the type that the kernel declares
  p=null  s=hex:0a000000    a null pointer; the bytes of a struct

explain:
  77 lane=13 register=1     of the mma at line 77, of the source or the text; block=0 warp=0, and its first execution
  77 occurrence=3 chain     after so many others of a loop, and with them; row=, column=, against=sm_80

exit status: 0 if all is well, 1 if there is a hazard or the kernel fails, 2 if the request or the file is unusable
"""


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog, add = _EPILOG, parser.add_argument
    add("file", metavar="FILE", help="CUDA C++, or PTX text (.ptx)")
    add("--kernel", metavar="NAME", help="its name, such as 'scale<float, 4>'; not needed where there is one")
    add("--grid", required=True, help="blocks: 4, or 4,2,1")
    add("--block", required=True, help="threads of a block: 128, or 16,16")
    add("--cluster", help="blocks of a cluster: 2, or 2,2; by default what the kernel declares")
    add("--arg", metavar="NAME=VALUE", action="append", default=[], help="an argument; see below")
    add("--shared", type=int, default=0, metavar="BYTES", help="dynamic shared memory")
    add("--target", help="the device's; by default the one that was compiled for, or sm_70")
    add("--arch", help="what a .cu file is compiled for (default: sm_80, or the target if that is older or sm_90a)")
    add("--option", metavar="OPTION", action="append", default=[], help="for the compiler: --option=-DTILE=32")
    add("--compiler", default="auto", help="auto, nvrtc or nvcc")
    add(
        "--hazards",
        default="warn",
        help="warn (all are listed), error (the first ends the launch), strict, count or off",
    )
    add("--limit", help="where a launch ends: instructions of warps, or seconds as in 10s")
    add("--seed", type=int, default=0, help="of random contents, and of who goes first where CUDA leaves that open")
    add("--save", metavar="FILE.npz", help="all arrays, as they are after the launch, or when it ended")
    add("--timeline", metavar="FILE.svg", help="asynchronous work: copies, products, arrivals, waits; or .txt, .json")
    add_files(parser, _FILES, "draw the line of shared memory with the most bank conflicts", ["picture"])
    add("--explain", metavar="'LINE lane=L ...'", help="how an element of an mma's result came about; see below")
    add("--json", action="store_true", help="print JSON instead of tables")


def run_run(options: argparse.Namespace) -> int:
    """Run a kernel of a .cu or .ptx file on simulated blocks, and say what it found and cost."""
    sizes = {name: _sizes(name, getattr(options, name)) for name in ("grid", "block")}
    cluster = None if options.cluster is None else _sizes("cluster", options.cluster)
    limit = _limit(options.limit)
    if options.save is not None and not options.save.endswith(".npz"):
        raise OperandError(f"--save {shown(options.save)}: expected a file *.npz")
    if options.timeline is not None and not options.timeline.endswith((".svg", ".txt", ".json")):
        raise OperandError(f"--timeline {shown(options.timeline)}: expected a file *.svg, *.txt or *.json")
    files = files_of(options, _FILES)
    if options.seed < 0:
        raise OperandError(f"--seed {options.seed}: expected an integer from 0 on")
    asked = None if options.explain is None else KernelProduct(options.explain)
    module = _module(options)
    entry = _entry(module, options.kernel)
    arguments = ordered(arguments_of(options.arg, options.seed), module.parameters(entry.name), source_name(entry.name))
    device = Device(module.check().target if options.target is None else options.target)
    printed, started, stopped, report, refused = StringIO(), time.monotonic(), None, None, None
    try:
        with warnings.catch_warnings(), redirect_stdout(printed):
            warnings.simplefilter("ignore", HazardWarning)
            report = entry.launch(
                device, sizes["grid"], sizes["block"], [x.value for x in arguments], shared=options.shared,
                cluster=cluster, hazards=options.hazards, limit=limit, seed=options.seed,
                watch=None if asked is None else asked.watch, timeline=options.timeline is not None,
            )  # fmt: skip
    except (WarpmmaError, KeyboardInterrupt) as error:  # print and keep what there is until then
        stopped, report = error, error.report if isinstance(error, LimitError) else None
    seconds = time.monotonic() - started
    refused_at_once = isinstance(stopped, WarpmmaError) and not isinstance(
        stopped, KernelError | LimitError | HazardError
    )
    ran = not refused_at_once
    if ran and options.save is not None:
        _save(options.save, arguments)
    if ran and report is not None:
        for path, _ in files:
            _picture(path, report)
        if options.timeline is not None:
            _timeline(options.timeline, report)
    name = options.kernel or source_name(entry.name)
    title = f"{name} of {options.file} on {device.target}: grid {options.grid}, block {options.block}"
    title += f", cluster {options.cluster}" if options.cluster is not None else ""
    if ran:
        told, refused = _explained(asked, report)
        say_all = _json if options.json else _text
        write(say_all(title, module, arguments, report, stopped, printed.getvalue(), seconds, told))
    if stopped is not None and (not ran or not isinstance(stopped, WarpmmaError)):
        raise stopped
    if refused is not None:
        raise refused
    return int(stopped is not None or bool(report is not None and report.hazards))


def _explained(asked: KernelProduct | None, report: Launch | None) -> tuple[Explanation | None, WarpmmaError | None]:
    """Explain the requested product, or return the error, so that the launch's report is still printed."""
    if asked is None or report is None:
        return None, None
    try:
        return asked.explained(report), None
    except WarpmmaError as error:
        return None, error


# The request


def _sizes(name: str, text: str) -> list[int]:
    parts = re.split("[,x]", text)
    if len(parts) > 3 or not all(x.strip().isascii() and x.strip().isdigit() for x in parts):
        raise OperandError(f"--{name} {shown(text)}: expected 1 to 3 numbers, such as 4 or 4,2,1")
    return [int(x) for x in parts]


def _limit(text: str | None) -> Limit | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)s|(\d+)", text, re.ASCII)
    if found is None or not float(found[1] or found[2]):
        raise OperandError(f"--limit {shown(text)}: expected instructions, such as 1000000, or seconds, such as 10s")
    return Limit(seconds=float(found[1])) if found[1] else Limit(instructions=int(found[2]))


def _module(options: argparse.Namespace) -> PtxModule:
    if Path(options.file).suffix == ".ptx":
        for name in ("arch", "option"):
            if getattr(options, name):
                raise OperandError(f"--{name} is for what is compiled; {options.file} is PTX")
        return load_ptx(options.file)
    names = [options.kernel] if options.kernel and "<" in options.kernel else []
    return load_cuda(
        Path(options.file), arch=options.arch or arch_for(options.target or "sm_80"), options=options.option,
        names=names, compiler=options.compiler,
    )  # fmt: skip


def _entry(module: PtxModule, kernel: str | None) -> PtxEntry:
    if kernel is None and len(module) != 1:
        raise OperandError(
            f"--kernel is missing: {module.source.name} has {', '.join(map(source_name, module)) or 'none'}"
        )
    return module[kernel if kernel is not None else next(iter(module))]


# The report


def _save(path: str, arguments: list[KernelArgument]) -> None:
    """Write an archive of all arrays."""
    arrays = {x.name: x.array for x in arguments if x.array is not None}
    plain = {name: x if x.dtype.kind != "V" else x.view(f"u{x.dtype.itemsize}") for name, x in arrays.items()}
    write_file(path, lambda stream: np.savez(stream, **plain))


def _picture(path: str, report: Launch) -> None:
    sites = report.costs.sites
    if not sites:
        say(f"warpmma: {path} was not written: nothing accessed shared memory")
        return
    worst = max(sites, key=lambda site: sites[site].conflicts)
    write_file(path, lambda stream: stream.write(report.svg(worst).encode()))


def _timeline(path: str, report: Launch) -> None:
    timeline = report.timeline
    assert timeline is not None  # it was asked for
    kinds = {"svg": timeline.svg, "txt": timeline.text, "json": timeline.json}
    write_file(path, lambda stream: stream.write(kinds[path.rpartition(".")[2]]().encode()))


def _text(
    title: str, module: PtxModule, arguments: list[KernelArgument], report: Launch | None,
    stopped: BaseException | None, printed: str, seconds: float, told: Explanation | None,
) -> str:  # fmt: skip
    lines = [title]
    if isinstance(module, CudaModule):
        lines.append(f"compiled by {module.compiler} for {module.target}")
        if module.left_out:
            lines.append(f"left out as the host's: {', '.join(module.left_out)}")
        lines += module.log.splitlines()
    if printed:
        lines += ["", "Printed", "-------", printed.rstrip("\n")]
    arrays = [x for x in arguments if x.array is not None]
    if arrays:
        lines += ["", "Arrays, after the launch", "------------------------"]
        lines += ["  " + x for x in table([("name", "type", "first elements", "least", "greatest", "NaN"),
                                            *map(_summary, arrays)], left=(0, 1, 2))]  # fmt: skip
    if report is not None:
        lines += ["", report.text().rstrip("\n")]
    if told is not None:
        lines += ["", told.text().rstrip("\n")]
    if stopped is not None:
        lines += ["", f"The launch ended: {stopped}" if str(stopped) else "The launch was interrupted"]
    count = len(report.hazards) if report is not None else 0
    found = "no hazard was found" if not count and stopped is None else f"{count} hazards" if count != 1 else "1 hazard"
    lines += ["", f"{seconds:.2f} s; {found}"]
    return "\n".join(_narrow(x) for x in "\n".join(lines).split("\n"))


def _narrow(line: str) -> str:
    """Break a long line at blanks; what goes on is indented."""
    if len(line) <= _WIDTH:
        return line
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    return "\n".join(textwrap.wrap(
        line, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False,
        drop_whitespace=True, replace_whitespace=False,
    ))  # fmt: skip


def _summary(argument: KernelArgument) -> tuple[str, ...]:
    x = argument.array
    type_ = f"{x.dtype}[{','.join(map(str, x.shape))}]"
    if not x.size:
        return argument.name, type_, "", "", "", ""
    numbers, nans = x.reshape(-1), ""
    write_one: Callable[[Any], str] = str
    if x.dtype.kind not in "iub":
        numbers, write_one = numbers.astype(np.float64), "{:.6g}".format
        nans = str(int(np.isnan(numbers).sum()))
    first = " ".join(map(write_one, numbers[:4].tolist())) + (" ..." if x.size > 4 else "")
    known = numbers[~np.isnan(numbers)] if nans else numbers
    ends = [write_one(end(known).item()) if known.size else "" for end in (np.min, np.max)]
    return argument.name, type_, first, *ends, nans


def _json(
    title: str, module: PtxModule, arguments: list[KernelArgument], report: Launch | None,
    stopped: BaseException | None, printed: str, seconds: float, told: Explanation | None,
) -> str:  # fmt: skip
    document: dict[str, Any] = {"launch": title}
    if isinstance(module, CudaModule):
        document |= {"compiler": module.compiler, "log": module.log, "left_out": list(module.left_out)}
    document["arrays"] = {
        x.name: {"type": str(x.array.dtype), "shape": list(x.array.shape)} for x in arguments if x.array is not None
    }
    document |= {"printed": printed, "seconds": seconds, "error": None if stopped is None else str(stopped)}
    if told is not None:
        document["explanation"] = json.loads(told.json())
    return json.dumps(document | (json.loads(report.json()) if report is not None else {}), indent=2)
