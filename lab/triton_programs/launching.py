"""Calls of kernels through `warpmma.triton`, and the launches of PTX that they become."""

from __future__ import annotations

import math
import struct
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from importlib import import_module
from typing import Any
from unittest.mock import patch

import warpmma as wm
from lab.programs.launches import Array, contents
from warpmma import ptx

from .calls import Described, Program, TritonCase

__all__ = ["Launched", "call", "launched", "watched"]


@dataclass(frozen=True, kw_only=True)
class Launched:
    """A launch of an entry: `arguments` are integers and floats, by the types of the entry's parameters.

    One of several elements, such as a tensor map, has the type "bytes", and is written in hexadecimal digits. A
    `cluster` is blocks along x, y and z, or none.

    `report` is what the launch returned, `seconds` what it took of all cores, `before` and `after` what `look` saw.
    """

    text: str
    entry: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: tuple[tuple[str, int | float | str], ...]
    shared: int
    cluster: tuple[int, ...] | None = None
    report: Any
    seconds: float
    before: Any
    after: Any


def _number(type_: str, x: Any) -> tuple[str, int | float | str]:
    """Return an argument, or the bytes of one, as a number of the parameter's type."""
    if isinstance(x, bytes) and 8 * len(x) != int(type_[1:]):
        return "bytes", x.hex()
    if type_[0] == "f":
        return type_, struct.unpack({2: "<e", 4: "<f", 8: "<d"}[len(x)], x)[0] if isinstance(x, bytes) else float(x)
    if isinstance(x, bytes):
        x = int.from_bytes(x, "little")
    bits = int(type_[1:])
    return f"u{bits}", int(0 if x is None else getattr(x, "address", x)) % (1 << bits)


@contextmanager
def watched(look: Callable[[Any], Any] = lambda device: None) -> Iterator[list[Launched]]:
    """List all launches of PTX that happen within; `look` is called with the device before and after each."""
    found: list[Launched] = []
    launch = ptx.PtxEntry.launch

    @wraps(launch)
    def watching(
        entry: Any, device: Any, grid: Any, block: Any, args: Any = (), *, params: bytes | None = None,
        shared: int = 0, **options: Any,
    ) -> Any:  # fmt: skip
        before, start = look(device), time.process_time()
        report = launch(entry, device, grid, block, args, params=params, shared=shared, **options)
        seconds = time.process_time() - start
        given = args if params is None else [params[x.offset : x.offset + x.size] for x in entry.parameters]
        types = [parameter.type for parameter in entry.function.parameters]
        found.append(Launched(
            text=entry.module.source.text, entry=entry.name, grid=_sizes(grid), block=_sizes(block),
            arguments=tuple(_number(type_, x) for type_, x in zip(types, given, strict=True)), shared=shared,
            cluster=_sizes(wide) if (wide := options.get("cluster")) else None,
            report=report, seconds=seconds, before=before, after=look(device),
        ))  # fmt: skip
        return report

    with patch.object(ptx.PtxEntry, "launch", watching):
        yield found


def _sizes(x: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in x) if isinstance(x, tuple | list) else (int(x),)


def call(program: Program, device: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Make the calls of a program on the device that is active in `warpmma.triton`; return its arrays there."""
    import triton
    import triton.language as tl

    placed: dict[str, Any] = {}
    for name, array in program.arrays.items():
        placed[name] = device.array(contents(array, lambda other: placed[other].address))
    if "scratch" in placed:
        triton.set_allocator(partial(_scratch, placed["scratch"]))
    for one in program.calls:
        module, name = one.kernel.split(".")
        kernel = getattr(import_module(f"{__package__}.{module}"), name)
        arguments = [_argument(x, placed) for x in one.arguments]
        meta = {
            key: getattr(tl, x[3:]) if isinstance(x, str) and x.startswith("tl.") else x for key, x in one.meta.items()
        }
        kernel[one.grid](*arguments, **meta, **options)
    return placed


def _scratch(held: Any, size: int, alignment: int, stream: Any) -> Any:
    """Allocate memory for a kernel: always the same array."""
    if held.nbytes < size or held.address % alignment:
        raise ValueError(f"{held.nbytes} bytes of scratch memory; expected {size}, aligned to {alignment}")
    return held


def _argument(x: Any, placed: dict[str, Any]) -> Any:
    if isinstance(x, str):
        return placed[x]
    if not isinstance(x, Described):
        return x
    from triton.tools.tensor_descriptor import TensorDescriptor

    held = placed[x.array]
    shape = list(x.shape or held.shape)
    strides = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
    return TensorDescriptor(held, shape, strides, list(x.block))


def launched(
    case: TritonCase, target: str = "sm_90", **options: Any
) -> tuple[dict[str, Array], dict[str, int], list[Launched]]:
    """Run a case through `warpmma.triton`; return its outputs, the addresses of its arrays, and its launches."""
    program = case.make()
    with wm.triton.device(target, ptx_target=case.ptx, **options) as session, watched() as launches:
        placed = call(program, session.device, case.options)
    return ({name: placed[name].numpy() for name in program.outputs},
            {name: x.address for name, x in placed.items()}, launches)  # fmt: skip
