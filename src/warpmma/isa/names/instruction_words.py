"""Words that people type, and the instruction that they name.

1. A mnemonic names itself, its qualifiers in any order; so does machine code whose words suffice (HMMA.16816.F32).
2. Otherwise the words are fragments, separated by blanks or dots, in any order and case. Each must be true of the
   instruction: `m16n8k16` or `16x8x16`; `m16`, `n8`, `k16` alone; `mma`, `wgmma`;
   `sp`, `sp::ordered_metadata`, `dense`; `kind::mxf4` or `mxf4`; `block_scale`; `scale_vec::4X` or `4X`; `ue8m0`,
   `ue4m3`; `satfinite`; `rn`, `rz`, `rm`, `rp`; `xor`, `and`; layouts; and `a=e4m3`, `d=f16`, `m=16` and so on, with
   the argument names of `warpmma.find`.
3. Types have PTX's names or those of Python libraries (`fp16`, `int8`, `float8_e4m3fn`); their number determines their
   meaning. One is the type of A and B, or, if nothing matches, of D. Two are those of D and of A and B, in either
   order, or, if nothing matches, of A and of B. Three are of D, A and B; four of D, A, B and C. `nvfp4` and the like
   are replaced by what they stand for. Two layouts are those of A and B; one is of either.
4. If several instructions remain, the plainest is chosen, and a note says which, and how it differs from the others:
   on the target; `mma`, not `wgmma`; dense; without block scales; without kind; without satfinite; without rounding; A
   row-major and B column-major; with 32-bit accumulators (64-bit for f64); with C of D's type; `.sp` without ordered
   metadata; with defaults omitted. Earlier criteria take precedence.
5. An omitted qualifier means that the instruction does not have it, as in a mnemonic. The type of D is not a qualifier:
   it is chosen if the answer names the instruction or is a position. If the answer consists of bits alone, words that
   leave the type open are an error.
6. Shape, types of A and B, bit operation, kind and scales are never chosen: if these still differ, the error says what
   would distinguish them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ..._arguments import suggestion
from ..._records import Shown
from ...errors import MnemonicError, shown
from ..tables import Instruction, MatrixInstruction, instructions, warpgroup_instructions
from .mnemonic_words import (
    STAND_FOR,
    VOCABULARY,
    Fragment,
    fragment_test,
    has_place,
    holds,
    sizes_of,
    type_named,
    warpgroup,
)
from .mnemonics import parse_mnemonic
from .name_meanings import explained

LONGEST = 400
_FEW = 3  # instructions that an error lists
_LIBRARY = re.compile(r"\b(torch|np|numpy|ml_dtypes|jnp|tl|cutlass|cute)\.")


def _layouts(i: MatrixInstruction) -> list[str]:
    return [i.a_layout, i.b_layout] if isinstance(i, Instruction) else []


_OF_D = "accumulators of 32 bits"
# Rule 4: criteria of plainness, the most important first.
_PLAIN: tuple[tuple[str, Fragment], ...] = (
    ("mma", lambda i: not warpgroup(i)),
    ("dense", lambda i: not i.sparse),
    ("without block scales", lambda i: not i.block_scale),
    ("without kind", holds(kind=None)),
    ("without satfinite", holds(satfinite=False)),
    ("without rounding", holds(rounding=None)),
    (".row.col", lambda i: _layouts(i) in ([], ["row", "col"])),
    (_OF_D, lambda i: i.d_type in ("f32", "s32", "f64")),
    ("C of D's type", lambda i: i.c_type == i.d_type),
    (".sp", lambda i: i.sparsity in (None, "sp")),
    ("defaults left out", lambda i: i == i.canonical),
)
_TOLD_APART: tuple[tuple[str, Callable[[MatrixInstruction], str]], ...] = (
    ("the shape", lambda i: i.shape),
    ("the type of A", lambda i: str(i.a_type)),
    ("the type of B", lambda i: str(i.b_type)),
    ("the operation of bits", lambda i: str(i.bit_op)),
    ("the kind", lambda i: str(i.kind)),
    ("the scales of a row", lambda i: f"{i.scales_per_row}X"),
    ("the type of scales", lambda i: str(i.stype)),
    ("the layouts", lambda i: " ".join(_layouts(i))),
    ("the type of D", lambda i: i.d_type),
)


@dataclass(frozen=True, kw_only=True)
class Named(Shown):
    """The instruction that words select.

    Attributes
    ----------
    instruction : Instruction or WarpgroupInstruction
    note : str
        The choice made if the words match several instructions; empty if they match one.
    """

    instruction: MatrixInstruction
    note: str = ""


def named(words: str | Sequence[str], target: str | None = None, *, for_bits: bool = False) -> Named:
    """Find the instruction that words select.

    Parameters
    ----------
    words : str or sequence of str
    target : str, optional
        Its instructions are preferred. Any other instruction is an error in the code that looks it up for the target.
    for_bits : bool
        Whether the answer consists of bits, so that the words must give the type of D (rule 5).

    Returns
    -------
    Named

    Raises
    ------
    MnemonicError
        No instruction matches; or several match, and the message says what distinguishes them.

    Examples
    --------
    >>> found = named("m16n8k16 f16")
    >>> print(found.instruction)
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
    >>> found.note
    'm16n8k16 f16 is taken as mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: dense, accumulators of 32 bits'
    """
    text = _text(words)
    if whole := _whole(text):
        return whole
    return _plainest(_left(_fragments(text), text), text, target, for_bits)


def every_fitting(words: str | Sequence[str]) -> tuple[MatrixInstruction, ...]:
    """Return every instruction, `wgmma` too, that matches the words (rules 1 to 3); `MnemonicError` if none does."""
    text = _text(words)
    if whole := _whole(text):
        return (whole.instruction,)
    return tuple(_left(_fragments(text), text, all_kinds=True))


def qualifiers(i: MatrixInstruction) -> list[str]:
    """Return the words that, with its shape and types, name an instruction."""
    if not isinstance(i, Instruction):
        return ["satfinite"] * i.satfinite + [i.bit_op] * bool(i.bit_op)  # type: ignore[list-item]
    words = [i.sparsity, i.kind and f"kind::{i.kind}", i.scale_vec and f"scale_vec::{i.scale_vec}", i.stype]
    words += ["satfinite" * i.satfinite, i.rounding, i.bit_op]
    words += [f"{i.a_layout} {i.b_layout}"] * ((i.a_layout, i.b_layout) != ("row", "col"))
    return [word for word in words if word]


def words_of(i: MatrixInstruction) -> str:
    """Return short words that name an instruction.

    Examples
    --------
    >>> words_of(named("sp m16n8k32 f16").instruction)
    'm16n8k32 f32 f16 f16 f32 sp'
    """
    return " ".join([i.shape, i.d_type, i.a_type, i.b_type, i.c_type, *qualifiers(i)])


def _text(words: str | Sequence[str]) -> str:
    text = _LIBRARY.sub("", " ".join([words] if isinstance(words, str) else words)).strip()
    if len(text) > LONGEST:
        raise MnemonicError(f"{text[:60]}...: {len(text)} characters; no mnemonic has so many")
    return text


def _fragments(text: str) -> list[str]:
    words = (word.lower() for word in re.split(r"[\s.;,]+", text))
    found = [fragment for word in words for fragment in STAND_FOR.get(word, word).lower().split()]
    if not found:
        raise MnemonicError(
            "no words; expected a mnemonic, or words that identify one instruction, such as m16n8k16 f16"
        )
    return found


def _whole(text: str) -> Named | None:
    """Rule 1."""
    if re.match(r"(mma|wgmma)\.\S+\.\S+$", text):
        try:
            return Named(instruction=parse_mnemonic(text))
        except MnemonicError:
            known = {*VOCABULARY}
            words = text.lower().rstrip(";").split(".")[1:]
            if len(words) > 5 or not all(x in known or sizes_of(x) for x in words):  # meant as a whole mnemonic
                raise
            return None
    if re.match(r"[A-Z]{2,}\.", text) and " " not in text:
        match = re.search(r"in PTX it is ((?:mma|wgmma)\.\S+\.\S+\.\S+)", explained(text, "operation"))
        if match:
            instruction = parse_mnemonic(match[1])
            return Named(instruction=instruction, note=f"{text} is made of {instruction}")
    return None


def _left(fragments: Sequence[str], text: str, all_kinds: bool = False) -> list[MatrixInstruction]:
    """Rules 2 and 3. If one match suffices and an `mma` matches, skip the many `wgmma`."""
    every: list[MatrixInstruction] = list(instructions())
    found = _typed(_true(fragments, text, every), fragments)
    if all_kinds or not found:
        every += warpgroup_instructions()
        found = _typed(_true(fragments, text, every), fragments)
    if not found:
        raise MnemonicError(_refusal(fragments, text, every))
    return found


def _true(fragments: Iterable[str], text: str, every: Sequence[MatrixInstruction]) -> list[MatrixInstruction]:
    """Return the instructions that match all fragments, ignoring the order of types and layouts."""
    tests = [fragment_test(fragment, text) for fragment in fragments if not has_place(fragment)]
    return [i for i in every if all(test(i) for test in tests)]


def _refusal(fragments: Sequence[str], text: str, every: Sequence[MatrixInstruction]) -> str:
    """Explain why no instruction matches: an unknown shape, unknown types, or contradictory words."""
    quoted = shown(text, str)
    shapes = [fragment for fragment in fragments if sizes_of(fragment)]
    rest = [fragment for fragment in fragments if fragment not in shapes]
    if without := _typed(_true(rest, text, every), rest):
        return f"{quoted}: no such instruction is {_nearest(' '.join(shapes), (i.shape for i in without))}"
    types = " ".join(type_ for type_ in map(type_named, fragments) if type_)
    if types and (fitting := _true(fragments, text, every)):
        named_types = (f"{i.d_type} {i.a_type} {i.b_type}" for i in fitting)
        return f"{quoted}: no such instruction has the types {_nearest(types, named_types, ' for D, A and B')}"
    for left_out in reversed(fragments):
        rest = [fragment for fragment in fragments if fragment != left_out]
        if rest and _typed(_true(rest, text, every), rest):
            return f"{quoted}: no instruction is all of this; without {left_out} there are some"
    return f"{quoted}: no instruction is all of this; `warpmma list` shows what there is"


def _nearest(asked: str, known: Iterable[str], of: str = "") -> str:
    """Format the requested word with the nearest known ones, or with some known ones."""
    listed = list(dict.fromkeys(known))
    few = f"; there are {', '.join(listed[:12])}{', ...' * (len(listed) > 12)}{of}"
    return asked + (suggestion(asked, listed) or few)


def _typed(left: list[MatrixInstruction], fragments: Sequence[str]) -> list[MatrixInstruction]:
    """Rule 3, with layouts: two are those of A and B, one is of either."""
    layouts = [x for x in fragments if x in ("row", "col")]
    if layouts:
        left = [i for i in left if (_layouts(i) == layouts if len(layouts) > 1 else layouts[0] in _layouts(i))]
    types = [type_ for type_ in map(type_named, fragments) if type_]
    if not types or not left:
        return left
    first, last = types[0], types[-1]
    meanings: dict[int, tuple[dict[str, str], ...]] = {
        1: ({"a": first, "b": first}, {"d": first}),
        2: ({"d": first, "a": last, "b": last}, {"d": last, "a": first, "b": first}, {"a": first, "b": last}),
        3: (dict(zip("dab", types, strict=False)), dict(zip("abd", types, strict=False))),
        4: (dict(zip("dabc", types, strict=False)),),
    }
    for meaning in meanings.get(len(types), ()):
        if found := [i for i in left if all(getattr(i, f"{x}_type") == type_ for x, type_ in meaning.items())]:
            return found
    return []


def _plainest(left: list[MatrixInstruction], text: str, target: str | None, for_bits: bool) -> Named:
    """Rules 4 and 5."""
    if len(left) == 1:
        return Named(instruction=left[0])
    why = []
    having = [i for i in left if target is not None and target in i.targets]
    if having and len(having) < len(left):
        left, why = having, [f"on {target}"]
    for name, plain in _PLAIN:
        if for_bits and name == _OF_D:
            continue
        better = list(filter(plain, left))
        if better and len(better) < len(left):
            left = better
            why.append(name)
    if len(left) > 1:
        raise MnemonicError(_apart(left, text))
    return Named(instruction=left[0], note=f"{shown(text, str)} is taken as {left[0]}: {', '.join(why)}")


def _apart(left: Sequence[MatrixInstruction], text: str) -> str:
    """Describe what distinguishes the instructions, and list a few."""
    for what, value in _TOLD_APART:
        values = dict.fromkeys(map(value, left))
        if len(values) > 1:
            some = list(values)
            listed = ", ".join(some[:8]) + ", ..." * (len(some) > 8)
            return f"{shown(text, str)}: {len(left)} instructions are left; say {what}: {listed}"
    few = ", ".join(map(str, left[:_FEW])) + ", ..." * (len(left) > _FEW)
    return f"{shown(text, str)}: {len(left)} instructions are left: {few}"
