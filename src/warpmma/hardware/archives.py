"""Archives of recorded registers: their records and replay, and reading that trusts nothing in a file unchecked."""

from __future__ import annotations

import io
import math
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

import numpy as np

from .._arguments import check_choice
from .._arrays import Array
from .._records import Shown
from ..arithmetic import Evidence
from ..errors import ArchiveError, OperandError, WarpmmaError, printable, shown
from ..execution import Undefined, evidence, execute
from ..isa import Instruction, check_known, check_target, parse
from ..layouts import Layout
from ..registers import LANES
from ..scaling import checked_ids
from ..sparsity import selectors

IDS = ("byte_id_a", "thread_id_a", "byte_id_b", "thread_id_b")


@dataclass(frozen=True)
class Replay(Shown):
    """The outcome for one instruction.

    Attributes
    ----------
    instruction : Instruction
    """

    instruction: Instruction
    outputs: int  # elements of D compared; each result counts, one for each selector where there are several
    differences: int  # how many of them differ
    first: str  # where the first difference is, with both values; empty without one
    evidence: Evidence


@dataclass(frozen=True)
class Recording(Shown):
    """A checked archive."""

    name: str  # the file
    target: str  # the recorded target, "sm_90" if not stated
    device: str  # GPU, driver and toolkit, if stated
    undefined: Undefined  # what `execute` is to do about undefined metadata
    fields: dict[Instruction, dict[str, Array]]  # arrays by instruction and field

    def replay(self, target: str | None = None) -> Iterator[Replay]:
        """Execute what was recorded, instruction by instruction, and compare.

        Parameters
        ----------
        target : str, optional
            Instead of the one it was recorded on.

        Yields
        ------
        Replay

        Raises
        ------
        TargetError
            Unknown target, or one that has none of the instructions; raised before anything is executed.
        """
        target = self.target if target is None else target
        legal = self.legal(target)
        if not legal:
            check_target(next(iter(self.fields)), target)
        return (self._one(instruction, target) for instruction in legal)

    def legal(self, target: str) -> list[Instruction]:
        """List the recorded instructions that a target has; the others cannot be replayed as on it."""
        check_known(target)
        return [instruction for instruction in self.fields if target in instruction.targets]

    def _one(self, instruction: Instruction, target: str) -> Replay:
        fields = self.fields[instruction]
        packing = instruction.packing("D")
        outputs = differences = 0
        first = ""
        for name, selector in result_fields(instruction).items():
            ids = fields["ids"].tolist() if instruction.block_scale else ()
            got = execute_fields(instruction, fields, target, selector=selector, ids=ids, undefined=self.undefined)
            unequal = packing.unpack(got) != packing.unpack(fields[name])
            outputs += unequal.size
            differences += int(unequal.sum())
            if unequal.any() and not first:
                warp, register, lane = (int(x) for x in np.argwhere(unequal)[0][:3])
                computed, recorded = int(got[warp, register, lane]), int(fields[name][warp, register, lane])
                first = f"warp {warp} register {register} lane {lane}: {computed:#x}, recorded {recorded:#x}"
        return Replay(instruction, outputs, differences, first, evidence(instruction, target=target))


def execute_fields(
    instruction: str | Instruction, fields: Mapping[str, Array], target: str, *, selector: int, ids: Sequence[int],
    undefined: Undefined,
) -> Array:  # fmt: skip
    """Execute an instruction on registers named as in an archive.

    Parameters
    ----------
    instruction : str or Instruction
    fields : mapping of str to ndarray
        `a`, `b`, `c`; and `e`, `sa`, `sb` where the instruction takes them.
    target : str
    selector : int
        Of a sparse instruction.
    ids : sequence of int
        Of a block-scaled one: byte-id and thread-id of A, byte-id and thread-id of B.
    undefined : {"error", "hardware"}
        Of a sparse one; as for `execute`.

    Returns
    -------
    ndarray
        Registers of D.

    Raises
    ------
    WarpmmaError
        As `execute` does, and for fields that are missing.
    """
    record, extra = parse(instruction), dict[str, Any]()
    names = ["a", "b", "c", *(["e"] if record.sparse else []), *(["sa", "sb"] if record.block_scale else [])]
    if not isinstance(fields, Mapping) or not all(x in fields for x in names):
        raise OperandError(f"{record}: fields are {shown(fields)}; expected a mapping with {', '.join(names)}")
    if record.sparse:
        extra |= {"metadata": fields["e"], "selector": selector, "undefined": undefined}
    if record.block_scale:
        extra |= {
            "scale_a": fields["sa"],
            "scale_b": fields["sb"],
            **dict(zip(IDS, checked_ids(record, ids), strict=True)),
        }
    return execute(record, *(fields[x] for x in "abc"), target=target, **extra)


def result_fields(instruction: Instruction) -> dict[str, int]:
    """Fields that hold results, with the selector of each."""
    return {f"d{s}": s for s in selectors(instruction)} if instruction.sparse else {"d": 0}


Header = tuple[tuple[int, ...], np.dtype[Any]]

# Limit of an archive's inflated size: registers hardly compress, and an archive beyond this is not a recording.
_INFLATED, _RATIO = 1 << 28, 64
_LONGEST_HEADER, _LONGEST_TEXT = 1 << 14, 1000
_TEXT = ("target", "device", "undefined")
_DEFAULT_TARGET = "sm_90"


def shipped() -> Recording:
    """Open the recording that is part of the package: registers of an H200.

    Returns
    -------
    Recording

    Examples
    --------
    >>> recording = shipped()
    >>> recording.target, recording.device
    ('sm_90a', 'NVIDIA H200, driver 580.159, CUDA 13.0')
    """
    source = files(__package__).joinpath("vectors", "h200_sm90a.npz")
    with source.open("rb") as file:
        return _read(file, source.name)


def open_recording(path: str | Path) -> Recording:
    """Open an archive of recorded registers and check all of it.

    Returns
    -------
    Recording

    Raises
    ------
    ArchiveError
        A file that cannot be read, is not an archive, is damaged, holds pickled objects, misses keys, or inflates out
        of all proportion; arrays of a wrong shape or dtype.
    """
    try:
        with Path(path).open("rb") as file:
            return _read(file, printable(str(path)))
    except (OSError, ValueError, TypeError) as error:
        if isinstance(error, WarpmmaError):
            raise
        raise ArchiveError(f"{shown(path, str)}: {getattr(error, 'strerror', None) or shown(error, str)}") from None


def _read(file: IO[bytes], name: str) -> Recording:
    """Read an archive: its directory, then the headers of its arrays, and only what agrees with both."""
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError) as error:
        raise ArchiveError(f"{name}: no .npz archive: {error}") from None
    with archive:
        text, members = _members(archive, name)
        _check_size(archive, file.seek(0, os.SEEK_END), name)
        texts = {key: _text(archive, info, name) for key, info in text.items()}
        fields: dict[Instruction, dict[str, zipfile.ZipInfo]] = {}
        for (instruction, field), info in members.items():
            fields.setdefault(instruction, {})[field] = info
        if not fields:
            raise ArchiveError(f"{name}: the archive is empty; expected keys MNEMONIC|a, |b, |c, |d")
        for instruction, named in fields.items():
            _check_names(name, instruction, named)
        for instruction, named in fields.items():
            _check(name, instruction, {field: _header(archive, info, name) for field, info in named.items()})
        arrays = {
            instruction: {field: _array(archive, info, name) for field, info in named.items()}
            for instruction, named in fields.items()
        }
    undefined = texts.get("undefined", "error")
    check_choice(f"{name}: undefined", undefined, ("error", "hardware"), ArchiveError)
    policy: Undefined = "hardware" if undefined == "hardware" else "error"
    return Recording(name, texts.get("target", _DEFAULT_TARGET), texts.get("device", ""), policy, arrays)


def _members(
    archive: zipfile.ZipFile, name: str
) -> tuple[dict[str, zipfile.ZipInfo], dict[tuple[Instruction, str], zipfile.ZipInfo]]:
    """Sort an archive's members, by their names alone: texts, and fields of instructions."""
    text: dict[str, zipfile.ZipInfo] = {}
    members: dict[tuple[Instruction, str], zipfile.ZipInfo] = {}
    for info in archive.infolist():
        key = info.filename.removesuffix(".npy")
        if key in _TEXT:
            if key in text:
                raise ArchiveError(f"{name}: {key} appears twice")
            text[key] = info
            continue
        mnemonic, bar, field = key.rpartition("|")
        if not bar:
            raise ArchiveError(f"{name}: key {key[:80]!r}; expected MNEMONIC|field, or one of {', '.join(_TEXT)}")
        try:
            instruction = parse(mnemonic)
        except WarpmmaError as error:
            raise ArchiveError(f"{name}: {error}") from None
        if (instruction, field) in members:
            raise ArchiveError(f"{name}: {instruction}|{field[:80]} appears twice")
        members[instruction, field] = info
    return text, members


def _check_size(archive: zipfile.ZipFile, length: int, name: str) -> None:
    """Refuse what inflates out of all proportion; no more than this is ever read of a member."""
    whole, most = sum(info.file_size for info in archive.infolist()), max(_INFLATED, _RATIO * length)
    if whole > most:
        raise ArchiveError(f"{name}: {length:,} bytes that inflate to {whole:,}; expected at most {most:,}")


def _header(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> Header:
    """Shape and dtype of an array, if its header agrees with the size in the archive's directory."""
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        kind = zipfile.compressor_names.get(info.compress_type, str(info.compress_type))  # type: ignore[attr-defined]
        raise ArchiveError(
            f"{name}: {info.filename} is not a readable array: compression {kind}; expected none or deflate, as of "
            "NumPy"
        )
    try:
        with archive.open(info) as member:
            start = io.BytesIO(member.read(_LONGEST_HEADER))  # a header states its own length
        version = np.lib.format.read_magic(start)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        shape, _, dtype = read(start)
    except Exception as error:  # what damaged bytes can raise has no end: zlib, tokenize and more
        raise _unreadable(info, name, error) from None
    if dtype.hasobject:
        raise ArchiveError(f"{name}: {info.filename} holds pickled objects, which are never read")
    if math.prod(shape) * dtype.itemsize != info.file_size - start.tell():
        raise ArchiveError(f"{name}: {info.filename} is damaged: its header says {dtype} {shape}, its length differs")
    return shape, dtype


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> Array:
    """Read one array whose header was checked."""
    try:
        with archive.open(info) as member:
            array: Array = np.lib.format.read_array(member, allow_pickle=False)
            return array
    except Exception as error:
        raise _unreadable(info, name, error) from None


def _unreadable(info: zipfile.ZipInfo, name: str, error: Exception) -> ArchiveError:
    return ArchiveError(f"{name}: {info.filename} is not a readable array: {error or type(error).__name__}")


def _text(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> str:
    shape, dtype = _header(archive, info, name)
    if shape or dtype.kind != "U" or dtype.itemsize > 4 * _LONGEST_TEXT:
        came = f"{info.filename} is {dtype} {shape}"
        raise ArchiveError(f"{name}: {came}; expected a text of at most {_LONGEST_TEXT} characters")
    return str(_array(archive, info, name))


def _shapes(instruction: Instruction) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    """Shape of one warp's part, and dtype, of every field but `ids`."""
    shapes = {x: _shape(instruction.layout(x.upper())) for x in "abc"}  # type: ignore[arg-type]
    shapes |= {x: _shape(instruction.layout("D")) for x in result_fields(instruction)}
    word = (LANES,), np.dtype(np.uint32)
    if instruction.sparse:
        shapes["e"] = word
    if instruction.block_scale:
        shapes |= {"sa": word, "sb": word}
    return shapes


def _check_names(name: str, instruction: Instruction, fields: Iterable[str]) -> None:
    expected = [*_shapes(instruction), *(["ids"] if instruction.block_scale else [])]
    missing = [x for x in expected if x not in fields]
    unknown = [x for x in fields if x not in expected]
    if missing or unknown:
        found = f"keys {', '.join('|' + x for x in unknown)} that it does not take" if unknown else ""
        lack = f"no {', '.join('|' + x for x in missing)}" if missing else ""
        raise ArchiveError(f"{name}: {instruction} has {' and '.join(x for x in (lack, found) if x)}")


def _check(name: str, instruction: Instruction, fields: dict[str, Header]) -> None:
    shape, dtype = fields.get("ids", ((len(IDS),), np.dtype(int)))
    if shape != (len(IDS),) or dtype.kind not in "iu":
        expected = f"four integers: {', '.join(IDS)}"
        raise ArchiveError(f"{name}: {instruction}|ids is {dtype} {shape}; expected {expected}")
    a, _ = fields["a"]
    warps = a[0] if a else 1
    if not warps:
        raise ArchiveError(f"{name}: {instruction}|a holds no warps")
    for x, (each, wanted) in _shapes(instruction).items():
        (shape, dtype), whole = fields[x], (warps, *each)
        if shape != whole or dtype != wanted:
            raise ArchiveError(
                f"{name}: {instruction}|{x} is {dtype} {shape}; expected {wanted} {whole}"
                + (" (the number of warps is that of |a)" if shape[1:] == each and shape[0] != warps else "")
            )


def _shape(layout: Layout) -> tuple[tuple[int, ...], np.dtype[Any]]:
    return (layout.registers, LANES), layout.packing.dtype
