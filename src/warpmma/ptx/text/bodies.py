"""Bodies of functions.

body      = "{" {statement} "}"
statement = body | label ":" | declaration | label ":" list | directive
          | ["@" ["!"] name] opcode [operand {"," operand}] ";"
list      = (".branchtargets" | ".calltargets") name {"," name} ";"
          | ".callprototype" ["(" parameter ")"] "_" "(" parameters ")" {directive} ";"
directive = ".loc" file line [column] ["," "function_name" name ["+" integer] "," "inlined_at" file line column]
          | ".pragma" string {"," string} ";"
opcode    = name {"." qualifier}      (blanks are allowed before a point)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from .declarations import SPACES, parameters, variables
from .directives import pragmas, read_directives
from .operand_text import Names, NameScope, plain_operands, read_operand, read_operands
from .syntax import (
    Declaration,
    Function,
    Label,
    LineOf,
    Operand,
    Place,
    Position,
    Statement,
    Symbol,
    Variable,
    VectorOf,
    words_of,
)
from .tokens import Cursor, Text, Token

MOST_STATEMENTS = 1 << 18
"""Statements and labels of a function: each takes some 2 KiB until it runs."""

_N = "(0|[1-9][0-9]{0,17}+)"
_LOC = re.compile(
    rf"[ \t]++{_N}[ \t]++{_N}[ \t]++{_N}(?![\w$.])"
    rf"(?:,\s*+function_name\s++[\w$]++\s*+,\s*+inlined_at\s++{_N}\s++{_N}\s++{_N}(?![\w$.]))?\s*+(?![,/#])",
    re.ASCII,
)
"""What follows `.loc` as compilers write it; each other statement has one. Other spellings are read token by token."""

DEEPEST_INLINED = 64
"""Functions inlined into each other, as a line lists them."""


def body(
    source: Text, offset: int, function: Function, files: Mapping[int, str], outside: Mapping[str, Variable]
) -> Function:
    """Read the body of a function at an offset just behind `{`, with what `.file` says and the module declares."""
    return _Body(Cursor(source, offset), function, files, Names(outside)).read()


class _Body:
    def __init__(self, cursor: Cursor, function: Function, files: Mapping[int, str], names: Names):
        self.cursor = cursor
        self.function = function
        self.files = files
        self.names = names
        self.statements: list[Statement | Label] = []
        self.targets: dict[str, tuple[str, ...]] = {}
        self.prototypes: dict[str, tuple[tuple[Declaration, ...], tuple[Declaration, ...]]] = {}
        self.lists: list[tuple[str, int]] = []
        self.labels: dict[tuple[str, int], str] = {}
        self.taken: set[str] = set()
        self.loc: LineOf | None = None
        self.lines: dict[tuple[int, int, int], tuple[LineOf, int]] = {}
        self.scope_of: list[int] = []

    def read(self) -> Function:
        cursor = self.cursor
        for one in (*self.function.results, *self.function.parameters):
            self.names.declare(one, cursor, cursor.start)
        while True:
            token = cursor.token
            if cursor.kind == Token.WORD or token == "@":
                if len(self.statements) == MOST_STATEMENTS:
                    cursor.fail(f"a function of more than {MOST_STATEMENTS} statements is not simulated")
                self._statement()
            elif token == "{":
                self.names.open(cursor)
                cursor.advance()
            elif token == "}":
                if not self.names.close():
                    break
                cursor.advance()
            elif cursor.kind == Token.DOTTED:
                self._directive()
            else:
                cursor.expected("a statement")
        return self._done()

    def _done(self) -> Function:
        body, targets = self.statements, self.targets
        if any("@" in name for name in self.labels.values()):
            body, targets = self._settled()
        return replace(
            self.function,
            scopes=tuple(tuple(scope.declarations) for scope in self.names.scopes),
            body=tuple(body),
            targets=targets,
            prototypes=self.prototypes,
            defined=True,
        )

    def _directive(self) -> None:
        cursor = self.cursor
        word = cursor.token
        if word in SPACES:
            for one, start in variables(cursor):
                self.names.declare(one, cursor, start)
        elif word == ".loc":
            self._line()
        elif word == ".pragma":
            self._pragma()
        else:
            cursor.expected("a statement")

    def _pragma(self) -> None:
        self.cursor.advance()
        said = pragmas(self.cursor)
        last = self.statements[-1] if self.statements else None
        if isinstance(last, Label):
            self.statements[-1] = replace(last, pragmas=(*last.pragmas, *said))

    def _line(self) -> None:
        cursor = self.cursor
        if (m := _LOC.match(cursor.source.text, cursor.end)) is not None:
            file, at, column, *outside = m.groups()
            key = int(file), int(at), int(column)
            outer, depth = self._inlined((*map(int, outside),)) if outside[0] else (None, 0)  # type: ignore[arg-type]
            self.loc = LineOf(self.files.get(key[0], f"file {key[0]}"), key[1], key[2], outer)
            self.lines[key] = (self.loc, depth)
            cursor.go(m.end())
            return
        cursor.advance()
        key = self._place()
        line = LineOf(self.files.get(key[0], f"file {key[0]}"), key[1], key[2])
        depth = 0
        while cursor.skip(","):
            word = cursor.name("function_name or inlined_at")
            if word == "inlined_at":
                outer, depth = self._inlined(self._place())
                line = replace(line, inlined_at=outer)
            elif word == "function_name":
                cursor.advance()  # a label of a debug section, or the section
                if cursor.skip("+"):
                    cursor.integer("an offset")
            else:
                cursor.fail(f"expected function_name or inlined_at, found {word!r}")
        self.loc = line
        self.lines[key] = (line, depth)

    def _inlined(self, key: tuple[int, int, int]) -> tuple[LineOf | None, int]:
        """Give the line into which a function was inlined, which may be one of an inlined function itself."""
        known = self.lines.get(key)
        if known is None:
            return LineOf(self.files.get(key[0], f"file {key[0]}"), key[1], key[2]), 1
        return (known[0], known[1] + 1) if known[1] < DEEPEST_INLINED else (replace(known[0], inlined_at=None), 1)

    def _place(self) -> tuple[int, int, int]:
        cursor = self.cursor
        file, line = cursor.integer("the number of a file"), cursor.integer("a line")
        return file, line, cursor.integer("a column") if cursor.kind == Token.NUMBER else 0

    def _statement(self) -> None:
        cursor = self.cursor
        guard, negated = None, False
        if cursor.skip("@"):
            negated = cursor.skip("!")
            found = read_operand(cursor, self.names)
            if not isinstance(found, Symbol):
                cursor.expected("a predicate behind '@'")
            guard = found
            if cursor.kind != Token.WORD:
                cursor.expected("an instruction")
        mnemonic, start = cursor.token, cursor.start
        position = cursor.source.position(start)
        if mnemonic[0] not in "%_$" and (plain := plain_operands(cursor, self.names)) is not None:
            self.scope_of.append(self.names.inner.number)
            self.statements.append(Statement(mnemonic, plain, guard, negated, False, position, self.loc))
            return
        cursor.advance()
        if cursor.token == ":" and guard is None:
            self._label(mnemonic, start, position)
            return
        while cursor.kind == Token.DOTTED:
            mnemonic += cursor.token
            cursor.advance()
        if mnemonic[0] in "%_$":
            cursor.fail(f"expected an instruction, found {mnemonic!r}", start)
        items: tuple[Operand, ...] = ()
        paired = False
        if cursor.token != ";":
            items, paired = read_operands(cursor, self.names, call=words_of(mnemonic).opcode == "call")
            if cursor.token != ";":
                cursor.expected("',' or ';'")
        cursor.advance()
        self.scope_of.append(self.names.inner.number)
        self.statements.append(Statement(mnemonic, items, guard, negated, paired, position, self.loc))

    def _label(self, name: str, start: int, position: Position) -> None:
        cursor = self.cursor
        if "." in name:
            cursor.fail(f"{name!r} is not a label", start)
        cursor.advance()
        scope = self.names.inner.number
        if (name, scope) in self.labels:
            cursor.fail(f"{name!r} is a label of this scope already", start)
        own = f"{name}@{scope}" if name in self.taken else name
        self.labels[name, scope] = own
        self.taken.add(name)
        if cursor.token in (".branchtargets", ".calltargets"):
            cursor.advance()
            found = [cursor.name("a label or a function")]
            while cursor.skip(","):
                found.append(cursor.name("a label or a function"))
            cursor.take(";")
            self.targets[own] = tuple(found)
            self.lists.append((own, scope))
        elif cursor.token == ".callprototype":
            self.prototypes[own] = self._prototype()
        else:
            self.scope_of.append(scope)
            self.statements.append(Label(own, position))

    def _prototype(self) -> tuple[tuple[Declaration, ...], tuple[Declaration, ...]]:
        cursor = self.cursor
        cursor.advance()
        results = parameters(cursor, "result") if cursor.token == "(" else []
        cursor.name("'_'")
        given = parameters(cursor, "func") if cursor.token == "(" else []
        read_directives(cursor, "func")
        cursor.take(";")
        return tuple(one for one, _ in results), tuple(one for one, _ in given)

    # Labels that scopes name again.

    def _settled(self) -> tuple[list[Statement | Label], dict[str, tuple[str, ...]]]:
        """Give every use of a label the name of the one that it means."""
        body: list[Statement | Label] = []
        for one, scope in zip(self.statements, self.scope_of, strict=True):
            if isinstance(one, Statement) and any(map(self._may_be_label, one.operands)):
                one = replace(one, operands=tuple(self._meant(item, scope) for item in one.operands))
            body.append(one)
        scopes = dict(self.lists)
        targets = {
            name: tuple(self._label_of(target, scopes[name]) for target in those)
            for name, those in self.targets.items()
        }
        return body, targets

    def _may_be_label(self, item: Operand) -> bool:
        return isinstance(item, VectorOf | Place) or (isinstance(item, Symbol) and item.scope == -1)

    def _meant(self, item: Operand, scope: int) -> Operand:
        if isinstance(item, VectorOf):
            return VectorOf(tuple(self._meant(inner, scope) for inner in item.items))
        if isinstance(item, Place) and item.base is not None and item.base.scope == -1:
            return replace(item, base=Symbol(self._label_of(item.base.name, scope)))
        if isinstance(item, Symbol) and item.scope == -1:
            return Symbol(self._label_of(item.name, scope))
        return item

    def _label_of(self, name: str, number: int) -> str:
        if name in self.taken:
            scope: NameScope | None = self.names.scopes[number]
            while scope is not None:
                own = self.labels.get((name, scope.number))
                if own is not None:
                    return own
                scope = scope.outer
        return name
