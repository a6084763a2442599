"""Rewrite forms of older PTX versions as instructions of the table: the first pass over a function that runs.

The rules (PTX ISA 9.1, of `vote`, `shfl`, `mad` and `.target`):

1. Before PTX 6.4, and in texts for targets before sm_70, `vote` and `shfl` may omit `.sync`; ptxas accepts them for
   later devices, too. They are the `.sync` forms for the lanes that are converged at that point.
2. Texts for sm_10 to sm_13: operations on f32 flush subnormals with or without `.ftz`, and `mad.f32` is
   `fma.rn.ftz.f32`, as it is on every device since sm_20.
3. `map_f64_to_f32` of such texts maps f64 to f32, which has not been measured: an f64 in such a text is an error.

The words of a mnemonic are read here, because these forms have no instruction yet.
"""

from __future__ import annotations

from dataclasses import replace

from ...isa import TYPE_WORDS
from ..contraction import HiddenRegisters
from ..text import Function, Label, Mnemonic, Module, Statement

_WORDS = "abs add cos cvt div ex2 lg2 max min mul neg rcp rsqrt set setp sin slct sqrt sub"
_FLUSHING = frozenset(_WORDS.split())
_INTEGERS = frozenset(f"{sign}{bits}" for sign in "bsu" for bits in (8, 16, 32, 64))


def modernized(module: Module, function: Function) -> Function:
    """Return a function without such forms; itself if it has none.

    Raises
    ------
    PtxError
        An f64 in a text with `map_f64_to_f32`.
    """
    return _Modernising(module, function).done()


def without_sync(one: Statement) -> str:
    """Say what stands now for a `vote` or `shfl` without `.sync`; "" of all else (rule 1)."""
    if one.opcode not in ("vote", "shfl") or "sync" in one.words.qualifiers:
        return ""
    return (
        f"{one.mnemonic}: {one.opcode} without .sync ended with PTX 6.4 on sm_70 and later; "
        f"expected {_with_sync(one)}, with a membermask as its last operand"
    )


def _with_sync(one: Statement) -> str:
    return str(Mnemonic(one.opcode, ("sync", *one.words.qualifiers)))


class _Modernising:
    def __init__(self, module: Module, function: Function) -> None:
        self._module, self._function = module, function
        self._unsynchronised = module.version < (6, 4) or int(module.target.removeprefix("sm_").rstrip("af")) < 70
        self._flushing = module.target in ("sm_10", "sm_11", "sm_12", "sm_13")
        self._mapping = "map_f64_to_f32" in module.options
        self._hidden = HiddenRegisters("%older")

    def done(self) -> Function:
        body: list[Statement | Label] = []
        for item in self._function.body:
            body += self._written(item) if isinstance(item, Statement) else [item]
        if all(x is y for x, y in zip(body, self._function.body, strict=False)):
            return self._function
        return self._hidden.declared(self._function, body)

    def _written(self, one: Statement) -> list[Statement]:
        if self._unsynchronised and without_sync(one):  # rule 1
            lanes = self._hidden.new("b32")
            mask = replace(one, mnemonic="activemask.b32", operands=(lanes,), paired=False)
            return [mask, replace(one, mnemonic=_with_sync(one), operands=(*one.operands, lanes))]
        if self._mapping and "f64" in one.words.qualifiers:
            raise self._module.error_at(one, f"{one.mnemonic}: f64 of a text with map_f64_to_f32 is not simulated")
        return [_flushed(one)] if self._flushing and "f32" in one.words.qualifiers else [one]


def _flushed(one: Statement) -> Statement:
    """Rule 2."""
    opcode, words = one.opcode, one.words.qualifiers
    if opcode == "mad":
        return replace(one, mnemonic="fma.rn.ftz.f32") if words == ("f32",) else one
    integers = opcode in ("cvt", "slct") and words[-1] in _INTEGERS  # their integer has nothing to flush
    if opcode not in _FLUSHING or "ftz" in words or integers:
        return one
    first = next(i for i, word in enumerate(words) if word in TYPE_WORDS or word == "sat")
    return replace(one, mnemonic=str(Mnemonic(opcode, (*words[:first], "ftz", *words[first:]))))
