"""Calls: how a legal one is made, and worse ones of it; reproducible from a seed, a name and a number."""

from __future__ import annotations

import inspect
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np

from warpmma.formats import FORMATS, Format
from warpmma.isa import Instruction, WarpgroupInstruction

from .bending import Bent, bend
from .hostile import Rng, chance, hostile, pick

__all__ = ["Call", "Entry", "call_of", "show"]

_SHOWN = 160


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A public callable, and how it is called.

    Attributes
    ----------
    name : str
        As `surface` has it; what follows a blank tells several ways to call one thing apart.
    call : callable
    make : callable
        From a generator of random numbers to the arguments of a legal call, by name. A name that begins with "*" holds
        a list of further positional arguments; those before it are positional too.
    weight : float
        How often it is called, beside others.
    may : tuple of exception types
        What else a call may end in, by its documentation.
    writes : tuple of str
        Parameters that it writes.
    fixed : tuple of str
        Parameters that are left as they are.
    functions : tuple of str
        Parameters that are called: functions are left as they are, for what they raise is their own.
    engines : bool
        Whether it takes an engine, and must give the same with each.
    pure : bool
        Whether a second call gives the same.
    prints : bool
        Whether it may write to the streams of the process.
    needs : str
        The package without which it refuses every call.
    """

    name: str
    call: Callable[..., Any]
    make: Callable[[Rng], dict[str, Any]]
    weight: float = 1
    may: tuple[type[BaseException], ...] = ()
    writes: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ("self",)
    functions: tuple[str, ...] = ("progress", "kernel")
    engines: bool = False
    pure: bool = True
    prints: bool = False
    needs: str = ""

    @property
    def module(self) -> str:
        """Where it is defined."""
        return self.name.partition(":")[0]

    @cached_property
    def signature(self) -> inspect.Signature:
        """Its parameters."""
        return inspect.signature(self.call)

    @cached_property
    def optional(self) -> dict[str, Any]:
        """Parameters with a default, and this."""
        return {
            name: p.default
            for name, p in self.signature.parameters.items()
            if p.default is not p.empty and name not in self.fixed
        }


@dataclass(frozen=True)
class Call:
    """One call, ready to be made.

    Attributes
    ----------
    entry : Entry
    seed, number : int
    given : dict
        Its arguments.
    legal : dict or None
        Arguments that mean the same, where those given are other forms of them.
    bent : tuple of str
        Which parameters are not as in a legal call.
    """

    entry: Entry
    seed: int
    number: int
    given: dict[str, Any]
    legal: dict[str, Any] | None = None
    bent: tuple[str, ...] = field(default=())

    @property
    def id(self) -> str:
        """By what `python -m tests.fuzzing --call` finds it again."""
        return f"{self.entry.name}#{self.number}"

    def arguments(self, given: dict[str, Any] | None = None) -> tuple[list[Any], dict[str, Any]]:
        """Return positional and named arguments."""
        named = dict(self.given if given is None else given)
        star = next((i for i, name in enumerate(named) if name.startswith("*")), None)
        if star is None:
            return [], named
        names = list(named)
        more = named[names[star]]
        positional = [named[name] for name in names[:star]]
        positional += more if isinstance(more, list | tuple) else [more]
        return positional, {name: named[name] for name in names[star + 1 :]}

    def __str__(self) -> str:
        shown = ", ".join(f"{name}={show(value)}" for name, value in self.given.items())
        return f"{self.entry.name}({shown})"


def call_of(entry: Entry, seed: int, number: int) -> Call:
    """Make the call of a number: the same whenever it is asked for."""
    rng = np.random.default_rng([seed, zlib.crc32(entry.name.encode()), number])
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # conversions to types that hold less
        return _call(rng, entry, seed, number)


def _call(rng: Rng, entry: Entry, seed: int, number: int) -> Call:
    given = entry.make(rng)
    if chance(rng, 0.03):
        return Call(entry, seed, number, _misnamed(rng, entry, given), bent=("signature",))
    count = pick(rng, (0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 3))
    names = [name for name in (*given, *entry.optional) if name not in entry.fixed]
    names = [names[i] for i in rng.permutation(len(names))[:count]]
    legal = dict(given)
    same = bool(names)
    for name in dict.fromkeys(names):
        value = given.get(name, entry.optional.get(name))
        bent = bend(rng, value) if chance(rng, 0.6) else Bent(hostile(rng))
        given[name] = 5 if name in entry.functions and callable(bent.value) else bent.value
        same = same and bent.same
    given = {**{name: given[name] for name in legal}, **given}
    return Call(entry, seed, number, given, legal if same and entry.pure else None, tuple(dict.fromkeys(names)))


def _misnamed(rng: Rng, entry: Entry, given: dict[str, Any]) -> dict[str, Any]:
    """Leave an argument out, or give one that there is not."""
    names = [name for name in given if name not in entry.fixed]
    if names and chance(rng, 0.5):
        gone = pick(rng, names)
        return {name: value for name, value in given.items() if name != gone}
    return {**given, "nonsense": 1}


def show(value: Any) -> str:
    """Write a value shortly, whatever it is."""
    try:
        if isinstance(value, np.ndarray):
            return _shown_array(value)
        if isinstance(value, Instruction | WarpgroupInstruction):
            text = repr(str(value))
        elif isinstance(value, Format) and FORMATS.get(value.name) is value:
            text = f"FORMATS[{value.name!r}]"
        elif isinstance(value, list | tuple) and len(value) <= 8:
            inside = ", ".join(show(x) for x in value)
            text = f"[{inside}]" if isinstance(value, list) else f"({inside},)"
        elif isinstance(value, dict) and len(value) <= 8:
            text = "{" + ", ".join(f"{show(k)}: {show(x)}" for k, x in value.items()) + "}"
        else:
            text = repr(value)
    except Exception as reason:  # of broken objects, and of what is too deep
        text = f"<{type(value).__name__}>"
        if is_dataclass(value) and not isinstance(reason, RecursionError):
            named = (f"{f.name}={show(getattr(value, f.name))}" for f in fields(value))
            text = f"{type(value).__name__}({', '.join(named)})"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


def _shown_array(x: Any) -> str:
    kind = "" if type(x) is np.ndarray else f"{type(x).__name__}: "
    flags = "".join(
        f", {word}"
        for word, there in (
            ("read-only", not x.flags.writeable), ("unaligned", not x.flags.aligned),
            (f"strides {x.strides}", not x.flags.c_contiguous),
        )
        if there
    )  # fmt: skip
    few = f" {np.asarray(x).tolist()!r}" if x.size <= 4 else ""
    return f"<{kind}{x.dtype.str if x.dtype.kind in 'iuf' else x.dtype} {x.shape}{flags}{few[:60]}>"
