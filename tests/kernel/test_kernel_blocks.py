"""Blocks `with t.where(p)` with statements that leave them early, if their source is available."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from typing import Any

import numpy as np
import pytest

from warpmma.errors import UnsupportedError
from warpmma.kernel import launch
from warpmma.kernel.blocks import check_kernel

pytestmark = pytest.mark.quick


def run(kernel: Callable[..., object], *args: Any) -> None:
    launch(kernel, 1, 32, args, target="sm_90", shared=1024)


def line(function: Any, offset: int) -> int:
    return int(function.__code__.co_firstlineno) + offset


def with_return(t: Any, y: Any) -> None:
    with t.where(t.laneid < 16):
        return
    t("st.global.b32", y + t.laneid * 4, 1)


def with_break(t: Any, y: Any) -> None:
    for _ in range(3):
        with t.where(t.laneid < 16):
            t("st.global.b32", y, 1)
            break
        t("st.global.b32", y + t.laneid * 4, 1)


def with_continue(t: Any, y: Any) -> None:
    for _ in range(3):
        with t.where(t.laneid < 16):
            if y is not None:
                continue
        t("st.global.b32", y + t.laneid * 4, 1)


def at_the_end(t: Any, y: Any) -> None:
    t("st.global.b32", y + t.laneid * 4, 1)
    with t.where(t.laneid < 16):
        return


def in_a_nested_function(t: Any, y: Any) -> None:
    def inner() -> None:
        with t.where(t.laneid < 16):
            return
        t("st.global.b32", y + t.laneid * 4, 1)

    inner()


def in_a_branch(t: Any, y: Any) -> None:
    """Which does not run here."""
    if y is None:
        with t.where(t.laneid < 16):
            return
    t("st.global.b32", y + t.laneid * 4, 1)


def of_two(t: Any, y: Any) -> None:
    with nullcontext(), t.where(t.laneid < 16):
        return
    t("st.global.b32", y + t.laneid * 4, 1)


def either(t: Any, p: Any) -> Any:
    with t.where(p):
        return t.laneid + 1
    return t.laneid


def in_a_helper(t: Any, y: Any) -> None:
    t("st.global.b32", y + t.laneid * 4, either(t, t.laneid < 3))


BEFORE: dict[str, tuple[Any, Any, int, str]] = {
    "return": (with_return, with_return, 2, "return"),
    "break": (with_break, with_break, 4, "break"),
    "continue": (with_continue, with_continue, 4, "continue"),
    "at the end": (at_the_end, at_the_end, 3, "return"),
    "nested": (in_a_nested_function, in_a_nested_function, 3, "return"),
    "branch": (in_a_branch, in_a_branch, 4, "return"),
    "two": (of_two, of_two, 2, "return"),
    "helper": (in_a_helper, either, 2, "return"),
}


@pytest.mark.parametrize("name", BEFORE)
def test_before_the_run(name: str) -> None:
    """The line is named, and nothing has been written."""
    kernel, where, offset, word = BEFORE[name]
    y = np.zeros(32, np.uint32)
    with pytest.raises(UnsupportedError, match=rf"^test_kernel_blocks\.py:{line(where, offset)}: `{word}` inside"):
        run(kernel, y)
    assert not y.any()


class Kernels:
    """Kernels that are methods."""

    def __call__(self, t: Any) -> None:
        with t.where(t.laneid < 16):
            return

    def method(self, number: int, t: Any) -> None:
        with t.where(t.laneid < 16):
            return


def bound_first(number: int, t: Any) -> None:
    with t.where(t.laneid < 16):
        return


@pytest.mark.parametrize(
    "kernel",
    [Kernels(), functools.partial(Kernels().method, 3), functools.partial(bound_first, 3),
     functools.partial(functools.partial(Kernels().method, 3))],
    ids=["callable", "method", "partial", "partials"],
)  # fmt: skip
def test_callables(kernel: Any) -> None:
    with pytest.raises(UnsupportedError, match="`return` inside the block"):
        check_kernel(kernel)


def decorated(function: Callable[..., object]) -> Callable[..., object]:
    @functools.wraps(function)
    def wrapper(*args: Any) -> object:
        return function(*args)

    return wrapper


def hidden(function: Callable[..., object]) -> Callable[..., object]:
    return lambda *args: function(*args)


def renamed(t: Any, y: Any) -> None:
    threads = t
    with threads.where(t.laneid < 16):
        return
    t("st.global.b32", y + t.laneid * 4, 1)


def kept(t: Any, y: Any) -> None:
    mask = t.where(t.laneid < 16)
    with mask:
        return
    t("st.global.b32", y + t.laneid * 4, 1)


def chosen(t: Any, y: Any, masked: bool = True) -> None:
    with t.where(t.laneid < 16) if masked else nullcontext():
        return
    t("st.global.b32", y + t.laneid * 4, 1)


@pytest.mark.parametrize(
    "kernel",
    [decorated(with_return), hidden(with_return), renamed, kept, chosen, functools.partial(chosen, masked=True),
     lambda t, y: with_return(t, y)],
    ids=["decorated", "hidden", "renamed", "kept", "chosen", "chosen by partial", "lambda"],
)  # fmt: skip
def test_on_entering(kernel: Any) -> None:
    """Where the source before the run does not tell: at the block, before anything in it runs."""
    y = np.zeros(32, np.uint32)
    with pytest.raises(UnsupportedError, match=r"^test_kernel_blocks\.py:\d+: `return` inside the block"):
        run(kernel, y)
    assert not y.any()


# What is right.


def loops_inside(t: Any, y: Any) -> None:
    with t.where(t.laneid < 16):
        for i in range(3):
            if i == 1:
                continue
            while True:
                break
            else:
                pass

        def inner() -> int:
            return 3

        t("st.global.b32", y + t.laneid * 4, inner())
    return


def pick(t: Any, p: Any, yes: Any, no: Any) -> Any:
    """A helper's result, from a block that nothing follows."""
    with t.where(p):
        return t.update(no, yes)


def try_pick(t: Any, p: Any) -> Any:
    """Nothing follows here, either."""
    try:
        if p is not None:
            with t.where(p):
                return t.laneid
    finally:
        p = None


def with_helpers(t: Any, y: Any) -> None:
    t("st.global.b32", y + t.laneid * 4, pick(t, t.laneid < 3, t.constant(1), t.constant(2)))
    with t.where(t.laneid < 3):
        t("st.global.b32", y + t.laneid * 4, try_pick(t, t.laneid < 3))


def on_a_stack(t: Any, y: Any) -> None:
    mask = t.where(t.laneid < 16)
    with ExitStack() as stack:
        stack.enter_context(mask)
        t("st.global.b32", y + t.laneid * 4, 1)
    with nullcontext():
        mask.__enter__()
        t("st.global.b32", y + t.laneid * 4, 1)
        mask.__exit__(None, None, None)
        t("st.global.b32", y + t.laneid * 4, 1)


class Table:
    """Something else with a `where`."""

    def where(self, _: object) -> Any:
        return nullcontext()


def of_something_else(t: Any, y: Any) -> None:
    table = Table()
    with table.where(t.laneid):
        return


def another_name(t: Any, y: Any) -> None:
    def inner(t: Any) -> int:
        with t.where(3):
            return 1
        return 2

    t("st.global.b32", y, inner(Table()))


def not_masked(t: Any, y: Any) -> None:
    chosen(t, y, masked=False)


def over_an_exception(t: Any, y: Any) -> None:
    try:
        with t.where(t.laneid < 16):
            raise KeyError
    except KeyError:
        t("st.global.b32", y + t.laneid * 4, 7)


RIGHT = [loops_inside, with_helpers, on_a_stack, of_something_else, another_name, not_masked, over_an_exception]


@pytest.mark.parametrize("kernel", RIGHT, ids=lambda kernel: str(kernel.__name__))
def test_right(kernel: Any) -> None:
    run(kernel, np.zeros(32, np.uint32))
