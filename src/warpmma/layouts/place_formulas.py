"""Layouts written out: closed formulas in PTX's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def written_formulas(
    coordinates: Mapping[str, Sequence[str]], lane_bits: Sequence[str], index_bits: int, repeats: int
) -> dict[str, str]:
    """Write what `Layout.formulas` returns.

    Parameters
    ----------
    coordinates : mapping of str to sequence of str
        "matrix", "row" and "col", and their place bits.
    lane_bits : sequence of str
        Of a warp or of a warpgroup.
    index_bits : int
        Bits of an index into what repeats.
    repeats : int
    """
    further = (repeats - 1).bit_length()  # bits of the number of a repeat: high ones of the index and of the column
    sizes = {"groupID": 3, "threadID_in_group": 2, "warpid": 2, "i": index_bits + further}
    repeated = [("i", index_bits + x) for x in range(further)]
    forward = {
        name: _sum_of_terms([_ptx(bit) for bit in bits] + repeated * (name == "col"), sizes)
        for name, bits in coordinates.items()
        if bits
    }
    back = {bit: (name, weight) for name, bits in coordinates.items() for weight, bit in enumerate(bits)}
    lengths = {name: len(bits) for name, bits in coordinates.items()}
    repeated = [("col", lengths["col"] + x) for x in range(further)]
    lengths["col"] += further
    lane = _sum_of_terms([back[bit] for bit in lane_bits[:5]], lengths)
    warp = {"warpid": _sum_of_terms([back[bit] for bit in lane_bits[5:]], lengths)} if lane_bits[5:] else {}
    index = _sum_of_terms([back[f"e{x}"] for x in range(index_bits)] + repeated, lengths)
    return {**forward, **warp, "laneid": lane, "i": index}


def _ptx(bit: str) -> tuple[str, int]:
    """PTX's name for a place bit, and which bit of it this is."""
    number = int(bit[1:])
    if bit[0] == "e":
        return "i", number
    if number >= 5:
        return "warpid", number - 5
    return ("threadID_in_group", number) if number < 2 else ("groupID", number - 2)


def _sum_of_terms(bits: list[tuple[str, int]], sizes: dict[str, int]) -> str:
    """Write the number whose bits, lowest first, are these bits of named variables of these sizes."""
    runs: list[tuple[str, int, int, int]] = []  # variable, its first bit, how many, and the weight of the first
    for weight, (name, bit) in enumerate(bits):
        last = runs[-1] if runs else None
        if last and last[0] == name and last[1] + last[2] == bit:
            runs[-1] = (name, last[1], last[2] + 1, last[3])
        else:
            runs.append((name, bit, 1, weight))
    terms = []
    for name, first, count, weight in runs:
        term = f"({name} >> {first})" if first else name
        if first + count < sizes[name]:
            term = f"({term} & {(1 << count) - 1:#x})"
        terms.append(f"{term} * {1 << weight}" if weight else term)
    return " + ".join(terms) or "0"
