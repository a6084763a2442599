"""Archives whose headers state wrong sizes are refused before memory is allocated."""

from __future__ import annotations

import io
import os
import re
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warpmma.errors import ArchiveError
from warpmma.hardware import open_recording

pytestmark = pytest.mark.quick

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
REGISTERS = {"a": 4, "b": 2, "c": 4, "d": 4}
MEBI = 1 << 20
MOST = 8 * MEBI  # of memory; what the bombs would take is many times that


def header(dtype: str, *shape: int) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": dtype, "fortran_order": False, "shape": shape})
    return out.getvalue()


def zeros(dtype: str, *shape: int) -> bytes:
    data: bytes = header(dtype, *shape) + bytes(int(np.prod(shape)) * np.dtype(dtype).itemsize)
    return data


def packed(path: Path, members: dict[str, bytes], **options: Any) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data, **options)


def good(warps: int = 2) -> dict[str, bytes]:
    return {f"{F16}|{x}": zeros("<u4", warps, n, 32) for x, n in REGISTERS.items()}


def directory(path: Path, name: str, *, size: int, crc: int | None = None) -> None:
    """Write another size (and check sum) of a member's data into an archive's directory."""
    data = bytearray(path.read_bytes())
    entry = data.rindex(f"{name}.npy".encode()) - 46  # of PKZIP's APPNOTE, 4.3.12
    assert data[entry : entry + 4] == b"PK\1\2"
    struct.pack_into("<I", data, entry + 24, size)
    if crc is not None:
        struct.pack_into("<I", data, entry + 16, crc)
    path.write_bytes(data)


def long_text(path: Path) -> None:
    packed(path, good() | {"target": zeros(f"<U{8 * MEBI}")})


def many_warps(path: Path) -> None:
    packed(path, good() | {f"{F16}|d": zeros("<u4", MEBI // 4, 4, 32)})


def said_long(path: Path) -> None:
    text = f"<U{256 * MEBI}"
    packed(path, good() | {"target": header(text)})
    directory(path, "target", size=len(header(text)) + 1024 * MEBI)


def together_long(path: Path) -> None:
    packed(path, good())
    for x in REGISTERS:
        directory(path, f"{F16}|{x}", size=80 * MEBI)


def endless_header(path: Path) -> None:
    packed(path, good() | {"target": b"\x93NUMPY\x02\x00" + struct.pack("<I", 64 * MEBI) + b" " * (64 * MEBI)})


def twice(path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "w") as archive:
        for _ in range(2):
            archive.writestr("target.npy", zeros("<U4"))


def squeezed(path: Path) -> None:
    packed(path, good(), compress_type=zipfile.ZIP_LZMA)


def no_text(path: Path) -> None:
    packed(path, good() | {"device": zeros("<f8", 3)})


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (long_text, "target.npy is <U8388608 (); expected a text of at most 1000 characters"),
        (no_text, "device.npy is float64 (3,); expected a text of at most 1000 characters"),
        (many_warps, f"{F16}|d is uint32 (262144, 4, 32); expected uint32 (2, 4, 32) (the number~"),
        (said_long, "~ bytes that inflate to 1,073,746,048; expected at most 268,435,456"),
        (together_long, "~ bytes that inflate to 335,544,320; expected at most 268,435,456"),
        (endless_header, "target.npy is not a readable array: ~"),
        (twice, "target appears twice"),
        (squeezed, f"{F16}|a.npy is not a readable array: compression lzma; expected none or deflate, as of NumPy"),
    ],
)  # fmt: skip
def test_bombs_are_refused_unread(tmp_path: Path, build: Callable[[Path], None], message: str) -> None:
    path = tmp_path / "bomb.npz"
    build(path)
    assert path.stat().st_size < MEBI
    tracemalloc.start()
    try:
        with pytest.raises(ArchiveError, match=re.escape(f"{path}: {message}").replace("\\~", ".*") + "$"):
            open_recording(path)
        assert tracemalloc.get_traced_memory()[1] < MOST
    finally:
        tracemalloc.stop()


def test_no_more_is_inflated_than_the_directory_says(tmp_path: Path) -> None:
    """The stream goes on for 64 MiB behind what directory and header agree upon, with the check sum of that."""
    path, name = tmp_path / "long.npz", f"{F16}|d"
    data = good()[name]
    packed(path, good() | {name: data + bytes(64 * MEBI)})
    directory(path, name, size=len(data), crc=zlib.crc32(data))
    tracemalloc.start()
    try:
        recording = open_recording(path)
        assert tracemalloc.get_traced_memory()[1] < MOST
    finally:
        tracemalloc.stop()
    (fields,) = recording.fields.values()
    assert fields["d"].shape == (2, 4, 32) and not fields["d"].any()


def test_names_of_files_that_are_no_text(tmp_path: Path) -> None:
    """Names are bytes; those that are no UTF-8 are shown escaped, for they could not be printed."""
    path = tmp_path / os.fsdecode(b"\xff.npz")
    packed(path, good())
    assert open_recording(path).name == f"{tmp_path}/\\udcff.npz"
    path.write_bytes(b"none")
    with pytest.raises(ArchiveError, match=re.escape(f"{tmp_path}/\\udcff.npz: no .npz archive")):
        open_recording(path)
    with pytest.raises(ArchiveError, match=re.escape("\\ud800: ")):
        open_recording("\ud800")
