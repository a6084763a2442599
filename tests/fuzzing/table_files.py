"""Archives of recorded registers, and the command line."""

from __future__ import annotations

import io
import itertools
import tempfile
import zipfile
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import warpmma as wm
from warpmma import cli, hardware
from warpmma.cli.commands import verify

from . import legal
from .calls import Entry
from .hostile import Rng, chance, pick

__all__ = ["ENTRIES"]

_COUNT = itertools.count()


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="warpmma-fuzz-")


def recorded(rng: Rng, kind: str = "any") -> tuple[Any, dict[str, Any]]:
    """Make the fields of one instruction, as an archive has them."""
    i = legal.record(rng, kind)
    lead = (pick(rng, (1, 2)),)
    given = {x: legal.registers(rng, i, x.upper(), lead) for x in "abc"}
    if i.sparse:
        given["e"] = legal.metadata(rng, i, 0, lead)
        given |= {f"d{s}": legal.registers(rng, i, "D", lead) for s in range(len(wm_selectors(i)))}
        for s in range(1, len(wm_selectors(i))):
            given["e"] |= legal.metadata(rng, i, s, lead)
    else:
        given["d"] = legal.registers(rng, i, "D", lead)
    if i.block_scale:
        given |= {x: rng.integers(0, 1 << 32, (*lead, 32), np.uint32) for x in ("sa", "sb")}
        given["ids"] = np.array([*legal.ids(rng, i, "A").values(), *legal.ids(rng, i, "B").values()])
    return i, given


def wm_selectors(i: Any) -> tuple[int, ...]:
    """Return the selectors of a sparse instruction."""
    from warpmma.sparsity import selectors

    return selectors(i)


def _archive(rng: Rng) -> dict[str, Any]:
    i, given = recorded(rng)
    members: dict[str, Any] = {f"{i}|{name}": x for name, x in given.items()}
    members["target"] = np.array(legal.target(rng, i))
    return members


def _bytes(rng: Rng, members: dict[str, Any]) -> bytes:
    """Write an archive, perhaps with something wrong in it."""
    how = rng.integers(8)
    names = list(members)
    if how == 0:
        del members[pick(rng, names)]
    elif how == 1:
        from .bending import bend

        name = pick(rng, names)
        changed = bend(rng, members[name]).value
        small = isinstance(changed, np.ndarray) and changed.size < 1 << 16
        members[name] = changed if small else np.zeros(3)
    elif how == 2:
        members[pick(rng, ("x", "a|b", "device", "undefined", "mma|a", f"{names[0]}x"))] = pick(
            rng, (np.array("hardware"), np.zeros(2))
        )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", pick(rng, (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA))) as archive:
        for name, x in members.items():
            with archive.open(f"{name}.npy", "w") as member:
                try:
                    np.lib.format.write_array(member, np.asanyarray(x))
                except Exception:
                    member.write(b"nothing")
    data = bytearray(file.getvalue())
    if how == 3:
        for _ in range(int(rng.integers(1, 6))):
            data[int(rng.integers(len(data)))] = int(rng.integers(256))
    elif how == 4:
        del data[int(rng.integers(len(data))) :]
    elif how == 5 and chance(rng, 0.3):
        data = bytearray(rng.bytes(100))
    return bytes(data)


def _path(rng: Rng) -> str:
    path = Path(_folder().name) / f"{next(_COUNT) % 8}.npz"
    path.write_bytes(_bytes(rng, _archive(rng)))
    return str(path)


def opened(path: Any) -> Any:
    """Open an archive and replay it."""
    return list(hardware.open_recording(path).replay())


def _recording(rng: Rng) -> Any:
    i, given = recorded(rng)
    return hardware.Recording("made", legal.target(rng, i), "a GPU", "error", {i: given})


def _fields(rng: Rng) -> dict[str, Any]:
    i, given = recorded(rng)
    ids = given["ids"].tolist() if "ids" in given else []
    return {"instruction": i, "fields": given, "target": legal.target(rng, i), "selector": 0, "ids": ids,
            "undefined": "error"}  # fmt: skip


def _emitted(name: str, rng: Rng) -> dict[str, Any]:
    i = legal.record(rng)
    given = {"instruction": i, "selector": pick(rng, (0, 1)), "ids": (0, 0, 0, 0)}
    return given | ({"name": "k"} if name == "ptx_kernel" else {})


def main(arguments: Any) -> Any:
    """Run the command line, without the long replay of what the package ships."""
    small = _recording(np.random.default_rng(0))
    with mock.patch.object(verify, "shipped", lambda: small):
        return cli.main(arguments)


def _line(rng: Rng) -> dict[str, Any]:
    line = ["verify", _path(rng), *pick(rng, ((), ("--json",), ("--target", "sm_90"), ("--help",)))]
    return {"arguments": pick(rng, (line, line, ["--version"], ["verify"]))}


ENTRIES = (
    Entry(
        name="warpmma.hardware:open_recording", call=opened, make=lambda rng: {"path": _path(rng)}, weight=4,
        pure=False,
    ),
    Entry(name="warpmma.hardware:shipped", call=lambda: hardware.shipped, make=lambda rng: {}, weight=0.01),
    Entry(
        name="warpmma.hardware:execute_fields", call=hardware.execute_fields, make=_fields, weight=3, fixed=("fields",),
    ),
    Entry(
        name="warpmma.hardware:Recording", call=hardware.Recording, weight=0.2,
        make=lambda rng: {"name": "made", "target": "sm_90", "device": "", "undefined": "error", "fields": {}},
    ),
    Entry(
        name="warpmma.hardware:Recording.replay", call=lambda self, target=None: list(self.replay(target)), weight=2,
        make=lambda rng: {"self": (made := _recording(rng)), "target": made.target},
    ),
    Entry(
        name="warpmma.hardware:Recording.legal", call=hardware.Recording.legal, weight=1,
        make=lambda rng: {"self": _recording(rng), "target": "sm_90"},
    ),
    Entry(
        name="warpmma.hardware:Replay", call=hardware.Replay, weight=0.1, pure=False,
        make=lambda rng: {"instruction": (i := legal.record(rng)), "outputs": 1, "differences": 0, "first": "",
                          "evidence": wm.evidence(i, target=i.targets[0])},
    ),
    *(
        Entry(name=f"warpmma.hardware:{x}", call=getattr(hardware, x), make=partial(_emitted, x), weight=1)
        for x in ("ptx_kernel", "ptx_statement")
    ),
    Entry(
        name="warpmma.hardware:ptx_module", call=hardware.ptx_module, weight=1,
        make=lambda rng: {"kernels": [hardware.ptx_kernel(legal.record(rng), "k")], "target": "sm_90",
                          "version": (8, 8)},
    ),
    Entry(name="warpmma.cli:main", call=main, make=_line, weight=2, may=(SystemExit,), pure=False, prints=True),
)  # fmt: skip
