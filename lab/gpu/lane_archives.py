"""Recorded lanes of operations: an archive of arrays without pickles.

Rows with the same inputs and types of outputs form a group and share arrays. For group G, `G|rows` names the rows with
their immediates, `G|a0`.. are input registers `[warp, lane]`, and `G|d0`.. output registers `[row, warp, lane]`;
`device` names the GPU that computed them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from warpmma.operations import operation

from .row_jobs import RowJob

__all__ = ["LaneRecorder", "recorded_lanes"]

Array = npt.NDArray[Any]


class _Group(NamedTuple):
    given: list[Array]
    names: list[str]
    got: list[list[Array]]


class LaneRecorder:
    """Collects lanes of jobs."""

    def __init__(self) -> None:
        self._groups: dict[Any, _Group] = {}

    def add(self, job: RowJob, given: Sequence[Array], got: Sequence[Array]) -> None:
        """Keep the lanes of a job.

        Parameters
        ----------
        job : RowJob
        given, got : sequence of ndarray
            Input and output registers `[warp, lane]`.
        """
        key = (operation(job.mnemonic).outputs, *((x.dtype, x.tobytes()) for x in given))
        group = self._groups.setdefault(key, _Group([*given], [], []))
        group.names.append(str(job))
        group.got.append([*got])

    def save(self, path: Path, device: str) -> None:
        """Write the archive.

        Parameters
        ----------
        path : Path
        device : str
            GPU and driver.
        """
        arrays = {"device": np.array(device)}
        for i, group in enumerate(self._groups.values()):
            arrays |= {f"{i}|rows": np.array(group.names)} | {f"{i}|a{k}": x for k, x in enumerate(group.given)}
            arrays |= {f"{i}|d{k}": np.stack(each) for k, each in enumerate(zip(*group.got, strict=True))}
        np.savez_compressed(path, **arrays)  # type: ignore[arg-type]


def recorded_lanes(path: Path) -> Iterator[tuple[str, tuple[int, ...], tuple[Array, ...], tuple[Array, ...]]]:
    """Read an archive.

    Parameters
    ----------
    path : Path

    Yields
    ------
    tuple of str, tuple of int, tuple of ndarray and tuple of ndarray
        Mnemonic, immediates, input and output registers of each job.
    """
    with np.load(path) as archive:
        arrays = dict(archive)
    for i in sorted({key.split("|")[0] for key in arrays if "|" in key}, key=int):
        given, got = _numbered(arrays, f"{i}|a"), _numbered(arrays, f"{i}|d")
        for number, text in enumerate(arrays[f"{i}|rows"].tolist()):
            mnemonic, *values = text.split()
            yield mnemonic, tuple(int(x) for x in values), given, tuple(x[number] for x in got)


def _numbered(arrays: dict[str, Array], prefix: str) -> tuple[Array, ...]:
    names = itertools.takewhile(arrays.__contains__, (f"{prefix}{k}" for k in itertools.count()))
    return tuple(arrays[name] for name in names)
