"""The package itself: submodules that are there when they are used, and not before."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import warpmma as wm

SUBMODULES = {
    path.stem
    for path in Path(wm.__file__).parent.iterdir()
    if path.stem[0] != "_" and (path.suffix == ".py" or (path / "__init__.py").exists())
}


def output(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", sorted(SUBMODULES))
def test_submodules_load_on_first_use(name: str) -> None:
    assert name in dir(wm)
    module = getattr(wm, name)
    assert (
        inspect.ismodule(module) and module.__name__ == f"warpmma.{name}" and module is sys.modules[f"warpmma.{name}"]
    )


def test_an_import_of_the_package_loads_no_more_than_it_needs() -> None:
    code = "import sys, warpmma as wm; print(*(m for m in sys.modules if m.startswith('warpmma.') or '.' not in m))"
    loaded = set(output(code).split())
    heavy = {"hypothesis", "pytest", "ml_dtypes", "dask", "concurrent", "numpy", "dataclasses"}
    assert not loaded & heavy
    assert {name for name in loaded if name.startswith("warpmma.")} == {"warpmma._lazy", "warpmma._version"}
    used = "wm.kernel.launch, wm.testing.Gpu, wm.hardware.shipped, wm.sparsity.prune, wm.scaling.quantize"
    output(f"import warpmma as wm; {used}, wm.testing.strategies.matrices, wm.formats.floating, wm.arithmetic.recipes")


def test_rows_of_functions_are_looked_up_without_their_tables() -> None:
    code = """
import sys
from warpmma.arithmetic.exact import interpolation
from warpmma.operations import elementwise, operation, operations
operation("ex2.approx.ftz.f32"), operations("sm_90")
print(interpolation.interpolators.cache_info().currsize, "importlib.resources" in sys.modules)
elementwise("ex2.approx.ftz.f32", 0x3F800000 * __import__("numpy").ones(1, "uint32"))
print(interpolation.interpolators.cache_info().currsize)
"""
    assert output(code).split() == ["0", "False", "1"]


def test_what_is_not_there() -> None:
    with pytest.raises(AttributeError, match=r"^module 'warpmma' has no attribute 'kernels'"):
        wm.kernels  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(wm, "__path") and not hasattr(wm, "pytest_plugins")


def test_the_package_can_be_looked_through_without_hypothesis() -> None:
    """As `help` does, which asks for every name in `dir`."""
    code = """
import sys
sys.modules["hypothesis"] = None
import warpmma as wm
assert {name for name in dir(wm) if not hasattr(wm, name)} == set()
members = {name for name in dir(wm.testing) if hasattr(wm.testing, name)}
print("strategies" in dir(wm.testing), "strategies" in members, "Gpu" in members)
try:
    wm.testing.strategies
except AttributeError as error:
    print(error)
try:
    from warpmma.testing import strategies
except ImportError as error:
    print(error)
"""
    lines = output(code).splitlines()
    assert lines[0] == "True False True"
    assert lines[1].startswith("module 'warpmma.testing' cannot load 'strategies': import of hypothesis halted")
    assert lines[2].startswith("import of hypothesis halted")


@pytest.mark.parametrize(
    ("package", "old", "new"),
    [("isa", "AnyInstruction", "MatrixInstruction"), ("operations", "Row", "InstructionRow"),
     ("analysis", "Parting", "FirstDifference")],
)  # fmt: skip
def test_a_former_name_gives_the_new_object_and_warns(package: str, old: str, new: str) -> None:
    module = importlib.import_module(f"warpmma.{package}")
    with pytest.warns(DeprecationWarning, match=f"warpmma.{package}.{old} is named {new} now"):
        assert getattr(module, old) is getattr(module, new)
    with pytest.raises(AttributeError, match="no attribute 'Rows'"):
        module.Rows  # noqa: B018
