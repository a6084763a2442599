"""The parts of Triton that are used here, looked up at first use.

They are internal to Triton. Versions 3.2 to 3.9 have them, in two or three forms each; an error names what a version
lacks.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import UnsupportedError

KNOWN = "3.2 to 3.9"


@dataclass(frozen=True, kw_only=True, eq=False)
class TritonInterface:
    """The parts of Triton that are used."""

    version: str
    folder: str  # of its modules
    drivers: Any  # DriverConfig, which holds the driver that is active
    backends: Any  # compiler and driver by the name of the backend; what `make_backend` looks at
    kernels: Any  # JITFunction, whose `run` every launch goes through
    tuners: Any  # Autotuner
    compiled: Any  # CompiledKernel
    target: Any  # GPUTarget
    driver_base: Any  # DriverBase
    dtypes: Any  # what types of elements are called, by what a tensor calls them
    most_threads: bool  # whether what loads a kernel returns the most threads of a block, too

    def active(self) -> Any:
        """Return the active driver, or the placeholder for none: never makes one."""
        names = vars(self.drivers)
        return names["_active"] if "_active" in names else names["active"]


def find_triton() -> TritonInterface:
    """Return these parts; an error if Triton is not installed, has another interface, or interprets kernels."""
    if _interprets():
        raise UnsupportedError("TRITON_INTERPRET is set, so Triton runs kernels as Python on NumPy; unset it")
    return _found()


def _interprets() -> bool:
    """Return whether kernels defined now are interpreted; newer versions cache the environment variable."""
    knobs = sys.modules.get("triton.knobs")
    if knobs is not None:
        return bool(knobs.runtime.interpret)
    return os.environ.get("TRITON_INTERPRET", "0").lower() in ("1", "true", "on", "yes", "y")


@cache
def _found() -> TritonInterface:
    if not _installed():
        where = "" if sys.platform == "linux" else f"; on {sys.platform} Triton does not exist"
        raise UnsupportedError(f"Triton is not installed: pip install 'warpmma[triton]' (Linux){where}")
    import triton

    version = str(getattr(triton, "__version__", "of no version"))
    compiled = _name(version, "triton.compiler.compiler", "CompiledKernel")
    asked = _name(version, "triton.compiler.compiler", "CompiledKernel", "_init_handles", "__code__", "co_names")
    if "load_binary" not in asked or "launcher_cls" not in asked:
        raise _lacking(version, "load_binary and launcher_cls in CompiledKernel._init_handles")
    drivers = _name(version, "triton.runtime.driver", "driver")
    if not hasattr(type(drivers), "set_active") or not {"_active", "active"} & set(vars(drivers)):
        raise _lacking(version, "triton.runtime.driver.driver.set_active")
    backends = _name(version, "triton.backends", "backends")
    if "nvidia" not in backends or not hasattr(backends["nvidia"].compiler, "add_stages"):
        raise _lacking(version, "triton.backends.backends['nvidia'].compiler.add_stages")
    try:
        dtypes = _name(version, "triton._utils", "type_canonicalisation_dict")
    except UnsupportedError:  # up to 3.2
        dtypes = _name(version, "triton.runtime.jit", "type_canonicalisation_dict")
    return TritonInterface(
        version=version, folder=str(Path(triton.__file__).parent), drivers=drivers, backends=backends,
        kernels=_name(version, "triton.runtime.jit", "JITFunction"),
        tuners=_name(version, "triton.runtime.autotuner", "Autotuner"), compiled=compiled,
        target=_name(version, "triton.backends.compiler", "GPUTarget"),
        driver_base=_name(version, "triton.backends.driver", "DriverBase"),
        dtypes=dtypes, most_threads="n_max_threads" in asked,
    )  # fmt: skip


def _installed() -> bool:
    """Return whether there is a package, rather than a folder of its name."""
    if "triton" in sys.modules:  # of a folder Python makes a package, which has no file
        return getattr(sys.modules["triton"], "__file__", None) is not None
    found = find_spec("triton")
    return found is not None and found.origin is not None


def _name(version: str, module: str, *names: str) -> Any:
    """Return an attribute of a module of Triton, by one name or a path of names."""
    try:
        found: Any = import_module(module)
        for name in names:
            found = getattr(found, name)
    except (ImportError, AttributeError):
        raise _lacking(version, ".".join((module, *names))) from None
    return found


def _lacking(version: str, what: str) -> UnsupportedError:
    return UnsupportedError(
        f"Triton {version} has no {what}; warpmma.triton knows {KNOWN}: pip install 'triton==3.6.*'"
    )
