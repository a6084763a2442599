"""What is changed in the PTX of an asynchronous kernel: one fence, wait, arrival, count, address or order at a time.

Each change is of a statement, found by what it is (`_KINDS`), or of a tensor map of the launch. A value in a register
is changed in a register of its own, in braces around the statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from warpmma.errors import WarpmmaError
from warpmma.ptx.text.syntax import Immediate, Operand, Place, Statement, Symbol, VectorOf

from .text_order import orders
from .text_places import Body, Edit, Unit, Written, pieces
from .text_subjects import MapChange, TextSubject

__all__ = ["TextMutant", "kind", "text_mutants"]

_KINDS = (
    ("init", r"mbarrier\.init\b"), ("inval", r"mbarrier\.inval\b"),
    ("expect", r"mbarrier\.(arrive\.)?expect_tx\b"), ("arrive", r"mbarrier\.arrive|cp\.async\.mbarrier\.arrive"),
    ("wait", r"mbarrier\.(try|test)_wait\b"), ("group", r"(cp\.async|cp\.async\.bulk|wgmma)\.wait_(group|all)\b"),
    ("commit", r"(cp\.async|cp\.async\.bulk|wgmma)\.commit_group\b"),
    ("copy", r"cp\.(reduce\.)?async\.|st\.async\b"), ("fence", r"fence\b|membar\b|wgmma\.fence\b"),
    ("barrier", r"bar\b|barrier\b"), ("map", r"tensormap\."), ("rank", r"mapa\b"), ("registers", r"setmaxnreg\b"),
    ("product", r"wgmma\.mma_async\b"), ("load", r"ld\.shared\b"), ("store", r"st\.(shared|global)\b"),
)  # fmt: skip
_DROPPED = ("init", "inval", "arrive", "expect", "group", "commit", "copy", "fence", "barrier", "map", "registers")
_SPACES = ("async", "async.global", "async.shared::cta")
_BARRIER = 8  # bytes of an mbarrier


@dataclass(frozen=True)
class TextMutant:
    """A kernel with one change, of its text or of a tensor map; `name` is another for each of a subject."""

    subject: TextSubject
    name: str
    line: str
    edits: tuple[Edit, ...] = ()
    change: MapChange | None = None


@dataclass(frozen=True)
class _Change:
    """What becomes of a statement: the operator, what is done, and the text that stands there instead."""

    operator: str
    detail: str
    text: str


def kind(statement: Statement) -> str:
    """Return what a statement is, "" for one that is not changed."""
    return next((name for name, form in _KINDS if re.match(form, statement.mnemonic)), "")


def text_mutants(subject: TextSubject) -> list[TextMutant]:
    """Return every mutant of a kernel, in the order of its lines."""
    body = Body(subject.read(), subject.name)
    loops = {i for u in _waits(body) for i in range(u.first, u.last + 1) if i != u.at}
    found: list[TextMutant] = []
    for i, written in body.written.items():
        line = written.statement.position.line
        for change in _changes(body, written, subject.stage, in_loop=i in loops):
            name = f"{change.operator}: line {line}: {change.detail}{' in ' * bool(change.detail)}{_shown(written)}"
            edits: tuple[Edit, ...] = ((written.start, written.end, change.text),)
            found.append(TextMutant(subject, name, f"{subject.name}:{line}", edits))
    found += _pairs(subject, body)
    for first, second, edits in orders(body, kind):
        line = first.statement.position.line
        name = f"order: line {line}: {_shown(first)} after {_shown(second)}"
        found.append(TextMutant(subject, name, f"{subject.name}:{line}", edits))
    return _different(found) + list(_maps(subject))


def _different(mutants: list[TextMutant]) -> list[TextMutant]:
    """Give numbers to mutants of statements that stand in one line."""
    seen: dict[str, int] = {}
    named = []
    for x in mutants:
        seen[x.name] = seen.get(x.name, 0) + 1
        more = f" #{seen[x.name]}" if seen[x.name] > 1 else ""
        named.append(TextMutant(x.subject, x.name + more, x.line, x.edits))
    return named


def _shown(written: Written) -> str:
    return " ".join(written.again().removesuffix(";").split())


def _waits(body: Body) -> Iterator[Unit]:
    for i, written in body.written.items():
        if kind(written.statement) == "wait":
            yield body.unit(i, True)


def _changes(body: Body, written: Written, stage: int, *, in_loop: bool) -> Iterator[_Change]:
    what = kind(written.statement)
    if written.guard and not in_loop:
        branch = written.statement.opcode == "bra"
        text = "" if branch else written.again(guard="")
        yield _Change("branch dropped" if branch else "guard dropped", "", text)
    if what in _DROPPED:
        proxy = "proxy " * written.statement.mnemonic.startswith("fence.proxy")
        yield _Change({"group": "wait", "map": "change of a map"}.get(what, proxy + what) + " dropped", "", "")
    if what in _OPERATORS:
        for operator in _OPERATORS[what]:
            yield from operator(body, written, stage)


# Operands


def _computed(body: Body, written: Written, operand: Operand, how: str, by: int, put: Callable[[str], Sequence[str]]
              ) -> str | None:  # fmt: skip
    """Write a statement with another value of an operand; None where it is not a number, register or address."""
    if isinstance(operand, Immediate):
        value = {"add": operand.value + by, "xor": operand.value ^ by, "mul": operand.value * by}[how]
        return written.again(operands=put(str(value))) if value >= 0 else None
    if isinstance(operand, Place) and how == "add":
        base = f"{operand.base.name}+" if operand.base is not None else ""
        return written.again(operands=put(f"[{base}{operand.offset + by}]"))
    if not isinstance(operand, Symbol):
        return None
    width = body.width(operand)
    name = {"add": "add.s", "xor": "xor.b", "mul": "mul.lo.s"}[how]
    made = f"{name}{width} mutant, {operand.name}, {by};"
    return f"{{ .reg .b{width} mutant; {made} {written.again(operands=put('mutant'))} }}"


def _operand(body: Body, written: Written, index: int, how: str, *values: int, operator: str, detail: str = ""
             ) -> Iterator[_Change]:  # fmt: skip
    """Change an operand by each of some values."""
    if index >= len(written.operands):
        return

    def put(text: str) -> list[str]:
        return [*written.operands[:index], text, *written.operands[index + 1 :]]

    for by in values:
        made = _computed(body, written, written.statement.operands[index], how, by, put)
        if made is not None:
            sign = {"add": f"{by:+}", "xor": f"^ {by}", "mul": f"* {by}"}[how]
            yield _Change(operator, f"{detail}{sign}", made)


def _places(written: Written) -> tuple[int | None, int | None]:
    """Return which operands of a copy are in shared memory, and an mbarrier."""
    name = written.statement.mnemonic
    tensor = ".tensor" in name
    if "bulk_group" in name:
        return 1, None
    if "mbarrier" in name:
        return 0, 2 if tensor or name.startswith("st.async") else 3
    return 0, None


# Operators


def _stages(body: Body, written: Written, stage: int) -> Iterator[_Change]:
    shared, barrier = _places(written)
    if stage and shared is not None:
        yield from _operand(body, written, shared, "add", stage, -stage, operator="stage", detail="buffer ")
    if barrier is not None:
        yield from _operand(body, written, barrier, "add", _BARRIER, -_BARRIER, operator="stage", detail="mbarrier ")


def _barrier_at(index: int, body: Body, written: Written, stage: int) -> Iterator[_Change]:
    if written.statement.mnemonic.startswith("cp.async.mbarrier"):
        index = 0
    yield from _operand(body, written, index, "add", _BARRIER, -_BARRIER, operator="stage", detail="mbarrier ")


def _tiles(body: Body, written: Written, stage: int) -> Iterator[_Change]:
    """Of a product: the descriptor of A that of another stage."""
    if stage:
        yield from _operand(body, written, 1, "add", stage >> 4, -(stage >> 4), operator="stage", detail="descriptor ")


def _sizes(body: Body, written: Written, stage: int) -> Iterator[_Change]:
    name = written.statement.mnemonic
    if name.startswith(("cp.async.cg", "cp.async.ca")):
        yield _Change("bytes", "8", written.again(name.replace(".cg.", ".ca."), [*written.operands[:2], "8"]))
    elif ".bulk" in name and ".tensor" not in name:
        yield from _operand(body, written, 2, "add", 16, -16, operator="bytes", detail="copied ")


def _masks(body: Body, written: Written, stage: int) -> Iterator[_Change]:
    if ".multicast::cluster" in written.statement.mnemonic:
        index = 3 if ".tensor" in written.statement.mnemonic else 4
        yield from _operand(body, written, index, "xor", 1, 2, 4, operator="mask")


def _coordinates(body: Body, written: Written, stage: int) -> Iterator[_Change]:
    for index, operand in enumerate(written.statement.operands):
        if not isinstance(operand, Place) or not operand.more or not isinstance(operand.more[0], VectorOf):
            continue
        for n, coordinate in enumerate(operand.more[0].items):
            for by in (1, -1):
                made = _computed(body, written, coordinate, "add", by, partial(_with_coordinate, written, index, n))
                if made is not None:
                    yield _Change("coordinate", f"{n} {by:+}", made)


def _with_coordinate(written: Written, index: int, n: int, text: str) -> list[str]:
    """Return the operands of a copy with another coordinate in one of them."""
    first, inner, *rest = pieces(written.operands[index][1:-1])
    coordinates = pieces(inner[1:-1])
    coordinates[n] = text
    where = ", ".join([first, f"{{{', '.join(coordinates)}}}", *rest])
    return [*written.operands[:index], f"[{where}]", *written.operands[index + 1 :]]


def _expected(body: Body, written: Written, stage: int) -> Iterator[_Change]:
    at = len(written.operands) - 1
    yield from _operand(body, written, at, "add", 16, -16, operator="expect-tx")
    yield from _operand(body, written, at, "mul", 2, operator="expect-tx")
    name = written.statement.mnemonic
    if ".arrive.expect_tx" in name:
        arrival = written.again(name.replace(".expect_tx", ""), written.operands[:-1])
        yield _Change("expect-tx", "only the arrival", arrival)
        words = [x for x in written.statement.words.qualifiers if x not in ("arrive", "release", "cta", "cluster")]
        alone = ".".join(["mbarrier.expect_tx.relaxed.cta", *words[1:]])
        yield _Change("expect-tx", "no arrival", written.again(alone, written.operands[1:]))


def _counts(body: Body, written: Written, stage: int) -> Iterator[_Change]:
    what, name = kind(written.statement), written.statement.mnemonic
    if what == "init":
        yield from _operand(body, written, 1, "add", 1, -1, operator="count")
    elif name.startswith("mbarrier.arrive") and len(written.operands) < 3:
        yield _Change("count", "2", written.again(operands=[*written.operands, "2"]))
        zero = written.again(operands=[*written.operands, "mutant"])  # as an immediate ptxas refuses it
        yield _Change("count", "0", f"{{ .reg .b32 mutant; mov.u32 mutant, 0; {zero} }}")
    elif name.startswith("mbarrier.arrive"):
        yield from _operand(body, written, 2, "add", 1, -1, operator="count")


def _parity(body: Body, written: Written, stage: int) -> Iterator[_Change]:
    if ".parity" in written.statement.mnemonic:
        yield from _operand(body, written, 2, "xor", 1, operator="parity")


def _skipped(body: Body, written: Written, stage: int) -> Iterator[_Change]:
    """Go on whether the phase is complete or not."""
    through = f"{written.guard}setp.eq.u32 {written.operands[0]}, 0, 0;"
    yield _Change("wait dropped", "", through)
    yield _Change("wait dropped", "looks once", f"{written.again()} {through}")


def _semantics(body: Body, written: Written, stage: int) -> Iterator[_Change]:
    """Make an arrival or a wait relaxed, or its scope the block alone."""
    words = written.statement.words.qualifiers
    if written.statement.mnemonic.startswith("cp."):
        return
    scope = next((x for x in words if x in ("cta", "cluster")), "cta")
    bare = [x for x in words if x not in ("release", "acquire", "relaxed", "cta", "cluster")]
    place = 1 + sum(x in ("parity", "expect_tx", "noComplete") for x in bare)
    order = "acquire" if kind(written.statement) == "wait" else "release"
    head, tail = bare[:place], bare[place:]
    if "relaxed" not in words:
        yield _Change("weaker", "relaxed", written.again(".".join(["mbarrier", *head, "relaxed", scope, *tail])))
    if scope == "cluster":
        yield _Change("weaker", "scope .cta", written.again(".".join(["mbarrier", *head, order, "cta", *tail])))


def _groups(body: Body, written: Written, stage: int) -> Iterator[_Change]:
    name = written.statement.mnemonic
    if written.operands:
        yield from _operand(body, written, 0, "add", 1, operator="weaker", detail="groups ")
    if name == "cp.async.bulk.wait_group":
        yield _Change("weaker", ".read", written.again(name + ".read"))


def _fences(body: Body, written: Written, stage: int) -> Iterator[_Change]:
    name = written.statement.mnemonic
    if name.startswith("fence.proxy.async"):
        for other in ("fence.proxy.async.global", "fence.proxy.async.shared::cta"):
            if other != name:
                yield _Change("weaker", other.removeprefix("fence.proxy.async"), written.again(other))
    elif (found := re.search(r"\.(cluster|gpu|sys)(?=\.|$)", name)) and "mbarrier_init" not in name:
        yield _Change("weaker", "scope .cta", written.again(name[: found.start()] + ".cta" + name[found.end() :]))


def _barriers(body: Body, written: Written, stage: int) -> Iterator[_Change]:
    name = written.statement.mnemonic
    if name.startswith("barrier.cluster.arrive") and ".relaxed" not in name:
        relaxed = name.replace(".release", "").replace("arrive", "arrive.relaxed")
        yield _Change("weaker", "relaxed", written.again(relaxed))
    if len(written.operands) == 2:  # a named barrier, for some of the threads
        yield from _operand(body, written, 0, "add", 1, operator="count", detail="number ")
        yield from _operand(body, written, 1, "add", 32, -32, operator="count", detail="threads ")


def _ranks(body: Body, written: Written, stage: int) -> Iterator[_Change]:
    yield from _operand(body, written, 2, "xor", 1, operator="rank")
    yield from _operand(body, written, 2, "add", 1, operator="rank")


_Operator = Callable[[Body, Written, int], Iterator[_Change]]
_OPERATORS: dict[str, tuple[_Operator, ...]] = {
    "init": (_counts, partial(_barrier_at, 0)), "inval": (partial(_barrier_at, 0),),
    "expect": (_expected, _semantics, partial(_barrier_at, 1)),
    "arrive": (_counts, _semantics, partial(_barrier_at, 1)),
    "wait": (_skipped, _parity, _semantics, partial(_barrier_at, 1)),
    "group": (_groups,), "copy": (_stages, _sizes, _masks, _coordinates), "fence": (_fences,), "map": (_fences,),
    "barrier": (_barriers,), "rank": (_ranks,), "product": (_tiles,),
}  # fmt: skip


def _pairs(subject: TextSubject, body: Body) -> Iterator[TextMutant]:
    """Drop a barrier of the cluster: its arrival and the wait that follows."""
    for i, written in body.written.items():
        after = body.written.get(i + 1)
        if after is None or not after.statement.mnemonic.startswith("barrier.cluster.wait"):
            continue
        line = written.statement.position.line
        name = f"barrier dropped: line {line}: {_shown(written)}, and its wait"
        edits = ((written.start, written.end, ""), (after.start, after.end, ""))
        yield TextMutant(subject, name, f"{subject.name}:{line}", edits)


def _maps(subject: TextSubject) -> Iterator[TextMutant]:
    """Take other tensor maps: half or twice the box along a dimension, another swizzle."""
    for name, made in subject.maps().items():
        boxes = [
            (*made.box[:n], size, *made.box[n + 1 :])
            for n, before in enumerate(made.box) for size in (before // 2, 2 * before)
        ]  # fmt: skip
        options = [("box", x) for x in boxes] + [("swizzle", x) for x in (0, 32, 64, 128) if x != made.swizzle]
        for field, value in options:
            try:
                subject.maps((name, field, value))
            except WarpmmaError:
                continue  # the driver would not make this map
            shown = "x".join(map(str, value)) if isinstance(value, tuple) else value
            title = f"{field}: {shown} in the map {name}"
            yield TextMutant(subject, title, f"{subject.name}:{name}", change=(name, field, value))
