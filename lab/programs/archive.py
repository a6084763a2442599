"""Recordings of a GPU's outputs: small ones whole, large ones as SHA-256 and a part at an odd stride."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .launches import Array

__all__ = ["RECORDED", "Recording", "difference", "kept", "read", "write"]

RECORDED = Path(__file__).parents[2] / "tests" / "data" / "h200_programs.npz"
_WHOLE, _PART = 4096, 512  # elements


@dataclass(frozen=True)
class Recording:
    """A recording: the GPU, and for each case its outputs by name and the printed lines.

    `outputs` holds, by case and array, the SHA-256 of all bytes, and the elements that `kept` takes.
    """

    about: Mapping[str, Any]
    outputs: Mapping[str, Mapping[str, tuple[str, Array]]]
    printed: Mapping[str, tuple[str, ...]]


def kept(output: Array) -> tuple[str, Array]:
    """Return the part of an output that is stored."""
    flat = np.ascontiguousarray(output).reshape(-1)
    flat = flat.view(f"u{flat.itemsize}")
    stride = 1 if flat.size <= _WHOLE else flat.size // _PART // 2 * 2 + 1
    return hashlib.sha256(flat.tobytes()).hexdigest(), flat[::stride]


def difference(output: Array, expected: tuple[str, Array]) -> str:
    """Describe where an output differs from the stored part; "" if it does not."""
    digest, part = kept(output)
    places = np.flatnonzero(part != expected[1])
    if len(places):
        return f"{len(places)} of {len(part)} differ, first at {places[:5]}"
    return "" if digest == expected[0] else "differs where it was not kept"


def write(path: Path, found: Recording) -> None:
    """Write a recording; no pickles."""
    arrays: dict[str, Array] = {}
    hashes: dict[str, dict[str, str]] = {}
    for case, outputs in found.outputs.items():
        hashes[case] = {name: digest for name, (digest, _) in outputs.items()}
        for name, (_, part) in outputs.items():
            arrays[f"{len(hashes) - 1}|{name}"] = part
    texts = {"about": dict(found.about), "hashes": hashes, "printed": {k: list(v) for k, v in found.printed.items()}}
    # JSON as bytes: a NumPy string takes four bytes per character.
    np.savez_compressed(path, texts=np.frombuffer(json.dumps(texts).encode(), np.uint8), **arrays)  # type: ignore[arg-type]


def read(path: Path = RECORDED) -> Recording:
    """Read a recording."""
    with np.load(path) as archive:
        texts = json.loads(archive["texts"].tobytes())
        outputs = {
            case: {name: (digest, archive[f"{i}|{name}"]) for name, digest in hashes.items()}
            for i, (case, hashes) in enumerate(texts["hashes"].items())
        }
    return Recording(texts["about"], outputs, {case: tuple(lines) for case, lines in texts["printed"].items()})
