"""The pytest plugin: tests of kernels on simulated GPUs.

The fixture `gpu` is a `warpmma.testing.Gpu` for each target that `--warpmma-target` names (sm_90 if none is named). Two
marks choose targets for a test: `warpmma_targets("sm_80", "sm_90")` names others, and `warpmma_instruction(mnemonic)`
skips those that lack an instruction. Tests of one target run together. `--warpmma-triton sm_90,cuda=cpu` makes a
simulated GPU Triton's before anything of the tests is imported. Reports of a `WarpmmaError` end at the line of the test
or kernel, not inside this package.

pytest imports this module whenever it starts. So it imports nothing that it may not need.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ..errors import WarpmmaError

if TYPE_CHECKING:
    from .simulated import Gpu

__all__ = ["gpu"]

_DEFAULT = "sm_90"
_MARKS = (
    "warpmma_targets(*targets): run this test on these simulated GPUs, whatever --warpmma-target says.",
    "warpmma_instruction(*mnemonics): skip this test on simulated GPUs that lack one of these instructions.",
)
_USED = pytest.StashKey[set[str]]()  # targets of the tests that were collected
_TRITON = pytest.StashKey[Any]()  # Triton's simulated GPU


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--warpmma-target`."""
    parser.getgroup("warpmma", "simulated GPUs").addoption(
        "--warpmma-target", action="append", dest="warpmma_targets", metavar="TARGET",
        help=f"Target of the fixture `gpu`, such as sm_80; may be given several times. The default is {_DEFAULT}.",
    )  # fmt: skip
    parser.getgroup("warpmma").addoption(
        "--warpmma-triton", dest="warpmma_triton", metavar="DEVICE", default=os.environ.get("WARPMMA_TRITON", ""),
        help="Run Triton's kernels on a simulated GPU: a target, and options of warpmma.triton.device behind it, such "
        "as sm_90,hazards=warn,cuda=cpu. The default is the variable WARPMMA_TRITON.",
    )  # fmt: skip


# First, before conftest files, which may ask whether there is a GPU.
@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Make the simulated GPU of `--warpmma-triton` Triton's."""
    described = early_config.known_args_namespace.warpmma_triton
    if described:
        from ..triton import install_described

        try:
            early_config.stash[_TRITON] = install_described(described)
        except WarpmmaError as error:
            raise pytest.UsageError(f"--warpmma-triton: {error}") from None


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Report the number of kernels launched in this process."""
    if _TRITON in config.stash:
        terminalreporter.write_line(f"warpmma: {config.stash[_TRITON]!r}")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks, and check the targets."""
    for mark in _MARKS:
        config.addinivalue_line("markers", mark)
    config.stash[_USED] = set()
    if config.getoption("warpmma_targets"):
        from ..errors import TargetError
        from ..isa import check_known

        for target in _asked(config):
            try:
                check_known(target)
            except TargetError as error:
                raise pytest.UsageError(f"--warpmma-target: {error}") from None


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Report the targets and engines, if targets are given."""
    return [_header(_asked(config))] if config.getoption("warpmma_targets") else []


def pytest_report_collectionfinish(config: pytest.Config, start_path: Path, items: Sequence[pytest.Item]) -> list[str]:
    """Report the default target after collection, if a test needs it."""
    used = config.stash[_USED]
    return [_header(used)] if used and not config.getoption("warpmma_targets") else []


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test of every target."""
    # Not `gpu`, which others may define for themselves: this fixture is there only where it is ours.
    if "_warpmma_target" not in metafunc.fixturenames:
        return
    config, node = metafunc.config, metafunc.definition
    mark = node.get_closest_marker("warpmma_targets")
    targets = _named("warpmma_targets", mark.args) if mark else _asked(config)
    mnemonics = [
        name for m in node.iter_markers("warpmma_instruction") for name in _named("warpmma_instruction", m.args)
    ]
    try:
        lacking = {target: _lacking(target, mnemonics) for target in targets}
    except ValueError as error:  # a mnemonic or a target of a mark
        pytest.fail(str(error), pytrace=False)
    config.stash[_USED].update(target for target, reason in lacking.items() if not reason)
    params = [
        pytest.param(target, id=target, marks=[pytest.mark.skip(reason=reason)] if reason else [])
        for target, reason in lacking.items()
    ]
    metafunc.parametrize("_warpmma_target", params, indirect=True)


# First, before another hook makes a report of it.
@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let reports of our errors end at the user's line, unless `--full-trace` asks for all of them."""
    error = call.excinfo and call.excinfo.value
    if isinstance(error, WarpmmaError) and not item.config.getoption("fulltrace"):
        from .._tracebacks import end_outside

        end_outside(error)
    return (yield)


@pytest.fixture(scope="session")
def _warpmma_target(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# For a session, so that hypothesis may use it and other fixtures may: it has no state.
@pytest.fixture(scope="session")
def gpu(_warpmma_target: str) -> Gpu:
    """Simulate a GPU: `mma`, `execute`, `matmul`, `launch` and `evidence` of warpmma, with its target filled in."""
    from .simulated import Gpu

    return Gpu(_warpmma_target)


def _asked(config: pytest.Config) -> list[str]:
    return list(dict.fromkeys(config.getoption("warpmma_targets") or [_DEFAULT]))


def _named(mark: str, arguments: Sequence[Any]) -> list[str]:
    """Return a mark's arguments, each once."""
    if not arguments or any(isinstance(x, list | tuple) for x in arguments):
        pytest.fail(f"{mark}{tuple(arguments)}: expected one or more strings", pytrace=False)
    return list(dict.fromkeys(map(str, arguments)))


def _lacking(target: str, mnemonics: Sequence[str]) -> str:
    """Name an instruction that a target lacks; nothing if it has them all."""
    from ..isa import check_known, parse_any

    check_known(target)
    return next((f"{target} has no {m}" for m in mnemonics if target not in parse_any(m).targets), "")


def _header(targets: Iterable[str]) -> str:
    from .._version import __version__
    from ..arithmetic import engines
    from ..isa import TARGET_NAMES

    names = "; ".join(f"{name}: {what}" for name, what in engines().items())
    return f"warpmma {__version__}: {', '.join(sorted(targets, key=TARGET_NAMES.index))} ({names})"
