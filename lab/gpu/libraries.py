"""Matrix products that a library computed on a GPU: their inputs from a seed, and archives of the results.

`python -m lab.record.matmul` records PyTorch's results. An archive is a NumPy `.npz` without pickled objects. Its
member `cases` is JSON, a list that describes each product; `NAME|d` holds codes of the part `[rows, columns]` of its
output; the other members are texts (device, driver and versions).

The inputs are not stored. They are made from raw words of the Philox generator, which NumPy guarantees not to change,
by integer arithmetic, exact operations on float32 and one rounding to the type, so they are the same on every machine;
a digest of them is stored.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import ml_dtypes
import numpy as np
import numpy.typing as npt

from warpmma._arguments import check_choice
from warpmma.errors import OperandError

__all__ = ["LibraryProduct", "RecordedProduct", "read_products", "texts_of", "write_products"]

Array = npt.NDArray[Any]
Float32 = npt.NDArray[np.float32]
Int = npt.NDArray[np.int64]

_DTYPES: dict[str, np.dtype[Any]] = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "e4m3": np.dtype(ml_dtypes.float8_e4m3fn),
    "f32": np.dtype(np.float32),
}


@dataclass(frozen=True)
class LibraryProduct:
    """A product of an m by k and a k by n matrix.

    Attributes
    ----------
    call : str
        The library function and its settings, by a name of `CALLS` in `lab/record/matmul.py`.
    dtype, out : str
        Types of A and B, and of the output.
    kind : {"normal", "model", "hard"}
        Kind of inputs: a bell curve with deviation 1; the same with some columns of A 32 times as large; sums that
        cancel down to about what an accumulator loses.
    m, n, k, seed : int

    Raises
    ------
    OperandError
        Another type or kind.
    """

    call: str
    dtype: str
    out: str
    kind: Literal["normal", "model", "hard"]
    m: int
    n: int
    k: int
    seed: int

    def __post_init__(self) -> None:
        check_choice("dtype", self.dtype, tuple(_DTYPES), OperandError)
        check_choice("out", self.out, tuple(_DTYPES), OperandError)
        check_choice("kind", self.kind, tuple(_MADE), OperandError)

    @property
    def name(self) -> str:
        """Its name in archives and tests."""
        return f"{self.call} {self.dtype} {self.out} {self.m}x{self.n}x{self.k} {self.kind} {self.seed}"

    def inputs(self) -> tuple[Array, Array]:
        """Make A and B.

        Returns
        -------
        tuple of ndarray of unsigned int
            Codes, `[m, k]` and `[k, n]`; read-only.
        """
        return self.part(slice(None), slice(None))

    def part(self, rows: slice, columns: slice) -> tuple[Array, Array]:
        """Make rows of A and columns of B alone.

        Returns
        -------
        tuple of ndarray of unsigned int
            Codes; read-only.
        """
        places = rows.indices(self.m), columns.indices(self.n)  # a slice has no hash
        return _inputs(self.kind, self.dtype, self.m, self.n, self.k, self.seed, *places)

    def digest(self) -> str:
        """Return a digest of A and B: 16 hexadecimal digits.

        Returns
        -------
        str
        """
        return _digest(self.kind, self.dtype, self.m, self.n, self.k, self.seed)


@dataclass(frozen=True, eq=False)
class RecordedProduct:
    """A case and the library's result.

    Attributes
    ----------
    case : LibraryProduct
    rows, columns : slice
        Which part of the output is kept.
    expected : ndarray of unsigned int
        Codes of that part.
    kernels : tuple of str
        The kernels that ran on the GPU: name, grid and block of each, in order.
    repeatable : bool
        Whether two more calls gave the same bits.
    digest : str
        Digest of the inputs.
    """

    case: LibraryProduct
    rows: slice
    columns: slice
    expected: Array
    kernels: tuple[str, ...]
    repeatable: bool
    digest: str

    def parts(self) -> tuple[Array, Array]:
        """Make the rows of A and the columns of B that the kept outputs come from.

        Returns
        -------
        tuple of ndarray of unsigned int
            Codes; read-only.
        """
        return self.case.part(self.rows, self.columns)


@lru_cache(maxsize=2)
def _inputs(
    kind: str, dtype: str, m: int, n: int, k: int, seed: int, rows: tuple[int, ...], columns: tuple[int, ...]
) -> tuple[Array, Array]:
    """Codes of rows of A and columns of B, of `[m, k]` and `[k, n]`; read-only."""
    codes = []
    for x in _MADE[kind](_Part(m, k, slice(*rows)), _Part(k, n, slice(None), slice(*columns)), 2 * seed):
        # All are finite: the bell curve ends at 6, 32 times that is 192, hard ones are below 2^5, and e4m3 ends at 448.
        rounded = x.astype(_DTYPES[dtype])
        code = rounded.view(f"u{rounded.itemsize}")
        code.flags.writeable = False
        codes.append(code)
    return codes[0], codes[1]


class _Part(NamedTuple):
    """Rows and columns of a matrix of a shape: random words are drawn for all of it, and numbers made of some."""

    height: int
    width: int
    rows: slice = slice(None)
    columns: slice = slice(None)

    def words(self, key: int, number: int) -> npt.NDArray[np.uint64]:
        """Draw words for the matrix, `number` of them for each element: `[number, row, column]`."""
        return _words(key, number, self.height, self.width)[:, self.rows, self.columns]


@lru_cache(maxsize=2)
def _digest(kind: str, dtype: str, m: int, n: int, k: int, seed: int) -> str:
    a, b = _inputs(kind, dtype, m, n, k, seed, (0, m, 1), (0, n, 1))
    little = (np.ascontiguousarray(x, x.dtype.newbyteorder("<")) for x in (a, b))
    return hashlib.sha256(b"".join(x.tobytes() for x in little)).hexdigest()[:16]


def _words(key: int, *shape: int) -> npt.NDArray[np.uint64]:
    words: npt.NDArray[np.uint64] = np.random.Philox(key=key).random_raw(int(np.prod(shape))).reshape(shape)
    return words


def _bell(key: int, part: _Part) -> Float32:
    """Add twelve uniform integers of 16 bits: mean 0 and spread 1, exact in float32."""
    words = part.words(key, 3)
    total = np.full(words.shape[1:], -6 * 0xFFFF, np.int32)
    for word in words:
        for shift in (0, 16, 32, 48):
            total += (word >> np.uint64(shift)).astype(np.uint16)
    return total.astype(np.float32) * np.float32(2**-16)


def _normal(a: _Part, b: _Part, key: int) -> tuple[Float32, Float32]:
    return _bell(key, a), _bell(key + 1, b)


def _model(a: _Part, b: _Part, key: int) -> tuple[Float32, Float32]:
    """One column of A in 64, at random places, is 32 times as large."""
    some, others = _normal(a, b, key)
    order = np.argsort(_words(key + (1 << 32), a.width), kind="stable")
    some[:, order[: -(-a.width // 64)]] *= np.float32(32)
    return some, others


def _hard(of_a: _Part, of_b: _Part, key: int) -> tuple[Float32, Float32]:
    """Give a quarter of k large products, another their negatives, and the rest small ones, in any order.

    The sum is small, and what was truncated on the way is a large part of it.
    """
    k = of_a.width
    order = np.argsort(_words(key + (1 << 32), k), kind="stable")
    quarter = k // 4
    large = np.zeros(k, bool)
    large[order[: 2 * quarter]] = True
    # Exponents -8 to 0 and, where large, -1 to 4: products stay below 2^10, and so do halves of sums below f16's limit.
    a = _wide(key, of_a, np.where(large, -1, -8)[None, :], np.where(large, 6, 9)[None, :])
    b = _wide(key + 1, of_b, np.where(large, -1, -8)[:, None], np.where(large, 6, 9)[:, None])
    one, other = order[:quarter], order[quarter : 2 * quarter]
    a[:, other], b[other] = -a[:, one], b[one]
    return a, b


def _wide(key: int, part: _Part, least: Int, count: Int) -> Float32:
    """Numbers of either sign with 24 random bits and exponents `least` to `least + count - 1`."""
    word = part.words(key, 1)[0]
    low, high = word.astype(np.uint32), (word >> np.uint64(32)).astype(np.uint32)
    fraction = (low & np.uint32(0x7FFFFF)).astype(np.int32) + np.int32(0x800000)
    np.negative(fraction, out=fraction, where=(low >> np.uint32(24)) & np.uint32(1) > 0)
    exponent = high % count.astype(np.uint32)
    exponent += (least - least.min()).astype(np.uint32)
    powers = np.ldexp(np.float32(1), np.arange(32) + int(least.min()) - 23)
    made: Float32 = fraction.astype(np.float32) * powers.astype(np.float32)[exponent]
    return made


_MADE = {"normal": _normal, "model": _model, "hard": _hard}


def write_products(path: Path, recorded: Sequence[RecordedProduct], texts: dict[str, str]) -> None:
    """Write an archive.

    Parameters
    ----------
    path : Path
    recorded : sequence of RecordedProduct
    texts : dict of str to str
        Device, driver and versions.
    """
    listed = [
        {
            **{f.name: getattr(r.case, f.name) for f in fields(LibraryProduct)},
            "rows": list(r.rows.indices(r.case.m)),
            "columns": list(r.columns.indices(r.case.n)),
            "kernels": list(r.kernels),
            "repeatable": r.repeatable,
            "digest": r.digest,
        }
        for r in recorded
    ]
    arrays: dict[str, Array] = {name: np.array(text) for name, text in texts.items()}
    # JSON as bytes: a NumPy string takes four bytes per character.
    arrays["cases"] = np.frombuffer(json.dumps(listed).encode(), np.uint8)
    arrays |= {f"{r.case.name}|d": r.expected for r in recorded}
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]


def texts_of(path: Path) -> dict[str, str]:
    """Read device, driver and versions from an archive.

    Parameters
    ----------
    path : Path

    Returns
    -------
    dict of str to str
    """
    with np.load(path) as archive:
        return {name: str(archive[name]) for name in archive.files if name != "cases" and not name.endswith("|d")}


def read_products(path: Path) -> Iterator[RecordedProduct]:
    """Read an archive.

    Parameters
    ----------
    path : Path

    Yields
    ------
    RecordedProduct
    """
    with np.load(path) as archive:
        for x in json.loads(archive["cases"].tobytes()):
            case = LibraryProduct(*(x[f.name] for f in fields(LibraryProduct)))
            yield RecordedProduct(
                case, slice(*x["rows"]), slice(*x["columns"]), archive[f"{case.name}|d"], tuple(x["kernels"]),
                x["repeatable"], x["digest"],
            )  # fmt: skip
