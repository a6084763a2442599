"""Cards of records that show more than their fields: instructions, layouts, number formats, recipes."""

from __future__ import annotations

from html import escape

from ...arithmetic import Recipe
from ...formats import FloatFormat, IntegerFormat
from ...isa import FragmentHolder, FragmentInstruction, Instruction, MatrixInstruction, WarpgroupInstruction
from ...layouts import Layout
from ...registers import Packing
from ..drawing.cards import card, field_rows, opened, preformatted
from ..drawing.drawing import Theme, box, document, group, text
from ..drawing.legends import MARGIN, register_strip
from ..fragments.fragment_pictures import instruction_svg, layout_svg, size_of
from ..sums.step_words import how
from .instruction_page import text as page


def instruction_html(instruction: MatrixInstruction) -> str:
    """Draw an instruction: shapes and types; pictures of its operands and its page open at a click."""
    i = instruction
    operands = ("A", "C", "D") if isinstance(i, WarpgroupInstruction) else ("A", "B", "C", "D")
    rows = [
        ("shape", escape(f"{i.shape}: D ({i.m} by {i.n}) = A ({i.m} by {i.k}) B ({i.k} by {i.n}) + C")),
        ("types", escape(", ".join(f"{x} {i.type(x)}" for x in ("A", "B", "C", "D")))),
    ]
    if isinstance(i, Instruction) and i.sparse:
        rows.append(("sparse", f"two of four places of A are stored; {i.sparsity}"))
    if isinstance(i, Instruction) and i.block_scale:
        rows.append(("scales", f"{i.stype}, {i.scales_per_row} for each row of A and column of B"))
    alike = str(i.layout("C")) == str(i.layout("D")) and i.type("C") == i.type("D")
    parts = []
    for operand in operands:
        if operand == "C" and alike:
            continue
        layout = i.layout(operand)  # type: ignore[arg-type]
        names = "C and D" if operand == "D" and alike else operand
        many = f"{layout.registers} register{'s' * (layout.registers > 1)}"
        said = f"{names}: {size_of(layout)}, {i.type(operand)}, {many}"  # type: ignore[arg-type]
        parts.append(opened(said, instruction_svg(i, operand)))
    return _instruction_card(i, rows, parts)


def fragments_html(instruction: FragmentInstruction) -> str:
    """Draw an instruction that moves fragments: the fragments of each kind of target, and all about it, at a click."""
    i = instruction
    parts = []
    for operand in i.operands:
        for layout, targets in i.fragments(operand).items():
            several = len(i.fragments(operand)) > 1
            said = f"{operand}: {size_of(layout)}, {i.element_type(operand)}"
            on = f", on {targets[0]} to {targets[-1]}" * several
            parts.append(opened(said + on, instruction_svg(i, operand, target=targets[-1] if several else None)))
    return _instruction_card(i, [], parts)


def _instruction_card(i: FragmentHolder, rows: list[tuple[str, str]], parts: list[str]) -> str:
    rows += [("targets", escape(", ".join(i.targets))), ("since PTX", ".".join(map(str, i.ptx)))]
    return card(str(i), rows, [*parts, opened("All about it", preformatted(page(i)))])


def layout_html(layout: Layout) -> str:
    """Draw a layout, by element; by lane at a click."""
    return card("", parts=[layout_svg(layout), opened("by lane", layout_svg(layout, "lane"))])


def packing_svg(packing: Packing, theme: Theme = "auto") -> str:
    """Draw a register: where its elements are, and what of it is padding."""
    body, y = register_strip(packing, "e", 4, 640)
    return document(body, 640, y + 10, str(packing), theme=theme, data={"view": "register", "bits": packing.width})


def packing_html(packing: Packing) -> str:
    """Draw a register, and list the fields."""
    return card("Packing", field_rows(packing), [packing_svg(packing)])


def format_svg(of: FloatFormat | IntegerFormat, theme: Theme = "auto") -> str:
    """Draw the bits of a code: sign, exponent, fraction, padding; the highest bit is at the left."""
    fields: tuple[tuple[str, int, str], ...]
    if isinstance(of, FloatFormat):
        fields = (("sign", int(of.signed), "sign"), ("exponent", of.exponent_bits, "exponent"),
                  ("fraction", of.fraction_bits, "fraction"), ("padding", of.padding, "padding"))  # fmt: skip
    else:
        fields = (("integer", of.bits, "fraction"),)
    unit = max(9.0, min(40.0, 600 / of.bits))
    high, x = of.bits - 1, float(MARGIN)
    width = 2 * MARGIN + unit * of.bits
    body = [text(MARGIN, 26, f"{of.name}: {of.bits} bit{'s' * (of.bits > 1)}", size=15, weight="bold")]
    start, legend = 40.0, []
    for name, bits, fill in fields:
        if not bits:
            continue
        cells = [
            box(x + i * unit, start, unit, 26, fill, note=f"bit {at}: {name}", data={"bit": at, "field": name})
            for i, at in enumerate(range(high, high - bits, -1))
        ]
        body.append(group(cells))
        ends = f"{high}:{high - bits + 1}" if bits > 1 else f"{high}"
        legend.append((fill, f"{name}, bit{'s' * (bits > 1)} {ends}"))
        x, high = x + bits * unit, high - bits
    y = start + 26
    for fill, said in legend:
        y += 22
        body += [box(MARGIN, y - 11, 16, 13, fill), text(MARGIN + 24, y, said, size=12)]
    return document(body, max(260, width), y + 16, f"Bits of {of.name}", theme=theme, data={"view": "format"})


def format_html(of: FloatFormat | IntegerFormat) -> str:
    """Draw a number format's bits, and list its fields, its largest number and its least."""
    rows = field_rows(of)
    if isinstance(of, FloatFormat):
        largest = of.largest
        rows.append(("largest", f"{largest.significand} \N{MULTIPLICATION SIGN} 2^{largest.exponent}"))
        rows.append(("exponents", f"{of.emin} to {of.emax}"))
    return card(f"Number format {of.name}", rows, [format_svg(of)])


def recipe_html(recipe: Recipe) -> str:
    """Say how a recipe computes, and list its fields."""
    return card("Recipe", [("computes", escape(how(recipe))), *field_rows(recipe)])
