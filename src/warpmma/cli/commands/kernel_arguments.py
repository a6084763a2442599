"""Arguments of `warpmma run`: how arrays and numbers are written, and which parameter each is for.

    argument = [name "="] value
    value    = number | "null" | "hex:" digits | file ".npy" | ["out:" | "inout:"] type "[" shape "]" [":" contents]
    contents = "zeros" | "ones" | "range" | "uniform" | "normal" | number | file ".npy"

1. PTX does not say which parameters are pointers: an array goes to one of 64 bits, a number to any, and it takes the
   type that the kernel declares.
2. Names are matched with the kernel's where these are known, in any order; where they are not, as in PTX of a compiler,
   arguments are in order, and names are those of the results.
3. "out" has no contents before the launch. Other arrays hold zeros by default. Random contents depend on the seed and
   on the argument's position: uniform from 0 to 1, normal around 0.

`--explain` names an `mma` of the kernel, such as `77 lane=13 register=1`, lane 13 of line 77:

4. First stands the line: of the source, or of the PTX text; then NAME=NUMBER for block, warp, occurrence, lane,
   register, index, row, column and matrix, and `against=TARGET`; `chain` explains a loop from its first turn on.
5. Block, warp and lane are 0 by default; of several occurrences the first is explained.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from ..._arguments import suggestion
from ...analysis import Explanation, explain_launch
from ...errors import OperandError, printable, shown
from ...kernel import Launch, Output, Watch
from ..arguments.matrix_files import read_npy

_TYPES: dict[str, Any] = {
    **{f"{letter}{bits}": np.dtype(f"{kind}{bits // 8}") for letter, kind in (("u", "u"), ("s", "i"), ("i", "i"))
       for bits in (8, 16, 32, 64)},
    **{f"f{bits}": np.dtype(f"f{bits // 8}") for bits in (16, 32, 64)},
    "bf16": np.dtype(ml_dtypes.bfloat16), "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "e5m2": np.dtype(ml_dtypes.float8_e5m2), "bool": np.dtype(bool),
}  # fmt: skip
_ARRAY = re.compile(r"(?:(out|inout|in):)?(\w+)\[([^\]]*)\](?::(.*))?", re.DOTALL)
_CONTENTS = ("zeros", "ones", "range", "uniform", "normal")
_HELP = "expected a number, null, FILE.npy, hex:00ff, or TYPE[SHAPE]:CONTENTS such as f32[1024]:normal or out:f32[1024]"
_MOST = 1 << 34  # elements


@dataclass(frozen=True, kw_only=True)
class KernelArgument:
    """One argument: its name, or its position if it was not named, and its value as `launch` takes it."""

    name: str
    value: Any

    @property
    def array(self) -> Any:
        """The array, or None."""
        value = self.value.array if isinstance(self.value, Output) else self.value
        return value if isinstance(value, np.ndarray) and value.ndim else None


def arguments_of(texts: Sequence[str], seed: int) -> list[KernelArgument]:
    """Read arguments; one that cannot be read, or two of one name, are an `OperandError`."""
    found: list[KernelArgument] = []
    for place, text in enumerate(texts):
        named = re.match(r"([A-Za-z_]\w*)=", text)
        name, value = (named[1], text[named.end() :]) if named else (f"arg{place}", text)
        if any(x.name == name for x in found):
            raise OperandError(f"--arg {shown(text)}: there are two arguments {name!r}")
        rng = np.random.default_rng([seed, place])
        found.append(KernelArgument(name=name, value=_value(value.strip(), f"--arg {printable(text)}", rng)))
    return found


def _value(text: str, who: str, rng: np.random.Generator) -> Any:
    if array := _ARRAY.fullmatch(text):
        kind, type_, shape, contents = array.groups()
        made = _array(type_, shape, contents, who, rng, bare=kind == "out")
        return Output(made) if kind == "out" else made
    if text.endswith(".npy"):
        return read_npy(text, who)
    if text in ("null", "None"):
        return None
    if text.startswith("hex:"):
        try:
            return bytes.fromhex(text[4:])
        except ValueError:
            raise OperandError(f"{who}: {shown(text[4:])} is not a hexadecimal number of whole bytes") from None
    return _number(text, who)


def _number(text: str, who: str) -> bool | int | float:
    if text in ("true", "false"):
        return text == "true"
    for read in (lambda x: int(x, 0), float, float.fromhex):
        try:
            value: int | float = read(text)
        except (ValueError, OverflowError):
            continue
        return value
    raise OperandError(f"{who}: {shown(text)} is not a value of an argument; {_HELP}")


def _array(type_: str, shape: str, contents: str | None, who: str, rng: np.random.Generator, *, bare: bool) -> Any:
    if type_ not in _TYPES:
        near = f"{suggestion(type_, _TYPES)}; expected one of {', '.join(_TYPES)}"
        raise OperandError(f"{who}: {shown(type_)} is not a type of elements{near}")
    sizes = [x.strip() for x in re.split("[,x]", shape)]
    if not all(x.isascii() and x.isdigit() for x in sizes) or math.prod(map(int, sizes)) > _MOST:
        raise OperandError(
            f"{who}: [{printable(shape)}] is not a shape; expected numbers of elements such as [1024] or [32,64]"
        )
    dims, dtype = tuple(map(int, sizes)), _TYPES[type_]
    if bare and contents is not None:
        raise OperandError(
            f"{who}: an `out` array has no contents before the launch; expected inout:{type_}[{shape}]:{contents}"
        )
    try:
        return _filled(dims, dtype, contents or "zeros", who, rng)
    except MemoryError:
        raise OperandError(f"{who}: an array of {dims} is more than this memory holds") from None


def _filled(dims: tuple[int, ...], dtype: np.dtype[Any], contents: str, who: str, rng: np.random.Generator) -> Any:
    """Rule 3."""
    if contents.endswith(".npy"):
        return _of_file(read_npy(contents, who), dims, dtype, f"{who}: {contents}")
    if contents == "range":
        return np.arange(math.prod(dims)).astype(dtype).reshape(dims)
    if contents in ("uniform", "normal"):
        if dtype.kind in "iub":
            raise OperandError(f"{who}: {contents} is for floats; of {dtype} there are range, zeros, ones and FILE.npy")
        drawn = rng.random(dims) if contents == "uniform" else rng.standard_normal(dims)
        return drawn.astype(dtype)
    if contents in ("zeros", "ones"):
        return np.full(dims, int(contents == "ones")).astype(dtype)
    try:
        number = _number(contents, who)
    except OperandError:
        near = suggestion(contents, _CONTENTS)
        raise OperandError(
            f"{who}: {shown(contents)} is not the contents of an array{near}; expected {', '.join(_CONTENTS)}, "
            "a number or FILE.npy"
        ) from None
    with np.errstate(all="ignore"):
        filled = np.full(dims, number, dtype=object if isinstance(number, int) else np.float64)
        try:
            return filled.astype(dtype)
        except (OverflowError, ValueError, TypeError):
            raise OperandError(f"{who}: {contents} is out of range of {dtype}") from None


def _of_file(given: Any, dims: tuple[int, ...], dtype: np.dtype[Any], who: str) -> Any:
    """Return the contents of a file: of the type, of one that converts safely, or codes of the same width."""
    if given.shape == dims and given.dtype == dtype:
        return given
    if given.shape == dims and given.dtype.kind in "uV" and given.dtype.itemsize == dtype.itemsize:
        return given.view(dtype)
    if given.shape == dims and given.dtype.kind in "iufb" and np.can_cast(given.dtype, dtype):
        return given.astype(dtype)
    raise OperandError(f"{who} holds {given.dtype}{list(given.shape)}; expected {dtype}{list(dims)}")


def ordered(arguments: Sequence[KernelArgument], names: Sequence[str], kernel: str) -> list[KernelArgument]:
    """Put arguments in the order of the kernel's parameters (rule 2); a name that is not one is an `OperandError`."""
    given = {x.name: x for x in arguments}
    if not set(given) & set(names):
        return list(arguments)
    if strangers := [x for x in given if x not in names]:
        raise OperandError(
            f"{kernel} has no parameter {strangers[0]!r}{suggestion(strangers[0], names)}; it has {', '.join(names)}"
        )
    if lacking := [x for x in names if x not in given]:
        raise OperandError(
            f"{kernel}({', '.join(names)}) lacks an argument for {', '.join(lacking)}: --arg {lacking[0]}=..."
        )
    return [given[x] for x in names]


# Rules 4 and 5

_NUMBERS = ("block", "warp", "occurrence", "lane", "register", "index", "row", "column", "matrix")
_WORDS = (*_NUMBERS, "against", "chain")
_PRODUCT_HELP = "expected a line and NAME=NUMBER, such as '77 warp=1 lane=13 register=2 occurrence=3 chain'"


class KernelProduct:
    """The `mma` that `--explain` names; no line, or an unknown name, is an `OperandError`."""

    def __init__(self, text: str) -> None:
        line, *words = re.split(r"[\s,]+", text.strip())
        if not (line.isascii() and line.isdigit()):
            raise OperandError(f"--explain {shown(text)}: {shown(line)} is not a line number; {_PRODUCT_HELP}")
        self.given: dict[str, Any] = {"line": int(line), "block": 0, "warp": 0}
        for word in words:
            name, separator, value = word.partition("=")
            if name not in _WORDS or bool(separator) == (name == "chain"):
                raise OperandError(f"--explain {shown(text)}: {shown(word)}{suggestion(name, _WORDS)}; {_PRODUCT_HELP}")
            if name in _NUMBERS and not (value.isascii() and value.isdigit()):
                raise OperandError(f"--explain {shown(text)}: {name} is {shown(value)}; {_PRODUCT_HELP}")
            self.given[name] = int(value) if name in _NUMBERS else value or True
        if "row" not in self.given and "column" not in self.given:
            self.given.setdefault("lane", 0)

    @property
    def watch(self) -> Watch:
        """The operands that the launch must keep: of a chain all occurrences."""
        plain = {name: self.given[name] for name in ("line", "block", "warp")}
        return Watch(**plain, occurrence=None if "chain" in self.given else self.given.get("occurrence", 0))

    def explained(self, report: Launch) -> Explanation:
        """Explain it."""
        return explain_launch(report, **self.given)
