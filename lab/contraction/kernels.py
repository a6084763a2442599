"""Random kernels of multiplications and additions, with other instructions in between."""

from __future__ import annotations

import random
from dataclasses import dataclass

INPUTS, PREDICATES = 8, 3
OUTPUT = 256
"""Offset of the first output; inputs begin at 0, and the integers that control branches at 128."""

_PARTING = ("bar.sync 0;", "membar.gl;", "fence.acq_rel.cta;", "@%p{p} st.global.b32 [%rd1+240], %r20;", "LABEL:",
            "div.s32 %r21, %r20, %r22; st.global.b32 [%rd1+244], %r21;", "bra.uni LABEL; LABEL:")  # fmt: skip


@dataclass(frozen=True)
class Kernel:
    """A kernel.

    Attributes
    ----------
    text : str
    outputs : int
    """

    text: str
    outputs: int


class _Drawing:
    def __init__(self, rng: random.Random, type_: str):
        self.rng = rng
        self.type = type_
        self.values = [f"%x{i}" for i in range(INPUTS)]
        self.products: list[str] = []
        self.multiplied: set[str] = set()
        self.lines: list[str] = []
        self.made = INPUTS
        self.labels = 0
        self.plain = rng.random() < 0.5
        self.eager = 0.3

    def new(self) -> str:
        self.made += 1
        return f"%x{self.made - 1}"

    def pick(self) -> str:
        """Choose an operand: often a product, which is then rarely chosen again."""
        if self.products and self.rng.random() < 0.15:
            return self.rng.choice(self.products[-4:])
        if self.products and self.rng.random() < self.eager:
            return self.products.pop(self.rng.randrange(max(0, len(self.products) - 3), len(self.products)))
        if self.rng.random() < 0.08 and self.type == "f32":
            return self.rng.choice(("0f3F800000", "0fBF800000", "0f40400000", "0fC0A00000"))
        return self.rng.choice(self.values[-10:])

    def register(self) -> str:
        found = self.pick()
        return found if found.startswith("%") else self.rng.choice(self.values)

    def guard(self, chance: float) -> str:
        if self.rng.random() >= chance:
            return ""
        return f"@{self.rng.choice(('', '!'))}%p{self.rng.randrange(PREDICATES)} "

    def suffix(self, chance: float = 0.06) -> str:
        words = ["ftz"] if self.type == "f32" and self.rng.random() < chance else []
        return "".join(f".{word}" for word in words)

    def statement(self) -> None:
        """Draw a statement."""
        way = self.rng.random()
        d, t = self.new(), self.type
        if way < 0.4:
            guard = self.guard(0.04)
            rounding = ".rn" if self.rng.random() < 0.05 else ""
            a, b = self.register(), self.pick()
            self._begin(guard, d)
            self.lines.append(f"{guard}mul{rounding}{self.suffix()}.{t} {d}, {a}, {b};")
            self.products.append(d)
            self.multiplied.add(d)
        elif way < 0.78:
            guard = self.guard(0.1)
            self._begin(guard, d)
            op = self.rng.choice(("add", "sub"))
            rounding = ".rn" if self.rng.random() < 0.05 else ""
            sat = ".sat" if t == "f32" and self.rng.random() < 0.04 else ""
            self.eager = 0.7
            a, b = self.rng.sample((self.register(), self.pick()), 2)
            self.eager = 0.1
            self.lines.append(f"{guard}{op}{rounding}{self.suffix()}{sat}.{t} {d}, {a}, {b};")
        else:
            self._other(d, way)
        self.values.append(d)

    def _begin(self, guard: str, d: str) -> None:
        if guard:
            self.lines.append(f"mov.b{64 if self.type == 'f64' else 32} {d}, {self.rng.choice(self.values)};")

    def _other(self, d: str, way: float) -> None:
        t, bits = self.type, 64 if self.type == "f64" else 32
        if way < 0.83:
            self.lines.append(f"neg.{t} {d}, {self.register()};")
        elif way < 0.87:
            self.lines.append(f"mov.b{bits} {d}, {self.register()};")
        elif way < 0.9:
            self.lines.append(f"fma.rn.{t} {d}, {self.register()}, {self.register()}, {self.register()};")
        elif way < 0.93 and t == "f32":
            self.lines.append(f"max.{t} {d}, {self.register()}, {self.register()};")
        elif way < 0.95:
            self.lines.append(
                f"selp.b{bits} {d}, {self.register()}, {self.register()}, %p{self.rng.randrange(PREDICATES)};"
            )
        else:
            self.lines.append(f"mul.{t} {d}, {self.register()}, {self.register()};")
            self.products.append(d)
            self.multiplied.add(d)
            if not self.plain:
                self._parting()

    def _parting(self) -> None:
        self.labels += 1
        text = self.rng.choice(_PARTING).replace("{p}", str(self.rng.randrange(PREDICATES)))
        self.lines.append(text.replace("LABEL", f"L{self.labels}"))

    def branch(self) -> None:
        """Draw an if, sometimes with an else."""
        self.labels += 1
        label = f"B{self.labels}"
        d = self.rng.choice(self.values)
        self.lines.append(f"@%p{self.rng.randrange(PREDICATES)} bra {label};")
        known, products = list(self.values), list(self.products)
        for _ in range(self.rng.randrange(1, 4)):
            self.statement()
        self.lines.append(f"mov.b{64 if self.type == 'f64' else 32} {d}, {self.values[-1]};")
        self.values, self.products = known, products
        self.lines.append(f"{label}:")


def drawn(seed: int, type_: str = "f32") -> Kernel:
    """Draw a kernel by its number."""
    rng = random.Random(f"{type_} {seed}")
    drawing = _Drawing(rng, type_)
    for _ in range(rng.randrange(6, 30)):
        if not drawing.plain and rng.random() < 0.1:
            drawing.branch()
        else:
            drawing.statement()
    sums = [x for x in drawing.values[INPUTS:] if x not in drawing.multiplied] or drawing.values
    kept = [*sums[-8:], *rng.sample(drawing.values, 1)]
    size = 8 if type_ == "f64" else 4
    bits = 8 * size
    text = [
        ".version 7.0", ".target sm_80", ".address_size 64", ".visible .entry k(.param .u64 p) {",
        f".reg .b{bits} %x<{drawing.made}>; .reg .b32 %r<30>; .reg .b64 %rd<4>; .reg .pred %p<{PREDICATES}>;",
        "ld.param.u64 %rd1, [p]; cvta.to.global.u64 %rd1, %rd1;",
        *(f"ld.global.b{bits} %x{i}, [%rd1+{size * i}];" for i in range(INPUTS)),
        *(f"ld.global.b32 %r{i}, [%rd1+{128 + 4 * i}]; setp.ne.s32 %p{i}, %r{i}, 0;" for i in range(PREDICATES)),
        "ld.global.b32 %r20, [%rd1+160]; ld.global.b32 %r22, [%rd1+164];",
        *drawing.lines,
        *(f"st.global.b{bits} [%rd1+{OUTPUT + size * i}], {x};" for i, x in enumerate(kept)),
        "ret;", "}",
    ]  # fmt: skip
    return Kernel("\n".join(text), len(kept))
