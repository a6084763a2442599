"""The judge of fuzzed calls: that every rule of it can be broken, and that a call can be made again."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from arrays import Array
from fuzzing.calls import Call, Entry, call_of, show
from fuzzing.entries import entries
from fuzzing.trial import Outcome, Streams, trial

from warpmma.errors import OperandError

KEPT = np.zeros(3)


def is_importable(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # of what it is part of
        return False


def judged(
    call: Callable[..., Any], given: dict[str, Any], legal: dict[str, Any] | None = None, **more: Any
) -> Outcome:
    entry = Entry(name="module:made", call=call, make=lambda rng: given, **more)
    streams = Streams()
    with streams.caught():
        for seed in range(20):  # some rules are looked at now and then
            outcome = trial(Call(entry, 0, 0, given, legal), streams, np.random.default_rng(seed))
            if not outcome.good:
                break
    return outcome


def refuse(x: object) -> None:
    raise OperandError(f"got {x}")


def fail(x: object) -> None:
    raise KeyError(x)


def misuse(x: object) -> None:
    fail()  # type: ignore[call-arg]


def warn(x: object) -> None:
    warnings.warn("old", stacklevel=1)


def write(x: Array) -> None:
    x[0] = 7


def mumble(x: object) -> None:
    print(x, file=sys.stderr)


def unprintable(x: object) -> None:
    raise OperandError("\ud800")


def endless(x: object) -> None:
    raise OperandError("x" * 10_000)


def kept(x: object) -> Array:
    return KEPT


def spaced(x: Array) -> tuple[int, ...]:
    return x.strides


def by_engine(x: Array, engine: str = "auto") -> Array:
    return x + (engine == "numpy")


def random(x: object) -> float:
    return float(np.random.default_rng().random())


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (abs, "result"), (refuse, "refused"), (fail, "error"), (misuse, "error"), (warn, "warning"), (write, "mutated"),
        (mumble, "noise"), (unprintable, "unreadable"), (endless, "unreadable"), (kept, "cached"), (random, "unsteady"),
    ],
)  # fmt: skip
def test_how_a_call_ended(call: Callable[..., Any], kind: str) -> None:
    wrapped = (lambda x: abs(x)) if call is abs else call
    assert judged(wrapped, {"x": np.ones(3)}).kind == kind


def test_wrong_names_are_errors_of_signatures() -> None:
    assert judged(refuse, {"y": 1}).kind == "signature"
    assert judged(refuse, {}).kind == "signature"


def test_documented_errors() -> None:
    assert judged(fail, {"x": 1}, may=(KeyError,)).kind == "documented"


def test_what_is_written_by_promise() -> None:
    assert judged(write, {"x": np.ones(3)}, writes=("x",)).kind == "result"


def test_other_forms_of_arguments() -> None:
    x = np.ones((4, 4))
    assert judged(spaced, {"x": np.asfortranarray(x)}, {"x": x}).kind == "forms"


def test_engines() -> None:
    assert judged(by_engine, {"x": np.ones(3)}, engines=True).kind == "engines"


@pytest.mark.parametrize("name", ["warpmma:load", "warpmma.kernel:launch", "warpmma.scaling:quantize"])
def test_a_number_makes_the_same_call(name: str) -> None:
    for number in range(10):
        first, second = (call_of(entries()[name], 3, number) for _ in range(2))
        assert first.bent == second.bent
        assert [show(x).partition(" at 0x")[0] for x in first.given.values()] == [
            show(x).partition(" at 0x")[0] for x in second.given.values()
        ]


REFUSING = {f"warpmma.kernel:Register.__{x}__" for x in ("bool", "int", "float", "index", "iter")}


@pytest.mark.parametrize("part", sorted({entry.module for entry in entries().values()}))
def test_legal_calls_are_legal(part: str) -> None:
    streams = Streams()
    lacking = []
    with streams.caught():
        for name, entry in entries().items():
            if entry.module != part or name in REFUSING or (entry.needs and not is_importable(entry.needs)):
                continue
            rngs = [np.random.default_rng([1, number]) for number in range(5)]
            ended = [trial(Call(entry, 0, 0, entry.make(rng)), streams, rng) for rng in rngs]
            if not any(outcome.kind in ("result", "documented") for outcome in ended):
                lacking.append((name, ended[0].detail))
    assert not lacking
