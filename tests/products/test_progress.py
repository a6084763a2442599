"""Whole products while they run: progress, threads, errors and interrupts."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np
import pytest
from product_cases import each_engine, small_tiles

import warpmma as wm
from warpmma.products.chain import Chain


@each_engine
@pytest.mark.parametrize("threads", [None, 1, 3])
def test_progress(threads: int | None, engine: Any) -> None:
    a = np.ones((2, 10, 16), np.float16)
    told: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        assert threading.current_thread() is threading.main_thread()
        told.append((done, total))

    with small_tiles(4):
        wm.matmul(a, a[0].T, target="sm_90", engine=engine, threads=threads, progress=progress)
    assert told == [(x + 1, 18) for x in range(18)]


class Falsy:
    """A callback that is false as a value, as a list of messages with a `__call__` is while it is empty."""

    told = 0

    def __len__(self) -> int:
        return 0

    def __call__(self, done: int, total: int) -> None:
        self.told += 1


def test_a_falsy_callback_is_one() -> None:
    a, callback = np.ones((2, 16), np.float16), Falsy()
    for threads in (1, 2):
        wm.matmul(a, a.T, target="sm_90", threads=threads, progress=callback)
    assert callback.told == 2


@contextmanager
def no_threads_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


@contextmanager
def counted_tiles(then: Callable[[int], object]) -> Iterator[list[int]]:
    """Small tiles, of which the first five are computed: `then` is called with a tile's number when it begins, and
    later ones wait until those that have not begun are dropped. Yield the numbers of those that began.
    """
    began: list[int] = []
    numbers, dropped = count(1), threading.Event()
    advance, shutdown = Chain.advance, ThreadPoolExecutor.shutdown

    def counted(*args: Any) -> Any:
        began.append(number := next(numbers))
        then(number)
        assert number <= 5 or dropped.wait(60)
        return advance(*args)

    def drop(pool: Any, wait: bool = True, *, cancel_futures: bool = False) -> None:
        shutdown(pool, wait=False, cancel_futures=cancel_futures)
        dropped.set()
        shutdown(pool, wait=wait)

    with no_threads_left(), small_tiles(4), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Chain, "advance", counted)
        patch.setattr(ThreadPoolExecutor, "shutdown", drop)
        yield began


ROWS = np.ones((80, 16), np.float16)  # 400 tiles


@pytest.mark.parametrize("threads", [1, 2])
def test_an_exception_in_progress_stops(threads: int) -> None:
    def progress(done: int, total: int) -> None:
        if done == 3:
            raise LookupError("enough")

    with counted_tiles(lambda number: None) as began:
        with pytest.raises(LookupError, match="enough"):
            wm.matmul(ROWS, ROWS.T, target="sm_90", threads=threads, progress=progress)
        assert 3 <= len(began) <= 5 + threads


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_in_a_tile_stops(threads: int) -> None:
    def fail(number: int) -> None:
        if number == 5:
            raise MemoryError("no room")

    with counted_tiles(fail) as began:
        with pytest.raises(MemoryError, match="no room"):
            wm.matmul(ROWS, ROWS.T, target="sm_90", threads=threads)
        assert 5 <= len(began) <= 5 + threads


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no way to send a signal to a thread")
@pytest.mark.parametrize("threads", [1, 2])
def test_an_interrupt_stops(threads: int) -> None:
    main = threading.get_ident()

    def interrupt(number: int) -> None:
        if number == 5:
            signal.pthread_kill(main, signal.SIGINT)

    gc.disable()  # Python drops an interrupt that arrives during a callback of its collector
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        with counted_tiles(interrupt) as began:
            with pytest.raises(KeyboardInterrupt):
                wm.matmul(ROWS, ROWS.T, target="sm_90", threads=threads)
            assert 5 <= len(began) <= 5 + threads
    finally:
        signal.signal(signal.SIGINT, handler)
        gc.enable()
