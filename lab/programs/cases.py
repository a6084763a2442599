"""The table of runs: programs whose CUDA C++ is in `cuda`, each at three sizes, and PTX twins of the examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from .examples import example
from .launches import Array, Case, Run, Step, Struct, words

__all__ = ["CASES", "TWINS"]

S, U, F, D = np.int32, np.uint32, np.float32, np.float64


def _floats(seed: int, *shape: int, dtype: Any = F, lowest: int = -8, highest: int = 3) -> Array:
    """Numbers of either sign with magnitudes from 2^lowest to 2^highest, all of whose fraction bits are random."""
    word = words(seed, *shape)
    fractions = 1 + (word >> np.uint64(12)).astype(D) * 2.0**-52
    exponents = lowest + (word & np.uint64(0x1FF)).astype(S) % (highest - lowest)
    signs = np.where(word & np.uint64(0x200), -1.0, 1.0)
    return (np.ldexp(fractions, exponents) * signs).astype(dtype)


def _halves(seed: int, *shape: int) -> Array:
    return _floats(seed, *shape, dtype=np.float16)


def _bytes(seed: int, *shape: int) -> Array:
    return words(seed, *shape).astype(np.uint8)


def _bf16(seed: int, *shape: int) -> Array:
    return (_floats(seed, *shape).view(U) >> U(16)).astype(np.uint16)


def _words32(seed: int, *shape: int) -> Array:
    return words(seed, *shape).astype(U)


def _blank(dtype: Any, *shape: int) -> Array:
    """Return unwritten memory: all bits set."""
    bits = np.full(int(np.prod(shape)) * np.dtype(dtype).itemsize, 0xFF, np.uint8)
    made: Array = bits.view(dtype).reshape(shape)
    return made


def _tensor(m: int, n: int, k: int) -> Run:
    arrays = {"a": _halves(1, m, k), "b": _halves(2, k, n), "c": _floats(3, m, n), "d": _blank(F, m, n)}
    step = Step("wmma_f16", (n // 32, m // 32), (128,), ("a", "b", "c", "d", S(m), S(n), S(k), F(0.625)))
    return Run(arrays, (step,), ("d",))


def _simple_tensor(entry: str, inputs: Callable[..., Array], out: Any, tile: tuple[int, int], size: tuple[int, int, int]
                   ) -> Run:  # fmt: skip
    m, n, k = size
    arrays = {"a": inputs(4, k, m), "b": inputs(5, n, k), "d": _blank(out, m, n)}
    return Run(arrays, (Step(entry, (n // tile[1], m // tile[0]), (32,), ("a", "b", "d", S(m), S(n), S(k))),), ("d",))


def _metadata(seed: int, *shape: int) -> Array:
    """Words of eight nibbles that name two different elements of four, in their order."""
    pairs = np.array([0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110], np.uint64)
    made, word = np.zeros(shape, np.uint64), words(seed, *shape)
    for i in range(8):
        made |= pairs[(word >> np.uint64(8 * i) & np.uint64(255)) % np.uint64(6)] << np.uint64(4 * i)
    return made.astype(U)


def _sparse(m: int, n: int, k: int) -> Run:
    arrays = {"a": _halves(6, m, k // 2), "e": _metadata(7, m // 16, k // 32, 32), "b": _halves(8, k, n),
              "d": _blank(F, m, n)}  # fmt: skip
    step = Step("sparse_f16", (-(-n // 32), -(-m // 32)), (64,), ("a", "e", "b", "d", S(m), S(n), S(k)))
    return Run(arrays, (step,), ("d",))


def _sparse_bytes(tiles: int) -> Run:
    arrays = {"a": _words32(9, tiles, 32, 4), "e": _metadata(10, tiles, 32), "b": _words32(11, tiles, 32, 4),
              "d": _words32(12, tiles, 32, 4)}  # fmt: skip
    return Run(arrays, (Step("sparse_s8", (-(-tiles // 4),), (128,), ("a", "e", "b", "d", S(tiles))),), ("d",))


def _radix(number: int) -> Run:
    blocks = -(-number // 512)
    keys = _words32(13, number)
    keys[::3] &= U(0xFF00FF)
    arrays = {"keys": keys, "values": np.arange(number, dtype=U), "keys2": _blank(U, number),
              "values2": _blank(U, number), "counts": _blank(U, 256 * blocks)}  # fmt: skip
    steps: list[Step] = []
    for place in range(4):
        x, y = ("", "2") if place % 2 == 0 else ("2", "")
        shift = S(8 * place)
        steps += [
            Step("radix_count", (blocks,), (128,), (f"keys{x}", "counts", S(number), shift)),
            Step("radix_scan", (1,), (1024,), ("counts", S(256 * blocks))),
            Step("radix_scatter", (blocks,), (128,),
                 (f"keys{x}", f"values{x}", f"keys{y}", f"values{y}", "counts", S(number), shift)),
        ]  # fmt: skip
    return Run(arrays, tuple(steps), ("keys", "values", "counts"))


def _lookback(tiles: int, packed: bool) -> Run:
    arrays = {"x": _words32(14, tiles * 512), "y": _blank(U, tiles * 512), "ticket": np.zeros(1, U)}
    if packed:
        arrays["states"] = np.zeros(tiles, np.uint64)
        step = Step("lookback_warp", (tiles,), (128,), ("x", "y", "ticket", "states"))
    else:
        arrays |= {name: np.zeros(tiles, U) for name in ("status", "own", "all")}
        step = Step("lookback_volatile", (tiles,), (128,), tuple(arrays))
    return Run(arrays, (step,), ("y", "ticket"))


def _rows(rows: int, columns: int, threads: int) -> Run:
    arrays = {"x": _floats(15, rows, columns), "y": _blank(F, rows)}
    step = Step("reduce_rows", (rows,), (threads,), ("x", "y", S(columns)), shared=threads // 32 * 4)
    return Run(arrays, (step,), ("y",))


def _last_block(number: int, blocks: int) -> Run:
    arrays = {"x": _floats(16, number, dtype=D), "parts": _blank(D, blocks), "sum": _blank(D, 1)}
    return Run(arrays, (Step("reduce_last_block", (blocks,), (256,), ("x", "parts", "sum", S(number))),) * 2,
               ("parts", "sum"))  # fmt: skip


def _argmax(number: int) -> Run:
    arrays = {"x": _floats(17, number), "best": np.zeros(1, np.uint64)}
    return Run(arrays, (Step("reduce_argmax", (3,), (96,), ("x", "best", S(number))),), ("best",))


def _counted_bytes(number: int, blocks: int) -> Run:
    arrays = {"x": _words32(18, number), "counts": np.zeros(256, U)}
    return Run(arrays, (Step("histogram_bytes", (blocks,), (128,), ("x", "counts", S(number))),), ("counts",))


def _agreed(number: int) -> Run:
    arrays = {"keys": _words32(19, number), "values": _words32(20, number).view(S), "counts": np.zeros(37, U),
              "largest": np.full(37, -(2**31), S), "smallest": np.full(37, 2**31 - 1, S), "bits": np.zeros(37, U),
              "sums": np.zeros(37, np.uint64)}  # fmt: skip
    outputs = tuple(arrays)[2:]
    return Run(arrays, (Step("histogram_agreed", (-(-number // 96),), (96,), (*arrays, S(number))),), outputs)


def _swapped(number: int) -> Run:
    arrays = {"x": abs(_floats(21, number, dtype=D)), "keys": _words32(22, number), "largest": np.zeros(16, np.uint64),
              "sums": np.zeros(16, F)}  # fmt: skip
    step = Step("histogram_swapped", (-(-number // 128),), (128,), (*arrays, S(number)))
    return Run(arrays, (step,), ("largest", "sums"))


def _mandelbrot(kind: str, out: str, width: int, height: int, most: int) -> Run:
    dtype: Any = F if kind == "f32" else D
    arrays = {"counts": _blank(S, height, width),
              out: _blank(dtype, height, width, 2) if kind == "f32" else _blank(dtype, height, width)}  # fmt: skip
    arguments = (*arrays, S(width), S(height), dtype(-2.03), dtype(1.171), dtype(2.57 / width), S(most))
    step = Step(f"mandelbrot_{kind}", (-(-width // 16), -(-height // 8)), (16, 8), arguments)
    return Run(arrays, (step,), tuple(arrays))


def _collatz(number: int) -> Run:
    arrays = {"x": _words32(23, number) % U(50000) + U(1), "lengths": _blank(U, number), "kinds": _blank(U, number)}
    return Run(arrays, (Step("collatz", (-(-number // 64),), (64,), (*arrays, S(number))),), ("lengths", "kinds"))


def _layers(number: int) -> Run:
    arrays = {
        "x": _floats(24, number),
        "y": _blank(F, number),
        **{f"w{i}": _floats(25 + i, 5 + 2 * i) for i in range(3)},
    }
    parts: list[Any] = []
    for i in range(3):
        parts += [
            f"w{i}",
            S(5 + 2 * i),
            F(0.375 * i - 0.5),
            np.bool_(i != 1),
            np.uint8(3 + i),
            np.uint8(200),
            np.uint8(7),
            4,
        ]
    parts += [
        D(1.0625),
        np.array([5, -3, 1000, -32768, 32767], np.int16).tobytes(),
        np.int8(-77),
        5,
        "y",
        np.int64(number),
    ]
    return Run(arrays, (Step("structs_layers", (-(-number // 32),), (32,), ("x", Struct(tuple(parts)))),), ("y",))


def _quads(number: int) -> Run:
    arrays = {"x": _floats(28, number, 4), "y": _blank(F, number, 4)}
    factor, addend = (Struct((_floats(seed, 4).tobytes(),)) for seed in (29, 30))
    return Run(arrays, (Step("structs_quads", (1,), (128,), (factor, "x", "y", addend, np.int8(number))),), ("y",))


def _numbers(number: int) -> Run:
    arrays = {"x": _words32(31, number).view(S) & S(0xFFFF), "y": _blank(S, number)}
    return Run(arrays, (Step("recursion_numbers", (-(-number // 64),), (64,), ("x", "y", S(number))),), ("y",))


def _quicksort(number: int, size: int) -> Run:
    arrays = {"x": _words32(32, number, size).view(S) % S(50), "y": _blank(S, number, size)}
    step = Step("recursion_sort", (-(-number // 32),), (32,), ("x", "y", S(number), S(size)))
    return Run(arrays, (step,), ("y",))


def _pointers(number: int) -> Run:
    arrays = {"x": _floats(33, number), "kinds": _words32(34, number).view(S) & S(63), "y": _blank(F, number),
              "z": _blank(D, number)}  # fmt: skip
    step = Step("recursion_pointers", (-(-number // 64),), (64,), (*arrays, S(number)))
    return Run(arrays, (step,), ("y", "z"))


def _insertion(number: int) -> Run:
    arrays = {"x": words(35, number, 24).astype(np.int16), "y": _blank(np.int16, number, 24)}
    return Run(arrays, (Step("locals_sort", (-(-number // 64),), (64,), ("x", "y", S(number))),), ("y",))


def _stack(number: int, length: int) -> Run:
    program = (words(36, length) % np.uint64(7)).astype(np.uint8)
    arrays = {"program": program, "x": _floats(37, number, dtype=D), "y": _blank(D, number)}
    step = Step("locals_stack", (-(-number // 64),), (64,), ("program", S(length), "x", "y", S(number)))
    return Run(arrays, (step,), ("y",))


def _views(number: int) -> Run:
    arrays = {"x": _words32(38, number), "y": _blank(U, number)}
    return Run(arrays, (Step("locals_views", (-(-number // 64),), (64,), ("x", "y", S(number))),), ("y",))


def _printing(number: int) -> Run:
    arrays = {"x": _words32(39, number).view(S) >> S(7), "y": _floats(40, number, dtype=D, lowest=-30, highest=30),
              "n": _blank(S, number)}  # fmt: skip
    return Run(arrays, (Step("printing", (-(-number // 32),), (32,), (*arrays, S(number))),), ("n",))


def _serial(m: int, n: int, k: int, parts: int) -> Run:
    arrays = {"a": _floats(41, m, k), "b": _floats(42, k, n), "d": _blank(F, m, n), "locks": np.zeros(m * n // 256, S)}
    step = Step("splitk_serial", (n // 16, m // 16, parts), (64,), (*arrays, S(n), S(k)))
    return Run(arrays, (step,), ("d", "locks"))


def _stream(m: int, n: int, k: int, blocks: int) -> Run:
    steps, tiles = -(-k // 16), m * n // 256
    share = -(-steps * tiles // blocks)
    arrays = {"a": _floats(43, m, k), "b": _floats(44, k, n), "d": _blank(F, m, n), "parts": _blank(F, blocks * 256),
              "counters": np.zeros(tiles, U)}  # fmt: skip
    numbers = (S(n), S(k), S(n // 16), S(steps), S(share))
    step = Step("splitk_stream", (blocks, m // 16), (64,), (*arrays, *numbers))
    return Run(arrays, (step,), ("d", "counters"))


_TENSORS: dict[str, tuple[Callable[..., Array], Any, tuple[int, int]]] = {
    "wmma_f16_to_f16": (_halves, np.float16, (32, 8)), "wmma_bf16": (_bf16, F, (8, 32)),
    "wmma_s8": (_bytes, S, (16, 16)), "wmma_u8": (_bytes, S, (32, 8)), "wmma_tf32": (_floats, F, (16, 16)),
    "wmma_f64": (partial(_floats, dtype=D), D, (8, 8)),
}  # fmt: skip

_TABLE: dict[tuple[str, str], tuple[Callable[..., Run], Sequence[tuple[Any, ...]]]] = {
    ("wmma", "f16"): (_tensor, [(32, 32, 32), (64, 96, 160), (128, 160, 512)]),
    **{("wmma", entry.removeprefix("wmma_")): (
        partial(_simple_tensor, entry, inputs, out, tile), [((32, 32, 16),), ((64, 32, 80),), ((96, 64, 256),)])
       for entry, (inputs, out, tile) in _TENSORS.items()},
    ("sparse", "f16"): (_sparse, [(32, 32, 64), (48, 72, 192), (128, 160, 512)]),
    ("sparse", "s8"): (_sparse_bytes, [(1,), (7,), (64,)]),
    ("radix", "sort"): (_radix, [(300,), (5000,), (40000,)]),
    ("lookback", "volatile"): (partial(_lookback, packed=False), [(1,), (9,), (80,)]),
    ("lookback", "warp"): (partial(_lookback, packed=True), [(3,), (40,), (150,)]),
    ("reduce", "rows"): (_rows, [(1, 31, 32), (5, 1000, 128), (12, 5000, 1024)]),
    ("reduce", "last block"): (_last_block, [(10, 1), (3000, 4), (60000, 37)]),
    ("reduce", "argmax"): (_argmax, [(5,), (1000,), (20000,)]),
    ("histogram", "bytes"): (_counted_bytes, [(5, 1), (3000, 3), (40000, 24)]),
    ("histogram", "agreed"): (_agreed, [(20,), (1000,), (15000,)]),
    ("histogram", "swapped"): (_swapped, [(20,), (1000,), (9000,)]),
    ("mandelbrot", "f32"): (partial(_mandelbrot, "f32", "ends"), [(16, 8, 20), (50, 33, 100), (160, 120, 200)]),
    ("mandelbrot", "f64"): (partial(_mandelbrot, "f64", "sizes"), [(16, 8, 20), (50, 33, 100), (160, 120, 200)]),
    ("mandelbrot", "collatz"): (_collatz, [(3,), (200,), (3000,)]),
    ("structs", "layers"): (_layers, [(3,), (100,), (5000,)]),
    ("structs", "quads"): (_quads, [(1,), (33,), (127,)]),
    ("recursion", "numbers"): (_numbers, [(3,), (100,), (1000,)]),
    ("recursion", "sort"): (_quicksort, [(2, 5), (40, 16), (200, 32)]),
    ("recursion", "pointers"): (_pointers, [(3,), (100,), (3000,)]),
    ("locals", "sort"): (_insertion, [(2,), (70,), (1500,)]),
    ("locals", "stack"): (_stack, [(3, 10), (100, 40), (2000, 100)]),
    ("locals", "views"): (_views, [(3,), (100,), (5000,)]),
    ("printing", "printf"): (_printing, [(1,), (20,), (150,)]),
    ("splitk", "serial"): (_serial, [(16, 16, 40, 2), (32, 48, 200, 5), (64, 64, 1000, 7)]),
    ("splitk", "stream"): (_stream, [(16, 16, 96, 3), (48, 32, 200, 7), (64, 80, 720, 23)]),
}  # fmt: skip


def _named(key: tuple[str, str], make: Callable[..., Run], size: tuple[Any, ...]) -> Case:
    numbers = "x".join(str(x) for part in size for x in (part if isinstance(part, tuple) else (part,)))
    return Case(key[0], f"{key[1]} {numbers}", partial(make, *size), prints=key[0] == "printing")


TWINS: dict[str, tuple[int, ...]] = {
    "attention": (0, 3, 5, 7), "gemm_f16": (0, 2, 3), "gemm_int8": (0, 1, 2), "gemm_sparse": (0, 1, 2),
    "rowwise": tuple(range(50)),
}  # fmt: skip
"""The cases of the examples that are run as PTX, by index in `CASES`: those that do not take long."""


def _twin(name: str, place: int) -> Run:
    module = example(name)
    call = module.call(module.CASES[place])
    names = [f"x{i}" for i in range(len(call.arrays) - 1)] + ["d"]
    arrays = {name: x.view(f"u{x.itemsize}") for name, x in zip(names, call.arrays, strict=True)}
    arrays["d"] = _blank(arrays["d"].dtype, *arrays["d"].shape)
    step = Step(call.twin, call.grid, (call.block,), (*names, *(S(x) for x in call.sizes.values())))
    return Run(arrays, (step,), ("d",))


def _twins() -> list[Case]:
    return [
        Case(f"twin_{name}", module.CASES[i].name, partial(_twin, name, i))
        for name, places in TWINS.items() for module in [example(name)]
        for i in places if i < len(module.CASES)
    ]  # fmt: skip


CASES = (*(_named(key, make, size) for key, (make, sizes) in _TABLE.items() for size in sizes), *_twins())
