"""Hostile texts, by number: modules that are truncated, garbled or inflated, and modules that do not end."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from .modules import HEAD, MODULES
from .pieces import INSIDE, OUTSIDE

_TOKEN = re.compile(r"[%$\w.]+|\s+|.", re.DOTALL)
_HUGE = (
    "4000000000", "99999999999999999999", "0xFFFFFFFFFFFFFFFF", "-1", "0", "1 << 63", "018", "1e999", "0f7F800000",
    "9" * 5000, "0x" + "F" * 5000, "1 / 0", "1 % 0", "(-9223372036854775807 - 1) / -1", "1 << 64", "1 >> -1", "~0U",
    "-0", "1 ? 2 : 3", "1 ? 2", "1e-999999999", "1e99999999999", "0fZZZZZZZZ", "0d7FF0", "0b2", "2147483648", "1.",
    ".5", "0x", "65536", "32768", "1024U", "0x8000000000000000", "' '", "tiles", "WARP_SZ",
)  # fmt: skip
_BAD = (
    "\0", "\x7f", "ä", "\ud800", '"', "/*", "//", "{", "}", "(", ")", "[", "]", ";", ":", ",", "@", "!", "|", "%", ".",
    ".reg .b32 %r<4000000000>;", ".shared .b8 x[99999999999];", ".local .b8 y[99999999999];", "bra $L__loop;",
    ".align 1099511627776", ".param .b8 z[99999999];", "call factorial;", "ret;", "exit;", "trap;", "bar.sync 1, 64;",
)  # fmt: skip


def _cut(rng: random.Random, text: str) -> str:
    start = rng.randrange(len(text))
    return text[:start] if rng.random() < 0.5 else text[:start] + text[start + rng.randrange(1, 60) :]


def _garbled(rng: random.Random, text: str) -> str:
    tokens = _TOKEN.findall(text)
    for _ in range(rng.randrange(1, 6)):
        i, j = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        way = rng.randrange(4)
        if way == 0:
            tokens[i], tokens[j] = tokens[j], tokens[i]
        elif way == 1:
            tokens[i] = rng.choice(_BAD)
        elif way == 2:
            tokens[i] = tokens[j]
        else:
            tokens.insert(i, rng.choice(_BAD))
    return "".join(tokens)


def _characters(rng: random.Random, text: str) -> str:
    found = list(text)
    for _ in range(rng.randrange(1, 8)):
        found[rng.randrange(len(found))] = chr(rng.randrange(128))
    return "".join(found)


def _numbers(rng: random.Random, text: str) -> str:
    places = list(re.finditer(r"(?<![\w.%$])\d+\b", text))
    for place in sorted(rng.sample(places, min(len(places), rng.randrange(1, 4))), key=lambda m: -m.start()):
        text = text[: place.start()] + rng.choice(_HUGE) + text[place.end() :]
    return text


def _repeated(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    start = rng.randrange(len(lines))
    part = lines[start : start + rng.randrange(1, 8)]
    return "\n".join(lines[:start] + part * rng.choice((2, 3, 50)) + lines[start:])


def _deep(rng: random.Random, text: str) -> str:
    opening, closing = rng.choice(("{}", "()", "[]", ("-", ""), ("!", ""), ("1 ? ", ""), ("1 + (", ")")))
    n = rng.choice((3, 70, 600, 20_000, 1_000_000 if rng.random() < 0.2 else 100))
    place = rng.randrange(len(text))
    return text[:place] + opening * n + rng.choice(("1", "%r1", "")) + closing * n + text[place:]


def _declared(rng: random.Random, text: str) -> str:
    """Insert hostile statements and declarations at the beginning of lines."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        lines = text.split("\n")
        head = [i for i, line in enumerate(lines) if line.startswith((".global", ".visible", ".func", ".file"))]
        if rng.random() < 0.5 and head:
            lines.insert(rng.choice(head), rng.choice(OUTSIDE))
        else:
            lines.insert(rng.randrange(1, len(lines) + 1), rng.choice(INSIDE if rng.random() < 0.9 else OUTSIDE))
        text = "\n".join(lines)
    return text


def _bytes(rng: random.Random, text: str) -> str:
    """Change line endings, and insert characters that are not text."""
    way = rng.randrange(5)
    if way == 0:
        return text.replace("\n", rng.choice(("\r\n", "\r", "\n\r", "\u2028", "\x0b", "\0")))
    if way == 1:
        return rng.choice(("\ufeff", "\0", "\x7fELF", "\xff\xfe", "  \n\n", "\x1a")) + text
    place = rng.randrange(len(text))
    strange = rng.choice(
        ("\0", "\0" * 5000, "\ud800", "\udcff", "\U0010ffff", "\u202e", "\xa0", "\x85", "\t" * 100_000, "é" * 999)
    )
    return text[:place] + strange + text[place:]


def _long(rng: random.Random, text: str) -> str:
    """Make a very long name, string, comment, list or mnemonic."""
    place, n = rng.randrange(len(text)), rng.choice((300, 5000, 200_000))
    return text[:place] + rng.choice((
        "x" * n, '"' + "s" * n, "/*" + "*" * n, "//" + "-" * n, "{" + "1, " * n + "1}", ".global" * n, "%r1, " * n,
        ";" * n, "\n" * n, "1 + " * n, ".loc 1 1 1\n" * n, "1" * n, "@" * n, "L: " * n, "ret;" * n,
        ".reg .b32 %z;" * (n // 9),
    )) + text[place:]  # fmt: skip


def _endless(rng: random.Random, text: str) -> str:
    body = rng.choice((
        "L: bra L;", "L: bra.uni L; ret;", "L: @%p0 bra L; bra L;", "L: add.s32 %r1, %r1, 1; bra L;",
        "bar.sync 1, 64; ret;", "L: bar.sync 0; bra L;", "L: nanosleep.u32 1000; bra L;",
        "L: ld.volatile.global.u32 %r1, [x]; setp.eq.s32 %p0, %r1, 0; @%p0 bra L; ret;",
        "L: atom.global.cas.b32 %r1, [x], 1, 1; setp.eq.s32 %p0, %r1, 0; @%p0 bra L; ret;",
    ))  # fmt: skip
    start = "mov.u32 %r1, 0; setp.eq.s32 %p0, %r1, 0;"
    return f"{HEAD}.global .u32 x;\n.entry k()\n{{\n.reg .b32 %r<4>; .reg .pred %p<2>;\n{start}\n{body}\n}}\n"


def _cyclic(rng: random.Random, text: str) -> str:
    names = [f"f{i}" for i in range(rng.choice((1, 2, 5, 40)))]
    local = rng.choice(
        ("", ".local .b8 frame[5000]; mov.u64 %rd1, frame;", ".reg .b32 %q<4000000000>; mov.b32 %q7, 1;")
    )
    bodies = "".join(
        f".func {name}()\n{{\n.reg .b64 %rd<2>; {local}\ncall {names[(i + 1) % len(names)]};\nret;\n}}\n"
        for i, name in enumerate(names)
    )
    declared = "".join(f".func {name}();\n" for name in names)
    return f"{HEAD}{declared}{bodies}.entry k()\n{{\ncall {rng.choice(names)};\nret;\n}}\n"


WAYS: tuple[tuple[Callable[[random.Random, str], str], int], ...] = (
    (_cut, 14), (_garbled, 24), (_characters, 12), (_numbers, 12), (_declared, 16), (_bytes, 4), (_long, 4),
    (_repeated, 6), (_deep, 7), (_endless, 3), (_cyclic, 3),
)  # fmt: skip
"""Ways to make texts, with their weights."""


def hostile(number: int) -> str:
    """Make a text by its number."""
    rng = random.Random(f"hostile {number}")
    text = rng.choice(MODULES)
    ways, weights = zip(*WAYS, strict=True)
    for way in rng.choices(ways, weights, k=rng.choice((1, 1, 1, 2, 3))):
        text = way(rng, text or " ")
    return text


def grid_of(number: int) -> int:
    """Blocks of the launch: sometimes as many as there can be."""
    return 2**31 - 1 if number % 8 == 5 else 1
