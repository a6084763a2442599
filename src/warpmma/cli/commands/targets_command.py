"""The command `targets`: which targets there are, which GPUs they are, and what each has."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ...isa import GPUS, TARGETS, Target, check_known, instructions, warpgroup_instructions
from ..output.streams import write
from ..output.terminal import Paint, add_output, folded, paint_of, tabulated

_HEAD = ("target", "generation", "mma", "wgmma", "PTX", "types of A and B", "GPUs")
_STYLES = ("bold", "", "register", "register", "dim", "", "dim")
_BELOW = (
    "A target that ends in f has what its family has besides, one that ends in a what it alone has. PTX: the version "
    "that has all its instructions. sp: A may be sparse; mx: block scales. `warpmma targets sm_90a` says more."
)
_SHORT = {
    **dict.fromkeys(("e4m3", "e5m2"), "fp8"), **dict.fromkeys(("e3m2", "e2m3"), "fp6"), "e2m1": "fp4",
    **dict.fromkeys(("s8", "u8"), "int8"), **dict.fromkeys(("s4", "u4"), "int4"),
}  # fmt: skip
_FEW = 3  # GPUs of a target that the table names
_ROOM = 28  # of 119 columns, beside the others


def add_targets(parser: argparse.ArgumentParser) -> None:
    """Add its arguments."""
    parser.add_argument("target", nargs="?", metavar="TARGET", help="one, such as sm_90a; a GPU's name is explained")
    add_output(parser)


def run_targets(options: argparse.Namespace) -> int:
    """List the targets with the GPUs that they are and what they have, or all of one target."""
    if options.target is not None:
        check_known(options.target)
    chosen = [TARGETS[options.target]] if options.target is not None else list(TARGETS.values())
    facts = [_facts(target) for target in chosen]
    paint = paint_of(options)
    if options.json:
        write(json.dumps(facts if options.target is None else facts[0], indent=2))
    elif options.target is not None:
        write(_one(facts[0], paint))
    else:
        rows = [_row(each) for each in facts]
        below = "\n".join([folded(_BELOW), *_engine()])
        write(f"{tabulated([_HEAD, *rows], paint, (0, 1, 5, 6), _STYLES)}\n\n{paint(below, 'dim')}")
    return 0


def _engine() -> list[str]:
    """Name the engine that computes them, where NumPy is there to ask."""
    try:
        from ...arithmetic import engine_text
    except ImportError:
        return []
    return [f"engine: {engine_text()}"]


def _facts(target: Target) -> dict[str, Any]:
    found = instructions(target.name)
    names = next((row.names for row in GPUS if row.target == f"sm_{target.number}"), ())
    types = dict.fromkeys(x for i in found for x in (i.a_type, i.b_type))
    return {
        **asdict(target), "capability": list(target.capability), "gpus": list(names), "mma": len(found),
        "wgmma": len(warpgroup_instructions(target.name)), "ptx": list(max(i.ptx for i in found)),
        "types": list(types), "sparse": any(i.sparse for i in found), "block_scale": any(i.block_scale for i in found),
        "kinds": list(dict.fromkeys(i.kind for i in found if i.kind)),
    }  # fmt: skip


def _row(facts: dict[str, Any]) -> tuple[str, ...]:
    gpus = facts["gpus"] if not TARGETS[facts["name"]].features else ()
    return (
        facts["name"], facts["generation"], str(facts["mma"]), str(facts["wgmma"] or ""), _version(facts), _has(facts),
        _few(gpus),
    )  # fmt: skip


def _few(gpus: Sequence[str]) -> str:
    """Name the first ones, as many as fit a line."""
    written = (", ".join(gpus[:n]) + ", ..." * (n < len(gpus)) for n in range(_FEW, 0, -1))
    return next(text for text in written if len(text) <= _ROOM)


def _version(facts: dict[str, Any]) -> str:
    return ".".join(map(str, facts["ptx"]))


def _has(facts: dict[str, Any]) -> str:
    types = dict.fromkeys(_SHORT.get(type_, type_) for type_ in facts["types"])
    return " ".join([*types, *["sp"] * facts["sparse"], *["mx"] * facts["block_scale"]])


def _one(facts: dict[str, Any], paint: Paint) -> str:
    kib = 1024
    lines: Sequence[tuple[str, str]] = (
        ("generation", facts["generation"]),
        ("capability", "{}.{}".format(*facts["capability"])),
        ("GPUs", ", ".join(facts["gpus"])),
        ("instructions", f"{facts['mma']} of mma, {facts['wgmma']} of wgmma; PTX {_version(facts)} has all of them"),
        ("types of A and B", " ".join(facts["types"])),
        ("sparse A", "yes" if facts["sparse"] else "no"),
        ("kinds", " ".join(facts["kinds"]) or "none"),
        ("shared memory", f"{facts['shared_per_block'] // kib} KiB a block ({facts['static_shared'] // kib} "
                          f"KiB without opting in); {facts['shared_per_sm'] // kib} KiB a multiprocessor"),
        ("threads", f"{facts['threads_per_block']} a block, {facts['threads_per_sm']} a multiprocessor"),
        ("registers", f"{facts['registers_per_thread']} a thread, {facts['registers_per_block']} a block"),
        ("source of limits", facts["source"]),
    )  # fmt: skip
    body = [paint(name.ljust(18), "dim") + folded(text, 18) for name, text in lines]
    name = facts["name"]
    after = f"`warpmma list --target {name}` lists them, `warpmma evidence --target {name}` says how they are known."
    return "\n".join([paint(name, "bold"), *body, "", folded(after)])
