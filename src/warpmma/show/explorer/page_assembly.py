"""The explorer's page: the tables of the package as compact JSON, and one file with template, style, scripts and data.

1. Every module of the assets is plain JavaScript of ECMAScript 2020: an ES module that imports only names of other
   assets. The page holds them as one inline module, each behind those that it imports from, without the words `import`
   and `export`. So no two of them may define the same name.
2. The page's Content Security Policy forbids every request; it admits scripts and styles with the hashes of its own.
3. The data have everything once; rows refer to other tables by number.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Hashable
from dataclasses import asdict, fields
from functools import cache
from importlib.resources import files
from typing import Any

from ..._version import __version__
from ...arithmetic import Evidence, Recipe, evidence_of, recipe_of
from ...formats import FORMATS, FloatFormat, Format
from ...isa import (
    TARGETS,
    FragmentInstruction,
    Instruction,
    MatrixInstruction,
    WarpgroupInstruction,
    fragment_instructions,
    instructions,
    warpgroup_instructions,
)
from ...layouts import OPERANDS, Layout, Operand
from ...scaling import scale_ids, scale_layout
from ...sparsity import sparse_a
from ..drawing.drawing import style_sheet

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+)\.js";\n', re.M)
_EXPORT = re.compile(r"^export (?=const |let |function |class |async )", re.M)
_ENTRY = "main"


@cache
def explorer_page() -> str:
    """Return the explorer: a self-contained page of HTML.

    Returns
    -------
    str
        Of less than a megabyte.

    Examples
    --------
    >>> page = explorer_page()
    >>> page.startswith("<!doctype html>"), "https://" in page, len(page) < 3_000_000
    (True, False, True)
    """
    # In JSON `<` only occurs in strings, where this escape is legal; so no string can end the element.
    data = json.dumps(explorer_data(), separators=(",", ":")).replace("<", "\\u003c")
    style, script = style_sheet() + _asset("style.css"), _bundle()
    policy = (
        f"default-src 'none'; script-src {_hashed(script)}; style-src {_hashed(style)}; base-uri 'none'; "
        "form-action 'none'"
    )
    page = _asset("template.html")
    for name, text in {"policy": policy, "style": style, "data": data, "script": script}.items():
        page = page.replace(f"{{{{{name}}}}}", text, 1)
    return page


def _asset(name: str) -> str:
    return (files(__package__) / "assets" / name).read_text("utf-8")


def _bundle() -> str:
    """Concatenate the modules, each after those that it imports from (rule 1)."""
    seen: set[str] = set()
    parts: list[str] = []

    def add(name: str) -> None:
        if name not in seen:
            seen.add(name)
            text = _asset(f"{name}.js")
            for other in _IMPORT.findall(text):
                add(other)
            parts.append(f"// {name}.js\n" + _EXPORT.sub("", _IMPORT.sub("", text)))

    add(_ENTRY)
    return "\n".join(parts)


def _hashed(text: str) -> str:
    """Return the hash of an inline script or style, as a source of a Content Security Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# The data

COLUMNS = (
    "name", "plan", "layouts", "shape", "types", "ptx", "documented", "kind", "sparsity", "group", "legal", "metadata",
    "stype", "blocks", "scales",
)  # fmt: skip
"""Columns of instructions."""

MOVE_COLUMNS = ("name", "shapeName", "targets", "ptx", "held", "known")
"""Columns of `wmma` and of instructions that move fragments."""

_SPACES = {"global", "shared", "shared::cta"}


class _Pool:
    """Distinct values, numbered in the order of their first use."""

    def __init__(self, written: Callable[[Any], Any]) -> None:
        self._written = written
        self._numbers: dict[Hashable, int] = {}
        self.rows: list[Any] = []

    def number(self, thing: Hashable) -> int:
        if thing not in self._numbers:
            self._numbers[thing] = len(self.rows)
            self.rows.append(self._written(thing))
        return self._numbers[thing]


@cache
def explorer_data() -> dict[str, Any]:
    """Return the data of the page.

    Returns
    -------
    dict
        Of JSON's types. `instructions` are rows of `columns`; their plan is the number of a row of `plans`, which has
        targets with the numbers of recipes and evidence; `layouts` are numbers of A's, B's, C's and D's. `moves` are
        rows of `move_columns`, of `ldmatrix` and its like and of `wmma` without state spaces, whose layouts are the
        same: `held` are numbers of operands, which are a name, the type of its elements, "matrix" or "copy", and
        layouts, each with the number of matrices that count and its targets; `known` is a text's number.
    """
    pools = {"layouts": _Pool(_layout), "ids": _Pool(list), "recipes": _Pool(_recipe), "evidence": _Pool(_evidence)}
    pools |= {"held": _Pool(list), "lists": _Pool(list), "texts": _Pool(str), "plans": _Pool(list)}
    every: tuple[MatrixInstruction, ...] = (*instructions(), *warpgroup_instructions())
    rows = [_row(record, pools) for record in every]
    moves = [_move_row(each, pools) for each in fragment_instructions() if not _SPACES & {*str(each).split(".")}]
    return {
        "version": __version__,
        "targets": {target.name: target.generation for target in TARGETS.values()},
        "formats": {name: _format(fmt) for name, fmt in FORMATS.items()},
        "columns": list(COLUMNS),
        "instructions": rows,
        "move_columns": list(MOVE_COLUMNS),
        "moves": moves,
        **{name: pool.rows for name, pool in pools.items()},
    }


def _row(record: MatrixInstruction, pools: dict[str, _Pool]) -> list[Any]:
    recipes, evidence, layouts = pools["recipes"], pools["evidence"], pools["layouts"]
    plan = tuple(
        (target, recipes.number(recipe_of(record, target)), evidence.number(evidence_of(record, target)))
        for target in record.targets
    )
    return [
        str(record), pools["plans"].number(plan), [_fragment(record, operand, layouts) for operand in OPERANDS],
        [record.m, record.n, record.k], [record.type(operand) for operand in OPERANDS], list(record.ptx),
        int(record.documented), record.kind or "", record.sparsity or "", *_of_sparsity(record, layouts),
        record.stype or "", record.scales_per_row, _of_scales(record, pools),
    ]  # fmt: skip


def _move_row(record: FragmentInstruction, pools: dict[str, _Pool]) -> list[Any]:
    layouts, lists = pools["layouts"], pools["lists"]
    held = [
        pools["held"].number((
            operand, record.element_type(operand), record.variant(operand),
            tuple(
                (layouts.number(layout), record.counted(operand, targets[0]), lists.number(targets))
                for layout, targets in record.fragments(operand).items()
            ),
        ))
        for operand in record.operands
    ]  # fmt: skip
    known = pools["texts"].number(record.layout_known())
    return [str(record), record.shape_name, lists.number(record.targets), list(record.ptx), held, known]


def _of_sparsity(record: MatrixInstruction, layouts: _Pool) -> tuple[int, list[int], int | None]:
    """Columns of a group, its legal nibbles, and the layout of metadata."""
    if not isinstance(record, Instruction) or not record.sparse:
        return 0, [], None
    sparse = sparse_a(record)
    return sparse.pattern.width, sorted(sparse.legal_codes()), layouts.number(sparse.layout)


def _of_scales(record: MatrixInstruction, pools: dict[str, _Pool]) -> list[list[int]] | None:
    """Layouts of A's and of B's scales, and the byte-ids and thread-ids that name their matrices."""
    if not isinstance(record, Instruction) or not record.block_scale:
        return None
    return [
        [pools["layouts"].number(scale_layout(record, side)), pools["ids"].number(scale_ids(record, side))]
        for side in ("A", "B")
    ]


def _fragment(record: MatrixInstruction, operand: Operand, layouts: _Pool) -> int | None:
    """Return the number of an operand's layout; None of what lies in shared memory."""
    if isinstance(record, WarpgroupInstruction) and operand == "B":
        return None
    return layouts.number(record.layout(operand))


def _layout(layout: Layout) -> dict[str, Any]:
    packing = layout.packing
    return {
        "shape": list(layout.shape[-2:]), "matrix": layout.matrix, "row": layout.row, "column": layout.column,
        "lanes": layout.lanes, "repeats": layout.repeats, "elements": layout.elements,
        "registers": layout.registers, "slot": packing.slot, "bits": packing.bits, "shift": packing.shift,
        "width": packing.width, "formulas": layout.formulas(),
    }  # fmt: skip


def _recipe(recipe: Recipe) -> dict[str, Any]:
    return {**_plain(recipe), "unit": {"name": type(recipe.unit).__name__, **_plain(recipe.unit)}}


def _plain(record: Any) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in fields(record) if field.name != "unit"}


def _evidence(evidence: Evidence) -> dict[str, Any]:
    return {**asdict(evidence), "text": str(evidence)}


def _format(fmt: Format) -> dict[str, Any]:
    common = {"bits": fmt.bits, "signed": fmt.signed}
    if not isinstance(fmt, FloatFormat):
        return {**common, "integer": True}
    # Codes are texts: those of f64 are more than a number of JavaScript holds.
    codes = {"nan_code": fmt.nan_code, "inf_code": fmt.inf_code, "max_code": fmt.max_code}
    return {
        **common, "fraction_bits": fmt.fraction_bits, "exponent_bits": fmt.exponent_bits, "bias": fmt.bias,
        "subnormals": fmt.subnormals, "nan": fmt.nan, "overflow": fmt.overflow, "padding": fmt.padding,
        "emin": fmt.emin, **{name: None if code is None else hex(code) for name, code in codes.items()},
    }  # fmt: skip
