r"""The command `completion`: scripts that make shells complete the commands, their options and instructions.

A script asks `warpmma completion candidates WORD...` at every TAB: it knows nothing itself, and is never out of date.
"""

from __future__ import annotations

import argparse

from ..completing import candidates, lines
from ..output.streams import write

# COMP_WORDS is split at colons, of which mnemonics have some: so the line is split at blanks here, and what is before
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


def add_completion(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "completion", description="Print a script that makes a shell complete commands, options, targets and the words "
        "of instructions.", epilog=_EPILOG,
    )  # fmt: skip
    shells = parser.add_subparsers(required=True, metavar="SHELL")
    for shell in _SCRIPTS:
        shells.add_parser(shell, description=f"Print the script for {shell}.").set_defaults(run=_script, shell=shell)
    asked = shells.add_parser("candidates", description="What the scripts ask: what the last of some words can become.")
    asked.add_argument("words", nargs=argparse.REMAINDER, metavar="WORD", help="-- and the words behind `warpmma`")
    asked.set_defaults(run=_candidates)


def _script(options: argparse.Namespace) -> int:
    write(_SCRIPTS[options.shell])
    return 0


def _candidates(options: argparse.Namespace) -> int:
    words = options.words[1:] if options.words[:1] == ["--"] else options.words
    write("\n".join(lines(candidates(words))))
    return 0
