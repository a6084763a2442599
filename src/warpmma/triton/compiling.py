"""Triton's compiler for NVIDIA's GPUs, up to PTX.

Triton's disk cache for it is separate from that for real GPUs: the hash of the backend differs.

Triton 3.9 gives each line of multi-line inline assembly its own source line, one after the other; here all have the
line of the first.

A register that a kernel never writes is LLVM's undef: Triton pads words of four bytes with it, and stores some of them.
That is not a bug of the kernel, and the register is 0 here: poison is tracked by registers, not by bytes.

A device may have several targets to compile for (`session.PTX_TARGETS`). Triton's front end accepts the types of all
of them; after the first IR, the first target that has all of its types compiles the rest. Triton's metadata of the
kernel has that target, and the `tl.dot` of the kernel.

The instruction for `tl.dot`, and what the device's own target would get instead, by the rules of Triton 3.2 to 3.9:

1. A product of tiles is written as the target's instruction for large products (`wgmma` of sm_90, `tcgen05` of sm_100
   to sm_110) if it has no batch, its rows are a multiple of 64, its columns of 8, and the warps of a block of 4.
2. Every other product is written as `mma`. There, operands of fp8 are converted to f16 first, except on sm_89, sm_120
   and sm_121, which have an `mma` of fp8.
3. A launch has a note where the device's target would get another instruction than the PTX has, whose sums are not
   known to have the same bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import MappingProxyType
from typing import Any, cast

from ..arithmetic import library_sums
from ..isa import TARGETS
from .active_device import active
from .interface import TritonInterface

_TYPES: Mapping[str, str] = MappingProxyType(
    {"f8E4M3FN": "e4m3", "f8E5M2": "e5m2", "f16": "f16", "bf16": "bf16", "i8": "s8", "f64": "f64"}
)
"""Types of operands, as Triton's IR names them, and as PTX does."""

_FP8 = frozenset(("e4m3", "e5m2"))
_WITH_FP8 = frozenset((89, 120, 121))
_TILE = r"tensor<((?:\d+x)+)(\w+)>"
_DOT = re.compile(rf"\btt\.dot\b([^\n]*): {_TILE} \* {_TILE} -> {_TILE}")


def dots_of(text: str) -> list[list[object]]:
    """Return the products of tiles in Triton's IR, each once: types of A and B as PTX names them, and the shape of D.

    Examples
    --------
    >>> dots_of("%5 = tt.dot %x, %y, %z : tensor<64x32xf8E5M2> * tensor<32x16xf8E5M2> -> tensor<64x16xf32> loc(#loc1)")
    [['e5m2', 'e5m2', [64, 16]]]
    """
    found: list[list[object]] = []
    for options, _, *types, shape, _ in _DOT.findall(text):
        f32 = "tf32" if "inputPrecision = tf32" in options else "f32"  # else it is a chain of fma
        a, b = (f32 if types[i] == "f32" else _TYPES.get(types[i], types[i]) for i in (0, 2))
        dot: list[object] = [a, b, [int(n) for n in shape.strip("x").split("x")]]
        if dot not in found:
            found.append(dot)
    return found


def dot_notes(dots: Iterable[Sequence[object]], warps: int, ptx_target: str, target: str) -> tuple[str, ...]:
    """Name by rule 3 the products of a launch that may have other bits where Triton compiles for the target itself."""
    compiled, own = TARGETS[ptx_target].number, TARGETS[target].number
    if compiled == own:
        return ()
    found = []
    for a, b, shape in dots:
        row = library_sums(str(a), str(b), target)
        if row is None:
            continue
        *batch, rows, columns = cast(list[int], shape)
        types = " and ".join(dict.fromkeys((str(a), str(b))))
        what = f"tl.dot of {types}, {rows} x {columns}, compiled for {ptx_target}"
        if not (batch or rows % 64 or columns % 8 or warps % 4):
            if not row.same:
                found.append(f"{what}: for sm_{own} Triton writes {row}")
        elif {a, b} <= _FP8 and (compiled in _WITH_FP8) != (own in _WITH_FP8):
            found.append(
                f"{what}: for sm_{own} Triton converts the operands to f16 and writes an mma whose sums differ"
            )
    return tuple(found)


_REWRITTEN = 4  # version of cache entries: increment whenever what is done to the text, or their contents, change

_IN_IR: Mapping[str, str] = MappingProxyType({"fp8e4nv": "f8E4M3FN"})
"""Types that not all targets have, as Triton's front end names them, and as its IR does."""

_DECLARED = re.compile(r"^\s*\.reg \.[bf](16|32|64)\s+(%[a-z]+)<(\d+)>;.*$", re.MULTILINE)
_BODY = re.compile(r"^(?:\.\w+ )*\.(?:entry|func)\b", re.MULTILINE)
_FIRST_OPERAND = re.compile(r"[{}\s]*(?:@!?%?\w+\s+)?[\w.:]+\s*(\{[^}]*\}|[^,\[{]*)")
_REGISTER = re.compile(r"%[a-z]+\d+")
_NO_STATEMENT = re.compile(r"//.*$|^\s*\.(?:loc|pragma)\b.*$|^\s*[\w$]+:", re.MULTILINE)


@cache
def _compiler(base: type[Any]) -> type[Any]:
    class PtxCompiler(base):  # type: ignore[misc]
        """Writes the text where Triton's writes machine code."""

        def hash(self) -> str:
            """Name what compiles."""
            return f"warpmma-{_REWRITTEN}-{super().hash()}"

        def parse_options(self, given: Mapping[str, Any]) -> Any:
            """Accept the types of all targets that the device has to compile for."""
            own = super().parse_options(given)
            if "supported_fp8_dtypes" in given or len(_numbers(self.target.arch)) == 1:
                return own
            types = {name for each in self._candidates() for name in each._types()}
            return replace(own, supported_fp8_dtypes=tuple(sorted(types)))

        def add_stages(self, stages: dict[str, Any], options: Any, *args: Any) -> None:
            """Leave ptxas out, and compile the first IR for the first target that has its types."""
            super().add_stages(stages, options, *args)
            stages[self.binary_ext] = lambda text, metadata: _undefined_as_zero(_one_line_each(text)).encode()
            if "ttir" not in stages:
                return
            chosen = dict(stages)

            def first(module: Any, metadata: dict[str, Any]) -> Any:
                compiler = self._first_with_types(str(module))
                metadata["warpmma_ptx_target"] = f"sm_{compiler.target.arch}"
                if compiler is not self:
                    given = replace(options, arch=f"sm{compiler.target.arch}") if hasattr(options, "arch") else options
                    super(PtxCompiler, compiler).add_stages(chosen, given, *args)
                done = chosen["ttir"](module, metadata)
                metadata["warpmma_dots"] = dots_of(str(done))
                return done

            for name in stages.keys() - {self.binary_ext}:
                stages[name] = lambda source, metadata, name=name: chosen[name](source, metadata)
            stages["ttir"] = first

        def _candidates(self) -> list[Any]:
            """Return the compilers for the targets of the device, this one first."""
            target = self.target
            others = (n for n in _numbers(target.arch) if n != target.arch)
            return [self, *(type(self)(type(target)(target.backend, n, target.warp_size)) for n in others)]

        def _first_with_types(self, text: str) -> Any:
            """Return the compiler for the first target that has all types in a text; this one where none has."""
            used = {name for name, written in _IN_IR.items() if written in text}
            return next((each for each in self._candidates() if used <= each._types()), self)

        def _types(self) -> set[str]:
            """Return the types of its target that others may lack."""
            return {*super().parse_options({}).supported_fp8_dtypes}

    return PtxCompiler


def _numbers(arch: int) -> tuple[int, ...]:
    """Return the numbers of the targets to compile for where code asks for one: the active device's, if that is its."""
    numbers = active[-1].ptx_numbers if active else ()
    return numbers if numbers[:1] == (arch,) else (arch,)


def ptx_backend(triton: TritonInterface, original: Any) -> Any:
    """Return the backend "nvidia" with a compiler that ends at PTX."""
    return type(original)(compiler=_compiler(original.compiler), driver=original.driver)


def _undefined_as_zero(text: str) -> str:
    """Set registers that are read and nowhere written to 0, behind the declarations; no line of the text moves."""
    starts = [x.start() for x in _BODY.finditer(text)]
    bodies = [text[start:end] for start, end in zip(starts, [*starts[1:], None], strict=True)]
    return text[: starts[0] if starts else None] + "".join(map(_body_with_zeros, bodies))


def _body_with_zeros(body: str) -> str:
    declared = list(_DECLARED.finditer(body))
    widths = {x[2]: x[1] for x in declared}
    bare = _NO_STATEMENT.sub("", body)
    firsts = (_FIRST_OPERAND.match(statement) for statement in bare.split(";"))
    written = {name for first in firsts if first for name in _REGISTER.findall(first[1])}
    undefined = dict.fromkeys(name for name in _REGISTER.findall(bare) if name not in written)
    named = ((name, widths.get(name.rstrip("0123456789"))) for name in undefined)
    zeros = [f" mov.b{width} {name}, 0;" for name, width in named if width is not None]
    end = declared[-1].end() if declared else 0
    return body[:end] + "".join(zeros) + body[end:]


def _one_line_each(text: str) -> str:
    """Make comments of all `.loc` in a piece of inline assembly but its first; no line of the text moves."""
    lines = text.split("\n")
    found: int | None = None
    for i, line in enumerate(lines):
        word = line.strip()
        if word in ("// begin inline asm", "// end inline asm"):
            found = 0 if "begin" in word else None
        elif found is not None and word.startswith(".loc"):
            lines[i] = f"//{line}" if found else line
            found += 1
    return "\n".join(lines)
