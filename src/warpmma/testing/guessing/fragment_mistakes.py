"""Mistakes with fragments: registers, lanes, and elements in a register, of a tile as it was loaded or stored.

Each rule yields a text, a gather on the flattened tile, and a rank; `mistakes.distinct` keeps one text for a gather.
The rules are those of loading; a wrong formula in a store puts elements where a load would have taken them from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import combinations, permutations
from typing import Any

import numpy as np

from ..._arrays import Array
from ...layouts import Layout
from ...registers import LANES
from .mistakes import COMMON, RARE, USUAL

Named = Iterator[tuple[str, Array, int]]

_MOST_ORDERS = 4  # registers for which every order is tried


def fragment_gathers(layout: Layout, name: str, verb: str) -> Named:
    """List what may go wrong between a tile and its registers; `verb` is "loaded" or "stored"."""
    yield from _registers(layout, name)
    loaded = verb == "loaded"
    for rule in (_lanes, _positions, _transposed_blocks, partial(_bits, verb=verb), _linear):
        for text, gather, rank in rule(layout, name):
            yield (text, gather, rank) if loaded else (_as_stored(text), _scattered(layout, gather), rank)
    if not loaded:
        yield from _stored_over(layout, name)


def _as_stored(text: str) -> str:
    return text.replace("what belongs to", "the place of")


def _scattered(layout: Layout, places: Array) -> Array:
    """Return the gather of a store: each element at the place that another should have; 0 where nothing was stored.

    Of two at one place that of the later register stays, and of the later lane.
    """
    gather = np.full(places.size, -1, np.intp)
    flat = layout.flat.reshape(-1)  # by register, lane and position
    stored = flat[places[flat] >= 0]
    gather[places[stored]] = stored
    return gather


def _stored_over(layout: Layout, name: str) -> Named:
    """List registers that were stored where others should have been, which a forgotten offset does."""
    count = layout.registers
    for orders in ([r % (count // 2) for r in range(count)], [r & ~1 for r in range(count)]) if count > 1 else ():
        kept = np.array(orders)
        over = sorted({*range(count)} - {*orders})
        text = f"registers {_list(over)} of {name} were stored over {_list(dict.fromkeys(orders))}"
        yield text, _scattered(layout, _moved(layout, register=lambda r, t, q, kept=kept: kept[r])), USUAL


def _moved(layout: Layout, register: Any = None, lane: Any = None, position: Any = None) -> Array:
    """Return the gather by which each place holds what belongs in another place; -1 for none."""
    per = layout.packing.per_register
    r, t, q = np.indices((layout.registers, LANES, per))
    rules = zip((r, t, q), (register, lane, position), strict=True)
    r, t, q = (np.broadcast_to(own if other is None else other(r, t, q), r.shape) for own, other in rules)
    place = (r * LANES + t) * per + q
    flat = layout.flat.reshape(-1)
    gather = np.empty(flat.size, np.intp)
    gather[flat] = np.where(r < 0, -1, flat[place]).reshape(-1)
    return gather


def _registers(layout: Layout, name: str) -> Named:
    count = layout.registers

    def ordered(order: Any) -> Array:
        listed = np.array(order)
        return _moved(layout, register=lambda r, t, q: listed[r])

    def changed(at: int, to: int) -> Array:
        return ordered([to if r == at else r for r in range(count)])

    for i, j in combinations(range(count), 2):
        order = list(range(count))
        order[i], order[j] = j, i
        yield f"registers {i} and {j} of {name} were swapped", ordered(order), COMMON
    if count < 2:
        return
    for step in range(1, count):
        order = [(r + step) % count for r in range(count)]
        yield f"registers of {name} were in the order {_list(order)}", ordered(order), USUAL
    yield f"registers of {name} were in reverse order", ordered(range(count)[::-1]), USUAL
    if count <= _MOST_ORDERS:
        for any_order in permutations(range(count)):
            yield f"registers of {name} were in the order {_list(any_order)}", ordered(any_order), RARE
    for i, j in permutations(range(count), 2):
        yield f"register {i} of {name} held what belongs in register {j}", changed(i, j), USUAL
    for i in range(count):
        yield f"all registers of {name} held what belongs in register {i}", ordered([i] * count), RARE if i else USUAL
        yield f"register {i} of {name} was 0", changed(i, -1), USUAL
    low, high = [*range(count // 2)], [*range(count // 2, count)]
    even, odd = [*range(0, count, 2)], [*range(1, count, 2)]
    yield f"registers {_list(high)} of {name} held what belongs in {_list(low)}", ordered(low * 2), USUAL
    twice = [r & ~1 for r in range(count)]
    yield f"registers {_list(odd)} of {name} held what belongs in {_list(even)}", ordered(twice), USUAL
    yield f"registers {_list(high)} of {name} were 0", ordered([*low, *[-1] * len(high)]), USUAL


def _list(numbers: Any) -> str:
    return ", ".join(map(str, numbers))


def lane_sources() -> Iterator[tuple[str, Array, int]]:
    """List lanes whose registers each lane may have had in place of its own: text, lanes `[32]`, rank."""
    t = np.arange(LANES)
    for mask in (1, 2, 4, 8, 16):
        yield f"lanes t and t ^ {mask} {{}} were swapped", t ^ mask, COMMON
    group, thread = t >> 2, t & 3
    yield "groupID and threadID_in_group {} were lane % 8 and lane / 8", (t % 8) * 4 + t // 8, COMMON
    yield "lanes {} were numbered threadID_in_group * 8 + groupID", thread * 8 + group, COMMON
    for by in (1, 4, 8):
        yield f"lane t {{}} had what belongs to lane t + {by}", (t + by) % LANES, USUAL
        yield f"lane t {{}} had what belongs to lane t - {by}", (t - by) % LANES, USUAL
    for shift in (1, 2, 3):
        yield f"threadID_in_group {{}} was off by {shift}, modulo 4", group * 4 + (thread + shift) % 4, USUAL
    yield "lanes {} were in reverse order", t ^ 31, USUAL
    yield "threads of each group {} were in reverse order", t ^ 3, USUAL
    yield "groups of lanes {} were in reverse order", t ^ 28, USUAL
    yield "groupID {} was lane % 8", (t % 8) * 4 + thread, USUAL
    yield "groupID {} was lane / 8", (t // 8) * 4 + thread, USUAL
    yield "groupID {} was lane % 4", thread * 5, RARE
    yield "threadID_in_group {} was lane / 8", group * 4 + t // 8, USUAL
    yield "threadID_in_group {} was groupID % 4", group * 4 + group % 4, RARE
    yield "every lane {} had what belongs to lane 0", t * 0, USUAL
    yield "every group of lanes {} had what belongs to group 0", thread, USUAL
    yield "every thread of a group {} had what belongs to its first", group * 4, USUAL
    yield "lanes 16-31 {} had what belongs to lanes 0-15", t & 15, USUAL
    for i, j in combinations(range(5), 2):
        a, b = t >> i & 1, t >> j & 1
        yield f"bits {i} and {j} of the lane {{}} were swapped", t ^ ((a ^ b) << i | (a ^ b) << j), RARE
    for turn in range(1, 5):
        yield f"the lane {{}} was rotated by {turn} bits", (t << turn | t >> (5 - turn)) & 31, RARE


def gather_of_lanes(layout: Layout, source: Array) -> Array:
    """Return the gather by which each lane holds the registers of another."""
    return _moved(layout, lane=lambda r, t, q: source[t])


def _lanes(layout: Layout, name: str) -> Named:
    for text, source, rank in lane_sources():
        yield text.format(f"of {name}"), gather_of_lanes(layout, source), rank


_MASKS = {
    # Bits that change places, in a register of 32: from the number of bits by which an element moves.
    4: "the two nibbles of each byte of {} were swapped",
    8: "the two bytes of each half of a register of {} were swapped",
    16: "the two halves of each register of {} were swapped",
    24: "the bytes of each register of {} were in reverse order",
    7: "the bits of each byte of {} were in reverse order",
    31: "the bits of each register of {} were in reverse order",
}


def _positions(layout: Layout, name: str) -> Named:
    per, slot = layout.packing.per_register, layout.packing.slot
    if per < 2:
        return
    for mask in (m for m in range(1, per) if per <= 8 or m in (1, 2, 3, 4, 7, 8, 15, 16, 24, 31)):
        gather = _moved(layout, position=lambda r, t, q, mask=mask: q ^ mask)
        known = _MASKS.get(mask * slot)
        whole = f"the elements of each register of {name} were in reverse order"
        other = f"elements i and i ^ {mask} of each register of {name} were swapped"
        yield known.format(name) if known else whole if mask == per - 1 else other, gather, COMMON if known else USUAL
    for i in range(per) if per <= 4 else ():
        all_of = _moved(layout, position=lambda r, t, q, i=i: q * 0 + i)
        yield f"all elements of each register of {name} were its element {i}", all_of, RARE
    turned = _moved(layout, position=lambda r, t, q: (q + 1) % per)
    yield f"the elements of each register of {name} were rotated by one", turned, USUAL
    turned = _moved(layout, position=lambda r, t, q: (q - 1) % per)
    yield f"the elements of each register of {name} were rotated by one, the other way", turned, USUAL


def _transposed_blocks(layout: Layout, name: str) -> Named:
    """List what `ldmatrix` does with `.trans` where it should not, or without it where it should."""
    per, slot = layout.packing.per_register, layout.packing.slot
    if per < 2:
        return
    inside = per // 2  # elements that move together

    def lane(r: Array, t: Array, q: Array) -> Array:
        row, column = t >> 2, 2 * (t & 3) + q // inside
        lanes: Array = column * 4 + row // 2
        return lanes

    def position(r: Array, t: Array, q: Array) -> Array:
        positions: Array = (t >> 2) % 2 * inside + q % inside
        return positions

    said = "the 8 x 8 matrices of {} were transposed, as by ldmatrix with .trans where there should be none, or without"
    moved = _moved(layout, lane=lane, position=position)
    yield said.format(name), moved, COMMON if slot == 16 else USUAL
    for i in range(layout.registers) if slot == 16 and layout.registers > 1 else ():
        one = _moved(
            layout, lane=lambda r, t, q, i=i: np.where(r == i, lane(r, t, q), t),
            position=lambda r, t, q, i=i: np.where(r == i, position(r, t, q), q),
        )  # fmt: skip
        yield f"the 8 x 8 matrix in register {i} of {name} was transposed", one, RARE


def _bits(layout: Layout, name: str, verb: str) -> Named:
    """List other layouts: renamings of bits that a formula for rows and columns may have had."""
    for text, other, rank in _renamed(layout, name, verb):
        flat = layout.flat.reshape(-1)
        gather = np.empty(flat.size, np.intp)
        gather[flat] = other.flat.reshape(-1)
        yield text, gather, rank


def _renamed(layout: Layout, name: str, verb: str) -> Iterator[tuple[str, Layout, int]]:
    for key, bits in (("row", layout.row), ("col", layout.column)):
        turns = [*_turns(bits)]
        orders = permutations(bits) if len(bits) <= 4 else [*turns, bits[::-1], *_transpositions(bits)]
        for order in orders:
            other = replace(layout, row=tuple(order)) if key == "row" else replace(layout, column=tuple(order))
            text = f"{name} was {verb} by {key} = {other.formulas()[key]}"
            yield text, other, USUAL if tuple(order) in turns else RARE
    own = tuple(f"e{n}" for n in range((layout.elements - 1).bit_length()))
    shuffled = permutations(own) if len(own) <= 4 else _turns(own)
    swapped = combinations(sorted({*layout.row, *layout.column, *layout.matrix}), 2)
    renamings = [(dict(zip(own, order, strict=True)), USUAL) for order in shuffled]
    renamings += [({a: b, b: a}, RARE) for a, b in swapped]
    for names, rank in renamings:
        other = _with_bits(layout, names)
        said = other.formulas()
        yield f"{name} was {verb} by row = {said['row']}, col = {said['col']}", other, rank


def _with_bits(layout: Layout, names: dict[str, str]) -> Layout:
    """Rename place bits."""
    row, column, matrix = (tuple(names.get(x, x) for x in bits) for bits in (layout.row, layout.column, layout.matrix))
    return replace(layout, row=row, column=column, matrix=matrix)


def _turns(bits: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """List rotations of the bits, and of consecutive ones among them."""
    for start, stop in combinations(range(len(bits) + 1), 2):
        for by in range(1, stop - start):
            yield bits[:start] + bits[start + by : stop] + bits[start : start + by] + bits[stop:]


def _transpositions(bits: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for i, j in combinations(range(len(bits)), 2):
        order = list(bits)
        order[i], order[j] = order[j], order[i]
        yield tuple(order)


_LINEAR: tuple[tuple[str, Callable[[Array], tuple[Array, Array]]], ...] = (
    ("groupID and threadID_in_group of {} were lane / 8 and lane % 8", lambda t: (t // 8, t % 8)),
    ("groupID and threadID_in_group of {} were lane % 4 and lane / 4", lambda t: (t % 4, t // 4)),
    ("threadID_in_group of {} was lane % 8", lambda t: (t // 4, t % 8)),
)


def _linear(layout: Layout, name: str) -> Named:
    """List formulas with groups and threads out of range: what then follows in memory, round and round."""
    lanes = {"row": layout.row, "column": layout.column}
    group = next((x for x, bits in lanes.items() if {"l2", "l3", "l4"} <= {*bits}), None)
    thread = next((x for x, bits in lanes.items() if {"l0", "l1"} <= {*bits}), None)
    if not group or not thread or group == thread or layout.matrix:
        return
    t, i = np.arange(LANES)[:, None], np.arange(layout.elements)[None, :]
    for text, formula in _LINEAR:
        groups, threads = formula(t)
        value = {}
        for key, bits in lanes.items():
            value[key] = sum(
                ((i >> int(b[1:]) & 1) << w for w, b in enumerate(bits) if b[0] == "e"), np.zeros_like(t * i)
            )
        value[group] = value[group] + (groups << lanes[group].index("l2"))
        value[thread] = value[thread] + (threads << lanes[thread].index("l0"))
        size = {key: 1 << len(bits) for key, bits in lanes.items()}
        at = (value[group] * size[thread] + value[thread]) % (size[group] * size[thread])
        coordinates = {group: at // size[thread], thread: at % size[thread]}
        came = coordinates["row"] * size["column"] + coordinates["column"]
        gather = np.empty(layout.flat.size, np.intp)
        gather[layout.flat.reshape(-1)] = came.reshape(LANES, layout.registers, -1).swapaxes(0, 1).reshape(-1)
        yield text.format(name), gather, USUAL
