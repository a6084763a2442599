"""A target, and an `mma` of known types, are one row each: shown on a copy of the package with one line more."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import warpmma
from warpmma.arithmetic.dispatch import native

SOURCE = Path(warpmma.__file__).parent
_native: Any = native._native


def with_row(folder: Path, file: str, after: str, row: str) -> Path:
    """Copy the package into a folder, with a row after the one line that begins with a text; return the folder."""
    shutil.copytree(SOURCE, folder / "warpmma", ignore=shutil.ignore_patterns("__pycache__", "native", "*.npz"))
    path = folder / "warpmma" / file
    before, found, behind = path.read_text().partition(f"\n{after}")
    assert found and after not in behind
    rest, _, behind = behind.partition("\n")
    if native.levels():  # an editable install has it elsewhere
        shutil.copy(_native.__file__, folder / "warpmma")
    path.write_text(f"{before}{found}{rest}\n{row}\n{behind}")
    return folder


# Without the finders of editable installs, which know where the package really is.
PLAIN = "import sys\nsys.meta_path[:] = [x for x in sys.meta_path if x.__module__.startswith('_frozen_importlib')]\n"


def answer(folder: Path, code: str) -> Any:
    """Run code with the package of a folder; return what it prints last, as JSON."""
    paths = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    done = subprocess.run(
        [sys.executable, "-c", f"{PLAIN}import json, numpy as np, warpmma as wm\n{code}"],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": paths}, check=False,
    )  # fmt: skip
    assert not done.returncode, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


TARGET = '    (199, _PLAIN, "Hopper", 227, 228, 2048, "made up"),'


@pytest.fixture(scope="module")
def new_target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_row(tmp_path_factory.mktemp("target"), "isa/targets.py", "    (121, ", TARGET)


def test_a_target_is_one_row(new_target: Path) -> None:
    code = """
i = wm.parse("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
f8 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"
a, b = np.full((16, 16), 1.5, np.float16), np.full((16, 8), 3, np.float16)
recipes = wm.arithmetic.recipe
print(json.dumps({
    "file": wm.__file__, "named": wm.TARGETS[-1], "legal": len(wm.instructions("sm_199")),
    "hopper": len(wm.instructions("sm_90")), "since": list(i.targets[-2:]),
    "recipe": [recipes(i, "sm_199") == recipes(i, "sm_90") for i in wm.instructions("sm_90")],
    "evidence": str(wm.evidence(i, target="sm_199")),
    "kinds": sorted({wm.evidence(i, target="sm_199").kind for i in wm.instructions("sm_199")}),
    "assumption": wm.evidence(f8, target="sm_199").assumption,
    "mma": sorted({float(x) for e in wm.engines() for x in wm.mma(i, a, b, target="sm_199", engine=e).flat}),
    "matmul": float(wm.matmul(a, b, target="sm_199")[3, 4]),
}))
"""
    x = answer(new_target, code)
    assert Path(x["file"]).parent == new_target / "warpmma"
    assert x["named"] == "sm_199" and x["since"] == ["sm_121a", "sm_199"]
    assert x["legal"] == x["hopper"] == len(x["recipe"]) == 198 and all(x["recipe"])
    assert x["evidence"] == (
        "derived: sm_90, of the same generation (measured: this project); assuming that sm_199 computes as sm_90 does; "
        "as HMMA"
    )
    assert x["kinds"] == ["derived"] and x["assumption"] == "that sm_199 computes as sm_90 does"
    assert x["mma"] == [72.0] and x["matmul"] == 72.0


def test_a_new_target_has_no_warpgroups_yet(new_target: Path) -> None:
    """What a row of targets cannot say is said plainly."""
    code = """
try:
    wm.evidence("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", target="sm_199")
except wm.TargetError as error:
    print(json.dumps(str(error)))
"""
    assert answer(new_target, code).endswith("is not legal on sm_199; legal on sm_90a")


def test_a_target_of_an_unknown_generation_is_told_so(tmp_path: Path) -> None:
    row = TARGET.replace("Hopper", "Rubin")
    code = """
said = []
for call in (wm.arithmetic.recipe, lambda i, t: wm.evidence(i, target=t)):
    try:
        call("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "sm_199")
    except wm.WarpmmaError as error:
        said.append(f"{type(error).__name__}: {error}")
print(json.dumps(said))
"""
    said = answer(with_row(tmp_path, "isa/targets.py", "    (121, ", row), code)
    first = "mma.sync.aligned.m8n8k4.row.row.f16.f16.f16.f16"
    assert said == [f"TableError: LOWERINGS has no row for {first} on Rubin, of the group 'quad pair'"] * 2


FAMILIES = "_DENSE = ("
MMA = """        Family(
            shapes="m16n8k32", accumulators=(_F, _S), multiplicands=_same("f16"), since="sm_90", ptx=(9, 9),
        ),"""


@pytest.fixture(scope="module")
def new_shape(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_row(tmp_path_factory.mktemp("shape"), "isa/tables/families.py", FAMILIES, MMA)


def test_an_mma_of_known_types_is_one_row(new_shape: Path) -> None:
    code = """
from warpmma.arithmetic import recipe
from warpmma.arithmetic.exact.reference import dot
i = wm.parse("mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
rng = np.random.default_rng(7)
A, B = (rng.integers(0, 0x7C00, s, np.uint16) | rng.integers(0, 2, s, np.uint16) << 15 for s in ((16, 32), (32, 8)))
C = rng.standard_normal((16, 8)).astype(np.float32)
expected = [[dot(recipe(i, "sm_90"), A[r].tolist(), B[:, n].tolist(), int(C.view(np.uint32)[r, n]))
             for n in range(8)] for r in range(16)]
x = [wm.load(i, name, matrix) for name, matrix in (("A", A.view(np.float16)), ("B", B.view(np.float16)), ("C", C))]
same, back = [], np.array_equal(wm.store(i, "A", x[0]).view(np.uint16), A)
for engine in wm.engines():
    D = wm.store(i, "D", wm.execute(i, *x, target="sm_90", engine=engine))
    same.append(np.array_equal(D.view(np.uint32), np.array(expected, np.uint32)))
print(json.dumps({
    "registers": [len(r) for r in x], "same": same, "back": back, "targets": i.targets[:2],
    "count": len(wm.instructions()), "default": wm.choose(A.view(np.float16), B.view(np.float16), target="sm_90").steps,
    "evidence": {t: str(wm.evidence(i, target=t)) for t in ("sm_90", "sm_100", "sm_103")},
    "others": wm.evidence("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", target="sm_90").kind,
}))
"""
    x = answer(new_shape, code)
    assert x["registers"] == [8, 4, 4] and x["back"] and x["targets"] == ["sm_90", "sm_90a"]
    assert x["same"] == [True] * (2 if native.levels() else 1)
    assert x["count"] == len(warpmma.instructions()) + 2 and x["default"] == 1
    assert x["evidence"] == {
        "sm_90": (
            "derived: other shapes (measured: this project); assuming that m16n8k32 is computed as m16n8k16 is; as HMMA"
        ),
        "sm_100": (
            "derived: other shapes (published: Xie et al., arXiv 2511.10909, and mmasim 2.1.1; Khattak and Mikaitis, "
            "arXiv 2512.07004); assuming that m16n8k32 is computed as m16n8k16 is; as HMMA"
        ),
        "sm_103": (
            "derived: machine code of ptxas 13.0; assuming that its matrix unit computes as sm_100's does; as HMMA"
        ),
    }
    assert x["others"] == "measured"


def test_an_mma_of_types_that_never_met_is_told_so(tmp_path: Path) -> None:
    row = MMA.replace('_same("f16")', '(("f16", "s8"),)')
    code = """
try:
    wm.arithmetic.recipe("mma.sync.aligned.m16n8k32.row.col.f32.f16.s8.f32", "sm_90")
except wm.UnsupportedError as error:
    print(json.dumps(str(error)))
"""
    says = answer(with_row(tmp_path, "isa/tables/families.py", FAMILIES, row), code)
    assert says == (
        "mma.sync.aligned.m16n8k32.row.col.f16.f16.s8.f16: no group of instructions has A of f16 and B of s8"
    )
