"""A driver that is active where WARPMMA_TRITON is set, and makes the simulated device of it."""

from __future__ import annotations

import os
from typing import Any

try:
    from triton.backends.driver import DriverBase
except ImportError:  # for those who look through the package without Triton
    DriverBase = object


class EnvironmentDriver(DriverBase):  # type: ignore[misc]
    """Stands for the simulated device that WARPMMA_TRITON describes."""

    def __new__(cls, *_: Any) -> Any:
        """Return the driver of the simulated device."""
        from ..session import install_from_environment

        return install_from_environment()

    @classmethod
    def is_active(cls) -> bool:
        """Return whether the environment asks for it."""
        return bool(os.environ.get("WARPMMA_TRITON"))


EnvironmentDriver.__abstractmethods__ = frozenset()  # what a version asks for, the simulated driver has
