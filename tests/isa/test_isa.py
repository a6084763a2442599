"""The record of each target, and what reads it."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import warpmma as wm
from warpmma import isa
from warpmma.arithmetic import GENERATIONS
from warpmma.arithmetic import variants as family
from warpmma.isa import since
from warpmma.kernel import launch

pytestmark = pytest.mark.quick

KIB = 1024
# CUDA Programming Guide 13, table 31 (and guide 11 for 7.x): KiB of shared memory of a block and of a multiprocessor.
SHARED = {"70": (96, 96), "72": (96, 96), "75": (64, 64), "80": (163, 164), "86": (99, 100), "87": (163, 164),
          "88": (99, 100), "89": (99, 100), "90": (227, 228), "100": (227, 228), "103": (227, 228), "110": (227, 228),
          "120": (99, 100), "121": (99, 100)}  # fmt: skip


def test_every_target_has_a_record() -> None:
    assert tuple(isa.TARGETS) == wm.TARGETS and len(wm.TARGETS) == 25
    for name, target in isa.TARGETS.items():
        assert name == str(target) == target.name == f"sm_{target.number}{target.features}"
        assert target.capability == divmod(target.number, 10)
        assert name in GENERATIONS[target.generation] and target.source
        assert pickle.loads(pickle.dumps(target)) == target


def test_records_are_in_order_and_hold_together() -> None:
    order = [(target.number, ("", "f", "a").index(target.features)) for target in isa.TARGETS.values()]
    assert order == sorted(order)
    assert [name for names in GENERATIONS.values() for name in names] == list(wm.TARGETS)
    for target in isa.TARGETS.values():
        assert target.static_shared <= target.shared_per_block
        # From 8.0 on, 1 KiB of every block's shared memory is the system's.
        assert target.shared_per_sm - target.shared_per_block == (KIB if target.capability >= (8, 0) else 0)
        assert target.threads_per_block <= target.threads_per_sm


@pytest.mark.parametrize("name", wm.TARGETS)
def test_shared_memory(name: str) -> None:
    target = isa.TARGETS[name]
    assert (target.shared_per_block, target.shared_per_sm) == tuple(n * KIB for n in SHARED[name[3:].rstrip("af")])


def test_readers() -> None:
    assert GENERATIONS["Hopper"] == ("sm_90", "sm_90a") and GENERATIONS["Turing"] == ("sm_75",)
    assert family(103) == ("sm_103", "sm_103f", "sm_103a") and family(90) == ("sm_90", "sm_90a")
    assert since("sm_70") == wm.TARGETS and since("sm_121a") == ("sm_121a",)
    assert since("sm_110f") == tuple(t for t in wm.TARGETS if t[3:6] in ("110", "120", "121") and t[-1] in "fa")


@pytest.mark.parametrize("name", wm.TARGETS)
def test_a_launch_takes_what_its_target_has(name: str) -> None:
    """All of a limit, and one more."""
    target = isa.TARGETS[name]
    shared = target.shared_per_block
    launch(lambda t: t("st.shared.b8", shared - 1, 0), 1, 1, [], target=name, shared=shared)
    says = rf"shared is {shared + 1}; on {name} expected a number of bytes, {shared} at most"
    with pytest.raises(wm.OperandError, match=says):
        launch(lambda t: None, 1, 1, [], target=name, shared=shared + 1)


@pytest.mark.parametrize("target", ["sm_75", "sm_86", "sm_120a"])
def test_200_kib_are_too_much(target: str) -> None:
    with pytest.raises(wm.OperandError, match=f"on {target} expected a number of bytes"):
        launch(lambda t: None, 1, 32, [], target=target, shared=200 * KIB)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"block": (1, 1, 65)}, r"block is \(1, 1, 65\): 65 along z; on sm_90 expected 64 at most"),
        ({"block": (1, 1025)}, r"block is \(1, 1025\): 1025 along y; on sm_90 expected 1024 at most"),
        ({"block": 1025}, r"block is 1025: 1025 along x; on sm_90 expected 1024 at most"),
        ({"block": (64, 2, 16)}, r"block is \(64, 2, 16\): 2048 threads; expected 1024 at most"),
        ({"grid": (1, 65536)}, r"grid is \(1, 65536\): 65536 along y; on sm_90 expected 65535 at most"),
        ({"grid": (1, 1, 65536)}, r"grid is \(1, 1, 65536\): 65536 along z; on sm_90 expected 65535 at most"),
        ({"grid": 1 << 31}, r"grid is 2147483648: 2147483648 along x; on sm_90 expected 2147483647 at most"),
    ],
    ids=str,
)  # fmt: skip
def test_extents_have_limits(options: dict[str, Any], says: str) -> None:
    with pytest.raises(wm.OperandError, match=says):
        launch(lambda t: None, **{"grid": 1, "block": 1, **options}, args=[], target="sm_90")


@pytest.mark.parametrize("options", [{"block": (1, 1, 64)}, {"block": (1, 1024)}, {"grid": (1, 65535)}], ids=str)
def test_extents_up_to_the_limits(options: dict[str, Any]) -> None:
    launch(lambda t: None, **{"grid": 1, "block": 1, **options}, args=[], target="sm_90")
