"""Pictures of what registers hold: every element's lane and register, and every register's elements.

They are drawn of all operands, of metadata and of scales. What is folded, and what stands in `data-...` attributes,
says `folding`. Colours are lanes'.
"""

from __future__ import annotations

from ..._arguments import check_choice
from ...isa import FragmentHolder, FragmentInstruction, Instruction, parse_holder
from ...layouts import OPERANDS, FragmentTable, Layout
from ...lookup import layout_table
from ..drawing.drawing import Theme, document
from ..drawing.legends import MARGIN, formulas, header, lane_legend, lines, register_strip
from .folding import fold
from .fragment_grids import FragmentGrid

_LEAST = 600  # width: what a line of formulas needs


def instruction_svg(
    instruction: FragmentHolder,
    operand: str,
    by: str = "element",
    *,
    selector: int | None = None,
    byte_id: int | None = None,
    thread_id: int | None = None,
    target: str | None = None,
    theme: Theme = "auto",
) -> str:
    """Picture the registers of an operand of an instruction.

    Parameters
    ----------
    instruction : Instruction, WarpgroupInstruction or FragmentInstruction
    operand : {"A", "B", "C", "D", "metadata", "scale_a", "scale_b", "address"}
    by : {"element", "lane"}
    selector, byte_id, thread_id : int, optional
        Of metadata and of scales: only what is read with these.
    target : str, optional
        Where layouts differ between targets, it must be named.
    theme : {"auto", "light", "dark"}

    Raises
    ------
    OperandError, MetadataError, ScaleError, TargetError
        Another operand, order, selector or theme; a target without the instruction, or none where layouts differ.
    """
    chosen = {"selector": selector, "byte_id": byte_id, "thread_id": thread_id}
    return table_svg(layout_table(instruction, operand, by=by, target=target, **chosen), theme=theme)


def layout_svg(layout: Layout, by: str = "element", *, operand: str = "", theme: Theme = "auto") -> str:
    """Picture a layout.

    Parameters
    ----------
    layout : Layout
    by : {"element", "lane"}
    operand : {"A", "B", "C", "D", ""}
        Whose layout it is, for the names of elements and coordinates.
    theme : {"auto", "light", "dark"}

    Raises
    ------
    OperandError
        Another order, operand or theme.
    """
    check_choice("operand", operand, (*OPERANDS, ""))
    return table_svg(FragmentTable(layout=layout, by=by, operand=operand, letter=operand.lower() or "e"), theme=theme)


def table_svg(table: FragmentTable, *, theme: Theme = "auto") -> str:
    """Picture a table of what registers hold; another theme is an `OperandError`."""
    layout, letter = table.layout, table.letter
    folded = fold(layout)
    grid, wide, high = FragmentGrid(table=table, folded=folded).drawn
    width = max(_LEAST, wide + 2 * MARGIN)
    title, summary = _title(table), _summary(table)
    body, y = header(title, table.instruction, summary, width)
    body += [f"<g transform='translate({MARGIN} {y:g})'>", *grid, "</g>"]
    parts, y = lines(MARGIN, y + high + 14, folded.notes(), width - 2 * MARGIN, weight="bold")
    body += parts
    if layout.packing.per_register > 1 or layout.packing.bits < layout.packing.slot:
        parts, y = register_strip(layout.packing, letter, y + 6, width)
        body += parts
    if table.by == "element":
        parts, y = lane_legend(y + 6, layout.lanes)
        body += parts
    parts, y = formulas(layout, letter, y + 6, width)
    data = {
        "view": "fragment", "by": table.by, "operand": table.operand, "mnemonic": table.instruction,
        "matrices": layout.matrices, "rows": layout.shape[-2], "columns": layout.shape[-1], "lanes": layout.lanes,
        "registers": layout.registers, **folded.law,
    }  # fmt: skip
    said = " ".join([summary, *(f"{note}." for note in folded.notes())])
    return document(
        [*body, *parts], width, y + MARGIN / 2, f"{title} {table.instruction}".strip(),
        theme=theme, description=said, data=data,
    )  # fmt: skip


def size_of(layout: Layout) -> str:
    """Write how many rows and columns there are, and matrices where there are several."""
    size = " \N{MULTIPLICATION SIGN} ".join(map(str, layout.shape[-2:]))
    return f"{layout.matrices} matrices of {size}" if layout.matrix else size


_WORDS = {"metadata": "Metadata", "scale_a": "Scales of A", "scale_b": "Scales of B"}


def _title(table: FragmentTable) -> str:
    """Say what the picture is of."""
    layout = table.layout
    if not table.instruction:
        whose = f"Layout of {table.operand}: " if table.operand else "Layout of "
        return f"{whose}{size_of(layout)} elements"
    record = parse_holder(table.instruction)
    if isinstance(record, FragmentInstruction):
        return _fragment_title(table, record)
    if table.operand in OPERANDS:
        stored = " stored" if table.operand == "A" and isinstance(record, Instruction) and record.sparse else ""
        return f"{table.operand} of {record.shape}, {record.type(table.operand)}: {size_of(layout)}{stored} elements"
    (row, column), (rows, columns) = table.coordinates, layout.shape[-2:]
    size = f"{rows} {row}s \N{MULTIPLICATION SIGN} {columns} {column}{'s' * (columns > 1)}"
    kind = f", {record.stype}" if isinstance(record, Instruction) and record.stype and "scale" in table.operand else ""
    return f"{_WORDS.get(table.operand, table.operand)} of {record.shape}{kind}: {size}"


def _fragment_title(table: FragmentTable, record: FragmentInstruction) -> str:
    opcode, on = record.mnemonic.partition(".")[0], f" on {table.target}" * bool(table.target)
    if table.operand == "address":
        return f"Addresses of {opcode} {record.shape_name}: {len(table.matrices) * table.layout.shape[-2]} rows{on}"
    size = " \N{MULTIPLICATION SIGN} ".join(map(str, table.layout.shape[-2:]))
    several = f", {table.layout.matrices} {_PLURALS[record.variant(table.operand)]}" * bool(table.layout.matrix)
    type_ = record.element_type(table.operand)
    return f"{table.operand} of {opcode} {record.shape_name}, {type_}: {size} elements{several}{on}"


_PLURALS = {"matrix": "matrices", "copy": "copies"}


def _summary(table: FragmentTable) -> str:
    """Say in a sentence or two how registers are used."""
    layout = table.layout
    packing = layout.packing
    who = "lanes of a warp" if layout.lanes == 32 else "threads of a warpgroup"
    many = f"{layout.registers} register{'s' * (layout.registers > 1)} of {packing.width} bits"
    noun = f"{table.letter}s" if len(table.letter) > 1 else "elements"
    holds = "one element" if packing.per_register == 1 else f"{packing.per_register} {noun}"
    said = f"{many} in each of {layout.lanes} {who}, {holds} in a register."
    if table.known:
        lanes = len(table.matrices) * layout.shape[-2]
        pointing = f" Lanes 0 to {lanes - 1} point to rows of 16 bytes." * (table.operand == "address")
        return f"{said}{pointing} {table.known[0].upper()}{table.known[1:]}."
    if not layout.matrix:
        return said
    if table.operand == "metadata":
        return f"{said} A nibble has the two indices of a group. The selector chooses what is read."
    if table.operand.startswith("scale"):
        return f"{said} Byte-id and thread-id choose what is read."
    return f"{said} {layout.matrices} matrices, each of 8 lanes."
