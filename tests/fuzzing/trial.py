"""Making one call, and judging how it ended.

1. It ends in a result, in an error of the package, or in what its documentation says besides; in `TypeError` only where
   the arguments do not fit the signature. An error's text can be printed and is not endless.
2. It warns of nothing but hazards, and writes nothing to the streams of the process.
3. Arguments are as they were, but for those that it says it writes.
4. Other forms of the same arguments (byte orders, strides, NumPy integers) give the same result, or an error.
5. Both engines give the same bits, or the same error.
6. What is handed out twice is read-only: a caller who writes into a result changes no other.
"""

from __future__ import annotations

import contextlib
import io
import numbers
import os
import resource
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import IO, Any

import numpy as np

from warpmma import engines
from warpmma.errors import WarpmmaError
from warpmma.kernel import HazardWarning

from .calls import Call
from .hostile import Rng

__all__ = ["Outcome", "Streams", "trial"]

_LONGEST = 8000  # characters of an error's text
_MEMORY = 400 << 10  # KiB that a call may need at most
_DEEPEST = 6


@dataclass(frozen=True)
class Outcome:
    """How a call ended.

    Attributes
    ----------
    kind : str
        "result", "refused", "signature" or "documented"; or what was wrong.
    detail : str
    seconds : float
    """

    kind: str
    detail: str = ""
    seconds: float = 0.0

    @property
    def what(self) -> str:
        """What was wrong, without the values that differ from call to call."""
        return ": ".join([self.kind, *self.detail.split(": ")[:2]])[:120]

    @property
    def good(self) -> bool:
        """Whether that is how a call may end."""
        return self.kind in ("result", "refused", "signature", "documented")


class Streams:
    """Catches what is written to the process's output and error streams, by Python or below it."""

    def __init__(self) -> None:
        self._files: list[IO[bytes]] = []
        self._text = io.StringIO()

    @contextlib.contextmanager
    def caught(self) -> Iterator[None]:
        """Catch both streams."""
        sys.stdout.flush()
        sys.stderr.flush()
        with contextlib.ExitStack() as stack:
            self._files = [stack.enter_context(tempfile.TemporaryFile()) for _ in (1, 2)]
            for fd, file in zip((1, 2), self._files, strict=True):
                saved = os.dup(fd)
                stack.callback(os.close, saved)
                stack.callback(os.dup2, saved, fd)
                os.dup2(file.fileno(), fd)
            stack.enter_context(contextlib.redirect_stdout(self._text))
            stack.enter_context(contextlib.redirect_stderr(self._text))
            yield

    def written(self) -> str:
        """Return what was written since this was last asked."""
        text = self._text.getvalue()
        if text:
            self._text.seek(0)
            self._text.truncate()
        for file in self._files:
            if os.lseek(file.fileno(), 0, os.SEEK_CUR):
                os.lseek(file.fileno(), 0, os.SEEK_SET)
                text += file.read().decode(errors="replace")
                os.lseek(file.fileno(), 0, os.SEEK_SET)
                file.truncate()
        return text


def trial(call: Call, streams: Streams, rng: Rng) -> Outcome:
    """Make a call and judge it; `rng` decides which of the dearer rules are looked at."""
    guarded = [
        (name, x, _bytes(x)) for name, value in call.given.items() if name not in call.entry.writes
        for x in _arrays(value)
    ]  # fmt: skip
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    outcome, result = _made(call)
    seconds = time.perf_counter() - start
    if outcome.good:
        outcome = _looked_at(call, outcome, result, guarded, streams, rng)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
    if outcome.good and grown > _MEMORY:
        outcome = Outcome("memory", f"{grown >> 10} MiB")
    return Outcome(outcome.kind, outcome.detail, seconds)


def _made(call: Call, given: dict[str, Any] | None = None) -> tuple[Outcome, Any]:
    """Make the call, and say how it ended and with what."""
    positional, named = call.arguments(given)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", HazardWarning)
            warnings.filterwarnings("ignore", "float32 operands without", DeprecationWarning)
            return Outcome("result"), call.entry.call(*positional, **named)
    except KeyboardInterrupt:
        raise
    except WarpmmaError as error:
        return _readable(error), error
    except call.entry.may as error:
        return Outcome("documented"), error
    except BaseException as error:
        if type(error) is TypeError and (call.bent == ("signature",) or not _fits(call, positional, named)):
            return Outcome("signature"), error
        kind = "warning" if isinstance(error, Warning) else "error"
        return Outcome(kind, _told(error)), error


def _fits(call: Call, positional: list[Any], named: dict[str, Any]) -> bool:
    try:
        call.entry.signature.bind(*positional, **named)
    except TypeError:
        return False
    return True


def _readable(error: WarpmmaError) -> Outcome:
    try:
        text = str(error)
        text.encode()
    except Exception as reason:
        return Outcome("unreadable", f"the text of {type(error).__name__} cannot be printed: {reason!r:.80}")
    if not text or len(text) > _LONGEST:
        return Outcome("unreadable", f"{type(error).__name__} of {len(text)} characters: {text[:80]}")
    return Outcome("refused", f"{type(error).__name__}: {text}")


def _told(error: BaseException) -> str:
    """Write the error with the package's line that it comes from."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f"{os.sep}warpmma{os.sep}" in f.filename]
    where = f"{frames[-1].filename.rpartition('warpmma' + os.sep)[2]}:{frames[-1].lineno}" if frames else "outside"
    try:
        text = " ".join(str(error).split())[:160]
    except Exception:
        text = "(its text cannot be printed)"
    return f"{where}: {type(error).__name__}: {text}"


def _looked_at(
    call: Call, outcome: Outcome, result: Any, guarded: list[tuple[str, Any, bytes]], streams: Streams, rng: Rng
) -> Outcome:  # fmt: skip
    """Look at rules 2 to 6."""
    written = streams.written()
    if written and not call.entry.prints:
        return Outcome("noise", written[:160])
    for name, x, before in guarded:
        if _bytes(x) != before:
            return Outcome("mutated", f"{name} was written")
    entry = call.entry
    if call.legal is not None and outcome.kind == "result":
        plain, wanted = _made(call, call.legal)
        if plain.kind == "result" and not _equal(result, wanted):
            return Outcome("forms", f"another result for another form of {', '.join(call.bent)}")
    if entry.engines and outcome.kind in ("result", "refused") and len(engines()) > 1 and "engine" not in call.bent:
        for engine in ("numpy", "native"):
            other, again = _made(call, {**call.given, "engine": engine})
            if (other.kind, other.detail) != (outcome.kind, outcome.detail):
                return Outcome(
                    "engines", f"{engine} ends otherwise: {other.kind} {other.detail}; {outcome.detail}"[:400]
                )
            if outcome.kind == "result" and not _equal(result, again):
                return Outcome("engines", f"{engine} gives other bits")
    elif entry.pure and outcome.kind == "result" and not _exhausted(call.given) and rng.random() < 0.25:
        again, second = _made(call)
        if again.kind != "result" or not _equal(result, second):
            return Outcome("unsteady", f"a second call gives something else: {again.detail}")
        if _writable(result, second, call.given):
            return Outcome("cached", "a writable array is handed out twice")
    streams.written()
    return outcome


def _exhausted(given: dict[str, Any]) -> bool:
    """Whether an argument is empty once it was read."""
    return any(isinstance(x, Iterator) for x in given.values())


def _writable(first: Any, second: Any, given: Any) -> bool:
    inputs = list(_arrays(given))
    for x, y in zip(_arrays(first), _arrays(second), strict=False):
        if not (x.flags.writeable or y.flags.writeable) or not np.may_share_memory(x, y):
            continue
        if x.size and not any(np.may_share_memory(x, z) for z in inputs):
            return True
    return False


def _arrays(value: Any, depth: int = 0) -> Iterator[Any]:
    """Arrays in a value, and in the collections and records that it is made of."""
    if isinstance(value, np.ndarray):
        yield np.ndarray.view(value, np.ndarray)  # whatever operations a subclass has
    elif isinstance(value, bytearray | memoryview):
        with contextlib.suppress(Exception):  # not contiguous, of no type that NumPy knows
            yield np.asarray(value)
    elif depth < _DEEPEST:
        inside: Any = ()
        if type(value) in (list, tuple):
            inside = value[:64]
        elif type(value) is dict:
            inside = list(value.values())[:64]
        elif is_dataclass(value) and not isinstance(value, type):
            inside = [getattr(value, f.name, None) for f in fields(value)]
        for x in inside:
            yield from _arrays(x, depth + 1)


def _bytes(x: Any) -> bytes:
    """What an array holds, without repetitions."""
    if x.dtype.hasobject:
        return b""
    return bytes(x[tuple(slice(0, 1) if step == 0 else slice(None) for step in x.strides)].tobytes())


def _equal(x: Any, y: Any, depth: int = 0) -> bool:
    """Whether two results are the same, arrays bit for bit; a scalar is an array without dimensions."""
    if isinstance(x, np.generic | np.ndarray) and isinstance(y, np.generic | np.ndarray):
        x, y = np.asarray(x), np.asarray(y)
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
        return x.dtype == y.dtype and x.shape == y.shape and (x.dtype.hasobject or _bytes(x) == _bytes(y))
    if depth > _DEEPEST:
        return True
    for kind in (numbers.Integral, str):  # members of an enumeration too
        if isinstance(x, kind) and isinstance(y, kind):
            return bool(x == y)
    if type(x) is not type(y):
        return False
    if isinstance(x, list | tuple):
        return len(x) == len(y) and all(_equal(a, b, depth + 1) for a, b in zip(x, y, strict=True))
    if isinstance(x, dict):
        return list(map(repr, x)) == list(map(repr, y)) and all(
            _equal(a, b, depth + 1) for a, b in zip(x.values(), y.values(), strict=True)
        )
    if isinstance(x, float | bytes | None):
        return repr(x) == repr(y)
    if is_dataclass(x) and not isinstance(x, type):
        return all(_equal(getattr(x, f.name, None), getattr(y, f.name, None), depth + 1) for f in fields(x))
    return True
