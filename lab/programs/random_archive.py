"""Recordings of a GPU's outputs for random programs: hashes that locate differences."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .launches import Array

__all__ = ["EVERY", "RANDOM", "RandomRecording", "digests", "find", "read_random", "write_random"]

RANDOM = Path(__file__).parents[2] / "tests" / "data" / "h200_random_programs.npz"
EVERY = 10
"""One program in this many has hashes of words and threads."""


@dataclass(frozen=True)
class RandomRecording:
    """The GPU, and the hash of each program by number; for some also the hashes of words and of threads."""

    about: Mapping[str, Any]
    whole: Mapping[int, int]
    words: Mapping[int, Array]
    threads: Mapping[int, Array]


def _hash(codes: Array) -> int:
    return zlib.crc32(np.ascontiguousarray(codes).tobytes())


def digests(output: Array) -> tuple[int, Array, Array]:
    """Return hashes of an output [threads, words]: of all, of each word over all threads, and of each thread."""
    words = np.array([_hash(word) for word in output.T], np.uint32)
    threads = np.array([_hash(thread) for thread in output], np.uint32)
    return _hash(words) << 32 | _hash(threads), words, threads


def write_random(path: Path, about: Mapping[str, Any], outputs: Mapping[int, Array]) -> None:
    """Write a recording."""
    found = {number: digests(output) for number, output in outputs.items()}
    parts = [number for number in found if number % EVERY == 0]
    np.savez_compressed(
        path,
        about=np.frombuffer(json.dumps(dict(about)).encode(), np.uint8),
        numbers=np.array(list(found)),
        whole=np.array([x[0] for x in found.values()], np.uint64),
        parts=np.array(parts),
        words=np.array([found[number][1] for number in parts]),
        threads=np.array([found[number][2] for number in parts]),
    )


def read_random(path: Path = RANDOM) -> RandomRecording:
    """Read a recording."""
    with np.load(path) as archive:
        parts = archive["parts"].tolist()
        return RandomRecording(
            json.loads(archive["about"].tobytes()),
            dict(zip(archive["numbers"].tolist(), archive["whole"].tolist(), strict=True)),
            dict(zip(parts, archive["words"], strict=True)),
            dict(zip(parts, archive["threads"], strict=True)),
        )


def find(recorded: RandomRecording, number: int, found: tuple[int, Array, Array]) -> str:
    """Describe where an output differs from the recorded one; "" if it does not."""
    whole, words, threads = found
    if whole == recorded.whole[number]:
        return ""
    if number not in recorded.words:
        return "differs"
    word, thread = (
        np.flatnonzero(a != b[number]).tolist() for a, b in ((words, recorded.words), (threads, recorded.threads))
    )
    return f"words {word[:8]} of {len(word)} differ, in threads {thread[:8]} of {len(thread)}"
