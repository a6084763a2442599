"""Every part of the CuTe DSL that is used and that another version may lack: a list, compared with what is there."""

from __future__ import annotations

import inspect
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from warpmma.cute import cute_interface, runtime_functions

pytest.importorskip("cutlass.cute")

SIGNATURES = {
    "compile": ("self", "module", "pipeline"),
    "jit": ("self", "module", "opt_level", "shared_libs"),
    "direct": ("self", "funcBody", "args", "kwargs"),
    "load": ("self",),
    "call": ("self", "args", "kwargs"),
    "bind": ("self", "device"),
    "execute": ("self", "exe_args"),
    "raw_pointer": ("address",),
    "tensor": ("tensor", "assumed_align"),
    "pointer": ("pointer", "dtype"),
    "clusters": ("self", "cluster_size"),
    "workspaces": ("one_workspace_bytes", "warmup_iterations", "iterations"),
    "benchmark": ("callable",),
    "tuning": ("callable", "args"),
    "results": ("max_elems",),
}  # fmt: skip


def test_the_version_is_the_one_that_is_known() -> None:
    assert cute_interface.installed_version() == cute_interface.KNOWN
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8")
    assert f'"nvidia-cutlass-dsl=={cute_interface.KNOWN};' in text


@pytest.mark.parametrize("name", cute_interface.PRIVATE)
def test_a_part_is_there(name: str) -> None:
    part: Any = cute_interface.private_part(name)
    if name in SIGNATURES:
        found = tuple(inspect.signature(part).parameters)
        assert found[: len(SIGNATURES[name])] == SIGNATURES[name]


def test_settings_are_there() -> None:
    environment = cute_interface.private_part("dsl")._get_dsl().envar
    assert all(hasattr(environment, name) for name in cute_interface.SETTINGS)


def test_the_runtime_has_the_functions_that_are_given(tmp_path: Path) -> None:
    """Their names, in NVIDIA's library, which the host code would call."""
    folder = Path(cute_interface.find_cute().folder).parents[1]
    library = next(folder.glob("cu*/lib/libcute_dsl_runtime.so"))
    try:
        done = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True)
    except FileNotFoundError:
        pytest.skip("no nm")
    exported = set(re.findall(r" T (\S+)", done.stdout))
    assert set(runtime_functions.FUNCTIONS) <= exported
