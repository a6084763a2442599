"""Blocks `with t.where(p)` with statements that leave them early, without source: detected in the bytecode."""

from __future__ import annotations

import functools
import random
import sys
import textwrap
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from typing import Any

import numpy as np
import pytest

from warpmma.errors import UnsupportedError
from warpmma.kernel import launch
from warpmma.kernel.bytecode import left_early


def run(kernel: Any, *args: Any) -> None:
    launch(kernel, 1, 32, args, target="sm_90", shared=1024)


def nowhere(text: str, **names: Any) -> Any:
    """Compile the function `kernel` of a text that no traceback could show."""
    space = dict(names)
    exec(compile(textwrap.dedent(text), "<nowhere>", "exec"), space)
    return space["kernel"]


STORE = 't("st.global.b32", y + t.laneid * 4, 1)'
LOST = {
    "return": f"""
        def kernel(t, y):
            with t.where(t.laneid < 16):
                return
            {STORE}
        """,
    "return a value": f"""
        def kernel(t, y):
            with t.where(t.laneid < 16) as nothing:
                return t.laneid
            return {STORE}
        """,
    "return in a branch": f"""
        def kernel(t, y):
            with t.where(t.laneid < 16):
                if y is not None:
                    return
                {STORE}
            {STORE}
        """,
    "break": f"""
        def kernel(t, y):
            for i in range(3):
                with t.where(t.laneid < 16):
                    break
                {STORE}
        """,
    "break of a loop at its beginning": """
        def kernel(t, y):
            while True:
                with t.where(t.laneid < 16):
                    break
        """,
    "continue": f"""
        def kernel(t, y):
            for i in range(3):
                with t.where(t.laneid < 16):
                    continue
                {STORE}
        """,
    "continue of while": f"""
        def kernel(t, y):
            i = 0
            while i < 3:
                i += 1
                with t.where(t.laneid < 16):
                    continue
                {STORE}
        """,
    "two blocks": f"""
        def kernel(t, y):
            with t.where(t.laneid < 16):
                with t.where(t.laneid < 8):
                    return
                {STORE}
        """,
    "finally": f"""
        def kernel(t, y):
            try:
                with t.where(t.laneid < 16):
                    return
                {STORE}
            finally:
                y = None
        """,
}


@pytest.mark.parametrize("name", LOST)
def test_without_source(name: str) -> None:
    y = np.zeros(32, np.uint32)
    with pytest.raises(
        UnsupportedError, match=r"^<nowhere>: `return`, `break` or `continue` inside .* of line \d+ acts"
    ):
        run(nowhere(LOST[name]), y)
    assert not y.any()


KEPT = [
    """
    def kernel(t, y):
        with t.where(t.laneid < 16):
            return t.laneid
    """,
    f"""
    def kernel(t, y):
        for i in range(3):
            with t.where(t.laneid < 16):
                for j in range(3):
                    if j:
                        break
                {STORE}
        return i
    """,
    f"""
    def kernel(t, y):
        try:
            with t.where(t.laneid < 16) as nothing, t.where(t.laneid < 8):
                {STORE}
        except KeyError as error:
            return error
        finally:
            {STORE}
    """,
    f"""
    def kernel(t, y):
        with ExitStack() as stack:
            stack.enter_context(t.where(t.laneid < 16))
            {STORE}
        {STORE}
    """,
    f"""
    def kernel(t, y):
        mask = t.where(t.laneid < 16)
        with nullcontext():
            mask.__enter__()
            {STORE}
            mask.__exit__(None, None, None)
            {STORE}
        return y
    """,
    f"""
    @contextmanager
    def masked(t):
        with t.where(t.laneid < 16):
            yield

    def kernel(t, y):
        with masked(t):
            {STORE}
        {STORE}
    """,
]


@pytest.mark.parametrize("text", KEPT)
def test_right_without_source(text: str) -> None:
    names = {"ExitStack": ExitStack, "contextmanager": contextmanager, "nullcontext": nullcontext}
    run(nowhere(text, **names), np.zeros(32, np.uint32))


class Watched:
    """A block that asks on leaving it without an exception whether it is left early."""

    answers: list[bool]

    def __init__(self) -> None:
        self.entered: list[int] = []

    def __enter__(self) -> None:
        self.entered.append(sys._getframe(1).f_lasti)

    def __exit__(self, kind: object, *_: object) -> None:
        entered = self.entered.pop()
        if kind is None:
            frame = sys._getframe(1)
            Watched.answers.append(left_early(frame, frame.f_code, entered))


def program(rng: random.Random, indent: int, loop: bool, block: bool) -> list[str]:
    """Make statements that leave no block early."""
    pad, made = "    " * indent, []
    for _ in range(rng.randint(1, 3)):
        kind = rng.choice(
            ("step", "step", "with", "with", "if", "for", "while", "try", "leave") if indent < 6 else ("step",)
        )
        inner = functools.partial(program, rng, indent + 1)
        if kind == "step":
            made.append(pad + rng.choice(("step()", "x = step() and x", "x = (x, 1) if step() else None")))
        elif kind == "with":
            head = rng.choice(("with Watched():", "with Watched() as z:", "with nullcontext(), Watched():"))
            made += [pad + head, *inner(False, True)]
        elif kind == "if":
            made += [f"{pad}if step():", *inner(loop, block), f"{pad}else:", *inner(loop, block)]
        elif kind in ("for", "while"):
            head = "for i in range(2):" if kind == "for" else "while step():"
            made += [pad + head, *inner(True, block)]
        elif kind == "try":
            made += [f"{pad}try:", *inner(loop, block), f"{pad}except ValueError as e:", *inner(loop, block)]
            made += [f"{pad}finally:", *inner(False, True)] * rng.randint(0, 1)
        elif ways := ["break", "continue"] * loop + ["return", "return x", "return step()"] * (not block):
            return [*made, pad + rng.choice(ways)]
    return made or [f"{pad}pass"]


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.alike(3)
def test_no_false_reports_without_source(seed: int) -> None:
    """Of programs that leave no block early, whatever else they do."""
    rng = random.Random(seed)
    steps = 0

    def step() -> bool:
        nonlocal steps
        steps += 1
        if steps > 200:
            raise KeyError
        return rng.random() < 0.5

    text = "def kernel(x):\n" + "\n".join(program(rng, 1, False, False))
    kernel = nowhere(text, step=step, Watched=Watched, nullcontext=nullcontext)
    Watched.answers = []
    for _ in range(5):
        steps = 0
        with suppress(KeyError, UnboundLocalError):
            kernel(1)
    assert not any(Watched.answers), text
