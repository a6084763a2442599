"""Forms of older texts, and vectors, written as what rows are for: the first thing done to a function that runs.

The rules (PTX ISA 9.1: 9.7.3, 9.7.9.4, 9.7.13.4, 9.7.9.6):

1. Before PTX 6.4, `vote` and `shfl` may stand without `.sync`; ptxas takes them for later devices, too. They are the
   `.sync` ones of the lanes that run together at that place.
2. Texts for sm_10 to sm_13: operations on f32 flush subnormals whether or not they say `.ftz`, and `mad.f32` is
   `fma.rn.ftz.f32`, as it is on every device since sm_20.
3. `map_f64_to_f32` of such texts makes f32 of f64, which nobody has measured: an f64 in one is an error.
4. `mov.v2.b32 d, a` moves element by element, all at once. A vector register that `mov.b64` takes apart, or makes, is
   the vector of its elements in braces.
"""

from __future__ import annotations

from dataclasses import replace

from .name_scopes import declared
from .syntax import Element, Function, Label, Module, Operand, RegisterRange, Statement, Symbol, VectorOf

__all__ = ["modernised"]

_HIDDEN = "%older"
_WORDS = "abs add cos cvt div ex2 lg2 max min mul neg rcp rsqrt set setp sin slct sqrt sub"
_FLUSHING = frozenset(_WORDS.split())


def modernised(module: Module, function: Function) -> Function:
    """Return a function without such forms; itself if it has none.

    Raises
    ------
    PtxError
        An f64 in a text with `map_f64_to_f32`.
    """
    return _Modernising(module, function).done()


class _Modernising:
    def __init__(self, module: Module, function: Function) -> None:
        self._module, self._function = module, function
        self._unsynchronised = module.version < (6, 4)
        self._flushing = module.target in ("sm_10", "sm_11", "sm_12", "sm_13")
        self._mapping = "map_f64_to_f32" in module.options
        ranges = (x for scope in function.scopes for x in scope)
        self._vectors = any(isinstance(x, RegisterRange) and x.vector > 1 for x in ranges)
        self._hidden: list[RegisterRange] = []

    def done(self) -> Function:
        body: list[Statement | Label] = []
        for item in self._function.body:
            body += self._written(item) if isinstance(item, Statement) else [item]
        if not self._hidden and all(x is y for x, y in zip(body, self._function.body, strict=False)):
            return self._function
        scopes = ((*self._function.scopes[0], *self._hidden), *self._function.scopes[1:])
        return replace(self._function, body=tuple(body), scopes=scopes)

    def _written(self, one: Statement) -> list[Statement]:
        opcode, *words = one.mnemonic.split(".")
        if opcode in ("vote", "shfl") and self._unsynchronised and "sync" not in words:
            return self._synchronised(one, opcode, words)
        if self._mapping and "f64" in words:
            raise self._module.error(
                f"{one.mnemonic}: f64 of a text with map_f64_to_f32 is not simulated", one.position
            )
        if self._flushing and "f32" in words:
            return [self._flushed(one, opcode, words)]
        if opcode == "mov" and len(one.operands) == 2:
            return self._moved(one, words)
        return [one]

    def _new(self, kind: str) -> Symbol:
        name = f"{_HIDDEN} {len(self._hidden)}"  # no name in a text has a blank
        self._hidden.append(RegisterRange(name, kind, 1, None, self._function.position))
        return Symbol(name, 0)

    def _synchronised(self, one: Statement, opcode: str, words: list[str]) -> list[Statement]:
        """Rule 1."""
        lanes = self._new("b32")
        mask = replace(one, mnemonic="activemask.b32", operands=(lanes,), paired=False)
        mnemonic = ".".join((opcode, "sync", *words))
        return [mask, replace(one, mnemonic=mnemonic, operands=(*one.operands, lanes))]

    def _flushed(self, one: Statement, opcode: str, words: list[str]) -> Statement:
        """Rule 2."""
        if opcode == "mad":
            return replace(one, mnemonic="fma.rn.ftz.f32" if words == ["f32"] else one.mnemonic)
        integers = opcode in ("cvt", "slct") and words[-1][0] in "bsu"  # no subnormal comes of these
        if opcode not in _FLUSHING or "ftz" in words or integers:
            return one
        first = next(i for i, word in enumerate(words) if word in _TYPES or word in _BEHIND_FTZ)
        return replace(one, mnemonic=".".join((opcode, *words[:first], "ftz", *words[first:])))

    def _moved(self, one: Statement, words: list[str]) -> list[Statement]:
        """Rule 4."""
        target, source = (self._elements(x) for x in one.operands)
        if len(words) == 2 and words[0] in ("v2", "v4", "v8") and isinstance(target, VectorOf):
            count = int(words[0][1:])
            if isinstance(source, VectorOf) and len(target.items) == len(source.items) == count:
                return self._one_by_one(one, words[1], target, source)
        written = target is one.operands[0] and source is one.operands[1]
        if not written and len(words) == 1 and isinstance(target, VectorOf) != isinstance(source, VectorOf):
            return [replace(one, operands=(target, source))]
        return [one]

    def _one_by_one(self, one: Statement, type_: str, target: VectorOf, source: VectorOf) -> list[Statement]:
        between = [self._new("pred" if type_ == "pred" else f"b{max(int(type_[1:]), 16)}") for _ in source.items]
        pairs = [*zip(between, source.items, strict=True), *zip(target.items, between, strict=True)]
        return [replace(one, mnemonic=f"mov.{type_}", operands=pair) for pair in pairs]

    def _elements(self, x: Operand) -> Operand:
        """Write a vector register as the vector of its elements."""
        found = declared(self._function, x) if isinstance(x, Symbol) and self._vectors else None
        if isinstance(x, Symbol) and isinstance(found, RegisterRange) and found.vector > 1:
            return VectorOf(tuple(Element(x, i) for i in range(found.vector)))
        return x


_TYPES = frozenset(("f32", "f64", "f16", "pred", *(f"{sign}{bits}" for sign in "bsu" for bits in (8, 16, 32, 64))))
_BEHIND_FTZ = frozenset(("sat",))
