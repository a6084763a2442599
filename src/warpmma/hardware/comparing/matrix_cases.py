"""Matrix instructions of a GPU beside the simulator.

1. A group is the instructions of a target with one recipe, over as many products of a row, with the same block scales
   and legal metadata: they have one expected result. A piece of work is a group over outer products of rows of A and
   columns of B in one style of the recipe; as some styles want it, row i, column i and C[i, i] belong together.
2. The expected result is made on the GPU by the kernel of `engine="cuda"`, and there each instruction's result is
   compared with it: the number of differences and the first place come back. The CPU engine computes a band of rows of
   it again. Where the recipe has no such kernel or NVRTC is missing, the CPU engine makes all of it.
3. A piece of work depends on the names of the group, the side, the seed and its number, and on nothing else. The
   styles take turns, and so do the immediate operands. A fifth of the pieces, in other styles at each turn, has no C:
   it is zero, and `wgmma` has any bits in D, which `scale-d` leaves out.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np

from ..._arrays import Array
from ..._records import Shown
from ...arithmetic import Recipe, dot_chain, engines, recipe
from ...errors import UnsupportedError
from ...execution import load
from ...formats import FORMATS, FloatFormat
from ...gpu import NOTHING, Matrices, ProductForm, ProductLaunch, TextKernel, TextLaunch, difference_launch, kernel_of
from ...isa import Instruction, MatrixInstruction, WarpgroupInstruction, instructions, warpgroup_instructions
from ...scaling import pack_scales
from ...sparsity import sparse_a
from ..emitting import ptx_module
from ..generators import drawn_nibbles, outer_codes, styles
from .findings import Found, MatrixDifference, Refused
from .rooms import Room
from .tile_kernels import TileVariant, columns_of, shared_image, tile_kernel, variants_of

__all__ = ["Drawn", "MatrixComparison", "MatrixGroup", "draw", "hardware_product", "matrix_groups"]

_BAND = 1 << 19  # outputs that the CPU engine computes again in a piece of work, at most
_WITHOUT_C = 5  # of so many pieces one has no C: prime to the numbers of variants, so that all of them have one
_FREE = 512  # rows and columns beyond those that count: at most 63 and 255


@dataclass(frozen=True, kw_only=True, eq=False)
class MatrixGroup(Shown):
    """Instructions with one recipe (rule 1).

    Attributes
    ----------
    recipe : Recipe
    k : int
        Products of a row: of a sparse A those that are stored.
    scales : int
        Block scales of a row.
    width : int
        Columns of a group of a sparse A; 0 of a dense one.
    target : str
    records : tuple of Instruction or WarpgroupInstruction
    """

    recipe: Recipe
    k: int
    scales: int
    width: int
    target: str
    records: tuple[MatrixInstruction, ...]

    @property
    def seed(self) -> int:
        """A number that follows from what distinguishes the group."""
        return zlib.crc32(f"{self.recipe} {self.k} {self.scales} {self.width}".encode())


def matrix_groups(target: str, records: Sequence[MatrixInstruction] | None = None) -> list[MatrixGroup]:
    """Sort the instructions of a target, or some of them, into groups."""
    every = (*instructions(target), *warpgroup_instructions(target)) if records is None else records
    found: dict[tuple[Any, ...], list[MatrixInstruction]] = {}
    for record in every:
        sparse = sparse_a(record) if record.sparse else None
        scales = record.scales_per_row if isinstance(record, Instruction) else 0
        key = (  # `wgmma` is counted apart
            type(record),
            recipe(record, target), record.layout("A").shape[-1], scales, sparse.pattern.width if sparse else 0,
            sparse.legal_codes(target) if sparse else None,
        )  # fmt: skip
        found.setdefault(key, []).append(record)
    return [
        MatrixGroup(recipe=how, k=k, scales=scales, width=width, target=target, records=tuple(some))
        for (_, how, k, scales, width, _), some in found.items()
    ]


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawn(Shown):
    """Operands of a piece of work, as codes.

    Attributes
    ----------
    a, b : ndarray
        `[side, k]` and `[k or 2 k, side]`.
    c : ndarray
        A sequence: C[i, j] is its element i + j.
    nibbles : ndarray or None
        Metadata `[side, groups]` of a sparse A.
    chosen : ndarray or None
        The rows of B that stored elements meet, `[side, k]`.
    scale_a, scale_b : ndarray or None
        `[side, scales]` and `[scales, side]`.
    added : bool
        Whether there is a C; if not, its codes are 0.
    """

    a: Array
    b: Array
    c: Array
    nibbles: Array | None = None
    chosen: Array | None = None
    scale_a: Array | None = None
    scale_b: Array | None = None
    added: bool = True

    @property
    def side(self) -> int:
        """Rows of A and columns of B."""
        return len(self.a)

    def arguments(self, rows: slice = slice(None)) -> dict[str, Any]:
        """Return keyword arguments of `dot_chain` for some rows of A."""
        first, last, _ = rows.indices(self.side)
        size = self.c.itemsize
        c = np.lib.stride_tricks.as_strided(self.c[first:], (1, last - first, self.side), (0, size, size))
        given = {"a": self.a[None, rows], "b": self.b[None], "c": np.ascontiguousarray(c)}
        if self.chosen is not None:
            given["chosen"] = self.chosen[None, rows]
        if self.scale_a is not None and self.scale_b is not None:
            given |= {"scale_a": self.scale_a[None, rows], "scale_b": self.scale_b[None]}
        return given


def draw(group: MatrixGroup, style: str, side: int, seed: Sequence[int], *, added: bool = True) -> Drawn:
    """Draw operands in one style, with a C or without one."""
    rng = np.random.default_rng([group.seed, side, *seed])
    x = outer_codes(group.recipe, group.k, side, style, rng, group.scales, sparse=bool(group.width))
    x |= {name: np.ascontiguousarray(x[name]) for name in ("a", "scale_a") if name in x}
    x["c"] = np.append(x["c"] if added else np.zeros_like(x["c"]), np.zeros(_FREE, x["c"].dtype))
    if group.width:
        sparse = sparse_a(group.records[0])
        x["nibbles"] = drawn_nibbles(sparse.legal_codes(group.target), side, sparse.groups, rng)
        x["chosen"] = sparse.rows_met(x["nibbles"])
    return Drawn(**x, added=added)


def _tiled(record: MatrixInstruction, drawn: Drawn) -> tuple[int, int]:
    """Return how many tiles an instruction has along rows and along columns."""
    return -(-drawn.side // record.m), -(-drawn.side // columns_of(record))


def _padded(x: Array, size: int, axis: int) -> Array:
    """Append zeros up to a size."""
    missing = size - x.shape[axis]
    if not missing:
        return x
    return np.pad(x, [(0, missing if i == axis else 0) for i in range(x.ndim)])


def _signed(record: MatrixInstruction, operand: Literal["A", "B"], codes: Array, sign: int) -> Array:
    """Change the signs of codes as `imm-scale` changes them back."""
    form = FORMATS[record.type(operand)]
    return codes ^ codes.dtype.type(form.sign_bit) if sign < 0 and isinstance(form, FloatFormat) else codes


def _operands_of(record: MatrixInstruction, variant: TileVariant, drawn: Drawn, seed: int) -> dict[str, Array]:
    """Bring operands into registers or images, as `tile_kernel` takes them."""
    tall, wide = _tiled(record, drawn)
    matrices, lanes = record.layout("D").matrices, record.layout("D").lanes
    of_warpgroup = isinstance(record, WarpgroupInstruction)
    known: Any = record  # of `mma` or of `wgmma`
    rng = np.random.default_rng(seed)
    a, b = (_signed(record, "A", drawn.a, variant.signs[0]), _signed(record, "B", drawn.b, variant.signs[1]))
    a = _padded(a, tall * record.m, 0).reshape(tall, record.m, -1)
    b = _padded(b, wide * columns_of(record), 1).reshape(len(b), wide, matrices, record.n).transpose(1, 2, 0, 3)
    given = {"c": drawn.c}
    if of_warpgroup and not drawn.added:
        given["c"] = rng.integers(0, 256, drawn.c.nbytes, np.uint8).view(drawn.c.dtype)
    if of_warpgroup and variant.source == "memory":
        given["a"] = shared_image(record, a, transposed=variant.transposed[0])
    else:
        if matrices > 1:
            a = np.broadcast_to(a[:, None], (tall, matrices, *a.shape[1:]))
        given["a"] = load(known, "A", np.ascontiguousarray(a))
    if of_warpgroup:
        given["b"] = shared_image(record, b[:, 0].swapaxes(1, 2), transposed=variant.transposed[1])
    else:
        given["b"] = load(known, "B", np.ascontiguousarray(b if matrices > 1 else b[:, 0]))

    def any_words(count: int) -> Array:
        return rng.integers(0, 1 << 32, (count, lanes), np.uint32)

    if drawn.nibbles is not None:
        more_rows = tall * record.m - drawn.side  # with legal metadata, too
        nibbles = np.pad(drawn.nibbles, [(0, more_rows), (0, 0)], mode="edge").reshape(tall, record.m, -1)
        given["metadata"] = sparse_a(record).pack(nibbles, variant.selector, any_words(tall))
    if drawn.scale_a is not None and drawn.scale_b is not None:
        scale_a = _padded(drawn.scale_a, tall * record.m, 0).reshape(tall, record.m, -1)
        scale_b = _padded(drawn.scale_b, wide * record.n, 1).reshape(-1, wide, record.n).swapaxes(0, 1)
        for name, scale, ids, count in (("A", scale_a, variant.ids[:2], tall), ("B", scale_b, variant.ids[2:], wide)):
            more: Any = {"byte_id": ids[0], "thread_id": ids[1], "into": any_words(count)}
            given[f"scale_{name.lower()}"] = pack_scales(scale, known, name, **more)  # type: ignore[arg-type]
    return given


@cache
def _kernel_text(record: MatrixInstruction, variant: TileVariant, target: str, version: tuple[int, int]) -> str:
    return ptx_module([tile_kernel(record, "product", variant)], target, version)


def hardware_product(
    room: Room, record: MatrixInstruction, variant: TileVariant, drawn: Drawn, seed: int
) -> tuple[int, int]:
    """Compute by the GPU's own instruction, without waiting; return D's address, and codes of a row of it in memory.

    Raises
    ------
    UnsupportedError
        The driver refuses.
    """
    tall, wide = _tiled(record, drawn)
    given = _operands_of(record, variant, drawn, seed)
    pitch = wide * columns_of(record)
    size = FORMATS[record.type("D")].code_dtype.itemsize
    d = room.reserve("d", tall * record.m * pitch * size)
    of = {name: room.put(name, x) for name, x in given.items()}
    words = [of.get(x, 0) for x in ("a", "b", "c")] + [d] + [of.get(x, 0) for x in ("metadata", "scale_a", "scale_b")]
    text = _kernel_text(record, variant, room.target, room.ptx)
    room.launch(
        TextLaunch(
            kernel=TextKernel(text=text, name="product"), grid=tall * wide, threads=record.layout("D").lanes,
            given=np.array([*words, wide, pitch * size, drawn.added], np.uint64).tobytes(),
        )
    )  # fmt: skip
    return d, pitch


class MatrixComparison:
    """Pieces of work of a group (rules 2 and 3).

    Parameters
    ----------
    group : MatrixGroup
    side : int
        Rows of A and columns of B.
    seed : int
    """

    def __init__(self, group: MatrixGroup, side: int, seed: int) -> None:
        self.group, self.side, self._seed = group, side, seed
        self._styles = styles(group.recipe)
        self._variants = {record: variants_of(record) for record in group.records}
        self._on_cpu = False

    @property
    def kind(self) -> str:
        """Return "mma" or "wgmma"."""
        return "wgmma" if isinstance(self.group.records[0], WarpgroupInstruction) else "mma"

    @property
    def names(self) -> list[str]:
        """Return the mnemonics."""
        return [str(record) for record in self.group.records]

    @property
    def outputs(self) -> int:
        """Outputs of each instruction in a piece of work."""
        return self.side**2

    def wanted(self, outputs: int) -> int:
        """Return how many outputs of each instruction there should be."""
        return outputs

    def run(self, room: Room, number: int, done: int = 0) -> Iterator[tuple[str, Found | Refused]]:
        """Do a piece of work; it gives what was found for each instruction."""
        group = self.group
        turn, place = divmod(number, len(self._styles))
        style = self._styles[place]
        drawn = draw(group, style, self.side, [self._seed, number], added=(turn + place) % _WITHOUT_C != 0)
        expected = None if self._on_cpu else self._by_kernel(room, drawn)
        sampled, wrong = 0, 0
        whole: Array | None = None
        if expected is None:
            whole = self._by_cpu(drawn, slice(None))
        else:
            height = max(1, min(self.side, _BAND // self.side))
            top = number * height % max(1, self.side - height + 1)
            band = self._by_cpu(drawn, slice(top, top + height))
            there = np.empty_like(band)
            room.get(expected + top * self.side * band.itemsize, there)
            sampled, wrong = band.size, int((band != there).sum())
        for record in group.records:
            variant = self._variants[record][(number + turn) % len(self._variants[record])]
            try:
                if record.ptx > room.ptx:
                    raise UnsupportedError(f"the driver compiles PTX {room.ptx[0]}.{room.ptx[1]}, and it is newer")
                d, pitch = hardware_product(room, record, variant, drawn, number)
                count, first, got = self._compared(room, d, pitch, expected, whole)
            except UnsupportedError as error:
                yield str(record), Refused(why=str(error))
                continue
            found = None
            if count:
                row, column = divmod(first, self.side)
                model = int(self._by_cpu(drawn, slice(row, row + 1))[0, column])
                found = _difference(drawn, first, got, model, style, variant)
            yield str(record), Found(
                outputs=self.outputs, differences=count, sampled=sampled if whole is None else self.outputs,
                wrong=wrong, first=found,
            )  # fmt: skip

    def _by_kernel(self, room: Room, drawn: Drawn) -> int | None:
        """Compute by the kernel of `engine="cuda"`; None where that is not possible, now and later."""
        group, x = self.group, drawn
        form = ProductForm(
            recipe=group.recipe, k=group.k, width=group.width, scales=group.scales, result=group.recipe.d
        )

        def there(name: str, array: Array | None) -> Matrices:
            return NOTHING if array is None else Matrices(room.put(name, array), (0, array.shape[1], 1))

        try:
            kernel = kernel_of(form)
            expected = room.reserve("expected", self.outputs * FORMATS[group.recipe.d].code_dtype.itemsize)
            room.launch(
                ProductLaunch(
                    kernel=kernel, shape=(1, self.side, self.side, group.k), a=there("codes_a", x.a),
                    b=there("codes_b", x.b), c=Matrices(room.put("c", x.c), (0, 1, 1)), d=expected,
                    slices=(0, len(x.b)), chosen=there("chosen", x.chosen), scale_a=there("codes_scale_a", x.scale_a),
                    scale_b=there("codes_scale_b", x.scale_b), blocks=group.scales,
                )
            )  # fmt: skip
        except UnsupportedError as error:
            room.note(f"some expected results come from the CPU engine: {error}")
            self._on_cpu = True
            return None
        return expected

    def _by_cpu(self, drawn: Drawn, rows: slice) -> Array:
        engine: Any = "native" if "native" in engines() else "numpy"
        group = self.group
        given = drawn.arguments(rows)
        d: Array = dot_chain(group.recipe, **given, k=group.k, scales=group.scales, engine=engine)[0]
        return d

    def _compared(
        self, room: Room, d: int, pitch: int, expected: int | None, whole: Array | None
    ) -> tuple[int, int, int]:  # fmt: skip
        """Return how many outputs differ, the place of the first, and its code on the GPU."""
        dtype = FORMATS[self.group.recipe.d].code_dtype
        if expected is None:
            assert whole is not None
            got = np.empty((self.side, pitch), dtype)
            room.get(d, got)
            places = np.flatnonzero(got[:, : self.side] != whole)
            if not len(places):
                return 0, 0, 0
            place = int(places[0])
            return len(places), place, int(got[place // self.side, place % self.side])
        found = np.array([0, ~np.uint64(0)], np.uint64)
        counters = room.put("found", found)
        room.launch(
            difference_launch(dtype.itemsize, d, expected, counters, (self.side, self.side), (pitch, self.side))
        )
        room.get(counters, found)
        count, place = (int(x) for x in found)
        if not count:
            return 0, 0, 0
        code = np.empty(1, dtype)
        room.get(d + (place // self.side * pitch + place % self.side) * dtype.itemsize, code)
        return count, place, int(code[0])


def _difference(drawn: Drawn, place: int, gpu: int, model: int, style: str, variant: TileVariant) -> MatrixDifference:
    row, column = divmod(place, drawn.side)
    met = None if drawn.chosen is None else drawn.chosen[row]
    b = drawn.b[:, column]
    return MatrixDifference(
        a=tuple(drawn.a[row].tolist()), b=tuple((b if met is None else b[met]).tolist()),
        c=int(drawn.c[row + column]), gpu=gpu, model=model, rows=None if met is None else tuple(met.tolist()),
        scale_a=None if drawn.scale_a is None else tuple(drawn.scale_a[row].tolist()),
        scale_b=None if drawn.scale_b is None else tuple(drawn.scale_b[:, column].tolist()), style=style,
        variant=variant.text,
    )  # fmt: skip
