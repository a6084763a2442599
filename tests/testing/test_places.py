"""Where wrong elements are: rows and columns, tiles, triangles, tiles of a grid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from report_cases import F16, report

from warpmma.errors import OperandError
from warpmma.testing import assert_close, assert_same_bits


def places(mask: Any, **named: Any) -> list[str]:
    """The report's lines on places, where so many elements differ."""
    wrong = np.asarray(mask)
    lines = report(wrong.astype(np.float32), np.zeros(wrong.shape, np.float32), limit=0, **named).splitlines()
    return [line for line in lines[2:] if not line.startswith("largest")]


def area(shape: tuple[int, ...], *index: Any) -> Any:
    mask = np.zeros(shape, bool)
    mask[index] = True
    return mask


R, C = np.indices((64, 48))
PLACES: dict[str, tuple[Any, list[str]]] = {
    "a tile": (
        area((256, 128), slice(64, 128), slice(0, 32)),
        ["where: rows 64-127; columns 0-31 (all 2,048 elements)", "tile: (1, 0), whole tile of 64 x 32"],
    ),
    "three tiles": (
        area((32, 32), slice(0, 8), slice(8, 16)) | area((32, 32), slice(16, 32), slice(24, 32)),
        [
            "where: rows 0-7, 16-31; columns 8-15, 24-31 (192 of 384 elements)",
            "tile: (0, 1), (2, 3), (3, 3), whole tiles of 8 x 8",
        ],
    ),
    "a panel of rows": (
        area((64, 40), slice(32, 48)),
        ["where: rows 32-47; all columns (all 640 elements)", "tile: (2, 0), whole tile of 16 x 64"],
    ),
    "rows": (area((64, 40), [3, 5, 6, 7]), ["where: rows 3, 5-7; all columns (all 160 elements)"]),
    "one element": (area((64, 40), 3, 7), ["where: only row 3; only column 7"]),
    "every 2nd row": (area((64, 40), slice(0, 64, 2)), ["where: rows 0, 2, ..., 62; all columns (all 1,280 elements)"]),
    "8 of 16 columns": (
        area((40, 64), slice(None), np.arange(64) % 16 >= 8),
        [
            "where: all rows; columns 8-15, 24-31, ..., 56-63 (all 1,280 elements)",
            "tile: (0, 1), (0, 3), (0, 5), (0, 7), whole tiles of 64 x 8",
        ],
    ),
    "everything": (np.ones((64, 40), bool), ["where: in every row and column"]),
    "a line": (area((1000,), slice(100, 200)), ["where: index[0] = 100-199"]),
    "upper": (
        C > R,
        ["where: rows 0-46; columns 1-47 (1,128 of 2,209 elements)", "pattern: the upper triangle column >= row + 1"],
    ),
    "upper with the diagonal": (
        C >= R,
        ["where: rows 0-47; all columns (1,176 of 2,304 elements)", "pattern: the upper triangle column >= row"],
    ),
    "lower": (
        C < R,
        ["where: rows 1-63; all columns (1,896 of 3,024 elements)", "pattern: the lower triangle column <= row - 1"],
    ),
    "the diagonal": (
        C == R,
        ["where: rows 0-47; all columns (48 of 2,304 elements)", "pattern: the diagonal column = row"],
    ),
    "another diagonal": (
        C == R + 2,
        ["where: rows 0-45; columns 2-47 (46 of 2,116 elements)", "pattern: the diagonal column = row + 2"],
    ),
    "a band": (
        abs(C - R) <= 2,
        ["where: rows 0-49; all columns (237 of 2,400 elements)", "pattern: the band row - 2 <= column <= row + 2"],
    ),
    "nearly a triangle": ((C > R) & (R + C != 1), ["where: rows 0-46; columns 2-47 (1,127 of 2,162 elements)"]),
    "a batch": (
        np.stack([C > R, C > R, C < 0]),
        [
            "where: index[0] = 0-1; rows 0-46; columns 1-47 (2,256 of 4,418 elements)",
            "pattern: the upper triangle column >= row + 1",
        ],
    ),
    "a batch of two kinds": (
        np.stack([C > R, C < R]),
        ["where: in every row and column"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_places_are_named(name: str) -> None:
    mask, said = PLACES[name]
    assert places(mask) == said


def test_scattered_elements_of_one_tile_name_it_unless_it_is_chance() -> None:
    rng = np.random.default_rng(3)
    mask = np.zeros((256, 256), bool)
    mask[64:128, 32:64] = rng.random((64, 32)) < 0.1
    *_, line = places(mask)
    assert line == "tile: all in tile (1, 1) of 64 x 32: rows 64-127, columns 32-63"
    few = np.zeros((256, 256), bool)
    few[[3, 70, 100], [5, 9, 200]] = True  # all three in the upper half, as every fourth time
    assert places(few) == ["where: rows 3, 70, 100; columns 5, 9, 200 (3 of 9 elements)"]


@pytest.mark.parametrize("seed", range(20))
def test_tiles_that_are_named_have_all_elements(seed: int) -> None:
    """Whatever is said of tiles is checked by making the mask of it again."""
    rng = np.random.default_rng(seed)
    height, width = (int(x) for x in 2 ** rng.integers(2, 6, 2))
    shape = tuple(int(x) for x in rng.integers(70, 150, 2))
    blocks = rng.random((-(-shape[0] // height), -(-shape[1] // width))) < 0.1
    blocks[0, 0] = True
    mask = np.kron(blocks, np.ones((height, width), bool))[: shape[0], : shape[1]]
    lines = [line for line in places(mask) if line.startswith("tile: ")]
    if blocks.sum() > 8:
        assert not lines
        return
    (line,) = lines
    tiles, _, size = line.removeprefix("tile: ").partition(", whole tile")
    h, w = (int(x) for x in size.partition(" of ")[2].split(" x "))
    again = np.zeros(shape, bool)
    for one in tiles.removeprefix("(").removesuffix(")").split("), ("):
        r, c = (int(x) for x in one.split(", "))
        again[r * h : r * h + h, c * w : c * w + w] = True
    assert (again == mask).all()
    assert h >= height and w >= width


def test_tiles_of_a_grid_are_named() -> None:
    mask = area((200, 130), slice(64, 128), slice(0, 64))
    mask[199, 129] = True
    assert places(mask, tile=(64, 64)) == [
        "where: rows 64-127, 199; columns 0-63, 129 (4,097 of 4,225 elements)",
        "program_id of tiles of 64 x 64: 2 of 12",
        "  (1, 0), number 3: 4,096 of 4,096 elements",
        "  (3, 2), number 11: 1 of 16 elements",
    ]
    assert places(area((1000,), slice(100, 200)), tile=128)[1:] == [
        "program_id of tiles of 128: 2 of 8", "  0: 28 of 128 elements", "  1: 72 of 128 elements",
    ]  # fmt: skip
    assert places(area((8, 100), 5), tile=[1, 100])[1:] == [
        "program_id of tiles of 1 x 100: 1 of 8", "  (5, 0): 100 of 100 elements",
    ]  # fmt: skip
    assert places(area((3, 64, 64), 2, slice(0, 9)), tile=(16, 64))[1:] == [
        "program_id of tiles of 16 x 64: 1 of 12", "  (2, 0, 0), number 8: 576 of 1,024 elements",
    ]  # fmt: skip


def test_tiles_may_be_larger_than_the_matrix() -> None:
    assert places(area((74, 100), slice(64, 67)), tile=(64, 2**64 + 2))[1:] == [
        "program_id of tiles of 64 x 18446744073709551618: 1 of 2", "  (1, 0): 300 of 1,000 elements",
    ]  # fmt: skip


def test_many_tiles_of_a_grid_are_named_by_axis() -> None:
    mask = area((256, 256), slice(32, 64))
    assert places(mask, tile=(16, 16))[1] == "program_id of tiles of 16 x 16: 32 of 256; axis 0 2-3; axis 1 all"
    assert places(np.ones((64, 64), bool), tile=(8, 8))[1] == "program_id of tiles of 8 x 8: 64 of 64"


def test_tiles_of_a_grid_go_with_an_instruction() -> None:
    mask = area((64, 64), slice(32, 48), slice(0, 8))
    lines = places(mask, tile=(32, 32), instruction=F16)
    assert "only row of tiles 2; only column of tiles 0" in lines[0]
    assert lines[-2:] == ["program_id of tiles of 32 x 32: 1 of 4", "  (1, 0), number 2: 128 of 1,024 elements"]
    triangle = np.triu(np.ones((16, 8), bool), 1)
    assert places(triangle, instruction=F16)[-1] == "pattern: the upper triangle column >= row + 1"


@pytest.mark.parametrize("tile", [(), 0, (64, 0), (1.5,), "ab", (1,) * 40, {1}, (2, 2, 2)])
def test_wrong_tiles_are_refused(tile: Any) -> None:
    x = np.zeros((4, 4))
    with pytest.raises(OperandError, match=r"^tile is .*; expected "):
        assert_same_bits(x, x + 1, tile=tile)
    with pytest.raises(OperandError, match=r"^tile is .*; expected "):
        assert_close(x, x, rtol=0, tile=tile)
