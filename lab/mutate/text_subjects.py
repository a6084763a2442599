"""Kernels of asynchronous families as PTX, in sizes that use every stage several times and take little time.

Those of CUDA C++ were compiled once (`python -m lab.record.programs --compile`), so that lines do not depend on nvcc.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import warpmma as wm
from lab.programs.texts import read_text

__all__ = ["MapChange", "Maps", "TextSubject", "text_subjects"]

Array = npt.NDArray[Any]
MapChange = tuple[str, str, Any]
"""Of a tensor map: the name of its parameter, the field, and its new value."""

U, F = np.uint32, np.float32
_RING = Path(__file__).with_name("ring.ptx")


class Maps:
    """Makes the tensor maps of a launch, one of which may be changed.

    Attributes
    ----------
    made : dict
        The maps by the names of their parameters, as the kernel has them.
    arrays : list
        Their tensors.
    """

    def __init__(self, change: MapChange | None = None) -> None:
        self.change = change
        self.made: dict[str, wm.TensorMap] = {}
        self.arrays: list[Any] = []

    def __call__(self, name: str, array: Any, box: tuple[int, ...], *, swizzle: int = 0) -> wm.TensorMap:
        """Make a map."""
        options: dict[str, Any] = {"box": box, "swizzle": swizzle}
        self.arrays.append(array)
        self.made[name] = wm.TensorMap(array, **options)
        if self.change is None or self.change[0] != name:
            return self.made[name]
        return wm.TensorMap(array, **{**options, self.change[1]: self.change[2]})


@dataclass(frozen=True, kw_only=True)
class TextSubject:
    """A kernel as PTX, of which mutants are made.

    Attributes
    ----------
    name : str
        Of the entry.
    read : callable
        Returns the text.
    grid, block : int
    stage : int
        Bytes from one stage of its buffer to the next; 0 if it has one.
    arguments : callable
        Returns the arguments of a launch on a device, given the maker of tensor maps. The result of a launch is what
        all arrays hold: those of maps, then those of the arguments.
    expected : callable
        Returns some arrays of the result, by their index in it.
    strict : tuple of str
        The rules that "strict" reports in the kernel itself; "" for a race that has none.
    longer : callable or None
        Returns the same kernel with many more turns, for mistakes that few turns do not show.
    """

    name: str
    read: Callable[[], str] = field(repr=False)
    grid: int
    block: int
    stage: int = 0
    arguments: Callable[[wm.Device, Maps], Sequence[Any]] = field(repr=False)
    expected: Callable[[], dict[int, Array]] = field(repr=False)
    strict: tuple[str, ...] = ()
    longer: Callable[[], TextSubject] | None = field(default=None, repr=False)

    def launch(self, kernel: Any, change: MapChange | None = None, **options: Any) -> list[Array]:
        """Run an entry on a new device; return all arrays."""
        device = wm.Device("sm_90a")
        maps = Maps(change)
        given = self.arguments(device, maps)
        kernel.launch(device, self.grid, self.block, given, **options)
        return [x.numpy() for x in (*maps.arrays, *given) if hasattr(x, "numpy")]

    def maps(self, change: MapChange | None = None) -> dict[str, wm.TensorMap]:
        """Return its tensor maps by the names of their parameters, as the kernel has them."""
        maps = Maps(change)
        self.arguments(wm.Device("sm_90a"), maps)
        return maps.made


def _words(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).integers(0, 1 << 32, shape, U)


def _small(seed: int, *shape: int) -> Array:
    """Numbers whose products and sums are exact in f32, and different."""
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(F)


# Kernels of the examples, and the ring of the benchmarks


def _ring(rounds: int) -> TextSubject:
    blocks, words = 2, 256
    x = _words(1, blocks, rounds, words)
    return TextSubject(
        name="ring", read=_RING.read_text, grid=blocks, block=96, stage=4 * words,
        arguments=lambda device, maps: [device.array(x), device.zeros((blocks, words), U), rounds],
        expected=lambda: {1: np.bitwise_xor.reduce(x, axis=1)},
    )  # fmt: skip


def _pipeline(name: str, tiles: int) -> str:
    """Return the PTX of a twin with another number of tiles, of as many digits: offsets in the text stay."""
    text = read_text(f"twin_{name}.ptx")
    for statement, last, number in (
        ("setp.gt.u32", 10, tiles - 1), ("setp.ne.s32", 224, 16 * (tiles + 3)), ("mul.lo.s32", 11, tiles)
    ):  # fmt: skip
        text = re.sub(rf"({re.escape(statement)}\b.*, ){last};", rf"\g<1>{number};", text)
    return text


def _copy_pipeline(tiles: int) -> TextSubject:
    x = _small(2, tiles * 16 - 5, 64)

    def arguments(device: wm.Device, maps: Maps) -> list[Any]:
        return [maps("box", device.array(x), (16, 32)), device.empty((16, 32), F)]

    return TextSubject(
        name="copy_pipeline", read=partial(_pipeline, "copy_pipeline", tiles), grid=1, block=128, stage=2048,
        strict=("A12",), arguments=arguments, expected=lambda: {1: _tiles(x, tiles).sum(axis=0, dtype=F)},
    )  # fmt: skip


def _tiles(x: Array, tiles: int) -> Array:
    padded = np.zeros((tiles * 16, 32), F)
    padded[: len(x)] = x[:, :32]
    return padded.reshape(tiles, 16, 32)


def _cluster_pipeline(tiles: int) -> TextSubject:
    x, weights = _small(3, tiles * 16 - 5, 64), _small(4, 2, tiles)

    def arguments(device: wm.Device, maps: Maps) -> list[Any]:
        return [maps("box", device.array(x), (8, 32)), device.array(weights), device.empty((2, 16, 32), F)]

    return TextSubject(
        name="cluster_pipeline", read=partial(_pipeline, "cluster_pipeline", tiles), grid=2, block=128, stage=2048,
        strict=("A12", ""), arguments=arguments,
        expected=lambda: {2: np.einsum("bt,trc->brc", weights, _tiles(x, tiles)).astype(F)},
    )  # fmt: skip


def _column_sums(rows: int) -> TextSubject:
    x = _small(5, rows, 512)
    return TextSubject(
        name="column_sums", read=lambda: read_text("twin_column_sums.ptx"), grid=1, block=160, stage=4 * 2048,
        strict=("A12",),
        arguments=lambda device, maps: [device.array(x), device.empty(512, F), len(x), x.shape[1]],
        expected=lambda: {1: x.sum(axis=0, dtype=F)},
    )  # fmt: skip


# Kernels with the habits of libraries: each makes 3 * x + 1 of tiles of 1,024 words


def _habit(
    tiles: int, name: str, *, grid: int = 2, block: int = 128, stage: int = 0, strict: tuple[str, ...] = (),
    draws: bool = False,
) -> TextSubject:  # fmt: skip
    x = _words(6, tiles, 1024)

    def arguments(device: wm.Device, maps: Maps) -> list[Any]:
        return [device.array(x), device.zeros(x.shape, U), len(x), *[device.zeros(1, np.int32)] * draws]

    return TextSubject(
        name=name, read=lambda: read_text("asynchronous_habits.ptx"), grid=grid, block=block, stage=stage,
        strict=strict, arguments=arguments, expected=lambda: {1: U(3) * x + U(1)},
    )  # fmt: skip


# The other families


def _family(name: str, **options: Any) -> TextSubject:
    return TextSubject(name=name, read=lambda: read_text("asynchronous_families.ptx"), **options)


def _tensor_tiles(tiles: int) -> TextSubject:
    x, start = _words(7, tiles * 8, 16), _words(8, 8, 16)
    y = U(3) * x + U(1)

    def arguments(device: wm.Device, maps: Maps) -> list[Any]:
        arrays = {"x": device.array(x), "y": device.zeros(x.shape, U), "sums": device.array(start)}
        return [*(maps(name, array, (8, 16), swizzle=64) for name, array in arrays.items()), tiles]

    sums = start + y.reshape(tiles, 8, 16).sum(axis=0, dtype=U)
    return _family(
        "tensor_tiles", grid=2, block=128, stage=512, arguments=arguments,
        expected=lambda: {1: y, 2: sums},
    )  # fmt: skip


def _counted_copies(tiles: int) -> TextSubject:
    x = _words(9, 2, tiles, 32, 4)
    return _family(
        "counted_copies", grid=2, block=64, stage=512,
        arguments=lambda device, maps: [device.array(x), device.zeros(x.shape, U), tiles], expected=lambda: {1: x},
    )  # fmt: skip


def _counted_stores(rounds: int) -> TextSubject:
    x = _words(10, 4, rounds, 32)
    y = U(3) * x.reshape(2, 2, rounds, 32)[:, ::-1] + U(1)
    return _family(
        "counted_stores", grid=4, block=32, stage=128,
        arguments=lambda device, maps: [device.array(x), device.zeros(x.shape, U), rounds],
        expected=lambda: {1: y.reshape(x.shape)[..., np.arange(32) ^ 1]},
    )  # fmt: skip


def _changed_maps(many: int) -> TextSubject:
    groups = [_words(11 + n, (8, 5, 3, 7, 6)[n % 5], 16) for n in range(many)]
    y = np.zeros((many, 8, 16), U)
    for n, group in enumerate(groups):
        y[n, : len(group)] = group

    def arguments(device: wm.Device, maps: Maps) -> list[Any]:
        held = [device.array(x) for x in groups]
        addresses = device.array(np.array([x.address for x in held], np.uint64))
        rows = device.array(np.array([len(x) for x in groups], U))
        own = device.array(np.zeros((2, 16), np.uint64))
        return [maps("first", held[0], (8, 16)), own, addresses, rows, device.zeros(y.shape, U), many]

    return _family("changed_maps", grid=2, block=32, arguments=arguments, expected=lambda: {4: y})


def _product(steps: int) -> TextSubject:
    a, b = (_small(20 + n, rows, steps * 64).astype(np.float16) for n, rows in enumerate((64, 8)))

    def arguments(device: wm.Device, maps: Maps) -> list[Any]:
        of_a, of_b = maps("a", device.array(a), (64, 64), swizzle=128), maps("b", device.array(b), (8, 64), swizzle=128)
        return [of_a, of_b, maps("d", device.zeros((64, 8), F), (64, 8)), steps]

    return _family(
        "product", grid=1, block=256, stage=64 * 128, arguments=arguments,
        expected=lambda: {2: a.astype(F) @ b.astype(F).T},
    )  # fmt: skip


_MADE: tuple[tuple[Callable[[int], TextSubject], int, int], ...] = (
    (_ring, 8, 128), (_copy_pipeline, 11, 59), (_cluster_pipeline, 11, 59), (_column_sums, 39, 150),
    (partial(_habit, name="epilogue", stage=4096), 9, 60),
    (partial(_habit, name="reader_fences"), 9, 40),
    (partial(_habit, name="plain_barriers", strict=("A12",)), 9, 40),
    (partial(_habit, name="one_releases", grid=1, block=256, stage=4096, strict=("A12",)), 8, 120),
    (partial(_habit, name="remote_release", block=160, stage=4096, strict=("A12",)), 8, 120),
    (partial(_habit, name="pingpong", block=384, stage=4096, draws=True), 7, 30),
    (partial(_habit, name="reduction"), 9, 40),
    (_tensor_tiles, 9, 60), (_counted_copies, 8, 120), (_counted_stores, 7, 80), (_changed_maps, 5, 40),
    (_product, 5, 30),
)  # fmt: skip
"""Kernels, with a few turns and with many."""


@cache
def text_subjects() -> tuple[TextSubject, ...]:
    """Return every subject."""
    return tuple(replace(make(few), longer=cache(partial(make, many))) for make, few, many in _MADE)
