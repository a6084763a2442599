"""Special registers: those that the launch determines are exact; invented ones advance and are reproducible."""

from __future__ import annotations

import numpy as np
import pytest
from assembler import Assembler, batch_of, go

from warpmma import RegisterError, UnknownNameError
from warpmma.machine import Grid, run_program, special_kind
from warpmma.machine.block.special import SPECIAL

CLASSES = {"x": "b32", "h": "b16", "wide": "b64", "p": "pred"}


def read(name: str, kind: str = "b32", grid: Grid | None = None, blocks: range = range(2)) -> np.ndarray:
    """Read one by a `mov`."""
    grid = grid or Grid((2, 1, 1), (64, 1, 1), 4096)
    batch, _, _ = batch_of(blocks, grid.threads_per_block)
    slot, mov = {
        "b16": ("h", "mov.u16"),
        "b32": ("x", "mov.u32"),
        "b64": ("wide", "mov.u64"),
        "pred": ("p", "mov.pred"),
    }[kind]
    program = Assembler(f"{mov} {slot}, %{name}:{kind}", CLASSES).program
    values = run_program(batch, program, grid)
    return np.array(values[list(CLASSES).index(slot)].bits)


def test_indices_of_threads_and_blocks() -> None:
    grid = Grid((3, 4, 5), (8, 4, 2), 0)
    linear = np.arange(64)
    for axis, of_thread in zip("xyz", (linear % 8, linear // 8 % 4, linear // 32), strict=True):
        assert (read(f"tid.{axis}", grid=grid, blocks=range(7, 9)).reshape(2, 64) == of_thread).all()
    for axis, block in zip("xyz", ([7 % 3, 8 % 3], [7 // 3 % 4, 8 // 3 % 4], [0, 0]), strict=True):
        assert read(f"ctaid.{axis}", grid=grid, blocks=range(7, 9))[:, 0, 0].tolist() == block
    for i, axis in enumerate("xyz"):
        assert (read(f"ntid.{axis}", grid=grid) == (8, 4, 2)[i]).all()
        assert (read(f"nctaid.{axis}", grid=grid) == (3, 4, 5)[i]).all()
    assert not read("tid.w", grid=grid).any()


def test_masks_of_lanes() -> None:
    lanes = range(32)
    for name, mask in {
        "eq": [1 << n for n in lanes],
        "lt": [(1 << n) - 1 for n in lanes],
        "le": [(2 << n) - 1 for n in lanes],
        "gt": [0xFFFFFFFF & ~((2 << n) - 1) for n in lanes],
        "ge": [0xFFFFFFFF & ~((1 << n) - 1) for n in lanes],
    }.items():
        assert read(f"lanemask_{name}")[0, 1].tolist() == mask
    assert read("laneid")[1, 1].tolist() == list(lanes) and (read("warpid")[:, 1] == 1).all()


def test_sizes_of_shared_memory() -> None:
    grid = Grid((2, 1, 1), (64, 1, 1), 1000)
    assert (read("total_smem_size", grid=grid) == 1024).all() and (read("dynamic_smem_size", grid=grid) == 1000).all()
    assert (read("aggr_smem_size", grid=grid) == 2048).all()


def test_what_a_gpu_would_say_is_invented() -> None:
    assert read("smid", blocks=range(130, 134))[:, 0, 0].tolist() == [130, 131, 0, 1]
    assert (read("nsmid") == 132).all() and (read("nwarpid") == 64).all() and (read("cluster_nctarank") == 1).all()


def test_fewer_and_more_bits_are_read() -> None:
    assert (read("lanemask_ge", "b16")[0, 0] == [0xFFFF & ~((1 << n) - 1) for n in range(32)]).all()
    assert (read("lanemask_gt", "b64")[0, 0] == [0xFFFFFFFF & ~((2 << n) - 1) for n in range(32)]).all()


def test_every_one_is_read_as_it_is() -> None:
    for name in SPECIAL:
        kind = special_kind(name)
        assert kind is not None and read(name, kind).shape == (2, 2, 32)


def test_clocks_go_on() -> None:
    """In a loop with lanes that part, each look is later than the one before; and twice the same."""
    text = """
        mov.u32 x, %clock
        mov.u32 z, 0
        loop:
        mov.u32 y, %clock
        setp.lt.u32 p, x, y
        @!p add.u32 z, z, 1000
        add.u32 x, y, 0
        add.u32 z, z, 1
        setp.le.u32 q, z, tid
        @q bra loop
    """
    runs = [go(text)[0] for _ in range(2)]
    assert (runs[0].read("z").reshape(-1) == np.arange(1, 65)).all()
    assert (runs[0].read("x") == runs[1].read("x")).all()


def test_unknown_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"has no 'laneld', did you mean 'laneid'"):
        read("laneld")
    with pytest.raises(RegisterError, match="%is_explicit_cluster has a predicate; it is read as b32"):
        read("is_explicit_cluster")
