"""How the package is installed: a project that uses it may run pytest with warnings as errors, editable or not."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
import types
import zipfile
from pathlib import Path
from typing import Any

import pytest

from warpmma.cuda.compilers import GET_NVCC
from warpmma.cuda.sources import INSTALL
from warpmma.gpu import cuda_driver, why_no_gpu

ROOT = Path(__file__).parents[2]
HOOK = "_editable_skbc_warpmma.py"
INFO = "warpmma-0.3.0.dist-info"


def test_pytest_starts_with_warnings_as_errors(tmp_path: Path) -> None:
    """However it was installed, in a project of somebody else, where all plugins load."""
    (tmp_path / "test_it.py").write_text("def test_it(gpu):\n    assert gpu.target == 'sm_80'\n")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-W", "error", "-p", "no:cacheprovider", "--warpmma-target", "sm_80"],
        cwd=tmp_path, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed in" in done.stdout


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The build backend, above a scikit-build-core that makes the least of editable wheels."""

    def build_editable(folder: str, settings: Any, metadata: Any) -> str:
        files = {
            HOOK: "from __future__ import annotations\n\ninstalled = __name__\n",
            "_editable_skbc_warpmma.pth": "import _editable_skbc_warpmma\n/src\n",
            "warpmma/_native.so": "\x7fELF",
            f"{INFO}/RECORD": f"{HOOK},sha256=old,1\nwarpmma/_native.so,sha256=kept,4\n{INFO}/RECORD,,\n",
        }
        with zipfile.ZipFile(Path(folder) / "warpmma.whl", "w") as wheel:
            for name, text in files.items():
                wheel.writestr(name, text)
        return "warpmma.whl"

    def build_wheel(folder: str, settings: Any, metadata: Any) -> str:
        return os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", "one")

    monkeypatch.delenv("CMAKE_BUILD_PARALLEL_LEVEL", raising=False)
    fake: Any = types.ModuleType("scikit_build_core.build")
    fake.build_editable, fake.build_wheel, fake.prepare_metadata_for_build_wheel = build_editable, build_wheel, print
    fake.__all__ = ["build_editable", "build_wheel", "prepare_metadata_for_build_wheel"]
    above: Any = types.ModuleType("scikit_build_core")
    above.build = fake
    monkeypatch.setitem(sys.modules, "scikit_build_core", above)
    monkeypatch.setitem(sys.modules, "scikit_build_core.build", fake)
    spec = importlib.util.spec_from_file_location("build_backend", ROOT / "build_backend.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_module_of_an_editable_install_asks_not_to_be_rewritten(backend: Any, tmp_path: Path) -> None:
    assert backend.prepare_metadata_for_build_wheel is print  # other hooks are scikit-build-core's
    assert backend.build_editable(str(tmp_path)) == "warpmma.whl"
    with zipfile.ZipFile(tmp_path / "warpmma.whl") as wheel:
        files = {name: wheel.read(name) for name in wheel.namelist()}
    assert list(tmp_path.iterdir()) == [tmp_path / "warpmma.whl"]
    names: dict[str, Any] = {"__name__": "hook"}
    exec(compile(files[HOOK], HOOK, "exec"), names)
    assert names["installed"] == "hook" and "PYTEST_DONT_REWRITE" in names["__doc__"]
    digest = base64.urlsafe_b64encode(hashlib.sha256(files[HOOK]).digest()).rstrip(b"=").decode()
    assert files[f"{INFO}/RECORD"].decode().splitlines() == [
        f"{HOOK},sha256={digest},{len(files[HOOK])}", "warpmma/_native.so,sha256=kept,4", f"{INFO}/RECORD,,",
    ]  # fmt: skip
    assert files["_editable_skbc_warpmma.pth"] == b"import _editable_skbc_warpmma\n/src\n"


def test_the_engine_is_built_on_all_cores(backend: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "environ", {})
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 4, 5}, raising=False)
    assert backend.build_wheel(str(tmp_path)) == "3"
    monkeypatch.setattr(os, "environ", {"CMAKE_BUILD_PARALLEL_LEVEL": "7"})
    assert backend.build_wheel(str(tmp_path)) == "7"
    monkeypatch.setattr(os, "environ", {})
    backend.build_editable(str(tmp_path))
    assert os.environ == {"CMAKE_BUILD_PARALLEL_LEVEL": "3"}


@pytest.mark.parametrize(
    ("hook", "variables", "pure"),
    [
        ("build_wheel", {}, False),
        ("build_wheel", {"WARPMMA_REQUIRE_NATIVE": "0"}, False),
        ("build_wheel", {"WARPMMA_PURE": "1"}, True),
        ("build_editable", {}, True),
        ("build_editable", {"WARPMMA_REQUIRE_NATIVE": "1"}, False),
    ],
)
def test_what_a_build_without_a_compiler_gives(
    hook: str, variables: dict[str, str], pure: bool, tmp_path: Path
) -> None:
    """With a compiler that refuses everything. A wheel is pure Python only if that is asked for."""
    pytest.importorskip("scikit_build_core")
    pytest.importorskip("nanobind")
    environment = {name: x for name, x in os.environ.items() if not name.startswith(("WARPMMA_", "CMAKE_ARGS"))}
    environment |= {"CXX": "/bin/false", **variables}
    call = f"import sys, build_backend; build_backend.{hook}(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", call, str(tmp_path)], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    said, wheels = done.stdout + done.stderr, list(tmp_path.glob("*.whl"))
    if not pure:
        assert done.returncode != 0 and not wheels and "CMake" in said
        assert "WARPMMA_PURE=1 installs warpmma without it" in said
        return
    assert done.returncode == 0, said
    assert ("without its native engine" in said) == (hook == "build_editable")
    if hook == "build_wheel":
        assert [wheel.name for wheel in wheels] == ["warpmma-0.3.0-py3-none-any.whl"]
        with zipfile.ZipFile(wheels[0]) as wheel:
            assert {name.partition("/")[0] for name in wheel.namelist()} == {"warpmma", INFO}


def test_extras_have_what_errors_and_pages_promise() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    parts = {
        name: {part for each in wanted for part in re.findall(r"cuda-toolkit\[(.*?)\]", each)}
        for name, wanted in project["optional-dependencies"].items()
    }
    (cuda,), (nvcc,), gpu = parts["cuda"], parts["nvcc"], project["optional-dependencies"]["gpu"]
    assert {"nvrtc", "curand", "cccl", "cudart"} <= {*cuda.split(",")}
    assert {"nvcc", "nvvm", "crt", "curand", "cccl", "cudart"} <= {*nvcc.split(",")}
    assert parts["gpu"] == {"nvrtc"} and any(x.startswith("cuda-bindings==") for x in gpu)
    named = {x for text in (INSTALL, GET_NVCC) for x in re.findall(r"'warpmma\[(.*?)\]'", text)}
    assert named == {"cuda", "nvcc"}


def test_a_gpu_without_bindings_asks_for_the_smallest_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    cuda_driver._driver.cache_clear()
    assert why_no_gpu() == "engine='cuda' needs cuda-bindings: pip install 'warpmma[gpu]'"
