"""What the command line refuses: one line, status 2, and nothing on the output."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_cases import F16, GOOD, SP, Capture, Files, captured, recorded, saved, table_of

import warpmma
from warpmma import parse
from warpmma.cli import main
from warpmma.registers import LANES

Build = Callable[[Path], object]
MXFP8 = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"
UNDEFINED = Path(__file__).parents[1] / "data" / "h200_undefined.npz"


DATA = len(f"PK{'.' * 28}{F16}|a.npy{'.' * 20}")  # where the first member of an archive begins
HEADER = "{'descr': '<u4', 'fortran_order': False, 'shape': (0,), }"


def changed(**fields: Any) -> Build:
    return lambda path: saved(path, GOOD, **{f"{F16}|{name}": array for name, array in fields.items()})


def alone(**files: Any) -> Build:
    return lambda path: saved(path, {}, **files)


def patched(save: Any, signature: bytes, offset: int, byte: int) -> Build:
    """Change a byte of an archive, so far from the first of these signatures."""

    def build(path: Path) -> None:
        save(path, **GOOD)
        data = bytearray(path.read_bytes())
        data[data.index(signature) + offset] = byte
        path.write_bytes(data)

    return build


def forged(data: bytes, *names: str) -> Build:
    """Write these bytes for every array."""

    def build(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            for name in names or (f"{F16}|{x}.npy" for x in "abcd"):
                archive.writestr(name, data)

    return build


def header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


NONE, NO_NPZ, OBJECTS = (np.zeros(0, np.uint32), "no .npz archive: ", "holds pickled objects, which are never read")
BROKEN, OTHER = f"{F16}|a.npy is not a readable array: ", F16.replace(".m16n8k16.row.col", ".row.col.m16n8k16")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda path: None, "No such file or directory"),
        (Path.mkdir, "Is a directory"),
        (Path.touch, NO_NPZ),
        (lambda path: path.write_text("hello\nworld\n"), NO_NPZ),
        (lambda path: path.write_bytes(pickle.dumps([1])), NO_NPZ),
        (lambda path: path.write_bytes(header(HEADER)), NO_NPZ),  # a single array
        (lambda path: path.write_bytes(Path(saved(path, GOOD)).read_bytes()[:5000]), NO_NPZ),
        (patched(np.savez, b"PK\3\4", DATA + 300, 0xA5), BROKEN + "Bad CRC-32 for file"),
        (patched(np.savez_compressed, b"PK\3\4", DATA, 0x07), BROKEN),  # a block of no type
        (patched(np.savez_compressed, b"PK\1\2", 8, 0x01), BROKEN),  # an encrypted member
        (patched(np.savez_compressed, b"PK\1\2", 10, 0x63), BROKEN),  # a compression that nobody has
        (forged(b"no array"), BROKEN),
        (forged(header("(((")), BROKEN),
        (forged(header(HEADER.replace("0", "9" * 99))), f"{F16}|a.npy is damaged: its header says uint32 (999"),
        (forged(header(HEADER.replace("0", "-1"))), f"{F16}|a.npy is damaged: its header says uint32 (-1,)"),
        (forged(header(HEADER), f"{F16}|a.npy", f"{OTHER}|a.npy"), f"{F16}|a appears twice"),
        (alone(), "the archive is empty; expected keys MNEMONIC|a, |b, |c, |d"),
        (alone(notes=NONE), "key 'notes'; expected MNEMONIC|field, or one of target, device"),
        (alone(**{"mma.bad|a": NONE}), "mma.bad: unknown qualifier '.bad', did you mean "),
        (alone(**{F16 + ".f32|a": NONE}), f"{F16}.f32: needs the types of D, A, B and C"),
        (changed(a=None, d=None), f"{F16} has no |a, |d"),
        (changed(e=NONE), f"{F16} has keys |e that it does not take"),
        (changed(a=np.zeros((0, 4, 32), "u4")), f"{F16}|a holds no warps"),
        (changed(b=np.zeros((2, 3, 32), "u4")), f"{F16}|b is uint32 (2, 3, 32); expected uint32 (2, 2, 32)"),
        (changed(b=np.zeros((3, 2, 32), "u4")), f"{F16}|b is uint32 (3, 2, 32); expected uint32 (2, 2, 32) "),
        (changed(c=np.zeros((2, 4, 32), "f4")), f"{F16}|c is float32 (2, 4, 32); expected uint32 (2, 4, 32"),
        (changed(a=np.array([None, 1])), f"{F16}|a.npy {OBJECTS}"),
        (lambda path: saved(path, GOOD, undefined="maybe"), "undefined is 'maybe'; expected 'error' or "),
        (alone(**recorded(SP, "sm_90") | {f"{SP}|d1": None}), f"{SP} has no |d1"),
        (alone(**recorded(MXFP8, "sm_120a", 0, 0, 0, 0) | {f"{MXFP8}|ids": NONE}),
         f"{MXFP8}|ids is uint32 (0,); expected four integers: byte_id_a, thread_id_a, byte_id_b"),
        (patched(np.savez, b"PK\1\2", 6, 0xFF), NO_NPZ),  # a version of zip that nobody has
        (forged(header(HEADER), "mma\n|a"), "mma : needs .sync; got none"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_used(tmp_path: Path, capsys: Capture, build: Build, message: str) -> None:
    path = tmp_path / "some.npz"
    build(path)
    assert main(["verify", str(path)]) == 2
    check_refusal(capsys, f"{path}: {message}")


def check_refusal(capsys: Capture, message: str) -> None:
    output, error = capsys.readouterr()
    assert error.startswith(f"warpmma: {message}")
    assert (output, error.count("\n"), error[-1]) == ("", 1, "\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([""], ": "),
        (["--target", "sm_91"], "unknown target 'sm_91'; did you mean 'sm_90'? Known are sm_70, "),
        (["{good}", "--target", ""], "unknown target ''. Known are "),
        (["{good}", "--target", "sm_70"], f"{F16} is not legal on sm_70; legal on sm_80, "),
        (["{good}", "--target", "sm_75", "--json"], f"{F16} is not legal on sm_75; legal on sm_80, "),
        (["{named}"], "unknown target 'sm_9'; did you mean 'sm_90"),
        (["{ids}"], f"{{ids}}: {MXFP8}: byte-id of A is 4; expected 0, 1, 2, 3"),
        (["{equal}"], f"{{equal}}: {SP}: metadata nibble 0 of lane 0 is 0x0, indices (0, 0), for warp (0,), row 0, "),
        (["{unknown}"], f"{{unknown}}: {SP}: the effect of undefined metadata on sm_80 is not known; "),
    ],
)
def test_requests_that_cannot_be_met(tmp_path: Path, capsys: Capture, arguments: Any, message: str) -> None:
    ids = {"target": "sm_120a", f"{MXFP8}|ids": np.array([4, 0, 0, 0])}
    equal = recorded(SP, "sm_90") | {f"{SP}|e": np.zeros((2, LANES), np.uint32)}
    archives: dict[str, Files] = {"good": GOOD, "named": GOOD | {"target": "sm_9"}, "equal": equal}
    archives["ids"] = recorded(MXFP8, "sm_120a", 0, 0, 0, 0) | ids
    archives["unknown"] = equal | {"target": "sm_80", "undefined": "hardware"}
    names = {name: saved(tmp_path / f"{name}.npz", files) for name, files in archives.items()}
    assert main(["verify", *(x.format(**names) for x in arguments)]) == 2
    check_refusal(capsys, message.format(**names))


def test_what_was_compared_before_an_error_is_printed(tmp_path: Path, capsys: Capture) -> None:
    files = GOOD | {f"{SP}|e": np.zeros((2, LANES), np.uint32)}
    path = saved(tmp_path / "some.npz", files)
    assert main(["verify", path]) == 2
    output, error = capsys.readouterr()
    assert (
        F16 in output and "2 instructions" in output and error.startswith(f"warpmma: {path}: {SP}: metadata nibble 0")
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device")
def test_output_that_cannot_be_written() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "warpmma", "verify"], stdout=full, stderr=-1, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (2, "warpmma: the output cannot be written: No space left on device\n")


def test_undefined_metadata_can_be_recorded() -> None:
    status, output = captured(str(UNDEFINED))
    rows, below = table_of(output)
    assert (status, sum(different for _, different in rows.values())) == (0, 0)
    assert {parse(name).sparsity for name in rows} == {"sp"} and "executed as sm_90a:" in below[0]


class Trap:
    """Unpickled, it makes a directory."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (self.path,)


def test_nothing_is_unpickled(tmp_path: Path, capsys: Capture) -> None:
    sprung, path = tmp_path / "sprung", tmp_path / "trap.npz"
    trap = np.array([Trap(sprung), None])
    for key in (f"{F16}|a", "target", "device"):
        assert main(["verify", saved(path, GOOD | {key: trap})]) == 2
        check_refusal(capsys, f"{path}: {key}.npy {OBJECTS}")
    path.write_bytes(pickle.dumps(trap[0]))
    assert main(["verify", str(path)]) == 2
    check_refusal(capsys, f"{path}: {NO_NPZ}")
    assert not sprung.exists()
    pickle.loads(path.read_bytes())
    assert sprung.exists()  # it would have


@pytest.mark.parametrize(
    ("arguments", "status", "output", "error"),
    [
        (["--version"], 0, f"warpmma {warpmma.__version__}\n", ""),
        ([], 2, "", "COMMAND"),
        (["check"], 2, "", "unknown command 'check'; commands: list, show, "),
        (["verify", "--targets"], 2, "", "unrecognized arguments: --targets"),
    ],
)
def test_arguments(capsys: Capture, arguments: list[str], status: int, output: str, error: str) -> None:
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    assert raised.value.code == status
    captured = capsys.readouterr()
    assert captured.out == output and error in captured.err


@pytest.mark.parametrize("given", [5, "list", [1], [None], {"list": 1}], ids=str)
def test_arguments_that_are_no_words(given: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(given) == 2
    assert "expected a sequence of str" in capsys.readouterr().err
