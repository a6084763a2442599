"""Functions that kernels call and that have no body: `vprintf`, `__assertfail`, `malloc`, `free`.

The rules (CUDA Programming Guide, Formatted Output, Assertion, Dynamic Global Memory Allocation):

1. `vprintf` returns how many arguments its format has, -1 for a null format. What is printed comes out when the blocks
   that run together have ended, by block, thread and time: the order in which a GPU prints is left open.
2. `__assertfail` ends the launch with an error that has its message, as CUDA prints it.
3. `malloc` gives each thread memory of its own at a multiple of 256, unwritten, or a null pointer; `free` of a null
   pointer does nothing, of what `malloc` did not give it is a hazard.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..._arrays import Array
from ...errors import KernelError
from ...machine import Batch, RuntimeCall, Site, WarpRegister, execute
from ...operations import WINDOWS, row
from .printing import Conversion, conversions, written

Bytes = tuple[Array, ...]
_LONGEST = 1 << 16  # characters of a string in a thread's own memory


class DeviceFunctions:
    """The functions of one launch, and what it has printed: a piece for each batch of blocks."""

    def __init__(self) -> None:
        self.printed: list[str] = []
        self._lines: list[tuple[int, int, bytes]] = []  # block, thread, text; in the order of time
        self._shown = 0  # characters of what comes next that a run that was undone has shown

    @property
    def runtime_calls(self) -> Mapping[str, RuntimeCall]:
        """By name."""
        return {"vprintf": self._vprintf, "__assertfail": _assertfail, "malloc": _malloc, "free": _free}

    def flush(self) -> None:
        """Print what the blocks of a batch have printed (rule 1)."""
        if self._lines:
            lines = sorted(self._lines, key=lambda line: line[:2])
            text = b"".join(line[2] for line in lines).decode(errors="replace")
            self._lines.clear()
            self.printed.append(text)
            if sys.stdout is not None:
                sys.stdout.write(text[self._shown :])
            self._shown = max(self._shown - len(text), 0)

    def begin_again(self) -> None:
        """Forget what was printed by a run that was undone; the next one prints the same first."""
        self._shown = len("".join(self.printed))
        self.printed.clear()

    def _vprintf(self, batch: Batch, site: Site, arguments: Bytes, lanes: Array) -> Bytes:
        formats, buffers = _words(arguments[0], "u8"), _words(arguments[1], "u8")
        count = np.full(batch.shape, -1, np.int32)
        for address in np.unique(formats[lanes]).tolist():
            some = lanes & (formats == address)
            if address == 0:
                continue
            parts = list(conversions(_string(batch, site, address, some)))
            for block, warp, lane in np.argwhere(some).tolist():
                one = np.zeros(batch.shape, bool)
                one[block, warp, lane] = True
                text = self._formatted(batch, site, parts, int(buffers[block, warp, lane]), one)
                self._lines.append((batch.reporter.running(block), warp * 32 + lane, text))
            count[some] = sum(len(x.sizes) for x in parts)
        return (count[..., None].view(np.uint8),)

    def _formatted(self, batch: Batch, site: Site, parts: list[Conversion], at: int, lane: Array) -> bytes:
        """Write what one lane prints."""
        text = b""
        for part in parts:
            arguments = []
            for size in part.sizes:
                at = -(-at // size) * size
                arguments.append(_load(batch, site, at, size, lane))
                at += size
            text += written(
                part, arguments, lambda address: _string(batch, site, address, lane) if address else b"(null)"
            )
        return text


# Memory


def _words(data: Array, dtype: str) -> Array:
    """Integers of bytes `[block, warp, lane, n]`."""
    return np.ascontiguousarray(data).view(f"<{dtype}")[..., 0]


def _load(batch: Batch, site: Site, address: int, size: int, lane: Array) -> int:
    """Load one word as one lane does."""
    at = WarpRegister(np.broadcast_to(np.uint64(address), batch.shape))
    name = f"ld.u{8 * size}"
    (value,) = execute(batch, replace(site, mnemonic=name), row(name, batch.target), [at], lane)
    (bits,) = batch.read(site, [value], [lane])
    return int(bits[lane][0])


def _string(batch: Batch, site: Site, address: int, lanes: Array) -> bytes:
    """Return the text that ends with a zero at a generic address."""
    if not any(address in WINDOWS[space] for space in ("shared", "local")):
        text = batch.memory.text(address)
        if text is not None:
            return text
    first = np.zeros(batch.shape, bool)
    first[tuple(np.argwhere(lanes)[0])] = True
    found = bytearray()
    while len(found) < _LONGEST and (code := _load(batch, site, address + len(found), 1, first)):
        found.append(code)
    return bytes(found)


def _malloc(batch: Batch, site: Site, arguments: Bytes, lanes: Array) -> Bytes:
    sizes, found = _words(arguments[0], "u8"), np.zeros(batch.shape, np.uint64)
    for place in map(tuple, np.argwhere(lanes)):
        found[place] = batch.memory.allocate(int(sizes[place]))
    return (found[..., None].view(np.uint8),)


def _free(batch: Batch, site: Site, arguments: Bytes, lanes: Array) -> Bytes:
    addresses, bad = _words(arguments[0], "u8"), np.zeros(batch.shape, bool)
    for place in map(tuple, np.argwhere(lanes)):
        address = int(addresses[place])
        bad[place] = address != 0 and not batch.memory.release(address)
    batch.reporter.report("bounds", site, bad, addresses, "free of what malloc did not give, or of what was freed")
    return ()


# Ends


def _who(batch: Batch, lanes: Array) -> str:
    block, warp, lane = np.argwhere(lanes)[0].tolist()
    return f"block {batch.reporter.running(block)}, thread {warp * 32 + lane}"


def _assertfail(batch: Batch, site: Site, arguments: Bytes, lanes: Array) -> Bytes:
    """Rule 2: message, file, line, function, size of a character."""
    place = tuple(np.argwhere(lanes)[0])
    values = [int(_words(x, f"u{x.shape[-1]}")[place]) for x in arguments]
    one = np.zeros(batch.shape, bool)
    one[place] = True
    texts = [_string(batch, site, values[i], one).decode(errors="replace") for i in (0, 1, 3)]
    where = f"{texts[1]}:{values[2]}: {texts[2]}: {_who(batch, lanes)}"
    raise KernelError(f"{where}: assertion `{texts[0]}` failed, {site.in_text}")
