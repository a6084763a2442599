"""The top-level pieces of a C++ text: functions, classes, variables; and which of them are device code.

1. Comments, literals and directives hold no code. A directive is never part of a piece.
2. A piece ends at ";", or at the "}" of a function. Namespaces, `extern "C"` and classes hold pieces of their own.
3. Device code has `__global__`, `__device__`, `__constant__` or the like before its body, or a macro of the text that
   expands to one of them. A macro whose name mentions devices or kernels may come from a header.
4. Where braces do not match, as when a directive chooses between two heads, the rest is one piece of device code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_NO_CODE = re.compile(
    r"//[^\n]*|/\*.*?\*/|(?:u8|[LuU])?R\"([^()\\\s]{0,16})\(.*?\)\1\"|\"(?:\\.|[^\"\\\n])*\""
    r"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])+'|^[ \t]*\#(?:\\\n|[^\n])*",
    re.DOTALL | re.MULTILINE,
)
_DIRECTIVE = re.compile(r"^[ \t]*\#(?:\\\n|[^\n])*", re.MULTILINE)
_DEVICE = r"__(?:global|device|constant|shared|managed|grid_constant)__"
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)((?:\\\n|[^\n])*)", re.MULTILINE)
_SPEAKS = re.compile(r"\b[A-Z][A-Z0-9_]*(?:DEVICE|GLOBAL|KERNEL|CUDA)[A-Z0-9_]*\b|\bHD\b")
_ATTRIBUTE = re.compile(r"\b(?:__\w+__|alignas)\s*\((?:[^()]|\([^()]*\))*\)")
_SIGN = re.compile(r"[()\[\]{};]")
_KEPT = re.compile(
    r"(?:template\s*<.*>\s*)?(?:using|typedef|struct|class|enum|union|static_assert|friend|concept|namespace|asm)\b"
    r"|(?:(?:static|inline|extern)\s+)*(?:constexpr|const|template)\b",
    re.DOTALL,
)
_CLASS = re.compile(r"(?:template\s*<.*>\s*)?(?:typedef\s+)?(?:struct|class|union)\b(?!.*\)\s*(?:const\s*)?$)", re.S)


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A part of a text: a function, class, namespace or statement."""

    kind: str
    start: int
    end: int
    head: str  # the text before its body
    device: bool  # it is marked as device code, or contains such a piece
    constant: bool  # it declares a type or a constant, which both sides use
    inner: tuple[Piece, ...] = ()  # of a namespace or a class

    @property
    def name(self) -> str:
        """The name that it declares, as far as its head shows."""
        head = re.sub(r"<[^<>]*>", "", _ATTRIBUTE.sub(" ", self.head))
        called = re.findall(r"([\w:~]+)\s*\(", head) if self.kind == "function" else []
        found = next((x for x in called if x not in ("decltype", "noexcept", "explicit")), None)
        words = re.findall(r"[A-Za-z_]\w*", re.split(r"[=\[({]", head)[0])
        return found if found else words[-1] if words else "?"


def masked(text: str) -> str:
    r"""Replace comments and literals by blanks; line breaks stay.

    Examples
    --------
    >>> masked('int a; // {\n#define B }\nchar c = \'}\';')
    'int a;     \n           \nchar c =    ;'
    """
    return _NO_CODE.sub(lambda x: re.sub(r"[^\n]", " ", x[0]), text)


def pieces_of(text: str) -> list[Piece]:
    """List the pieces of a text.

    Examples
    --------
    >>> found = pieces_of("__global__ void k() { } int main() { k<<<1, 1>>>(); }  const int n = 3;")
    >>> [(x.kind, x.name, x.device, x.constant) for x in found]
    [('function', 'k', True, False), ('function', 'main', False, False), ('statement', 'n', False, True)]
    """
    words = {_DEVICE}
    for _ in range(2):  # a macro may stand for a macro
        says = re.compile("|".join(words))
        words |= {rf"\b{name}\b" for name, body in _DEFINE.findall(text) if says.search(body)}
    code = masked(text)
    return list(_Reader(code, re.compile("|".join(sorted(words)))).pieces(0, len(code)))


class _Reader:
    """Rules 2 to 4."""

    def __init__(self, code: str, says: re.Pattern[str]) -> None:
        self.code, self.says = code, says

    def pieces(self, at: int, end: int) -> Iterator[Piece]:
        while True:
            while at < end and (self.code[at].isspace() or self.code[at] == ";"):
                at += 1
            if label := re.compile(r"(?:public|private|protected)\s*:(?!:)").match(self.code, at, end):
                at = label.end()
                continue
            if at >= end:
                return
            yield (piece := self._piece(at, end))
            at = piece.end

    def _piece(self, start: int, end: int) -> Piece:
        at, depth = start, 0
        while (sign := _SIGN.search(self.code, at, end)) is not None:
            at, c = sign.start(), sign[0]
            depth += (c in "([") - (c in ")]")
            if (c == "}" and depth == 0) or depth < 0:
                break
            if c == ";" and depth == 0:
                return self._made("statement", start, at + 1, self.code[start:at])
            if c == "{" and depth == 0:
                if (close := self._closing(at, end)) is None:
                    break
                head = self.code[start:at]
                kind = _kind(head)
                if kind == "namespace":
                    return self._made(kind, start, close, head, self.pieces(at + 1, close - 1))
                if kind == "class":
                    stop = self.code.find(";", close, end) + 1 or close
                    return self._made(kind, start, stop, head, self.pieces(at + 1, close - 1))
                if kind == "function" and not re.compile(r"\s*[,{]").match(self.code, close, end):
                    return self._made(kind, start, close, head)
                at = close  # an initializer
                continue
            at += 1
        return Piece(kind="statement", start=start, end=end, head="", device=True, constant=False)

    def _closing(self, at: int, end: int) -> int | None:
        depth = 0
        for found in re.compile("[{}]").finditer(self.code, at, end):
            depth += 1 if found[0] == "{" else -1
            if depth == 0:
                return found.end()
        return None

    def _made(self, kind: str, start: int, end: int, head: str, inner: Iterable[Piece] = ()) -> Piece:
        inside = tuple(inner)
        device = bool(self.says.search(head) or _SPEAKS.search(head)) or any(x.device for x in inside)
        constant = kind != "namespace" and (kind == "class" or bool(_KEPT.match(head)) or "constexpr" in head)
        return Piece(kind=kind, start=start, end=end, head=head, device=device, constant=constant, inner=inside)


def _kind(head: str) -> str:
    head = _ATTRIBUTE.sub(" ", head)
    if re.search(r"\bnamespace\b[\w\s:]*$", head) or re.fullmatch(r"extern\s*", head):
        return "namespace"
    if re.match(r"(?:typedef\s+)?enum\b", head) or re.search(r"(?<![=!<>])=(?!=)", _flat(head)) or ")" not in head:
        return "class" if _CLASS.match(head) else "statement"
    return "class" if _CLASS.match(head) and not re.search(r"\)\s*$", head) else "function"


def _flat(head: str) -> str:
    """Leave out everything in brackets: defaults of parameters and of templates; and `operator=`."""
    head = re.sub(r"\boperator\s*\S+?(?=\s*\()", "operator", head)
    before = ""
    while head != before:
        before, head = head, re.sub(r"\([^()]*\)|<[^<>()]*>", "", head)
    return head


def blanked(text: str, parts: Sequence[tuple[int, int]]) -> str:
    """Blank parts of a text, except their directives; lines and columns stay."""
    kept = [x.span() for x in _DIRECTIVE.finditer(without_comments(text))]
    for start, end in parts:
        at = start
        for first, last in [*(x for x in kept if start <= x[0] < end), (end, end)]:
            text = text[:at] + re.sub(r"[^\n]", " ", text[at:first]) + text[max(at, first) :]
            at = last
    return text


def without_comments(text: str) -> str:
    """Replace everything but code and directives by blanks; line breaks stay."""
    return _NO_CODE.sub(lambda x: x[0] if x[0].lstrip().startswith("#") else re.sub(r"[^\n]", " ", x[0]), text)


def launched(text: str) -> list[str]:
    """List the instances of templates that a text launches.

    Examples
    --------
    >>> launched("void f() { a::k<float, 4><<<1, 32>>>(x); plain<<<1, 1>>>(); }")
    ['a::k<float, 4>']
    """
    found = []
    code = masked(text)
    for launch in re.finditer(r">\s*<<<", code):
        at, depth = launch.start(), 0
        while at >= 0 and code[at] not in ";{}":
            depth += (code[at] == ">") - (code[at] == "<")
            if depth == 0:
                break
            at -= 1
        name = re.search(r"(?:\w+\s*::\s*)*\w+\s*$", code[max(0, at - 200) : at]) if at > 0 and depth == 0 else None
        if name:
            found.append(" ".join((name[0] + code[at : launch.start() + 1]).split()))
    return list(dict.fromkeys(found))


def parameter_names(text: str, kernel: str) -> list[tuple[str, ...]]:
    """List the names of the parameters of each function of a name, "" where there is none.

    Examples
    --------
    >>> parameter_names("__global__ void k(const float *x, int (&n)[3], unsigned) { }", "k")
    [('x', 'n', '')]
    """
    return [
        _parameters(x.head) for x in _functions(pieces_of(text)) if x.device and x.name.rpartition("::")[2] == kernel
    ]


def is_template(text: str, kernel: str) -> bool:
    """Return whether a kernel of a text is a template."""
    return any(x.name.rpartition("::")[2] == kernel and "template" in x.head for x in _functions(pieces_of(text)))


def _functions(pieces: Iterable[Piece]) -> Iterator[Piece]:
    for piece in pieces:
        yield from [piece] if piece.kind == "function" else _functions(piece.inner)


_TYPE_WORDS = "void bool char short int long float double signed unsigned const volatile auto __restrict__ __restrict"


def _parameters(head: str) -> tuple[str, ...]:
    """Split the text in the last parentheses of a head at its commas; the last word of each part is a name."""
    close = head.rfind(")")
    depth, at = 1, close
    while depth and at > 0:
        at -= 1
        depth += (head[at] == ")") - (head[at] == "(")
    parts, depth = [""], 0
    for c in head[at + 1 : close]:
        depth += (c in "([{<") - (c in ")]}>")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    if [x.strip() for x in parts] in ([""], ["void"]):
        return ()
    return tuple(_declared_name(x.partition("=")[0]) for x in parts)


def _declared_name(declaration: str) -> str:
    inner = re.search(r"\(\s*[*&]+\s*(\w+)", declaration)
    if inner:
        return inner[1]
    words = re.findall(r"\w+", re.sub(r"<.*>|\[.*?\]", " ", declaration))
    return words[-1] if len(words) + declaration.count("*") > 1 and words[-1] not in _TYPE_WORDS.split() else ""
