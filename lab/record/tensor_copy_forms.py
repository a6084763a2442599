"""Record which statements of tensor copies and maps ptxas takes: `python -m lab.record.tensor_copy_forms --help`.

All numbers of dimensions, modes and spaces, some of which do not exist; and single statements that are near legal ones.
Needs `ptxas` on the PATH, and no GPU. Tests compare the table with the recording.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

TARGETS = ("sm_90", "sm_90a", "sm_100", "sm_100a")
HEAD = """.version 9.0
.target {target}
.address_size 64
.entry k() {{ .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .pred %p<3>;
"""
_MODES = ("", ".tile", ".im2col", ".im2col_no_offs")
_OPERATIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor", "cas")
_COUNTED = "mbarrier::complete_tx::bytes"
_LOAD = f"cp.async.bulk.tensor.2d.shared::cluster.global.{_COUNTED}"
_IMAGE = f"cp.async.bulk.tensor.3d.shared::cluster.global.im2col.{_COUNTED} [%r8], [%d1, {{%r1, %r2, %r3}}], [%r7]"
_IMAGES = (
    f"cp.async.bulk.tensor.4d.shared::cluster.global.im2col.{_COUNTED} [%r8], [%d1, {{%r1, %r2, %r3, %r4}}], [%r7]"
)
_PUBLISH = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic"
_FIELDS = {
    "global_address": ("b64", "%d2", ()), "rank": ("b32", "%r1", ()),
    "box_dim": ("b32", "%r1", (-1, 0, 4, 5, "%r2")), "global_dim": ("b32", "%r1", (0, 4, 5)),
    "global_stride": ("b64", "%d2", (-1, 0, 3, 4, 5)), "element_stride": ("b32", "%r1", (0, 4, 5)),
}  # fmt: skip
_NUMBERED = {
    "elemtype": (-1, 0, 12, 16),
    "interleave_layout": (0, 2, 3),
    "swizzle_mode": (0, 3, 7),
    "fill_mode": (0, 1, 2),
}
SINGLE = (
    f"{_LOAD} [%r8], [%d1, {{%r1}}], [%r7];",
    f"{_LOAD} [%r8], [%d1, {{%r1, %r2, %r3}}], [%r7];",
    f"{_LOAD} [%r8], [%d1, {{%r1, 3}}], [%r7];",
    f"{_LOAD} [%r8], [%d1, {{-1, 0}}], [%r7];",
    f"{_LOAD} [%r8+16], [%d1, {{%r1, %r2}}], [%r7+8];",
    f"{_LOAD} [%r8], [%d1+64, {{%r1, %r2}}], [%r7];",
    f"{_LOAD} [%d3], [%d1, {{%r1, %r2}}], [%d4];",
    f"{_LOAD} [%r8], [%r3, {{%r1, %r2}}], [%r7];",
    f"{_LOAD} [%r8], [%d1, {{%d1, %d2}}], [%r7];",
    f"{_LOAD} [%r8], [%d1, {{%h1, %h2}}], [%r7];",
    f"{_LOAD} [%r8], [%d1], [%r7];",
    f"{_LOAD} [%r8], [%d1, %r1], [%r7];",
    f"{_LOAD} [%r8], [%d1, {{%r1, %r2}}];",
    f"{_LOAD}.tile [%r8], [%d1, {{%r1, %r2}}], [%r7];",
    f"{_LOAD}.multicast::cluster [%r8], [%d1, {{%r1, %r2}}], [%r7], 1;",
    f"{_LOAD}.multicast::cluster [%r8], [%d1, {{%r1, %r2}}], [%r7];",
    f"{_LOAD.replace('2d', '1d')} [%r8], [%d1, %r1], [%r7];",
    f"{_LOAD.replace('.2d', '')} [%r8], [%d1, {{%r1, %r2}}], [%r7];",
    f"{_IMAGE}, %h1;", f"{_IMAGE}, {{3}};", f"{_IMAGE}, {{%r1}};", f"{_IMAGE};",
    f"{_IMAGES}, {{%h1}};", f"{_IMAGES}, {{%h1, 2}};",
    "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d1, {%r1, %r2}], [%d2];",
    "cp.async.bulk.tensor.2d.global.shared.bulk_group [%d1, {%r1, %r2}], [%r8];",
    "cp.reduce.async.bulk.tensor.2d.global.shared::cta.tile.add.bulk_group [%d1, {%r1, %r2}], [%r7];",
    "cp.reduce.async.bulk.tensor.2d.global.shared::cta.bulk_group [%d1, {%r1, %r2}], [%r7];",
    "prefetch.tensormap [%d1];", "prefetch.param.tensormap [%d1];", "prefetch.const.tensormap [%d1];",
    "prefetch.global.tensormap [%d1];",
    f"{_PUBLISH}.release.gpu.sync.aligned [%d1], [%d2], 128;",
    f"{_PUBLISH}.release.gpu.sync.aligned [%d1], [%r1], 64;",
    f"{_PUBLISH}.release.gpu.sync.aligned [%d1], [%r1], %r2;",
    f"{_PUBLISH}.release.gpu.sync.aligned [%d1], [%r1];",
    f"{_PUBLISH}.release.gpu.aligned [%d1], [%r1], 128;",
    f"{_PUBLISH}.release.gpu.sync [%d1], [%r1], 128;",
    f"{_PUBLISH}.acquire.gpu.sync.aligned [%d1], [%r1], 128;",
    f"{_PUBLISH.replace('::cta', '')}.release.gpu.sync.aligned [%d1], [%r1], 128;",
    "tensormap.replace.global_address.global.b1024.b64 [%d1], %d2;",
    "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%r1], %d2;",
    "tensormap.replace.tile.rank.global.b1024.b32 [%d1], 0, %r1;",
    "tensormap.replace.tile.box_dim.global.b1024.b32 [%d1], %r1;",
    "tensormap.replace.tile.box_dim.global.b1024.b32 [%d1], 0, 64;",
    "tensormap.replace.tile.rank.global.b512.b32 [%d1], %r1;",
    "tensormap.replace.tile.rank.global.b1024.b64 [%d1], %r1;",
    "tensormap.replace.tile.global_stride.global.b1024.b32 [%d1], 0, %d2;",
)  # fmt: skip


def statements() -> Iterator[str]:
    """List everything that is asked of ptxas."""
    for n in range(1, 7):
        at = "{" + ", ".join(f"%r{i}" for i in range(1, n + 1)) + "}"
        for mode in _MODES:
            moved = ", {" + ", ".join(f"%h{i}" for i in range(1, max(n - 1, 2))) + "}" if mode == ".im2col" else ""
            for space, more, operands in (
                ("shared::cluster", "", ""), ("shared::cluster", ".multicast::cluster", ", %h1"),
                ("shared::cluster", ".L2::cache_hint", ", %d2"),
                ("shared::cluster", ".multicast::cluster.L2::cache_hint", ", %h1, %d2"), ("shared::cta", "", ""),
                ("shared::cta", ".L2::cache_hint", ", %d2"), ("shared::cta", ".multicast::cluster", ", %h1"),
                ("shared", "", ""),
            ):  # fmt: skip
                load = f"cp.async.bulk.tensor.{n}d.{space}.global{mode}.{_COUNTED}{more}"
                yield f"{load} [%r8], [%d1, {at}], [%r7]{moved}{operands};"
            for more, operands in (("", ""), (".L2::cache_hint", ", %d2")):
                store = f"cp.async.bulk.tensor.{n}d.global.shared::cta{mode}.bulk_group{more}"
                yield f"{store} [%d1, {at}], [%r7]{operands};"
                yield f"cp.async.bulk.prefetch.tensor.{n}d.L2.global{mode}{more} [%d1, {at}]{moved}{operands};"
                for operation in _OPERATIONS:
                    name = f"cp.reduce.async.bulk.tensor.{n}d.global.shared::cta.{operation}{mode}.bulk_group{more}"
                    yield f"{name} [%d1, {at}], [%r7]{operands};"
    for space in ("", ".global", ".shared::cta", ".shared", ".shared::cluster", ".param"):
        for name, (type_, value, ordinals) in _FIELDS.items():
            for ordinal in ordinals or ("",):
                dimension = f"{ordinal}, " if ordinals else ""
                yield f"tensormap.replace.tile.{name}{space}.b1024.{type_} [%d1], {dimension}{value};"
        for name, values in _NUMBERED.items():
            for number in (*values, "%r1"):
                yield f"tensormap.replace.tile.{name}{space}.b1024.b32 [%d1], {number};"
    for scope in ("cta", "cluster", "gpu", "sys"):
        yield f"{_PUBLISH}.release.{scope}.sync.aligned [%d1], [%r1], 128;"
    yield from SINGLE


def taken(given: list[str], target: str) -> list[bool]:
    """Return which statements ptxas takes; an error may hide others, so it is asked until there are none."""
    left = list(range(len(given)))
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "forms.ptx"
        while True:
            head = HEAD.format(target=target)
            source.write_text(head + "\n".join(given[i] for i in left) + "\nret; }\n")
            command = ["ptxas", "-arch", target, str(source), "-o", str(source.with_suffix(".cubin"))]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            lines = re.findall(r"line (\d+);? *(?:error|fatal) *:", done.stdout + done.stderr)
            refused = {left[int(x) - head.count("\n") - 1] for x in lines}
            if not refused:
                if done.returncode:
                    sys.exit(done.stderr[:500])
                return [i in left for i in range(len(given))]
            left = [i for i in left if i not in refused]


def main() -> None:
    """Ask ptxas about all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", help="file to write, such as tests/data/tensor_copies_ptxas.json.gz")
    output = Path(parser.parse_args().output)
    asked = list(dict.fromkeys(statements()))
    answers = zip(*(taken(asked, target) for target in TARGETS), strict=True)
    found = {x: "".join("ny"[y] for y in answer) for x, answer in zip(asked, answers, strict=True)}
    version = subprocess.run(["ptxas", "--version"], capture_output=True, text=True, check=True).stdout.split("\n")[-3]
    text = json.dumps({"ptxas": version, "targets": TARGETS, "head": HEAD, "taken": found})
    output.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
