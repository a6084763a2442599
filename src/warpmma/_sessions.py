"""Simulated GPUs that stand in for a real one in a front end: which is active, and what is replaced meanwhile."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Protocol, TypeVar

from .errors import OperandError


class _Launched(Protocol):
    """A launch; `report` is that of the machine."""

    @property
    def report(self) -> Any: ...


L = TypeVar("L", bound=_Launched)
S = TypeVar("S")


class Launches(list[L]):
    """Launches, and how many instructions they executed, which is kept when the list is cleared."""

    instructions = 0

    def append(self, launch: L) -> None:
        """Add a launch."""
        super().append(launch)
        self.instructions += sum(launch.report.costs.instructions.values())


def put(replaced: ExitStack, holder: Any, name: str, value: Any) -> None:
    """Set an attribute until a stack is closed."""
    replaced.callback(setattr, holder, name, getattr(holder, name))
    setattr(holder, name, value)


class ActiveDevices(deque[S]):
    """Devices that are active in a front end, the innermost last.

    A front end is one for all threads: only the thread that made a device active may make another one active. `why`
    says that in an error.
    """

    def __init__(self, why: str) -> None:
        super().__init__()
        self._why = why
        self._replaced = ExitStack()
        self._entered: list[tuple[threading.Thread, ExitStack]] = []
        self._lock = threading.RLock()

    def activate(
        self, device: S, replace: Callable[[ExitStack], None], settle: Callable[[ExitStack], None]
    ) -> None:  # fmt: skip
        """Make a device active.

        `replace` replaces parts of the front end until no device is active, `settle` until this one is not; each fills
        the stack that is closed then. After an exception all is as before.
        """
        with self._lock:
            thread = self._entered[-1][0] if self else threading.current_thread()
            if thread is not threading.current_thread() and thread.is_alive():
                raise OperandError(
                    f"{self[-1]!r} is active in another thread, {thread.name}, and {self._why}: launch in its `with`, "
                    "or take processes"
                )
            settings = ExitStack()
            try:
                if not self:
                    replace(self._replaced)
                settle(settings)
            except BaseException:
                settings.close()
                if not self:
                    self._replaced.close()
                raise
            self.append(device)
            self._entered.append((threading.current_thread(), settings))

    def deactivate(self, device: S) -> None:
        """End what `activate` began; an error unless the device is the innermost."""
        with self._lock:
            if not self or self[-1] is not device:
                raise OperandError(f"{device!r} is not the innermost device that is active")
            self.pop()
            self._entered.pop()[1].close()
            if not self:
                self._replaced.close()
