"""What the examples share: launches that the simulator and a GPU both run, their inputs, and what a GPU gave for them.

An example has `CASES`, each with a `name`, and `call(case)`, which makes a `Call`. `simulate` runs a call here;
`run_twins.py` runs the same call's twin on a GPU and records its output in `recorded/NAME.npz`, which `read` reads.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from warpmma.kernel import Launch, Output, launch

Array = npt.NDArray[Any]
RECORDED = Path(__file__).parent / "recorded"
TARGET = "sm_90"
_KEPT = 20000  # elements of an output, about
_FORMATS: dict[str, tuple[int, int, Any]] = {  # bits of the fraction, bias
    "f32": (23, 127, np.float32), "f16": (10, 15, np.float16), "bf16": (7, 127, ml_dtypes.bfloat16),
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A product, m by k times k by n, and the type that its result has in memory; `seed` makes its inputs."""

    m: int
    n: int
    k: int
    out: str
    seed: int = 1

    @property
    def name(self) -> str:
        """As it is called in recordings and tests."""
        return f"{self.m}x{self.n}x{self.k} {self.out} {self.seed}"


@dataclass(frozen=True, kw_only=True)
class Call:
    """A launch, here or on a GPU.

    Attributes
    ----------
    kernel : callable
        In Python. Called with the threads, the addresses of `arrays` and, by name, `sizes`.
    twin : str
        Name of the kernel in CUDA C++, `extern "C"`. It takes the addresses and then the sizes as `int`.
    grid : tuple of int
    block : int
        Threads of it.
    shared : int
        Bytes of shared memory.
    arrays : tuple of ndarray
        In global memory; the last is the output.
    sizes : dict of int
    target : str
        To simulate.
    """

    kernel: Callable[..., None]
    twin: str
    grid: tuple[int, ...]
    block: int
    shared: int
    arrays: tuple[Array, ...]
    sizes: dict[str, int]
    target: str = TARGET

    @property
    def output(self) -> Array:
        """What the kernel writes."""
        return self.arrays[-1]


def simulate(call: Call, **options: Any) -> Launch:
    """Run a call on simulated blocks; `options` are those of `launch`."""

    def kernel(t: Any, *addresses: Any) -> None:
        call.kernel(t, *addresses, **call.sizes)

    args = [*call.arrays[:-1], Output(call.output)]
    return launch(kernel, call.grid, call.block, args, target=call.target, shared=call.shared, **options)


def copied(t: Any, size: int, inside: Any) -> Any:
    """Bytes that a `cp.async` of so many copies: all of them inside of a matrix, else none, and it fills up with 0."""
    with t.where(inside):
        return t.update(t.constant(0), t.constant(size))


def words(seed: int, *shape: int) -> npt.NDArray[np.uint64]:
    """Random words, the same on every machine and for ever."""
    made: npt.NDArray[np.uint64] = np.random.Philox(key=seed).random_raw(int(np.prod(shape))).reshape(shape)
    return made


def halves(seed: int, *shape: int) -> npt.NDArray[np.float16]:
    """Numbers of either sign in f16 with magnitudes from 2^-8 to 2^2: enough that sums lose bits on the way."""
    word = words(seed, *shape)
    sign, fraction = (word & np.uint64(1)) << np.uint64(15), word >> np.uint64(1) & np.uint64(0x3FF)
    exponent = np.uint64(15 - 8) + (word >> np.uint64(32)) % np.uint64(10)
    made: npt.NDArray[np.float16] = (sign | exponent << np.uint64(10) | fraction).astype(np.uint16).view(np.float16)
    return made


def spread(word: npt.NDArray[np.uint64], kind: str, lowest: int) -> Array:
    """Numbers of either sign in f32, f16 or bf16 with magnitudes from 2^lowest to 2^(lowest + 10), of random words."""
    fraction_bits, bias, dtype = _FORMATS[kind]
    exponent = bias + lowest + (word >> np.uint64(32) & np.uint64(0xFFFF)).astype(np.uint32) % 10
    low, bits = word.astype(np.uint32), 8 * np.dtype(dtype).itemsize
    code = (low >> 31) << bits - 1 | exponent << fraction_bits | low & ((1 << fraction_bits) - 1)
    made: Array = code.astype(f"u{bits // 8}").view(dtype)
    return made


def integers(seed: int, *shape: int) -> npt.NDArray[np.int8]:
    """Numbers from -128 to 127."""
    return words(seed, *shape).astype(np.uint8).view(np.int8)


def codes(array: Array) -> Array:
    """Bits of an array, to compare and to store."""
    return array.view(f"u{array.itemsize}")


def kept(output: Array) -> Array:
    """Bits of an output that are recorded: all of a small one, else a part at an odd stride, which meets every place.

    Examples
    --------
    >>> kept(np.zeros((1024, 1024), np.float16)).shape
    (19785,)
    """
    flat = codes(output).reshape(-1)
    return flat[:: flat.size // _KEPT // 2 * 2 + 1]


def write(path: Path, outputs: dict[str, Array], about: dict[str, str]) -> None:
    """Write a recording: of each case, by name, what is kept of its output; no pickles."""
    texts = json.dumps({"about": about, "cases": list(outputs)}).encode()
    arrays: dict[str, Any] = {f"d{i}": kept(d) for i, d in enumerate(outputs.values())}
    # JSON as bytes: a NumPy text takes four bytes a character.
    np.savez_compressed(path, texts=np.frombuffer(texts, np.uint8), **arrays)


def read(name: str) -> tuple[dict[str, str], dict[str, Array]]:
    """Read an example's recording: GPU and driver, and the bits kept of each case."""
    with np.load(RECORDED / f"{name}.npz") as archive:
        texts = json.loads(archive["texts"].tobytes())
        return texts["about"], {case: archive[f"d{i}"] for i, case in enumerate(texts["cases"])}


def report(result: Launch) -> str:
    """Return what a launch cost, as text."""
    costs = result.costs
    lines = [f"{sum(costs.instructions.values())} warp instructions, {costs.barriers} barriers"]
    moved: dict[str, int] = {}
    for (_, space), count in costs.bytes.items():
        moved[space] = moved.get(space, 0) + count
    lines += [f"{space} memory: {count} bytes" for space, count in sorted(moved.items())]
    advice = costs.advice()
    for site, entry in costs.sites.items():
        lost = f"{entry.conflicts} lost to bank conflicts" if entry.conflicts else "no bank conflicts"
        lines.append(f"{site}: {entry.accesses} accesses, {entry.wavefronts} wavefronts, {lost}")
        if entry.conflicts:
            lines.append(f"    advice: {advice[site] or 'no XOR swizzle of all of shared memory helps'}")
    return "\n".join(lines)
