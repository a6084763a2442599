"""Kernels: launches, instructions on simulated threads, operators of registers, and rows of operations by themselves."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from typing import Any

import numpy as np

from warpmma import kernel
from warpmma.kernel import Hazard, Launch, MatrixMove, Operation, Output, Register, Site, Swizzle, Threads

from . import legal
from .calls import Entry
from .hostile import Rng, chance, pick

__all__ = ["ENTRIES"]

_TARGETS = ("sm_90a", "sm_90a", "sm_80", "sm_100a", "sm_120a", "sm_75")
_DTYPES: dict[str, Any] = {"b16": np.uint16, "b32": np.uint32, "b64": np.uint64, "pred": np.bool_}
_SHARED = 2048


class Reg:
    """A register that a kernel is to make: of this kind, random by this seed or an address, perhaps not everywhere."""

    def __init__(self, kind: str, seed: int, what: str = "random", poison: bool = False) -> None:
        self.kind, self.seed, self.what, self.poison = kind, seed, what, poison

    def __repr__(self) -> str:
        return f"<{self.kind} {self.what}{', in half of the lanes' if self.poison else ''}>"


def _made(t: Threads, reg: Any, x: Register, depth: int = 0) -> Any:
    """Make registers of what stands for them."""
    if type(reg) in (list, tuple) and depth < 3:
        return type(reg)(_made(t, one, x, depth + 1) for one in reg)
    if not isinstance(reg, Reg):
        return reg
    if reg.what == "global":
        made = x + t.tid[0] * 16
    elif reg.what == "shared":
        made = t.tid[0] * 16
    else:
        size = np.dtype(_DTYPES[reg.kind]).itemsize
        bits = np.frombuffer(np.random.default_rng(reg.seed).bytes(64 * size), f"u{size}").reshape(1, 2, 32)
        made = t.register(bits & 1 if reg.kind == "pred" else bits, _DTYPES[reg.kind])
    if reg.poison:
        with t.where(t.laneid < 16):
            made = t("mov.b32", made) if made.kind == "b32" else made
    return made


def in_kernel(step: Callable[[Threads, Callable[[Any], Any]], Any], engine: Any = "auto", target: Any = "sm_90a") -> Any:
    """Run one step in a kernel of two warps, and return what it gives, registers as their bits."""
    found: list[Any] = []

    def run(t: Threads, x: Register) -> None:
        for start in range(0, _SHARED, 1024):
            t("st.shared.v4.b32", t.tid[0] * 16 + start, *[t.tid[0]] * 4)
        t("bar.sync")
        found.append(_bits(step(t, lambda reg: _made(t, reg, x))))

    kernel.launch(run, 1, 64, [np.arange(1024, dtype=np.uint32)], target=target, shared=_SHARED, engine=engine)
    return found[0]


def _bits(x: Any) -> Any:
    if isinstance(x, Register):
        return x.bits
    return [_bits(one) for one in x] if isinstance(x, list | tuple) else x


def execute(mnemonic: Any, operands: Any, target: Any = "sm_90a", engine: Any = "auto") -> Any:
    """Execute one instruction."""
    given = operands if isinstance(operands, list | tuple) else [operands]
    return in_kernel(lambda t, made: t(mnemonic, *made(list(given))), engine, target)


def constant(value: Any, kind: Any = "b32") -> Any:
    """Make a constant."""
    return in_kernel(lambda t, made: t.constant(value, kind))


def register(values: Any, dtype: Any = np.uint32) -> Any:
    """Make a register of an array."""
    return in_kernel(lambda t, made: t.register(values, dtype))


def update(old: Any, new: Any) -> Any:
    """Keep a register where lanes are masked off."""

    def step(t: Threads, made: Callable[[Any], Any]) -> Any:
        with t.where(t.laneid < 8):
            return t.update(made(old), made(new))

    return in_kernel(step)


def any_lane(predicate: Any) -> Any:
    """Ask whether any lane has a predicate."""
    return in_kernel(lambda t, made: t.any(made(predicate)))


def attribute(name: Any) -> Any:
    """Read an attribute of `Threads`."""
    return in_kernel(lambda t, made: getattr(t, name))


def where(predicate: Any) -> Any:
    """Mask lanes off."""

    def step(t: Threads, made: Callable[[Any], Any]) -> Any:
        with t.where(made(predicate)):
            return t.any(t.laneid < 8)

    return in_kernel(step)


def operate(name: str, register: Reg, other: Any, swap: bool) -> Any:
    """Apply an operator of registers."""

    def step(t: Threads, made: Callable[[Any], Any]) -> Any:
        x, y = made(register), made(other)
        # What has operators of its own, a text's % say, is not ours if it stands on the left.
        return getattr(operator, name)(*((y, x) if swap and isinstance(y, int | np.integer) else (x, y)))

    return in_kernel(step)


def _reg(rng: Rng, kind: str, what: str = "random") -> Reg:
    return Reg(kind, int(rng.integers(1 << 30)), what, chance(rng, 0.02))


@cache
def _rows() -> dict[str, tuple[Operation, ...]]:
    return {target: kernel.operations(target) for target in set(_TARGETS)}


def _operation(rng: Rng) -> dict[str, Any]:
    target = pick(rng, _TARGETS)
    row = pick(rng, _rows()[target])
    given = [int(rng.integers(256)) if kind == "imm" else _operand(rng, row, kind) for kind in row.inputs]
    if row.membermask:
        given[-1] = 0xFFFFFFFF
    return {"mnemonic": row.mnemonic, "operands": given, "target": target}


def _operand(rng: Rng, row: Operation, kind: str) -> Any:
    if kind == "pred" or row.lanes or chance(rng, 0.8):
        return _reg(rng, kind)
    floating = row.mnemonic.rsplit(".", 1)[-1] in ("f32", "f64")
    return float(rng.integers(9)) if floating else int(rng.integers(9))


def _access(rng: Rng) -> dict[str, Any]:
    space, count = pick(rng, ("global", "shared")), pick(rng, (1, 1, 2, 4))
    width = pick(rng, [w for w in (8, 16, 32, 64) if w * count <= 128])
    kind = pick(rng, "bsu") if width < 32 else pick(rng, "bsuf")
    many = f".v{count}" if count > 1 else ""
    address = _reg(rng, "b64" if space == "global" else "b32", space)
    target = pick(rng, _TARGETS)
    if chance(rng, 0.5):
        return {"mnemonic": f"ld.{space}{many}.{kind}{width}", "operands": [address], "target": target}
    values = [_reg(rng, f"b{max(width, 16)}") for _ in range(count)]
    return {"mnemonic": f"st.{space}{many}.{kind}{width}", "operands": [address, *values], "target": target}


def _move(rng: Rng) -> dict[str, Any]:
    target = pick(rng, _TARGETS)
    row = pick(rng, kernel.matrix_moves(target))
    address = _reg(rng, "b32", "shared")
    values = [] if row.direction == "load" else [[_reg(rng, "b32") for _ in range(row.registers)]]
    return {"mnemonic": row.mnemonic, "operands": [address, *values], "target": target}


_STEPS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("bar.sync", ()), ("bar.sync", (0,)), ("barrier.sync", (0,)), ("bar.warp.sync", (0xFFFFFFFF,)),
    ("cp.async.ca.shared.global", (Reg("b32", 0, "shared"), Reg("b64", 0, "global"), 16)),
    ("cp.async.cg.shared.global", (Reg("b32", 0, "shared"), Reg("b64", 0, "global"), 16)),
    ("cp.async.ca.shared.global", (Reg("b32", 0, "shared"), Reg("b64", 0, "global"), 4)),
    ("cp.async.commit_group", ()), ("cp.async.wait_group", (0,)), ("cp.async.wait_all", ()),
)  # fmt: skip


def _step(rng: Rng) -> dict[str, Any]:
    mnemonic, operands = pick(rng, _STEPS)
    return {"mnemonic": mnemonic, "operands": list(operands)}


def _mma(rng: Rng) -> dict[str, Any]:
    i = legal.record(rng, pick(rng, ("dense", "sparse", "scaled")))
    given: list[Any] = []
    for x in "ABC":
        layout = i.layout(x)  # type: ignore[arg-type]
        given.append([_reg(rng, f"b{layout.packing.width}") for _ in range(layout.registers)])
    if i.sparse:
        given += [0xE4E4E4E4 if i.a_type == "tf32" else 0x44444444, 0]
    if i.block_scale:
        given += [_reg(rng, "b32"), (0, 0), _reg(rng, "b32"), (0, 0)]
    return {"mnemonic": str(i), "operands": given, "target": legal.target(rng, i)}


def _double(t: Threads, x: Any, *_: Any) -> None:
    at = x + (t.ctaid[0] * t.ntid[0] + t.tid[0]) * 4
    t("st.global.b32", at, t("ld.global.b32", at) * 2)


def _read(t: Threads, *args: Any) -> None:
    for x in args:
        t("ld.global.b8", x)


def _through_shared(t: Threads, *_: Any) -> None:
    t("st.shared.b32", t.tid[0] * 4, t.tid[0])
    t("ld.shared.b32", t.tid[0] * 4)


def _nothing(t: Threads, *_: Any) -> None:
    pass


def _launched(rng: Rng) -> dict[str, Any]:
    body = pick(rng, (_double, _read, _through_shared, _nothing))
    grid, block = pick(rng, (1, 2, (1, 1), (2, 1, 2))), pick(rng, (32, 64, (8, 4), (4, 4, 2), 33))
    args: list[Any] = [np.arange(1024, dtype=np.uint32)]
    if body is _nothing:
        args = [Output(np.empty(3, "f4")), 5, 1.5, "text", np.zeros(4, "f2")]
    given: dict[str, Any] = {"kernel": body, "grid": grid, "block": block, "args": args, "target": legal.target(rng),
                             "shared": 4096 if body is _through_shared else pick(rng, (0, 1024))}  # fmt: skip
    if chance(rng, 0.4):
        given["hazards"] = pick(rng, ("error", "warn", {"race": "warn", "unwritten": "error"}))
    return given


def _launch(**given: Any) -> Any:
    """Launch a kernel, and return what it wrote."""
    done = kernel.launch(**given)
    args = given["args"]
    return [done.text(), *(x.copy() for x in args if isinstance(x, np.ndarray))]


_launch.__signature__ = __import__("inspect").signature(kernel.launch)  # type: ignore[attr-defined]


@cache
def _report() -> Launch:
    def run(t: Threads) -> None:
        t("st.shared.b32", t.tid[0] * 128, t.tid[0])
        t("ld.shared.b32", t.tid[0] * 128)

    return kernel.launch(run, 1, 32, [], target="sm_90", shared=4096)


def _site() -> Site:
    return next(iter(_report().costs.advice()))


def _arrays_of(rng: Rng) -> dict[str, Any]:
    row = pick(rng, _rows()["sm_90a"])
    given: list[Any] = []
    lead = legal.batch(rng)
    for kind in row.inputs:
        if kind == "imm":
            given.append(int(rng.integers(256)))
            continue
        dtype = np.dtype(_DTYPES[kind])
        shape = (*lead, 32)
        bits = np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), f"u{dtype.itemsize}").reshape(shape)
        given.append((bits & 1).astype(bool) if kind == "pred" else bits.copy())
    return {"self": row, "*operands": given}


def _called(rng: Rng) -> dict[str, Any]:
    more: dict[str, Any] = {"undefined": pick(rng, ("zero", "error"))} if chance(rng, 0.5) else {}
    return {**_arrays_of(rng), **more}


def _moved(rng: Rng, name: str) -> dict[str, Any]:
    wanted = {"distribute": ("load",), "collect": ("store",)}.get(name, ("load", "store"))
    row = pick(rng, [x for x in kernel.matrix_moves() if x.direction in wanted])
    lead = legal.batch(rng)
    if name == "distribute":
        return {"self": row, "data": rng.integers(0, 256, (*lead, row.matrices, row.rows_per_matrix, 16), np.uint8)}
    if name == "collect":
        return {"self": row, "registers": rng.integers(0, 1 << 32, (*lead, row.registers, 32), np.uint32)}
    return {"self": row, "addresses": 16 * rng.integers(0, 64, (*lead, 32))}


def _fields(x: Any) -> dict[str, Any]:
    return {f.name: getattr(x, f.name) for f in fields(x) if f.init}


def _named(rng: Rng, table: Callable[[], tuple[Any, ...]]) -> dict[str, Any]:
    row = pick(rng, table())
    return {"mnemonic": str(row), **({"target": pick(rng, row.targets)} if chance(rng, 0.5) else {})}


_OPERATORS = ("add", "sub", "mul", "floordiv", "mod", "and_", "or_", "xor", "lshift", "rshift",
              "lt", "le", "gt", "ge", "eq", "ne")  # fmt: skip


def _operated(rng: Rng) -> dict[str, Any]:
    kinds = pick(rng, (("b32", "b32"), ("b64", "b32"), ("b16", "b16"), ("pred", "pred")))
    name = pick(rng, ("and_", "or_", "xor") if kinds[0] == "pred" else _OPERATORS)
    register, other = (_reg(rng, kind) for kind in kinds)
    plain = kinds[0] != "pred" and chance(rng, 0.4)
    return {"name": name, "register": register, "other": 5 if plain else other, "swap": chance(rng, 0.3)}


def _refusing(name: str) -> Callable[[Any], Any]:
    functions: dict[str, Callable[[Any], Any]] = {
        "__bool__": bool, "__int__": int, "__float__": float, "__index__": operator.index, "__iter__": iter, "__repr__": repr, "__invert__": operator.invert,
    }  # fmt: skip
    return lambda register: in_kernel(lambda t, made: functions[name](made(register)))


def _text(object: Any) -> str:
    return str(object)


_K = "warpmma.kernel"
_THREADS, _REGISTER = f"{_K}:Threads", f"{_K}:Register"
_BINARY = ("add", "sub", "mul", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift")

ENTRIES = (
    Entry(name=f"{_K}:launch", call=_launch, make=_launched, weight=14, writes=("args",), pure=False),
    *(
        Entry(name=f"{_THREADS}.__call__ {name}", call=execute, make=make, weight=weight, engines=name == "mma",
              fixed=("target",))
        for name, make, weight in (("operation", _operation, 14), ("access", _access, 8), ("matrix", _move, 4),
                                   ("step", _step, 4), ("mma", _mma, 6))
    ),
    Entry(
        name=f"{_THREADS}.constant", call=constant, weight=4,
        make=lambda rng: dict(zip(("value", "kind"), pick(rng, ((3, "b32"), (1.5,), (-1, "b64"), (True, "pred"))))),
    ),
    Entry(
        name=f"{_THREADS}.register", call=register, weight=4,
        make=lambda rng: {"values": rng.integers(0, 99, pick(rng, ((), (32,), (1, 2, 32)))), "dtype": np.uint32},
    ),
    Entry(
        name=f"{_THREADS}.update", call=update, weight=3,
        make=lambda rng: {"old": _reg(rng, "b32"), "new": _reg(rng, "b32")},
    ),
    Entry(name=f"{_THREADS}.any", call=any_lane, weight=2, make=lambda rng: {"predicate": _reg(rng, "pred")}),
    Entry(name=f"{_THREADS}.where", call=where, weight=3, make=lambda rng: {"predicate": _reg(rng, "pred")}),
    Entry(
        name=f"{_THREADS} attribute", call=attribute, weight=1, may=(AttributeError,), fixed=("name",),
        make=lambda rng: {"name": pick(rng, ("tid", "ntid", "ctaid", "laneid", "warpid", "clock", "tidx", "smid", ""))},
    ),
    Entry(name=f"{_REGISTER} operator", call=operate, make=_operated, weight=8,
          fixed=("name", "register", "swap")),
    *(
        Entry(name=f"{_REGISTER}.{x}", call=_refusing(x), weight=0.3, fixed=("register",),
              make=lambda rng: {"register": _reg(rng, pick(rng, ("b32", "b16", "b64", "pred")))})
        for x in ("__bool__", "__int__", "__float__", "__index__", "__iter__", "__repr__", "__invert__")
    ),
    Entry(name=f"{_K}:operation", call=kernel.operation, weight=2, make=lambda rng: _named(rng, kernel.operations)),
    Entry(
        name=f"{_K}:matrix_move", call=kernel.matrix_move, weight=2,
        make=lambda rng: _named(rng, kernel.matrix_moves),
    ),
    *(
        Entry(name=name, call=call, make=lambda rng: {"target": legal.target(rng)})
        for name, call in (
            (f"{_K}:operations", kernel.operations), (f"{_K}:matrix_moves", kernel.matrix_moves),
        )
    ),
    Entry(name=f"{_K}:Operation.__call__", call=Operation.__call__, make=_called, weight=10),
    Entry(name=f"{_K}:Operation.undefined_lanes", call=Operation.undefined_lanes, make=_arrays_of, weight=3),
    Entry(
        name=f"{_K}:Operation", call=Operation, make=lambda rng: _fields(pick(rng, kernel.operations())),
        weight=0.3,
    ),
    Entry(
        name=f"{_K}:MatrixMove", call=MatrixMove, make=lambda rng: _fields(pick(rng, kernel.matrix_moves())),
        weight=0.3,
    ),
    *(
        Entry(name=f"{_K}:MatrixMove.{x}", call=getattr(MatrixMove, x), weight=3,
              make=lambda rng, x=x: _moved(rng, x))
        for x in ("rows", "distribute", "collect")
    ),
    *(
        Entry(name=f"{name}.__str__", call=_text, make=lambda rng, f=f: {"object": f()}, weight=0.1, fixed=("object",))
        for name, f in (
            (f"{_K}:Operation", lambda: kernel.operations()[0]),
            (f"{_K}:MatrixMove", lambda: kernel.matrix_moves()[0]), (f"{_K}:Site", _site),
            (f"{_K}:Hazard", lambda: Hazard(kind="race", site=_site(), block=0, warp=0, lane=0)),
        )
    ),
    Entry(name=f"{_K}:Site", call=Site, make=lambda rng: _fields(_site()), weight=0.1),
    Entry(
        name=f"{_K}:Hazard", call=Hazard, weight=0.1,
        make=lambda rng: {"kind": "race", "site": _site(), "block": 0, "warp": 0, "lane": 0},
    ),
    Entry(name=f"{_K}:Swizzle", call=Swizzle, make=lambda rng: {"bits": 3, "base": 4, "shift": 3}),
    Entry(
        name=f"{_K}:Swizzle.__call__", call=Swizzle.__call__, weight=2,
        make=lambda rng: {"self": Swizzle(3, 4, 3), "address": pick(rng, (0x190, rng.integers(0, 4096, 32)))},
    ),
    Entry(name=f"{_K}:Swizzle.__str__", call=Swizzle.__str__, make=lambda rng: {"self": Swizzle(3, 4, 3)}, weight=0.1),
    Entry(name=f"{_K}:Costs.advice", call=lambda: _report().costs.advice(), make=lambda rng: {}, weight=0.2),
    Entry(
        name=f"{_K}:Costs.together", call=lambda site: _report().costs.together(site),
        make=lambda rng: {"site": _site()},
    ),
    *(
        Entry(name=f"{_K}:Launch.{x}", call=getattr(Launch, x), make=lambda rng: {"self": _report()}, weight=0.2)
        for x in ("text", "json")
    ),
    Entry(
        name=f"{_K}:Launch.svg", call=Launch.svg, weight=0.5,
        make=lambda rng: {"self": _report(), "site": pick(rng, (_site(), _site().line))},
    ),
    Entry(
        name=f"{_K}:Launch", call=Launch, weight=0.1, fixed=("costs",),
        make=lambda rng: {"hazards": [], "costs": _report().costs},
    ),
    Entry(name=f"{_K}:Output", call=Output, make=lambda rng: {"array": np.zeros(4)}, weight=0.3, pure=False),
)  # fmt: skip
