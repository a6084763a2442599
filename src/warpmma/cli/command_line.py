"""The command line: a thin layer over the library.

1. A command is a row: its name, a line of help, and its module, which is loaded only when the command is chosen.
   `add_NAME` of the module adds the arguments to the command's parser; `run_NAME` takes the options and returns the
   exit status, and its docstring is the description in the command's help.
2. Exit status: 0 if all is well, 1 if something differs or is found, 2 if the request or the file is unusable or the
   output cannot be written, 3 if the program itself fails, 130 if it was interrupted, 141 if the reader of the output
   has gone.
3. An error is one line on the error stream, with the nearest legal form; results alone go to the output. Options
   and other arguments may be mixed.
4. A command that prints results has `--json`: the same facts, for programs. Colour and columns are for terminals.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType
from typing import Any, NoReturn

from .._arguments import members, suggestion
from .._version import __version__
from ..errors import CompilationError, OperandError, PtxError, WarpmmaError, printable, shown
from .output.streams import discard, say, silence, terminal_width, write


@dataclass(frozen=True, kw_only=True)
class Command:
    """A row: `module`, of `commands`, has `add_NAME` and `run_NAME`; `group` is a heading of the list of commands."""

    name: str
    help: str
    module: str
    group: str


_LOOK, _COMPUTE, _RUN, _GPU = "look up", "compute", "programs and recordings", "your own GPU"
_ABOUT = "about"

COMMANDS: Mapping[str, Command] = MappingProxyType({
    name: Command(name=name, help=help_, module=module, group=group)
    for group, name, module, help_ in (
        (_LOOK, "list", "list_command", "instructions, by target, type, shape and kind"),
        (_LOOK, "show", "view_commands", "one instruction: registers, formulas, targets, arithmetic, evidence"),
        (_LOOK, "where", "lookup_commands", "where an element sits: its lane, register and bits"),
        (_LOOK, "what", "lookup_commands", "what a lane's register holds"),
        (_LOOK, "layout", "view_commands", "a whole operand: every element with its lane and register"),
        (_LOOK, "descriptor", "descriptor_command", "what a descriptor of wgmma reads, and which field is wrong"),
        (_LOOK, "targets", "targets_command", "GPUs, their targets, and what each target has"),
        (_LOOK, "evidence", "evidence_command", "how the arithmetic of each target is known"),
        (_LOOK, "tensormap", "tensormap_command", "the 128 bytes of a tensor map, and what a load brings"),
        (_LOOK, "explore", "view_commands", "write all of it as one HTML page to look around in"),
        (_COMPUTE, "execute", "execute_command", "one instruction on matrices in .npy files, bit for bit"),
        (_COMPUTE, "explain", "explain_command", "one element of a product, step by step: what was rounded or cut"),
        (_COMPUTE, "error", "error_command", "errors of a whole product, and what a tolerance would let pass"),
        (_RUN, "run", "run_kernel", "run a kernel of a .cu or .ptx file"),
        (_RUN, "ptx", "ptx_files", "what a PTX file needs, and what of it is not simulated"),
        (_RUN, "verify", "verify", "replay recorded registers and compare"),
        (_GPU, "compare", "gpu_commands", "all that the GPU computes, beside the simulator, bit for bit"),
        (_GPU, "record", "gpu_commands", "record registers of every mma of the GPU, for `verify`"),
        (_GPU, "contribute", "gpu_commands", "pack a report of `compare` to send it in"),
        (_ABOUT, "completion", "completion_command", "completion of these commands, for bash, zsh or fish"),
    )
})  # fmt: skip
"""Every command, by its name, in the order of the list."""


_MOST_WORDS = 1 << 20
_SHORT = 3  # words of so few letters are not looked up in help


class _Help(argparse.HelpFormatter):
    """Help as wide as the terminal: argparse asks `shutil`, which loads what archives need."""

    def __init__(self, *args: Any, **more: Any) -> None:
        more.setdefault("width", terminal_width() - 2)
        super().__init__(*args, **more)


class CommandParser(argparse.ArgumentParser):
    """An `argparse` parser whose errors are one line, with status 2; options and other arguments may be mixed."""

    def __init__(self, *args: Any, **more: Any) -> None:
        more.setdefault("formatter_class", _Help)
        super().__init__(*args, **more)

    def read(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Read arguments; what cannot be read ends the program with status 2."""
        nested = any(action.nargs == argparse.PARSER for action in self._actions)
        return self.parse_args(arguments) if nested else self.parse_intermixed_args(arguments)

    def error(self, message: str) -> NoReturn:
        """Print the error in one line, and end with status 2."""
        if unknown := re.search(r"unrecognized arguments: (-\S*)", message):
            names = {option.lstrip("-"): option for option in self._every_option()}  # dashes would make all alike
            near = suggestion(unknown[1].partition("=")[0].lstrip("-"), list(names))
            message += re.sub("'(.*)'", lambda found: repr(names[found[1]]), near)
        elif refused := re.search(r"invalid choice: '(.*?)' ", message):
            choices = [str(x) for action in self._actions for x in action.choices or ()]
            message += suggestion(refused[1], choices)
        say(f"{self.prog}: {printable(' '.join(message.split()))}")
        raise SystemExit(2)

    def _every_option(self) -> Iterator[str]:
        for action in self._actions:
            yield from action.option_strings
            nested: Any = action.choices if action.nargs == argparse.PARSER else {}
            for parser in nested.values():
                yield from parser._every_option()


def _words_of(arguments: object) -> list[str]:
    words = members(arguments, _MOST_WORDS)
    if words is None or not all(isinstance(word, str) for word in words):
        raise OperandError(f"arguments are {shown(arguments)}; expected a sequence of str")
    return words


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Instead of those of the process.

    Returns
    -------
    int
        Exit status: 0 if all is well, 1 if something differs, 2 if the request or the file is unusable or the output
        cannot be written, 3 if the program fails.
    """
    silence()
    try:
        words = sys.argv[1:] if arguments is None else _words_of(arguments)
        said = io.StringIO()  # help and version: argparse does not notice when these cannot be written
        try:
            with redirect_stdout(said):
                options = _options(words)
        except SystemExit:
            if said.getvalue():
                write(said.getvalue().removesuffix("\n"))
            raise
        return int(options.run(options))
    except (PtxError, CompilationError) as error:  # their messages have several lines, all printable
        say(f"warpmma: {error}")
        return 2
    except WarpmmaError as error:
        text = "; ".join([str(error), *getattr(error, "__notes__", ())])
        say(f"warpmma: {' '.join(text.split())}")  # one line, whatever a file's names hold
        return 2
    except KeyboardInterrupt:
        say("warpmma: interrupted")
        return 130
    except BrokenPipeError:  # the reader has enough, as `head` does
        discard(sys.stdout)
        return 141
    except OSError as error:
        discard(sys.stdout)
        say(f"warpmma: the output cannot be written: {error.strerror}")
        return 2
    except MemoryError:
        say("warpmma: there is not enough memory for this")
        return 2
    except Exception:  # a fault of ours, which must not look like one of the GPU's: Python's own status would be 1
        import traceback  # no command that ends well needs it

        say(traceback.format_exc().rstrip())
        return 3


def parser_of(name: str) -> CommandParser:
    """Load a command, and return what reads its arguments."""
    module = import_module(f".commands.{COMMANDS[name].module}", __package__)
    run = getattr(module, f"run_{name}")
    parser = CommandParser(prog=f"warpmma {name}", description=run.__doc__)
    parser.set_defaults(run=run)
    getattr(module, f"add_{name}")(parser)
    return parser


def _options(words: list[str]) -> argparse.Namespace:
    root = CommandParser(prog="warpmma", usage="warpmma COMMAND ...", add_help=False)
    if words[:1] == ["help"]:  # as of git
        words = [*words[1:2], "--help"]
    if words and not words[0].startswith("-"):
        if words[0] not in COMMANDS:
            root.error(f"unknown command {shown(words[0])}{_meant(words[0])}; commands: {', '.join(COMMANDS)}")
        return parser_of(words[0]).read(words[1:])
    root.add_argument("--version", action="version", version=f"warpmma {__version__}")
    root.add_argument("-h", "--help", action="store_true")
    if root.read(words).help:
        print(_overview())
        raise SystemExit(0)
    return root.error("the following arguments are required: COMMAND; `warpmma --help` lists them")


def _meant(word: str) -> str:
    """Suggest the commands whose help has a word, or else the one with a similar name."""
    about = [
        row.name for row in COMMANDS.values()
        if len(word) > _SHORT and word.lower().rstrip("s") in re.findall(r"[a-z]+", row.help.lower().replace("s ", " "))
    ]  # fmt: skip
    return f"; did you mean {' or '.join(map(repr, about))}?" if about else suggestion(word, COMMANDS)


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = ["usage: warpmma COMMAND ...", "", "What NVIDIA's matrix instructions compute, bit for bit."]
    for group in dict.fromkeys(row.group for row in COMMANDS.values()):
        lines += ["", f"{group}:"]
        lines += [f"  {row.name:<{width}}  {row.help}" for row in COMMANDS.values() if row.group == group]
    return "\n".join([
        *lines, "",
        "An instruction is a mnemonic, or words that identify one: m16n8k16 f16, sp e4m3, mxf4 4X.",
        "`warpmma COMMAND --help` says more; `warpmma --version` the version.",
    ])  # fmt: skip
