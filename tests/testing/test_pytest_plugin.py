"""The pytest plugin, in processes of its own: what it adds, what it says, and that it leaves everything else alone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest
from kept_constants import share_constants

import warpmma

Run = Callable[..., str]

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
FP8 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"
HEAD = f"""
import numpy as np
import pytest
F16, FP8 = {F16!r}, {FP8!r}
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run pytest on a file of these tests, with warnings as errors; and check its exit status."""

    share_constants(tmp_path)

    def start(tests: str, *options: str, status: int = 0, **files: str) -> str:
        (tmp_path / "test_it.py").write_text(HEAD + tests)
        (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\naddopts = --strict-markers\n")
        for name, text in files.items():
            (tmp_path / f"{name}.py").write_text(text)
        done = python(
            "-m", "pytest", "-p", "warpmma.testing.plugin", "-p", "_hypothesis_pytestplugin", "-p", "no:cacheprovider",
            "-W", "error", *options, where=tmp_path,
        )  # fmt: skip
        text = done.stdout + done.stderr
        assert done.returncode == status, text
        return text

    return start


def python(*arguments: str, where: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "200", "NO_COLOR": "1"}
    environment.pop("PYTEST_ADDOPTS", None)
    return subprocess.run([sys.executable, *arguments], cwd=where, env=environment, capture_output=True, text=True)


def test_pytest_finds_it() -> None:
    """After an install; `-p` does for the tests here what this entry point does for users."""
    found = {e.name: e.value for e in metadata.entry_points(group="pytest11")}
    assert found.get("warpmma") == "warpmma.testing.plugin"


def test_gpu_is_of_each_target_that_is_named(run: Run) -> None:
    text = run(
        """
def test_it(gpu):
    a, b = np.ones((16, 16), np.float16), np.ones((16, 8), np.float16)
    print("on", gpu.target, gpu.has(FP8), gpu.mma(F16, a, b)[0, 0])
""",
        "-s", "-v", "--warpmma-target", "sm_80", "--warpmma-target=sm_120a", "--warpmma-target", "sm_80",
    )  # fmt: skip
    assert "on sm_80 False 16.0" in text
    assert "on sm_120a True 16.0" in text
    assert "test_it[sm_80]" in text
    assert "2 passed" in text
    (line,) = [line for line in text.splitlines() if line.startswith("warpmma ")]
    assert line.startswith(f"warpmma {warpmma.__version__}: sm_80, sm_120a (")
    for name, what in warpmma.engines().items():
        assert f"{name}: {what}" in line


def test_gpu_is_an_h100_by_default(run: Run) -> None:
    text = run("def test_it(gpu): assert gpu.target == 'sm_90' and gpu.evidence(F16).kind == 'measured'\n", "-v")
    assert "test_it[sm_90] PASSED" in text
    (line,) = [line for line in text.splitlines() if line.startswith("warpmma ")]
    assert line.startswith(f"warpmma {warpmma.__version__}: sm_90 (")


def test_marks_choose_targets(run: Run) -> None:
    """The nearest mark holds; targets that lack an instruction are skipped, and say why."""
    text = run(
        f"""
pytestmark = pytest.mark.warpmma_targets("sm_89")

def test_module(gpu): assert gpu.target == "sm_89"

@pytest.mark.warpmma_targets("sm_75", "sm_80", "sm_90")
@pytest.mark.warpmma_instruction(F16)
def test_function(gpu): assert gpu.target in ("sm_80", "sm_90")

@pytest.mark.warpmma_targets("sm_100", "sm_120a")
class TestClass:
    def test_method(self, gpu): assert gpu.target in ("sm_100", "sm_120a")

    @pytest.mark.warpmma_instruction(F16, {"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e2m1.f32"!r})
    def test_both(self, gpu): assert gpu.target == "sm_120a"

@pytest.mark.warpmma_targets("sm_90", "sm_90a")
@pytest.mark.warpmma_instruction("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16")
def test_wgmma(gpu): assert gpu.target == "sm_90a"
""",
        "-v", "-rs", "--warpmma-target", "sm_70",
    )  # fmt: skip
    assert "7 passed, 3 skipped" in text
    assert f"sm_75 has no {F16}" in text
    assert "sm_100 has no mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4" in text
    assert "sm_90 has no wgmma.mma_async" in text
    assert "sm_70]" not in text


def test_instructions_skip_targets_of_the_command_line(run: Run) -> None:
    tests = "@pytest.mark.warpmma_instruction(FP8)\ndef test_it(gpu): assert gpu.has(FP8)\n"
    text = run(tests, "--warpmma-target", "sm_80", "--warpmma-target", "sm_89")
    assert "1 passed, 1 skipped" in text


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("warpmma_targets('sm_8')", "unknown target 'sm_8'; did you mean"),
        ("warpmma_targets()", "warpmma_targets(): expected one or more strings"),
        ("warpmma_targets(['sm_80'])", "warpmma_targets(['sm_80'],): expected one or more strings"),
        ("warpmma_instruction()", "warpmma_instruction(): expected one or more strings"),
        ("warpmma_instruction('mma.odd')", "mma.odd: "),
    ],
)
def test_wrong_marks_are_errors(run: Run, mark: str, words: str) -> None:
    text = run(f"@pytest.mark.{mark}\ndef test_it(gpu): pass\n", status=2)
    assert words in text
    assert "1 error" in text
    assert "pytest_plugin.py" not in text


def test_a_wrong_target_is_an_error(run: Run) -> None:
    text = run("def test_it(gpu): pass\n", "--warpmma-target", "sm_91", status=4)
    assert "--warpmma-target: unknown target 'sm_91'; did you mean 'sm_90'?" in text
    assert "Traceback" not in text


def test_a_report_has_no_frames_of_ours(run: Run) -> None:
    text = run(
        """
from warpmma.testing import assert_same_bits

def test_it(gpu):
    expected = np.ones((16, 8), np.float32)
    actual = expected.copy()
    actual[9, 3] = -0.0
    assert_same_bits(actual, expected, instruction=F16, names=("kernel", gpu.target))
""",
        status=1,
    )
    assert ">       assert_same_bits(actual, expected" in text
    assert "E       AssertionError: 1 of 128 elements of D differs (f32, mma.sync" in text
    assert "E       where: only row 9; only column 3; only lane 5 (groupID 1, threadID_in_group 1); only reg" in text
    assert "testing.py" not in text
    assert "_difference.py" not in text
    assert "def assert_same_bits" not in text


MISTAKES = """
def reverse(t, x):
    t("st.shared.b32", t.tid[0] * 4, t("ld.global.b32", x + t.tid[0] * 4))
    t("st.global.b32", x + t.tid[0] * 4, t("ld.shared.b32", (63 - t.tid[0]) * 4))

def test_barrier(gpu):
    gpu.launch(reverse, 1, 64, [np.arange(64, dtype=np.uint32)], shared=256)

def test_shape(gpu):
    gpu.mma(F16, np.ones((16, 15), np.float16), np.ones((16, 8), np.float16))
"""


def test_reports_of_mistakes_end_at_the_line_that_has_them(run: Run) -> None:
    text = run(MISTAKES, "--show-capture=no", status=1)
    barrier, shape = text.partition("_ test_barrier")[2].split("_ test_shape")
    assert ">       gpu.launch(reverse, 1, 64, [np.arange(64, dtype=np.uint32)], shared=256)\n" in barrier
    assert (
        "E       warpmma.machine.report.hazards.HazardError: test_it.py:8: ld.shared.b32: race: block 0, warp 0, lane "
        in barrier
    )
    assert ": warp 1 wrote it at test_it.py:7 (st.shared.b32), and no barrier lies between" in barrier
    assert "\ntest_it.py:8: HazardError\n" in barrier
    assert len(barrier.splitlines()) < 25
    assert ">       gpu.mma(F16, np.ones((16, 15), np.float16)" in shape
    assert "\ntest_it.py:14: OperandError\n" in shape
    assert "launching.py" not in text
    assert "loading.py" not in text
    text = run(MISTAKES, "--full-trace", status=1)
    assert "launching.py" in text
    assert "loading.py" in text


PTX = """
.version 8.0 .target sm_80 .address_size 64
.visible .entry store(.param .u64 x)
{
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [x];
    st.global.b32 [%rd1+64], 7;
    ret;
}
"""


def test_hazards_of_ptx_and_guesses_are_reported(run: Run) -> None:
    """At the test's line; a hazard names that of the text, and a wrong product what was swapped."""
    text = run(
        f"PTX = {PTX!r}"
        """
from warpmma.testing import assert_same_bits

def test_hazard(gpu):
    gpu.launch(gpu.load(PTX, "store.ptx"), 1, 1, [np.zeros(1, np.uint32)])

def test_swapped(gpu):
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((16, 16)).astype("f2"), rng.standard_normal((16, 8)).astype("f2")
    expected, got = gpu.mma(F16, A, B), gpu.mma(F16, A.T, B)
    assert_same_bits(got, expected, instruction=F16, inputs={"a": A, "b": B})
""",
        status=1,
    )
    hazard, swapped = text.partition("_ test_hazard")[2].split("_ test_swapped")
    assert ">       gpu.launch(gpu.load(PTX" in hazard
    assert "HazardError: store.ptx:7" in hazard and "simulated.py" not in hazard
    assert "E       guess: as if A was transposed\n" in swapped and "assertions.py" not in swapped


def test_values_that_are_not_close_are_reported_at_the_line_of_the_test(run: Run) -> None:
    text = run(
        """
from warpmma.testing import assert_close

def test_close(gpu):
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((16, 16)).astype("f2"), rng.standard_normal((16, 8)).astype("f2")
    expected = A.astype("f8") @ B.astype("f8")
    assert_close(gpu.mma(F16, A, B), expected, rtol=1e-4, atol=1e-5)
    assert_close(gpu.mma(F16, A, B, expected.astype("f4")), expected, rtol=1e-4, tile=(8, 8))
""",
        status=1,
    )
    assert ">       assert_close(gpu.mma(F16, A, B, expected" in text
    assert "E       AssertionError: 128 of 128 elements are not close (f32 and f64; rtol 0.0001, atol 0)\n" in text
    assert "E       program_id of tiles of 8 x 8: 2 of 2\n" in text
    assert "assertions.py" not in text and "difference.py" not in text


def test_it_goes_with_hypothesis_and_with_fixtures_of_any_scope(run: Run) -> None:
    text = run(
        """
from hypothesis import given, settings
from warpmma.testing.strategies import operands
from warpmma.testing import assert_same_bits

@pytest.fixture(scope="session")
def reference(gpu):
    return lambda given: gpu.mma(F16, **given, engine="numpy")

@given(operands(F16))
@settings(max_examples=5, database=None, deadline=None)
def test_it(gpu, reference, given):
    assert_same_bits(gpu.mma(F16, **given), reference(given))
""",
        "--warpmma-target", "sm_80", "--warpmma-target", "sm_90",
    )  # fmt: skip
    assert "2 passed" in text


def test_it_launches_kernels(run: Run) -> None:
    text = run(
        """
def double(t, x):
    at = x + (t.ctaid[0] * 64 + t.tid[0]) * 4
    t("st.global.b32", at, t("ld.global.b32", at) * 2)

def test_it(gpu):
    numbers = np.arange(128, dtype=np.uint32)
    gpu.launch(double, 2, 64, [numbers])
    assert (numbers == 2 * np.arange(128)).all()
"""
    )
    assert "1 passed" in text


def test_a_fixture_of_that_name_is_left_alone(run: Run) -> None:
    """Others have real GPUs; and who builds upon ours still gets one for each target."""
    text = run(
        """
@pytest.fixture
def gpu(): return "cuda:0"

def test_theirs(gpu): assert gpu == "cuda:0"

class TestOurs:
    @pytest.mark.parametrize("other", [1, 2])
    def test_it(self, mine, other): assert mine.target in ("sm_80", "sm_90")
""",
        "-v", "--warpmma-target", "sm_80", "--warpmma-target", "sm_90",
        conftest="import pytest\n\n@pytest.fixture\ndef mine(gpu): return gpu\n",
        status=1,
    )  # fmt: skip
    assert "test_theirs PASSED" in text  # once, by no target
    assert "'str' object has no attribute 'target'" in text  # a module's fixture is that of all its tests

    text = run(
        "def test_it(gpu): assert gpu.target in ('sm_80', 'sm_90') and gpu.has(F16)\n",
        "--warpmma-target", "sm_80", "--warpmma-target", "sm_90",
        conftest="import pytest\n\n@pytest.fixture(scope='session')\ndef gpu(gpu): return gpu\n",
    )  # fmt: skip
    assert "2 passed" in text


def test_who_does_not_use_it_sees_nothing_of_it(run: Run) -> None:
    text = run("def test_it(): pass\n", "-v")
    assert "test_it PASSED" in text
    assert "warpmma " not in text
    assert "sm_90" not in text


def test_it_is_explained(run: Run) -> None:
    text = run("", "--help")
    assert "--warpmma-target=TARGET" in text
    assert "The default is sm_90." in text
    text = run("", "--markers")
    assert "@pytest.mark.warpmma_targets(*targets): " in text
    assert "@pytest.mark.warpmma_instruction(*mnemonics): " in text
    text = run("", "--fixtures")
    assert "gpu [session scope]" in text
    assert "Simulate a GPU: " in text


def test_the_page_about_it_tells_the_truth(run: Run) -> None:
    """Its example as it stands, which has a bug, and mended."""
    page = (Path(__file__).parents[2] / "docs" / "testing.md").read_text()
    example = page.partition("```python\n")[2].partition("```")[0]
    targets = "--warpmma-target", "sm_80", "--warpmma-target", "sm_90", "--hypothesis-seed=0"
    text = run(example, *targets, status=1)
    assert "1 failed, 4 passed, 1 skipped" in text
    assert f"of 256 elements of A differ (f16, {F16})" in text
    assert "; registers 1-2" in text
    one, other = "pairs[group, thread + 4]", "pairs[group + 8, thread]"
    swapped = example.replace(one, "?").replace(other, one).replace("?", other)
    assert "5 passed, 1 skipped" in run(swapped, *targets)


def test_it_imports_no_more_than_the_package(tmp_path: Path) -> None:
    """pytest imports the plugin at every start, whoever uses it."""
    script = (
        "import sys, warpmma, pytest; before = set(sys.modules); import warpmma.testing.plugin; "
        "print(sorted(set(sys.modules) - before))"
    )
    done = python("-W", "error", "-c", script, where=tmp_path)
    assert done.stdout == "['warpmma.errors', 'warpmma.testing', 'warpmma.testing.plugin']\n", done.stderr
