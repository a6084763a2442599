"""Instructions on simulated threads, and operators of registers: each call is one step of a kernel."""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np

from warpmma import kernel
from warpmma.errors import TargetError
from warpmma.kernel import Operation, Register, Threads

from . import legal
from .bending import bend
from .calls import Entry
from .hostile import Rng, chance, pick

__all__ = ["DTYPES", "ENTRIES", "rows"]

_TARGETS = ("sm_90a", "sm_90a", "sm_80", "sm_100a", "sm_120a", "sm_75")
DTYPES: dict[str, Any] = {"b16": np.uint16, "b32": np.uint32, "b64": np.uint64, "pred": np.bool_}
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
        size = np.dtype(DTYPES[reg.kind]).itemsize
        bits = np.frombuffer(np.random.default_rng(reg.seed).bytes(64 * size), f"u{size}").reshape(1, 2, 32)
        made = t.register(bits & 1 == 1 if reg.kind == "pred" else bits, DTYPES[reg.kind])
    if reg.poison:
        with t.where(t.laneid < 16):
            made = t("mov.b32", made) if made.kind == "b32" else made
    return made


def in_kernel(
    step: Callable[[Threads, Callable[[Any], Any]], Any], engine: Any = "auto", target: Any = "sm_90a"
) -> Any:
    """Run one step in a kernel of two warps, and return what it gives, registers as their bits."""
    found: list[Any] = []

    def run(t: Threads, x: Register) -> None:
        for start in range(0, _SHARED, 1024):
            t("st.shared.v4.b32", t.tid[0] * 16 + start, *[t.tid[0]] * 4)
        t("bar.sync")
        found.append(_bits(step(t, lambda reg: _made(t, reg, x))))
        with suppress(TargetError):
            t("cp.async.wait_all")

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


def attribute(name: str) -> Any:
    """Read an attribute of `Threads`."""
    return in_kernel(lambda t, made: getattr(t, name))


def register_attribute(name: str) -> Any:
    """Read an attribute of a register."""
    return in_kernel(lambda t, made: getattr(t.laneid, name))


_NAMES = ("tid", "ntid", "ctaid", "laneid", "warpid", "clock", "smid", "bits", "kind", "where", "lane_id", "threadIdx")


def _name(rng: Rng) -> dict[str, Any]:
    name = pick(rng, _NAMES)
    name = bend(rng, name).value if chance(rng, 0.4) else name
    return {"name": name if isinstance(name, str) else "tid"}


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
def rows() -> dict[str, tuple[Operation, ...]]:
    """Return the operations of the targets that are tried."""
    return {target: kernel.operations(target) for target in set(_TARGETS)}


def _operation(rng: Rng) -> dict[str, Any]:
    target = pick(rng, _TARGETS)
    row = pick(rng, rows()[target])
    given = [int(rng.integers(256)) if kind == "imm" else _operand(rng, row, kind) for kind in row.inputs]
    if row.membermask:
        given[-1] = 0xFFFFFFFF
    return {"mnemonic": row.mnemonic, "operands": given, "target": target}


def _operand(rng: Rng, row: Operation, kind: str) -> Any:
    if kind == "pred" or row.lanes or chance(rng, 0.8):
        return _reg(rng, kind)
    floating = any(name in row.mnemonic.rsplit(".", 1)[-1] for name in ("f16", "f32", "f64"))
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
    ("bar.sync", (3, 64)), ("barrier.sync.aligned", (15, 64)), ("bar.arrive", (1, 64)), ("exit", ()),
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


_OPERATORS = ("add", "sub", "mul", "floordiv", "truediv", "mod", "and_", "or_", "xor", "lshift", "rshift",
              "lt", "le", "gt", "ge", "eq", "ne")  # fmt: skip


def _operated(rng: Rng) -> dict[str, Any]:
    kinds = pick(rng, (("b32", "b32"), ("b64", "b32"), ("b16", "b16"), ("pred", "pred")))
    name = pick(rng, ("and_", "or_", "xor") if kinds[0] == "pred" else _OPERATORS)
    register, other = (_reg(rng, kind) for kind in kinds)
    plain = kinds[0] != "pred" and chance(rng, 0.4)
    return {"name": name, "register": register, "other": 5 if plain else other, "swap": chance(rng, 0.3)}


def _refusing(name: str) -> Callable[[Any], Any]:
    functions: dict[str, Callable[[Any], Any]] = {
        "__bool__": bool, "__int__": int, "__float__": float, "__index__": operator.index,
        "__iter__": iter, "__repr__": repr, "__invert__": operator.invert,
    }  # fmt: skip
    return lambda register: in_kernel(lambda t, made: functions[name](made(register)))


_THREADS, _REGISTER = "warpmma.kernel:Threads", "warpmma.kernel:Register"

ENTRIES = (
    *(
        Entry(name=f"{_THREADS}.__call__ {name}", call=execute, make=make, weight=weight, engines=name == "mma",
              fixed=("target",))
        for name, make, weight in (("operation", _operation, 14), ("access", _access, 8), ("matrix", _move, 4),
                                   ("step", _step, 4), ("mma", _mma, 6))
    ),
    Entry(
        name=f"{_THREADS}.constant", call=constant, weight=4,
        make=lambda rng: dict(
            zip(("value", "kind"), pick(rng, ((3, "b32"), (1.5, "b32"), (-1, "b64"), (True, "pred"))), strict=True)
        ),
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
    Entry(name=f"{_THREADS}.__getattr__", call=attribute, make=_name, fixed=("name",)),
    Entry(
        name=f"{_THREADS}.__repr__", call=lambda: in_kernel(lambda t, made: repr(t)), make=lambda rng: {}, weight=0.1,
    ),
    Entry(name=f"{_REGISTER}.__getattr__", call=register_attribute, make=_name, fixed=("name",)),
    Entry(name=f"{_REGISTER} operator", call=operate, make=_operated, weight=8,
          fixed=("name", "register", "swap")),
    *(
        Entry(name=f"{_REGISTER}.{x}", call=_refusing(x), weight=0.3, fixed=("register",),
              make=lambda rng: {"register": _reg(rng, pick(rng, ("b32", "b16", "b64", "pred")))})
        for x in ("__bool__", "__int__", "__float__", "__index__", "__iter__", "__repr__", "__invert__")
    ),
)  # fmt: skip
