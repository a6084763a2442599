"""Kernels of PTX on this machine's GPU."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Hashable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy.typing as npt

from warpmma.hardware import ptx_module

__all__ = ["KernelGpu"]

Array = npt.NDArray[Any]
Key = TypeVar("Key", bound=Hashable)

_AT_ONCE = 16  # processes of the assembler


class KernelGpu(Generic[Key]):
    """Kernels that are assembled and loaded once, for CuPy's current device.

    Parameters
    ----------
    kernels : mapping of key to callable
        By the key for `launch`: from a kernel's name to its PTX, without the module's header.
    target : str
    version : tuple of int
        A PTX version that supports all of them.

    Raises
    ------
    ImportError, FileNotFoundError, subprocess.CalledProcessError
        No CuPy; no `ptxas` on the PATH; PTX that it rejects.
    """

    def __init__(self, kernels: Mapping[Key, Callable[[str], str]], target: str, version: tuple[int, int]) -> None:
        try:
            import cupy
        except ImportError as error:
            raise ImportError(f"kernels reach a GPU through CuPy (cupy-cuda13x): {error}") from None
        self._cupy = cupy
        names = {key: f"k{i}" for i, key in enumerate(kernels)}
        parts = [part for i in range(_AT_ONCE) if (part := list(names)[i::_AT_ONCE])]
        self._functions: dict[Key, Any] = {}
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(_AT_ONCE) as pool:

            def assembled(number: int) -> Path:
                texts = (kernels[key](names[key]) for key in parts[number])
                return _assembled(Path(folder) / f"{number}.ptx", ptx_module(texts, target, version), target)

            for part, cubin in zip(parts, pool.map(assembled, range(len(parts))), strict=True):
                loaded = cupy.RawModule(path=str(cubin))
                self._functions |= {key: loaded.get_function(names[key]) for key in part}

    @property
    def device(self) -> str:
        """GPU and driver."""
        name = self._cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        drivers = subprocess.run(query, capture_output=True, text=True, check=False).stdout.split()
        return f"{name}, driver {drivers[0] if drivers else 'unknown'}"

    def launch(
        self, key: Key, blocks: int, threads: int, arrays: Iterable[Array], written: Iterable[int]
    ) -> tuple[Array, ...]:  # fmt: skip
        """Run a kernel on copies of arrays.

        Parameters
        ----------
        key : hashable
        blocks, threads : int
            How many blocks, and threads of each.
        arrays : iterable of ndarray
            The kernel takes their addresses, in this order.
        written : iterable of int
            Which of them it writes.

        Returns
        -------
        tuple of ndarray
            The arrays that it writes, after the launch.
        """
        there = tuple(self._cupy.asarray(x, order="C") for x in arrays)
        self._functions[key]((blocks,), (threads,), there)
        return tuple(there[i].get() for i in written)


def _assembled(source: Path, text: str, target: str) -> Path:
    source.write_text(text, encoding="utf-8")
    cubin = source.with_suffix(".cubin")
    subprocess.run(["ptxas", f"-arch={target}", str(source), "-o", str(cubin)], check=True)
    return cubin
