"""The command `completion`: scripts that make shells complete the commands, their options and instructions.

At every TAB a script asks `warpmma completion candidates WORD...`: it holds no words, so it is never out of date.

1. The words are those after `warpmma` up to the cursor; the last is being typed, and is empty after a blank.
2. The first word is a command. After an option that takes a value comes that value: one of its choices, a target, a
   type, or a file. A word that begins with "-" becomes an option that was not given yet.
3. In the place of an instruction are the fragments that fit some of the instructions that are left, but not all;
   of several spellings of one fragment the first, until it has been begun. Fragments are those of `mma`, where the
   words leave any; `wgmma` itself, and its shapes once they are begun, are there too.
4. Other places are files.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from ...errors import WarpmmaError
from ...isa import (
    FRAGMENT_OPCODES,
    STAND_FOR,
    TARGETS,
    TYPES,
    VOCABULARY,
    MatrixInstruction,
    every_fitting,
    fragment_test,
    has_place,
    instructions,
    warpgroup_instructions,
)
from ...lookup import REGISTER_OPERANDS
from ..arguments.naming import left_of
from ..command_line import COMMANDS, CommandParser, parser_of
from ..output.streams import write

# COMP_WORDS is split at colons, which mnemonics contain: so the line is split at blanks here, and what is before
# the last colon or equals sign, which bash keeps, is cut off again.
_BASH = r"""_warpmma() {
    local line=${COMP_LINE:0:COMP_POINT} IFS=$' \t' found first
    local -a words
    read -ra words <<< "$line"
    [[ $line == *[[:blank:]] ]] && words+=("")
    local current=${words[${#words[@]}-1]}
    IFS=$'\n'
    found=($("${words[0]}" completion candidates -- "${words[@]:1}" 2>/dev/null)) || return
    first=${found[0]}
    found=("${found[@]:1}")
    COMPREPLY=("${found[@]%%$'\t'*}")
    local kept=${current%"${current##*[:=]}"}
    [[ -n $kept ]] && COMPREPLY=("${COMPREPLY[@]#"$kept"}")
    if [[ $first == files ]] && type compopt &>/dev/null; then compopt -o default; fi
}
complete -F _warpmma warpmma"""

_ZSH = r"""#compdef warpmma
_warpmma() {
    local -a found described
    local each
    found=("${(@f)$(${words[1]} completion candidates -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    for each in "${(@)found[2,-1]}"; do
        [[ -n $each ]] && described+=("${${each%%$'\t'*}//:/\\:}${${(M)each%$'\t'*}:+:${each#*$'\t'}}")
    done
    (( $#described )) && _describe -V warpmma described
    [[ $found[1] == files ]] && _files
}
if [[ $funcstack[1] == _warpmma ]]; then _warpmma "$@"; else compdef _warpmma warpmma; fi"""

_FISH = r"""function __warpmma_candidates
    set -l words (commandline -opc) (commandline -ct)
    set -l found ($words[1] completion candidates -- $words[2..-1] 2>/dev/null)
    printf '%s\n' $found[2..-1]
    test "$found[1]" = files; and __fish_complete_path (commandline -ct)
end
complete -c warpmma -f -k -a '(__warpmma_candidates)'"""

_SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
_EPILOG = """In bash, now or in ~/.bashrc: eval "$(warpmma completion bash)"; in zsh, behind compinit in ~/.zshrc:
eval "$(warpmma completion zsh)"; in fish: warpmma completion fish > ~/.config/fish/completions/warpmma.fish."""


def add_completion(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    parser.epilog = _EPILOG
    shells = parser.add_subparsers(required=True, metavar="SHELL")
    for shell in _SCRIPTS:
        shells.add_parser(shell, description=f"Print the script for {shell}.").set_defaults(shell=shell)
    asked = shells.add_parser("candidates", description="What the scripts ask: what the last of some words can become.")
    asked.add_argument("words", nargs=argparse.REMAINDER, metavar="WORD", help="-- and the words behind `warpmma`")
    asked.set_defaults(shell="")


def run_completion(options: argparse.Namespace) -> int:
    """Print a script that makes a shell complete commands, options, targets and the words of instructions."""
    if options.shell:
        write(_SCRIPTS[options.shell])
    else:
        words = options.words[1:] if options.words[:1] == ["--"] else options.words
        write("\n".join(_lines(candidates(words))))
    return 0


# Candidates

_OTHERWISE = {"sparse", "ordered", "ordered_metadata", "scale_vec::1x", "scale_vec::2x", "scale_vec::4x"} | {
    f"kind::{kind}" for kind in ("f8f6f4", "mxf8f6f4", "mxf4", "mxf4nvf4")
}
_OF_OPERANDS = ("where", "what", "layout")
_OF_FILES = ("execute", "error")
_NAMED = ("instruction", "words")


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """Possible words at a place, each with its meaning in a few words or none; and whether a file is possible."""

    words: tuple[tuple[str, str], ...] = ()
    files: bool = False


def candidates(words: Sequence[str]) -> Candidates:
    """Return what the last word can become.

    Examples
    --------
    >>> candidates(["ev"]).words
    (('evidence', 'how the arithmetic of each target is known'),)
    >>> [word for word, _ in candidates(["show", "m8n8k4", "f64", "r"]).words]
    ['rn', 'rz', 'rm', 'rp']
    """
    *before, current = words or [""]
    if not before:
        rows = [(row.name, row.help) for row in COMMANDS.values()]
        return Candidates(words=_beginning(current, [*rows, ("--help", ""), ("--version", "")], hidden="-"))
    if before[0] not in COMMANDS:
        return Candidates()
    parser, rest = parser_of(before[0]), before[1:]
    while nested := _nested(parser):
        if not rest:
            rows = [(name, inner.description or "") for name, inner in nested.items() if name != "candidates"]
            return Candidates(words=_beginning(current, rows))
        if rest[0] not in nested:
            return Candidates()
        parser, rest = nested[rest[0]], rest[1:]
    return _of(parser, before[0], rest, current)


def _nested(parser: CommandParser) -> dict[str, CommandParser]:
    return next((dict(x.choices or {}) for x in parser._actions if x.nargs == argparse.PARSER), {})


def _beginning(start: str, rows: Sequence[tuple[str, str]], hidden: str = "") -> tuple[tuple[str, str], ...]:
    """Return the rows that begin with a text; those that begin with `hidden` only if it was typed."""
    found = (row for row in rows if row[0].lower().startswith(start.lower()))
    return tuple((word, what) for word, what in found if start or not hidden or not word.startswith(hidden))


def _of(parser: CommandParser, command: str, before: Sequence[str], current: str) -> Candidates:
    options = {name: action for action in parser._actions for name in action.option_strings}
    taken, positional = _read(options, before)
    if taken is not None:
        return _value(taken, current)
    if current.startswith("-"):
        there = {id(options[word]) for word in before if word in options}
        rows = [
            (name, (action.help or "").replace("%%", "%")) for name, action in options.items()
            if name.startswith("--") and action.help != argparse.SUPPRESS
            and (id(action) not in there or isinstance(action, argparse._AppendAction))
        ]  # fmt: skip
        return Candidates(words=_beginning(current, rows))
    places = [action for action in parser._actions if not action.option_strings]
    if not places:
        return Candidates()
    if places[0].dest in _NAMED:
        return _instruction(command, positional, current, files=command in _OF_FILES)
    place = places[min(len(positional), len(places) - 1)]
    return _value(place, current) if len(positional) < len(places) or place.nargs in ("*", "+") else Candidates()


def _read(options: dict[str, argparse.Action], before: Sequence[str]) -> tuple[argparse.Action | None, list[str]]:
    """Return the option whose value comes next, if any, and the positional words."""
    taken: argparse.Action | None = None
    positional = []
    for word in before:
        if taken is not None:
            taken = None
        elif word in options:
            taken = options[word] if options[word].nargs != 0 else None
        elif not word.startswith("-"):
            positional.append(word)
    return taken, positional


def _value(action: argparse.Action, current: str) -> Candidates:
    """Return the values of an option or a positional argument."""
    names: Sequence[str] | None = None
    if action.choices is not None:
        names = [str(x) for x in action.choices]
    elif action.dest in ("target", "against"):
        return Candidates(words=_beginning(current, [(t.name, t.generation) for t in TARGETS.values()]))
    elif action.dest == "type" or action.metavar == "TYPE":
        names = TYPES
    elif action.dest == "kind":
        names = sorted({i.kind for i in instructions() if i.kind})
    elif action.type is not None:
        return Candidates()  # a number
    return Candidates(files=True) if names is None else Candidates(words=_beginning(current, [(x, "") for x in names]))


# Rule 3


def _instruction(command: str, before: Sequence[str], current: str, *, files: bool) -> Candidates:
    named = [word for word in before if not word.endswith(".npy")]
    if command in (*_OF_OPERANDS, "show") and {*named} & {*FRAGMENT_OPCODES}:
        return _moved(named, current, operands=command in _OF_OPERANDS)
    words = _fragments(tuple(named), current)
    if command in _OF_OPERANDS and current and not named:
        words += _beginning(current, [(opcode, "") for opcode in FRAGMENT_OPCODES])
    if command in _OF_OPERANDS and named:
        if {*named} & {*REGISTER_OPERANDS}:
            return Candidates()
        left = _left(tuple(named))
        has = {"metadata": any(i.sparse for i in left), "scale_a": any(i.block_scale for i in left), "address": False}
        has["scale_b"] = has["scale_a"]
        words += _beginning(current, [(name, "") for name in REGISTER_OPERANDS if has.get(name, True)])
    return Candidates(words=words, files=files and bool(named))


def _moved(named: Sequence[str], current: str, *, operands: bool) -> Candidates:
    """Rule 3, for `ldmatrix` and its like: qualifiers that tell the remaining ones apart, and their operands."""
    if {*named} & {*REGISTER_OPERANDS}:
        return Candidates()
    try:
        left = left_of(named)
    except WarpmmaError:
        return Candidates()
    have = [set(i.mnemonic.split(".")[1:]) for i in left]
    words = [word for word in dict.fromkeys(x for i in left for x in i.mnemonic.split(".")[1:]) if word not in named]
    found = [(word, "") for word in words if not all(word in each for each in have)]
    found += [(name, "") for name in dict.fromkeys(x for i in left for x in i.operands) if operands]
    return Candidates(words=_beginning(current, found))


def _fragments(named: tuple[str, ...], current: str) -> tuple[tuple[str, str], ...]:
    if current.startswith(("mma.", "wgmma.")):
        every = warpgroup_instructions() if current[0] == "w" else instructions()
        return () if named else _beginning(current, [(str(i), "") for i in every])
    if not named and current.startswith(("w", "m6")):
        named = ("wgmma",)
        if "wgmma".startswith(current):
            return (("wgmma", ""),)
    left = _left(named)
    if len(left) < 2:
        return ()
    shapes = dict.fromkeys(i.shape for i in left)
    words = [x for x in (*shapes, *VOCABULARY) if x.startswith(current.lower()) and x not in named]
    words = [x for x in words if x[-1] != "=" and (current or x not in _OTHERWISE)]
    found = tuple((word, "") for word in words if 0 < _fitting(named, word, left) < len(left))
    return found + (("wgmma", ""),) * (not named and not current)


def _fitting(named: tuple[str, ...], word: str, left: Sequence[MatrixInstruction]) -> int:
    """Count what one word more leaves; types and layouts mean something together with those before."""
    if has_place(word) or word in STAND_FOR:
        return len(_left((*named, word)))
    return sum(map(fragment_test(word, word), left))


@cache
def _left(named: tuple[str, ...]) -> tuple[MatrixInstruction, ...]:
    """Return what words leave; `wgmma` only where they leave no `mma`, or say so."""
    if not named:
        return instructions()
    try:
        found = every_fitting(named)
    except WarpmmaError:
        return ()
    mma = tuple(i for i in found if i.m != 64)
    return mma or found


def _lines(found: Candidates) -> Iterator[str]:
    """Write candidates for a shell: first whether files are possible, then a line for each word, with its help."""
    yield "files" if found.files else "words"
    for word, what in found.words:
        yield f"{word}\t{what}" if what else word
