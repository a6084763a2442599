"""All about one instruction, as text and JSON: operands in registers, formulas, targets, arithmetic, evidence.

1. `facts` collects plain values; the JSON is these, and the text reads them alone.
2. Targets with the same arithmetic and evidence stand together; of `wmma` and the instructions that move fragments,
   targets with the same layout.
"""

from __future__ import annotations

import json as json_module
import re
import textwrap
from collections.abc import Iterable
from typing import Any

from ..._text import counted, ranges, table
from ...arithmetic import Evidence, Recipe, evidence_of, fused_steps, recipe_of
from ...isa import TARGETS, FragmentHolder, FragmentInstruction, Instruction, MatrixInstruction, WarpgroupInstruction
from ...layouts import OPERANDS, Layout
from ...lookup import ids_of, layout_known
from ...scaling import byte_ids, thread_ids
from ...sparsity import selectors
from ..sums.step_words import how

_WIDTH = 118
_FEW = 8  # registers whose elements are listed
_EVIDENCE = ("kind", "source", "device", "compared", "assumption")


def facts(i: FragmentHolder, target: str | None = None) -> dict[str, Any]:
    """Return all facts as values of JSON; if a target is named, its arithmetic and layouts alone."""
    if isinstance(i, FragmentInstruction):
        return {
            "mnemonic": str(i), "shape": i.shape_name, "ptx": list(i.ptx), "threads": 32,
            "operands": {operand: _fragments(i, operand, target) for operand in i.operands},
            "targets": list(i.targets), "known": layout_known(i, target),
        }  # fmt: skip
    operands = {operand: _operand(i, operand) for operand in OPERANDS}
    return {
        "mnemonic": str(i), "shape": {"m": i.m, "n": i.n, "k": i.k}, "ptx": list(i.ptx),
        "documented": i.documented, "threads": 128 if isinstance(i, WarpgroupInstruction) else 32,
        "operands": operands, **_lane_words(i), "targets": list(i.targets),
        "arithmetic": _arithmetic(i, i.targets if target is None else (target,)),
    }  # fmt: skip


def json(i: FragmentHolder, target: str | None = None) -> str:
    """Return the facts as JSON."""
    return json_module.dumps(facts(i, target), indent=2)


def _operand(i: MatrixInstruction, operand: Any) -> dict[str, Any]:
    if isinstance(i, WarpgroupInstruction) and operand == "B":
        return {"type": i.type(operand), "shape": [i.k, i.n], "in": "shared memory"}
    layout = i.layout(operand)
    where = {"shape": list(layout.shape), "in": "registers"}
    return {"type": i.type(operand), **where, **_layout(layout, shift=layout.packing.shift)}


def _fragments(i: FragmentInstruction, operand: str, target: str | None) -> dict[str, Any]:
    every = i.fragments(operand) if target is None else {i.fragment(operand, target): (target,)}
    return {
        "type": i.element_type(operand), "variant": i.variant(operand),
        "layouts": [
            {
                "targets": list(targets), "counted": len(ids_of(i, operand, targets[0])),
                "shape": list(layout.shape), **_layout(layout),
            }
            for layout, targets in every.items()
        ],
    }  # fmt: skip


def _layout(layout: Layout, **more: int) -> dict[str, Any]:
    """`order` lists the elements of a fragment that each register of a lane holds, the lowest bits first."""
    packing = layout.packing
    per = packing.per_register
    return {
        "registers": layout.registers, "bits": packing.width, "elements": layout.elements,
        "element_bits": packing.bits, "slot_bits": packing.slot, **more,
        "order": [ranges(range(r * per, (r + 1) * per)) for r in range(layout.registers)],
        "formulas": layout.formulas(),
    }  # fmt: skip


def _lane_words(i: MatrixInstruction) -> dict[str, Any]:
    """Metadata and scales, which lanes give besides their fragments."""
    found: dict[str, Any] = {}
    if isinstance(i, Instruction) and i.sparse:
        found["metadata"] = {"registers": 1, "selectors": list(selectors(i)), "sparsity": i.sparsity}
    if isinstance(i, Instruction) and i.block_scale:
        found["scales"] = {
            "type": i.stype, "scale_vec": f"{i.scales_per_row}X", "elements": i.k // i.scales_per_row,
            "byte_ids": list(byte_ids(i)), "thread_ids": {x: list(thread_ids(x)) for x in ("A", "B")},
        }  # fmt: skip
    return found


def _arithmetic(i: MatrixInstruction, targets: Iterable[str]) -> list[dict[str, Any]]:
    """Rule 2."""
    found: dict[tuple[Recipe, str], dict[Evidence, list[str]]] = {}
    for target in targets:
        known = evidence_of(i, target)
        alike = found.setdefault((recipe_of(i, target), known.machine), {})
        alike.setdefault(known, []).append(target)
    return [
        {
            **_targets(target for those in alike.values() for target in those), "machine": machine,
            "how": how(recipe), **_numbers(recipe, i),
            "evidence": [
                {"targets": those, **{name: getattr(known, name) for name in _EVIDENCE}}
                for known, those in alike.items()
            ],
        }
        for (recipe, machine), alike in found.items()
    ]  # fmt: skip


def _targets(names: Iterable[str]) -> dict[str, list[str]]:
    ordered = sorted(names, key=list(TARGETS).index)
    return {"targets": ordered, "generations": list(dict.fromkeys(TARGETS[name].generation for name in ordered))}


def _numbers(recipe: Recipe, i: MatrixInstruction) -> dict[str, Any]:
    """F, L, Z and the number of steps, of units that have them."""
    unit = recipe.unit
    names = {"F": "fraction_bits", "L": "products", "G": "group", "Z": "floor", "result_bits": "result_bits"}
    found = {short: getattr(unit, name) for short, name in names.items() if hasattr(unit, name)}
    if "L" in found:
        found["steps"] = len(fused_steps(recipe.order, found["L"], i.k // 2 if i.sparse else i.k))
    return found | ({"rounding": unit.rounding} if hasattr(unit, "rounding") else {})


# The text


def text(i: FragmentHolder, target: str | None = None, width: int = _WIDTH) -> str:
    """Return the facts as text, with prose broken at a width."""
    known = facts(i, target)
    if isinstance(i, FragmentInstruction):
        about = f"{i.shape_name}; since PTX {'.'.join(map(str, i.ptx))}"
        parts = {
            "Fragments": _fragment_lines(known), "Where elements sit": _fragment_formula_lines(known),
            "How it is known": _wrapped(known["known"], 2, width), "Targets": _wrapped(" ".join(i.targets), 2, width),
        }  # fmt: skip
    else:
        about = _sum(i)
        parts = {
            "Operands": _operand_lines(known, width), "Where elements sit": _formula_lines(known, width),
            "How it is computed": _arithmetic_lines(known, width),
        }  # fmt: skip
    lines = [known["mnemonic"], about]
    for heading, rest in parts.items():
        lines += ["", heading, "-" * len(heading), *rest]
    return "\n".join(lines)


def _sum(i: MatrixInstruction) -> str:
    scaled, sparse = "scaled " * i.block_scale, ", sparse" * i.sparse
    operation = f"ones of A {i.bit_op} B" if i.bit_op else f"{scaled}A x {scaled}B"
    factors = f"{i.m} x {i.k}, {i.a_type}{sparse}; {i.k} x {i.n}, {i.b_type}"
    version = ".".join(map(str, i.ptx))
    return (
        f"D ({i.m} x {i.n}, {i.d_type}) = {operation} ({factors}) + C ({i.c_type})"
        f"{', satfinite' * i.satfinite}; since PTX {version}"
    )


def _operand_lines(known: dict[str, Any], width: int) -> list[str]:
    rows = [("operand", "type", "shape", "registers", "a thread's elements, low bits first")]
    for name, x in known["operands"].items():
        shape = " x ".join(map(str, x["shape"]))
        if x["in"] == "registers":
            listed = " | ".join(_run(name.lower(), run) for run in x["order"][:_FEW]) + " | ..." * (
                x["registers"] > _FEW
            )
            rows.append((name, x["type"], shape, f"{x['registers']} of {x['bits']} bits", listed))
        else:
            rows.append((name, x["type"], shape, "", "in shared memory, by a descriptor"))
    lines = ["  " + line for line in table(rows, range(5))]
    packed = {name: x for name, x in known["operands"].items() if x.get("slot_bits") != x.get("element_bits")}
    for name, x in packed.items():
        above = f", from bit {x['shift']} of it" * bool(x["shift"])
        lines.append(f"  An element of {name} has {x['element_bits']} bits in a place of {x['slot_bits']}{above}.")
    if known["operands"]["A"]["in"] == "registers" and known["threads"] == 128:
        lines.append("  A may lie in shared memory instead. A warpgroup has 128 threads.")
    if x := known.get("metadata"):
        chosen = ", ".join(map(str, x["selectors"]))
        lines.append(f"  metadata: 1 register; selector {chosen}. A has the stored half of each row.")
    if x := known.get("scales"):
        ids = [f"thread-id of {name} {ranges(x['thread_ids'][name])}" for name in "AB"]
        ids.append(f"byte-id {', '.join(map(str, x['byte_ids']))}")
        lines += _wrapped(
            f"scales of A and of B: 1 register each, {x['type']}, {x['scale_vec']}: one for {x['elements']} elements "
            f"of k; {', '.join(ids)}", 2, width,
        )  # fmt: skip
    return lines


def _run(letter: str, run: str) -> str:
    """Write a run of elements: "0-3" as a0-a3, "0-1" as a0 a1."""
    first, _, last = run.partition("-")
    between = " " if last and int(last) - int(first) == 1 else "-"
    return f"{letter}{first}{between}{letter}{last}" if last else f"{letter}{first}"


def _formula_lines(known: dict[str, Any], width: int) -> list[str]:
    lines, done = [], set()
    for name, x in known["operands"].items():
        if x["in"] != "registers" or name in done:
            continue
        same = [other for other, y in known["operands"].items() if y.get("formulas") == x["formulas"]]
        done |= set(same)
        lines.append(f"  {', '.join(same)}")
        lines += [f"    {key:<6} = {value}" for key, value in x["formulas"].items()]
    warps = ", warpid the warps" * (known["threads"] == 128)
    return [*lines, *_wrapped(f"{_GROUPS}; i counts a thread's elements{warps}", 2, width)]


_GROUPS = "groupID = laneid >> 2, threadID_in_group = laneid & 0x3"


def _fragment_lines(known: dict[str, Any]) -> list[str]:
    rows = [("operand", "type", "shape", "registers", "a lane's elements, low bits first", "on")]
    for name, operand in known["operands"].items():
        for x in operand["layouts"]:
            size = " x ".join(map(str, x["shape"][-2:]))
            several = {"matrix": "matrices", "copy": "copies"}[operand["variant"]]
            number = f", {x['counted']} {several}" * (x["counted"] > 1)
            on = "" if len(operand["layouts"]) == 1 else f"{x['targets'][0]} to {x['targets'][-1]}"
            held = " | ".join(x["order"][:_FEW]) + " | ..." * (x["registers"] > _FEW)
            rows.append((name, operand["type"], size + number, f"{x['registers']} of {x['bits']} bits", held, on))
    return ["  " + line.rstrip() for line in table(rows, range(6))]


def _fragment_formula_lines(known: dict[str, Any]) -> list[str]:
    lines = []
    for name, operand in known["operands"].items():
        for x in operand["layouts"]:
            on = "" if len(operand["layouts"]) == 1 else f" on {x['targets'][0]} to {x['targets'][-1]}"
            lines += [f"  {name}{on}", *(f"    {key:<6} = {value}" for key, value in x["formulas"].items())]
    return [*lines, f"  {_GROUPS}; i counts a lane's elements"]


def _arithmetic_lines(known: dict[str, Any], width: int) -> list[str]:
    lines: list[str] = []
    for each in known["arithmetic"]:
        lines += _wrapped(f"{' '.join(each['targets'])} ({', '.join(each['generations'])})", 2, width)
        steps = f"{counted(each['steps'], 'step')}, " if "steps" in each else ""
        floor = f", Z = {each['Z']}" if "Z" in each else ""
        lines += _wrapped(f"{each['machine']}: {steps}{each['how']}{floor}", 4, width)
        for evidence in each["evidence"]:
            known_by = [evidence["source"], f"on {evidence['device']}" * bool(evidence["device"]), evidence["compared"]]
            known_by.append(f"assuming {evidence['assumption']}" * bool(evidence["assumption"]))
            on = f" ({' '.join(evidence['targets'])})" * (evidence["targets"] != each["targets"])
            lines += _wrapped(f"{evidence['kind']}{on}: {'; '.join(filter(None, known_by))}", 4, width)
    return lines


def _wrapped(line: str, indent: int, width: int) -> list[str]:
    """Break a line at blanks, but not at those of "F = 25"."""
    kept = re.sub(r"\b([FZ]) = ", "\\1\xa0=\xa0", line)
    lines = textwrap.wrap(
        kept, width, initial_indent=" " * indent, subsequent_indent=" " * (indent + 2), break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    return [each.replace("\xa0", " ") for each in lines]
