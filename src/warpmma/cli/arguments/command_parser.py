"""Arguments of a command: read in any order, and refused in one line that names the nearest right form."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from ..._arguments import suggestion
from ...errors import printable
from ..output.streams import say, terminal_width


class _Help(argparse.HelpFormatter):
    """Help as wide as the terminal: argparse asks `shutil`, which loads what archives need."""

    def __init__(self, *args: Any, **more: Any) -> None:
        more.setdefault("width", terminal_width() - 2)
        super().__init__(*args, **more)


class CommandParser(argparse.ArgumentParser):
    """An `argparse` parser whose errors are one line, with status 2; options may stand among the other arguments."""

    def __init__(self, *args: Any, **more: Any) -> None:
        more.setdefault("formatter_class", _Help)
        super().__init__(*args, **more)

    def read(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Read arguments; what cannot be read ends the program with status 2."""
        nested = any(action.nargs == argparse.PARSER for action in self._actions)
        return self.parse_args(arguments) if nested else self.parse_intermixed_args(arguments)

    def error(self, message: str) -> NoReturn:
        """Say in one line what was wrong, and end with status 2."""
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
