"""Independent pieces of work, on one thread or several; their order cannot be seen in the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ._arguments import is_integer
from ._progress import Progressing, Watched
from .errors import OperandError, shown

T = TypeVar("T")


def for_each(
    run: Callable[[T], object], items: Sequence[T], threads: int | None = None, progress: Watched = None,
    what: str = "pieces",
) -> None:  # fmt: skip
    """Run every piece; on an exception, or an interrupt, those that have not begun are dropped.

    Parameters
    ----------
    run : callable
    items : sequence
    threads : int, optional
        One by default.
    progress : bool or callable, optional
        Is told how many pieces are done, and how many there are, in the caller's thread; True shows a bar.
    what : str
        What the pieces are, for the bar.
    """
    if threads is not None and (not is_integer(threads) or threads < 1):
        raise OperandError(f"threads is {shown(threads)}; expected a positive integer or None")
    with Progressing(progress, what) as tell:
        tell.begin(len(items))
        _run(run, items, threads, tell)


def _run(run: Callable[[T], object], items: Sequence[T], threads: int | None, tell: Progressing) -> None:
    if threads is None or threads == 1:
        for done, item in enumerate(items, 1):
            run(item)
            tell(done, len(items))
        return
    from concurrent.futures import ThreadPoolExecutor, as_completed  # a tenth of the time that importing all else takes

    pool = ThreadPoolExecutor(threads)
    try:
        for done, future in enumerate(as_completed([pool.submit(run, item) for item in items]), 1):
            future.result()
            tell(done, len(items))
    finally:
        pool.shutdown(cancel_futures=True)
