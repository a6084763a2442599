"""Builds the package: scikit-build-core on all cores, and a word to pytest in the module of an editable install.

CMake's makefiles build one file after the other unless they are told otherwise; $CMAKE_BUILD_PARALLEL_LEVEL, where it
is set, says how many at a time.

The module that makes an editable install work finds the sources and the built engine; Python imports it at every start.
pytest rewrites the assertions of its plugins' modules, takes it for one of them, and warns that it is imported already,
which `pytest -W error` makes an error at the start of every run. With PYTEST_DONT_REWRITE in its docstring, pytest
leaves a module alone.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

from scikit_build_core import build

_HOOK = re.compile(r"_editable_\w+\.py")
_LINE = '\n__doc__ = "PYTEST_DONT_REWRITE"\n'


def build_wheel(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Build a wheel, and return its name."""
    _use_all_cores()
    name: str = build.build_wheel(wheel_directory, config_settings, metadata_directory)
    return name


def build_editable(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Build a wheel that refers to the sources, and return its name."""
    _use_all_cores()
    name: str = build.build_editable(wheel_directory, config_settings, metadata_directory)
    wheel = Path(wheel_directory) / name
    changed = wheel.with_suffix(".changed")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as new:
        hooks = {each: old.read(each) + _LINE.encode() for each in old.namelist() if _HOOK.fullmatch(each)}
        for each in old.infolist():
            data = hooks.get(each.filename, old.read(each))
            if each.filename.endswith(".dist-info/RECORD"):
                data = _recorded(data.decode(), hooks).encode()
            new.writestr(each, data)
    shutil.move(changed, wheel)
    return name


def __getattr__(name: str) -> Any:
    """Give the other hooks of a build backend as scikit-build-core has them."""
    return getattr(build, name)


def _use_all_cores() -> None:
    """Let CMake run as many compilers as this process may use cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    os.environ.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", str(cores))


def _recorded(record: str, files: dict[str, bytes]) -> str:
    """Return a wheel's list of files with the hashes and sizes of these."""
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        record = re.sub(rf"(?m)^{re.escape(name)},.*$", f"{name},sha256={digest},{len(data)}", record)
    return record
