"""mbarriers of a GPU beside the simulator: what sequences of events leave and return.

1. Each lane of a block, which is one warp, has an mbarrier and a sequence of events of its own. Events are arrivals of
   the most common form, `expect_tx` and `complete_tx` (from sm_90 on), and the form that is compared. None causes a
   trap: there are no more arrivals than are pending, `.noComplete` leaves one, `arrive_drop` leaves one to later
   phases, and bytes are completed after they are expected.
2. After each event four words are compared: the upper word of the state that an arrival returned, or 0; whether the
   phases of parity 0 and 1 are complete; and the result of a form that waits, or of `pending_count`.
3. `cp.async.mbarrier.arrive` follows a copy of each lane to shared memory, and all lanes wait for one mbarrier, a
   limited time: memory is compared, and whether the wait ended.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..._arrays import Array
from ...isa import TARGETS
from ...operations import Mbarrier, rows
from ...registers import LANES
from .kernel_parts import CHUNK, barrier_waited, dumped, entry, filled, loaded, pointed
from .launched_cases import LaunchedWork, Place, RowForm

__all__ = ["MbarrierForm", "mbarrier_forms"]

_EVENTS, _COLUMNS = 16, 4
_ARRIVE, _EXPECT, _COMPLETE, _FORM = range(4)
_MOST_ARRIVALS, _MOST_BYTES = 6, 4096
_BYTES_SINCE = (9, 0)
_SIZE = CHUNK  # bytes of shared memory for copies: 16 of each lane


def mbarrier_forms(target: str) -> Iterator[Mbarrier]:
    """List the forms of a target."""
    return (x for x in rows(target) if isinstance(x, Mbarrier))


def _counts(target: str) -> bool:
    """Whether a target counts bytes, and several arrivals at once (rule 1)."""
    return TARGETS[target].capability >= _BYTES_SINCE


class MbarrierForm(RowForm[Mbarrier]):
    """One `mbarrier` or `cp.async.mbarrier.arrive`, for `LaunchComparison`."""

    def work(self, target: str, blocks: int, number: int, rng: np.random.Generator, place: Place) -> LaunchedWork:
        """Make the kernel and the arrays of a piece of work."""
        if self.row.action == "copy":
            return _copied(self.row, blocks, rng)
        arrays = _sequences(self.row, blocks, _counts(target), rng)
        arrays["results"] = np.full((blocks, _EVENTS * _COLUMNS, LANES), 0xDEADBEEF, np.uint32)
        text = _kernel(self.row, arrays, _counts(target), hinted=bool(number % 2))
        return LaunchedWork(text=text, arrays=arrays, compared=("results",))


def _sequences(made: Mbarrier, blocks: int, counts: bool, rng: np.random.Generator) -> dict[str, Array]:
    """Draw events and their numbers, `[block, event, lane]`, and how many arrivals `init` gets (rule 1)."""
    shape = (blocks, LANES)
    begin = rng.integers(1, _MOST_ARRIVALS, shape, endpoint=True)
    expected, pending, bytes_ = begin.copy(), begin.copy(), np.zeros(shape, np.int64)
    events, numbers = [], []
    for _ in range(_EVENTS):
        some, size = 1 + rng.integers(0, np.maximum(pending, 1)), 16 * rng.integers(1, 9, shape)
        if not counts:
            some = np.ones_like(some)
        waiting = pending == 0  # for bytes
        wish = rng.choice(4, shape, p=(0.3, 0.15, 0.15, 0.4) if counts else (0.4, 0, 0, 0.6))
        fewer = np.where(rng.random(shape) < 0.6, bytes_, np.minimum(size, bytes_))
        fits = {
            _ARRIVE: ~waiting, _EXPECT: ~waiting & (bytes_ < _MOST_BYTES), _COMPLETE: fewer > 0,
            _FORM: _fits(made, pending, expected, bytes_, some),
        }  # fmt: skip
        event = np.where(np.select([wish == x for x in fits], list(fits.values())), wish, _ARRIVE)
        event = np.where(waiting & (event == _ARRIVE), _COMPLETE, event)
        fewer = np.where(waiting & (wish != _COMPLETE), bytes_, fewer)
        own = event == _FORM
        expects = (event == _EXPECT) | own & (made.expects or made.action == "expect_tx")
        completes = (event == _COMPLETE) | own & (made.action == "complete_tx")
        arrives = (event == _ARRIVE) | own & (made.action == "arrive")
        count = np.where(own & made.expects, 1, some) * arrives
        again = own & (made.action == "inval")
        anew = rng.integers(1, _MOST_ARRIVALS, shape, endpoint=True)
        bytes_ = np.where(again, 0, bytes_ + size * expects - fewer * completes)
        expected = np.where(again, anew, expected - count * (own & made.drop))
        pending = np.where(again, anew, pending - count)
        pending = np.where((pending == 0) & (bytes_ == 0), expected, pending)
        number = np.where(expects, size, np.where(completes, fewer, np.where(again, anew, np.maximum(count, 1))))
        events.append(event)
        numbers.append(number)
    found = {"begin": begin[:, None], "events": np.stack(events, 1), "numbers": np.stack(numbers, 1)}
    return {name: x.astype(np.uint32) for name, x in found.items()}


def _fits(made: Mbarrier, pending: Array, expected: Array, bytes_: Array, some: Array) -> Array:
    """Return where the form is legal."""
    if made.action == "arrive":
        count = np.ones_like(some) if made.expects else some
        fits = (pending > 0) & (count <= pending) & (bytes_ < _MOST_BYTES)
        fits &= (count < expected) if made.drop else True
        return np.asarray(fits if made.last else fits & (count < pending))
    if made.action == "inval":
        return np.ones_like(pending, bool)
    if made.action == "expect_tx":
        return np.asarray((pending > 0) & (bytes_ < _MOST_BYTES))
    return np.asarray(bytes_ > 0) if made.action == "complete_tx" else np.zeros_like(pending, bool)


def _kernel(made: Mbarrier, arrays: dict[str, Array], counts: bool, *, hinted: bool) -> str:
    """Write the loop over events."""
    place = "%bar" if made.space.startswith("shared") else "%generic"
    own, number = made.action, ", %n"
    returns = own == "arrive" and made.signature[0].sink != "only"
    init = f"{made} [{place}], %n;" if own == "init" else "mbarrier.init.shared.b64 [%bar], %n;"
    form = {
        "arrive": f"{made} {'%token' if returns else '_'}, [{place}]{number if counts or not made.last else ''};",
        "inval": f"{made} [{place}]; @%q{_FORM} {init}", "expect_tx": f"{made} [{place}]{number};",
        "complete_tx": f"{made} [{place}]{number};",
    }.get(own, "")  # fmt: skip
    last = ""
    if own == "wait":
        phase = "%low" if made.parity else "%token"
        hint = ", 64" * (hinted and len(made.signature) > len(("result", "address", "phase")))
        last = f"and.b32 %low, %n, 1; {made} %ended, [{place}], {phase}{hint}; selp.b32 %last, 1, 0, %ended;"
    elif own == "pending_count":
        last = f"{made} %last, %token;"
    lines = [
        "mov.u32 %bar, barriers; mad.lo.u32 %bar, %lane, 8, %bar; cvt.u64.u32 %generic, %bar;",
        "cvta.shared.u64 %generic, %generic;", *loaded("begin", ["%n"], 32), init,
        "mov.b64 %token, 0; mov.u32 %i, 0; mov.u32 %last, 0; mov.u32 %any, 0;",
        pointed("results", 4 * LANES * _EVENTS * _COLUMNS, 4), "mov.b64 %out, %at;",
        pointed("events", 4 * LANES * _EVENTS, 4), "mov.b64 %which, %at;", pointed("numbers", 4 * LANES * _EVENTS, 4),
        "next:", "ld.global.b32 %event, [%which]; ld.global.b32 %n, [%at]; mov.b32 %upper, 0;",
        *(f"setp.eq.u32 %q{i}, %event, {i};" for i in range(_FORM + 1)),
        f"@%q{_ARRIVE} mbarrier.arrive.shared.b64 %token, [%bar]{number * counts};",
    ]  # fmt: skip
    if counts:
        lines += [
            f"@%q{_EXPECT} mbarrier.expect_tx.relaxed.cta.shared.b64 [%bar], %n;",
            f"@%q{_COMPLETE} mbarrier.complete_tx.relaxed.cta.shared.b64 [%bar], %n;",
        ]
    lines += [
        *[f"@%q{_FORM} {form}"] * bool(form),
        *[f"or.pred %q{_ARRIVE}, %q{_ARRIVE}, %q{_FORM};"] * returns,
        f"@%q{_ARRIVE} mov.b64 {{%low, %upper}}, %token; @%q{_ARRIVE} mov.u32 %any, 1;",
        *["setp.eq.u32 %none, %any, 0; @%none bra unknown;", last, "unknown:"] * bool(last),
        "mbarrier.test_wait.parity.shared.b64 %even, [%bar], 0; mbarrier.test_wait.parity.shared.b64 %odd, [%bar], 1;",
        "st.global.b32 [%out], %upper; selp.b32 %low, 1, 0, %even; st.global.b32 [%out+128], %low;",
        "selp.b32 %low, 1, 0, %odd; st.global.b32 [%out+256], %low; st.global.b32 [%out+384], %last;",
        "add.u64 %out, %out, 512; add.u64 %which, %which, 128; add.u64 %at, %at, 128;",
        f"add.u32 %i, %i, 1; setp.lt.u32 %none, %i, {_EVENTS}; @%none bra next;",
    ]
    declared = [
        f".shared .align 8 .b64 barriers[{LANES}]; .reg .b32 %bar, %n, %i, %event, %low, %upper, %last, %any;",
        ".reg .b64 %generic, %token, %out, %which; .reg .pred %q<4>, %even, %odd, %none, %ended;",
    ]
    return entry(arrays, declared, lines)


def _copied(made: Mbarrier, blocks: int, rng: np.random.Generator) -> LaunchedWork:
    """Rule 3."""
    arrays: dict[str, Array] = {name: rng.integers(0, 256, (blocks, _SIZE), np.uint8) for name in ("near", "far")}
    shape = (blocks, 1, LANES)
    arrays["origin"] = (16 * rng.integers(0, LANES, shape)).astype(np.uint32)
    arrays["waited"] = np.zeros(shape, np.uint32)
    place = "%bar" if made.space.startswith("shared") else "%generic"
    lines = [
        "mov.u32 %here, room; mad.lo.u32 %here, %lane, 16, %here; mov.u32 %bar, barrier;",
        "cvt.u64.u32 %generic, %bar; cvta.shared.u64 %generic, %generic; setp.eq.u32 %first, %lane, 0;",
        *filled("near", "%here", _SIZE), *loaded("origin", ["%origin"], 32), pointed("far", _SIZE),
        "cvt.u64.u32 %wide, %origin; add.u64 %at, %at, %wide;",
        f"@%first mbarrier.init.shared.b64 [%bar], {LANES};", "bar.sync 0;",
        f"cp.async.cg.shared.global [%here], [%at], 16; {made} [{place}];",
        *["mbarrier.arrive.shared.b64 %token, [%bar];"] * (not made.counts),
        *barrier_waited("waited", test=True), *dumped("near", "%here", _SIZE),
    ]  # fmt: skip
    declared = [
        f".shared .align 16 .b8 room[{_SIZE}]; .shared .align 8 .b64 barrier; .reg .pred %first, %ended;",
        ".reg .b32 %here, %bar, %origin, %tries; .reg .b64 %generic, %wide, %token;",
    ]
    return LaunchedWork(text=entry(arrays, declared, lines), arrays=arrays, compared=("near", "waited"))
