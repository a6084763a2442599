"""Compare tensor maps and tensor copies with a GPU, and record them: `python -m lab.record.tensor_maps --help`.

Needs the driver and a GPU of sm_90. Every part runs in a process of its own, with a time limit:

* encode: the driver's encodes of random legal arguments and of near misses: bytes and refusals;
* replace: chains of `tensormap.replace` on zeros and on maps; beyond: values that PTX does not take;
* tiled, im2col3, im2col4, im2col5: loads of random boxes, bytes of shared memory and bytes at the mbarrier;
* store, store_im2col: stores of random boxes;
* interleave, and store_interleave: both with slices of 16 and 32 bytes, tiled and im2col;
* ignored: loads with bits set that no host call sets;
* fault N: one copy that should trap, or should not.

Results: counts in `tensor_maps.json`, vectors for tests in `tensor_maps_h200_more.npz`, both under --out.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.generators.tensor_map_cases import legal_arguments, near_miss
from lab.gpu.driver import Driver, DriverError
from lab.gpu.tensor_copy_kernels import ORDER_WORDS, PATTERN, REGION, REPLACEMENTS, module_text
from warpmma.errors import WarpmmaError
from warpmma.hardware import copy_case, im2col_case, map_of, tensor_bytes
from warpmma.layouts import TensorMap, replace_field

__all__ = ["PARTS", "orders_of"]

Array = npt.NDArray[Any]
Arguments = dict[str, Any]
Found = dict[str, Any]

_SECONDS = 150  # of a part
_AT_ONCE = 6
_BATCH = 256  # cases of a launch
_KEPT_BYTES = 1024  # of a dump that is kept for tests
_SHOWN = 40  # differences that are reported


# The driver's encode


def driver_encode(driver: Driver, given: Arguments) -> bytes | None:
    """Return the driver's bytes; None if it refuses."""
    rank, unsigned = len(given["dims"]), (1 << 64) - 1
    encoded = (ctypes.c_uint64 * 32)()
    place = (ctypes.addressof(encoded) + 127) & ~127  # 64 is asked for

    def numbers(kind: Any, name: str, size: int = 5) -> Any:
        mask = (1 << 8 * ctypes.sizeof(kind)) - 1
        return (kind * size)(*(kind(x & mask).value for x in given[name]))

    head = (
        ctypes.c_void_p(place), ctypes.c_int(given["type"]), ctypes.c_uint32(rank),
        ctypes.c_void_p(given["address"] & unsigned), numbers(ctypes.c_uint64, "dims"),
        numbers(ctypes.c_uint64, "strides"),
    )  # fmt: skip
    tail = (
        numbers(ctypes.c_uint32, "steps"),
        *(ctypes.c_int(given[x]) for x in ("interleave", "swizzle", "l2", "fill")),
    )
    if "box" in given:
        name = "cuTensorMapEncodeTiled"
        box: tuple[Any, ...] = (numbers(ctypes.c_uint32, "box"),)
    else:
        name = "cuTensorMapEncodeIm2col"
        box = (
            numbers(ctypes.c_int, "lower"), numbers(ctypes.c_int, "upper"), ctypes.c_uint32(given["channels"]),
            ctypes.c_uint32(given["pixels"]),
        )  # fmt: skip
    status = getattr(driver._cuda, name)(*head, *box, *tail)
    return None if status else ctypes.string_at(place, 128)


def ours(given: Arguments) -> tuple[bytes | None, str]:
    """Return our bytes, or None and the reason."""
    try:
        return map_of(given).encoded, ""
    except WarpmmaError as error:
        return None, str(error)


def encode(out: Path) -> Found:
    """Part encode."""
    driver = Driver()
    base = driver.place(np.zeros(1 << 20, np.uint8))
    rng = np.random.default_rng(25)
    found: Found = {}
    kept: dict[str, list[Any]] = {"legal": [], "near": []}
    for name, make, count in (("legal", legal_arguments, 10_000), ("near", near_miss, 10_000)):
        outcomes: Counter[str] = Counter()
        shown: list[Any] = []
        reasons: Counter[str] = Counter()
        for _ in range(count):
            given = make(rng, base)
            theirs, (mine, why) = driver_encode(driver, given), ours(given)
            if theirs is not None and mine is not None:
                verdict = "both accept, equal" if theirs == mine else "both accept, BYTES DIFFER"
            else:
                verdict = (
                    "both refuse" if theirs is mine else "ONLY WE REFUSE" if mine is None else "ONLY THE DRIVER REFUSES"
                )
            outcomes[verdict] += 1
            if verdict.isupper() or any(word.isupper() and len(word) > 3 for word in verdict.split()):
                key = f"{verdict}: {' '.join(given.get('changed', []))}: {why.partition(';')[0][:60]}"
                reasons[key] += 1
                if reasons[key] <= 3:
                    shown.append({**given, "verdict": verdict, "why": why, "theirs": theirs.hex() if theirs else "",
                                  "ours": mine.hex() if mine else ""})  # fmt: skip
            kept[name].append((given, theirs))
        found[name] = {"outcomes": outcomes, "differences": dict(reasons.most_common(60)), "shown": shown[:_SHOWN]}
    sample = [x for x in kept["legal"] if x[1]][:1000] + [x for x in kept["near"] if x[1]][:1000]
    refused = [given for given, theirs in kept["near"] if theirs is None][:1500]
    np.savez_compressed(
        out / "encode.npz", base=np.uint64(base), arguments=_text([given for given, _ in sample]),
        maps=np.array([np.frombuffer(theirs, np.uint8) for _, theirs in sample]), refused=_text(refused),
    )  # fmt: skip
    return found


def _text(value: Any) -> Array:
    return np.frombuffer(json.dumps(value).encode(), np.uint8)


# Kernels


@dataclass
class Kernels:
    """The kernels, and a tensor in the GPU's memory."""

    driver: Driver
    functions: dict[str, Any]
    tensor: Array
    base: int

    @classmethod
    def begin(cls, tensor: Array) -> Kernels:
        """Load the module, and place the tensor."""
        driver = Driver()
        functions = driver.load(module_text(), ["load", "store", "replace"])
        return cls(driver, functions, tensor, driver.place(tensor))

    def run(self, name: str, maps: Array, orders: Array, dumps: Array) -> tuple[Array, Array, Array]:
        """Run a kernel on cases; return maps, dumps and results [case, 2] after it."""
        results = np.zeros((len(maps), 2), np.uint32)
        arrays = [maps, orders, dumps, results]
        places = [self.driver.place(x) for x in arrays]
        arguments = [x.to_bytes(8, "little") for x in places]
        self.driver.launch(self.functions[name], [len(maps)], [128], arguments, shared=REGION)
        self.driver.synchronise(60)
        fetched = [self.driver.fetch(places[i], arrays[i]) for i in (0, 2, 3)]
        for place in places:
            self.driver.free(place)
        return fetched[0], fetched[1], fetched[2]


def orders_of(cases: Iterable[Arguments]) -> Array:
    """Write the orders of copies for the kernels."""
    rows = []
    for case in cases:
        rank = len(case["dims"])
        row = [rank if "box" in case else 10 + rank, *case["start"], *[0] * (5 - rank), *case["offsets"]]
        row += [0] * (9 - len(row)) + [case["at"]]
        rows.append([x & 0xFFFFFFFF for x in row] + [0] * (ORDER_WORDS - len(row)))
    return np.array(rows, np.uint32)


def _maps(encoded: Iterable[bytes]) -> Array:
    return np.array([np.frombuffer(x, np.uint8) for x in encoded])


def _region() -> Array:
    """Return what `load` fills shared memory with."""
    return (np.arange(REGION // 4, dtype=np.uint32) * np.uint32(PATTERN)).view(np.uint8)


def _predicted(case: Arguments, map_: TensorMap, region_base: int) -> Any:
    """Return our copy."""
    return map_.box_copy(
        case["start"][::-1], region_base + case["at"], offsets=case["offsets"][::-1], store=case.get("store", False)
    )


def _batches(cases: list[Arguments]) -> Iterator[list[Arguments]]:
    for i in range(0, len(cases), _BATCH):
        yield cases[i : i + _BATCH]


def _groups(case: Arguments, map_: TensorMap) -> list[str]:
    """Name what a case has, for counts."""
    mode = "tiled" if "box" in case else "im2col"
    names = [f"{mode} rank {map_.rank}", f"{mode} type {map_.type}", f"{mode} swizzle {map_.swizzle}",
             f"{mode} fill {map_.fill}"]  # fmt: skip
    names += [f"{mode} interleave {map_.interleave} swizzle {map_.swizzle}"] * bool(map_.interleave)
    if mode == "im2col":
        narrow = map_.swizzle and case["channels"] * map_.itemsize != map_.swizzle
        names += ["im2col row narrower than the swizzle"] * bool(narrow)
    elif any(x > 1 for x in case["steps"]):
        names.append("tiled with steps")
    return names


# Loads and stores


def loads(make: Callable[[np.random.Generator], Arguments], count: int, seed: int, name: str, out: Path) -> Found:
    """Compare loads with `TensorMap.read`: shared memory byte by byte, and bytes at the mbarrier."""
    kernels = Kernels.begin(tensor_bytes(seed))
    rng = np.random.default_rng(seed)
    cases = [make(rng) for _ in range(count)]
    tables: dict[str, Counter[str]] = {}
    shown: list[Any] = []
    kept: list[Any] = []
    for batch in _batches(cases):
        placed = [map_of({**case, "address": case["address"] + kernels.base}) for case in batch]
        maps = _maps(x.encoded for x in placed)
        dumps = np.zeros((len(batch), REGION), np.uint8)
        _, dumps, results = kernels.run("load", maps, orders_of(batch), dumps)
        for case, map_, dump, (counted, region) in zip(batch, placed, dumps, results.tolist(), strict=True):
            expected = _region()
            copy = _predicted(case, map_, region)
            place = slice(case["at"], case["at"] + copy.span)
            expected[place] = copy.load(kernels.tensor[case["address"] :], expected[place])
            wrong, miscounted = int((expected != dump).sum()), counted != copy.copied_bytes
            for group in ["all", *_groups(case, map_)]:
                row = tables.setdefault(group, Counter())
                row.update(cases=1, elements=copy.target.size, filled=int((~copy.inside).sum()),
                           wrong_cases=wrong > 0, wrong_counts=miscounted)  # fmt: skip
            if (wrong or miscounted) and len(shown) < _SHOWN:
                at = int(np.argmax(expected != dump))
                shown.append({**case, "wrong": wrong, "first": at, "expected": expected[at : at + 16].tobytes().hex(),
                              "came": dump[at : at + 16].tobytes().hex(), "counted": counted,
                              "predicted": copy.copied_bytes})  # fmt: skip
            if copy.span <= _KEPT_BYTES and len(kept) < 250:
                kept.append(({**case, "region": region, "counted": counted}, dump[place][: copy.span]))
    _keep(out / f"{name}.npz", seed, kept)
    return {"tables": tables, "shown": shown}


def _keep(path: Path, seed: int, kept: list[Any]) -> None:
    """Write cases and dumps, one behind the other."""
    empty = np.zeros(0, np.uint8)
    np.savez_compressed(
        path, seed=np.uint64(seed), cases=_text([case for case, _ in kept]),
        sizes=np.array([len(dump) for _, dump in kept], np.uint32),
        dumps=np.concatenate([empty, *(dump for _, dump in kept)]),
    )  # fmt: skip


_ROOM = 64 << 10  # of the tensor of a store


def stores(make: Callable[[np.random.Generator], Arguments], count: int, seed: int, name: str, out: Path) -> Found:
    """Compare stores with `TensorMap.write`: the tensor byte by byte, with what lies around it."""
    size = _BATCH * _ROOM
    background = np.tile(tensor_bytes(seed, 1 << 20), size >> 20)
    kernels = Kernels.begin(background)
    source = tensor_bytes(seed + 1, 1 << 20)
    rng = np.random.default_rng(seed)
    cases: list[Arguments] = []
    while len(cases) < count:
        case = make(rng)
        length = sum(s * d for s, d in zip(case["strides"], case["dims"][1:], strict=True))
        if case["address"] + length + case["dims"][0] * 32 < _ROOM:
            cases.append({**case, "store": True})
    tables: dict[str, Counter[str]] = {}
    shown: list[Any] = []
    for batch in _batches(cases):
        places = [i * _ROOM + case["address"] for i, case in enumerate(batch)]
        placed = [map_of({**case, "address": kernels.base + at}) for case, at in zip(batch, places, strict=True)]
        kernels.driver.put(kernels.base, background)
        starts = rng.integers(0, (len(source) - REGION) // 128, len(batch)) * 128
        dumps = np.array([source[s : s + REGION] for s in starts])
        *_, results = kernels.run("store", _maps(x.encoded for x in placed), orders_of(batch), dumps)
        after = kernels.driver.fetch(kernels.base, background)
        for i, (case, map_) in enumerate(zip(batch, placed, strict=True)):
            room = slice(i * _ROOM, (i + 1) * _ROOM)
            expected = background[room].copy()
            copy = _predicted(case, map_, int(results[i, 1]))
            copy.store(expected[case["address"] :], dumps[i, case["at"] : case["at"] + copy.span])
            wrong = int((expected != after[room]).sum())
            for group in ["all", *_groups(case, map_)]:
                tables.setdefault(group, Counter()).update(
                    cases=1, elements=copy.target.size, skipped=int((~copy.inside).sum()), wrong_cases=wrong > 0
                )
            if wrong and len(shown) < _SHOWN:
                at = int(np.argmax(expected != after[room]))
                shown.append({**case, "wrong": wrong, "first": at, "expected": expected[at : at + 16].tobytes().hex(),
                              "came": after[room][at : at + 16].tobytes().hex()})  # fmt: skip
    return {"tables": tables, "shown": shown}


# tensormap.replace


def _chain_orders(chains: list[list[tuple[int, int]]]) -> Array:
    rows = []
    for chain in chains:
        row = [len(chain)]
        for code, value in chain:
            row += [code, value & 0xFFFFFFFF, value >> 32 & 0xFFFFFFFF]
        rows.append(row + [0] * (ORDER_WORDS - len(row)))
    return np.array(rows, np.uint32)


_LEGAL_VALUES: dict[str, Callable[[np.random.Generator], int]] = {
    "global_address": lambda rng: 16 * int(rng.integers(1 << 60)), "rank": lambda rng: int(rng.integers(5)),
    "box_dim": lambda rng: int(rng.integers(1, 257)), "global_dim": lambda rng: int(rng.integers(1, 1 << 32)),
    "global_stride": lambda rng: 16 * int(rng.integers(1 << 36)), "element_stride": lambda rng: int(rng.integers(1, 9)),
}  # fmt: skip


def replaces(out: Path) -> Found:
    """Part replace: chains of five on zeros, on legal maps and on random bytes."""
    kernels = Kernels.begin(np.zeros(16, np.uint8))
    rng = np.random.default_rng(33)
    starts: list[bytes] = []
    chains: list[list[tuple[int, int]]] = []
    for i in range(3072):
        begins = (bytes(128), map_of(legal_arguments(rng, 1 << 40)).encoded, rng.bytes(128))
        starts.append(begins[i % 3])
        chain = []
        for code in rng.integers(len(REPLACEMENTS), size=5).tolist():
            choose = _LEGAL_VALUES.get(REPLACEMENTS[code][0])
            chain.append((code, choose(rng) if choose else 0))
        chains.append(chain)
    after, *_ = kernels.run("replace", _maps(starts), _chain_orders(chains), np.zeros((1, 1), np.uint8))
    wrong: Counter[str] = Counter()
    shown: list[Any] = []
    for start, chain, came in zip(starts, chains, after, strict=True):
        expected = start
        for code, value in chain:
            name, ordinal, immediate = REPLACEMENTS[code]
            expected = replace_field(expected, name, value if immediate is None else immediate, ordinal)
        if expected != came.tobytes():
            wrong["chains"] += 1
            bits = int.from_bytes(expected, "little") ^ int.from_bytes(came.tobytes(), "little")
            if len(shown) < _SHOWN:
                shown.append({"start": start.hex(), "chain": [(*REPLACEMENTS[c], v) for c, v in chain],
                              "expected": expected.hex(), "came": came.tobytes().hex(),
                              "bits": [b for b in range(1024) if bits >> b & 1]})  # fmt: skip
    np.savez_compressed(
        out / "replace.npz", starts=_maps(starts[:600]), chains=_text(chains[:600]), after=after[:600],
        codes=_text(REPLACEMENTS),
    )  # fmt: skip
    return {"chains": len(chains), "wrong": wrong["chains"], "shown": shown}


def beyond(out: Path) -> Found:
    """Part beyond: values that `replace_field` refuses; what the GPU writes on zeros and on ones."""
    kernels = Kernels.begin(np.zeros(16, np.uint8))
    values = {
        "rank": (5, 6, 7, 8, 255), "box_dim": (0, 257, 300, 1 << 20), "global_dim": (0,), "element_stride": (0, 9, 16),
        "global_stride": (8, 24, 1 << 40, (1 << 44) + 16), "global_address": (1, 8, 24),
    }  # fmt: skip
    asked = [(code, value) for code, (name, _, _) in enumerate(REPLACEMENTS) for value in values.get(name, ())]
    starts = [x for _ in asked for x in (bytes(128), b"\xff" * 128)]
    chains = [[each] for each in asked for _ in range(2)]
    after, *_ = kernels.run("replace", _maps(starts), _chain_orders(chains), np.zeros((1, 1), np.uint8))
    changed = []
    for start, chain, came in zip(starts, chains, after, strict=True):
        (code, value), bits = chain[0], int.from_bytes(start, "little") ^ int.from_bytes(came.tobytes(), "little")
        changed.append([REPLACEMENTS[code][0], REPLACEMENTS[code][1], value, start[0],
                        [b for b in range(1024) if bits >> b & 1]])  # fmt: skip
    return {"changed bits": changed}


# Bits that no host call sets


def _other_bits(map_: TensorMap) -> list[int]:
    from warpmma.layouts.tensor_maps.map_fields import fields_of

    known = sum(field.mask for field in fields_of(map_.im2col, map_.rank))
    return [bit for bit in range(64, 1024) if not known >> bit & 1]


def ignored(kind: int, unused: bool, out: Path) -> Found:
    """Set bits that no host call sets, one by one and in random sets, and compare dumps with those of the plain map.

    `kind`: the rank, 10 more of im2col, and 20 more with an interleave.
    `unused`: bits of dimensions that the map does not have; else bits that are in no field of any map.
    """
    kernels = Kernels.begin(tensor_bytes(8))
    rng = np.random.default_rng(100 + kind)
    while True:
        if kind % 20 < 10:
            case = copy_case(rng, REGION, interleave=kind > 20)
        else:
            case = im2col_case(rng, REGION, rank=kind % 10, interleave=kind > 20)
        if len(case["dims"]) == kind % 10 and case["swizzle"] == (kind + unused) % 4:
            map_ = map_of({**case, "address": case["address"] + kernels.base})
            if _predicted(case, map_, 2048).inside.any():
                break
    word_fields = {*range(64 * 4, 64 * 6), *range(64 * 6, 64 * 6 + 47), *range(64 * 7, 64 * 7 + 32),
                   *range(96, 64 * 3 + 48)}  # fmt: skip
    bits = [b for b in _other_bits(map_) if (b in word_fields) == unused]
    plain = int.from_bytes(map_.encoded, "little")
    sets = [
        [],
        *([b] for b in bits),
        *(list(rng.choice(bits, max(1, len(bits) // 2), replace=False)) for _ in range(20)),
    ]
    maps = [(plain | sum(1 << int(b) for b in each)).to_bytes(128, "little") for each in sets]
    dumps = np.zeros((len(maps), REGION), np.uint8)
    _, dumps, results = kernels.run("load", _maps(maps), orders_of([case] * len(maps)), dumps)
    acts = [[int(b) for b in each] for each, dump, result in zip(sets, dumps, results, strict=True)
            if (dump != dumps[0]).any() or (result != results[0]).any()]  # fmt: skip
    return {"case": case, "bits": len(bits), "sets": len(sets), "those that act": acts[:30], "acting": len(acts)}


# Copies that trap


def _plain(swizzle: int = 0, **more: Any) -> Arguments:
    """Make a load of 8 by 16 elements of f16."""
    made = {
        "type": 6, "dims": [64, 32], "strides": [128], "address": 0, "interleave": 0, "swizzle": swizzle, "l2": 0,
        "fill": 0, "steps": [1, 1], "box": [16, 8], "start": [0, 0], "at": 0, "offsets": [],
    }  # fmt: skip
    return {**made, **more}


def _column(**more: Any) -> Arguments:
    made = {
        "type": 6, "dims": [8, 6, 5, 2], "strides": [16, 96, 480], "address": 0, "interleave": 0, "swizzle": 0, "l2": 0,
        "fill": 0, "steps": [1] * 4, "lower": [-1, -1], "upper": [-1, -1], "channels": 8, "pixels": 16,
        "start": [0, 0, 0, 0], "at": 0, "offsets": [1, 1],
    }  # fmt: skip
    return {**made, **more}


def fault_cases() -> list[tuple[str, bool, Arguments]]:
    """List copies: a name, whether we say that it traps, and the copy."""
    found: list[tuple[str, bool, Arguments]] = []
    for at in (8, 16, 32, 64):
        found += [(f"at {at}, swizzle {s}", True, _plain(s, at=at)) for s in range(4)]
    found += [(f"at 128, swizzle {s}", False, _plain(s, at=128)) for s in range(4)]
    found += [
        (f"c0 {c}", c % 8 > 0, _plain(start=[c, 0])) for c in (1, 4, 8, -4, -8, 60, 1 << 30, (1 << 31) - 8, -(1 << 31))
    ]
    found += [(f"c1 {c}", False, _plain(start=[0, c])) for c in (-1, 32, (1 << 31) - 1, -(1 << 31))]
    store = {"store": True}
    found += [(f"store from {c}", min(c) < 0, _plain(start=c, **store))
              for c in ([0, -1], [-8, 0], [-8, -8], [64, 0], [0, 32], [8, 31])]  # fmt: skip
    found += [("store c0 4", True, _plain(start=[4, 0], **store)), ("store at 64", True, _plain(at=64, **store))]
    found += [("rank 3 of 2", True, _plain(order_rank=3)), ("rank 1 of 2", True, _plain(order_rank=1))]
    found += [("tiled instruction, im2col map", True, _column(order_kind=4)),
              ("im2col instruction, tiled map", True, _plain(order_kind=13))]  # fmt: skip
    found += [(f"im2col w {w}, h {h}", not (-1 <= w <= 4 and -1 <= h <= 3), _column(start=[0, w, h, 0]))
              for w, h in ((4, 3), (5, 0), (0, 4), (-1, -1), (-2, 0), (0, -3), (-9, -9))]  # fmt: skip
    found += [("im2col n -1", False, _column(start=[0, 0, 0, -1])), ("im2col n 2", False, _column(start=[0, 0, 0, 2])),
              ("im2col c0 4", True, _column(start=[4, 0, 0, 0])), ("im2col c0 -8", False, _column(start=[-8, 0, 0, 0])),
              ("im2col at 64", True, _column(at=64)), ("im2col offsets 255", False, _column(offsets=[255, 255])),
              ("im2col offsets 256", False, _column(offsets=[256, 0]))]  # fmt: skip
    five = {"dims": [8, 4, 4, 3, 2], "strides": [16, 64, 256, 768], "steps": [1] * 5, "lower": [0, 0, 0],
            "upper": [0, 0, 0], "offsets": [0, 0, 0]}  # fmt: skip
    found += [(f"im2col rank 5 d {d}", d > 2, _column(**five, start=[0, 0, 0, d, 0])) for d in (2, 3)]
    three = {"dims": [8, 12, 2], "strides": [16, 192], "steps": [1] * 3, "lower": [0], "upper": [0], "offsets": [0]}
    found += [(f"im2col rank 3 w {w}", w > 11, _column(**three, start=[0, w, 0])) for w in (11, 12)]
    stored = {"store": True, "offsets": [], "start": [0, 1, 1, 0]}
    found += [(f"im2col store, corners {low} and {high}", min(low) < 0 or max(high) > 0,
               _column(**stored, lower=low, upper=high))
              for low, high in (([0, 0], [0, 0]), ([0, -1], [0, 0]), ([-1, 0], [0, 0]), ([0, 0], [0, 1]),
                                ([0, 0], [1, 0]), ([1, 1], [-1, -1]))]  # fmt: skip
    rows: Arguments = {"interleave": 1, "dims": [9, 4, 3, 2], "strides": [256, 1024, 4096], "box": [8, 2, 2, 1],
                       "steps": [1] * 4}  # fmt: skip
    found += [
        (f"interleave from {c}", False, _plain(**rows, start=c))
        for c in ([1, 0, 0, 0], [-1, 0, 0, 0], [0, -1, 0, 0], [0, 0, -1, 0], [0, 0, 3, 0], [0, 0, 0, -1])
    ]
    found += [(f"interleave store from {c}", min(c) < 0, _plain(**rows, store=True, start=c))
              for c in ([1, 0, 0, 0], [-1, 0, 0, 0], [0, 0, -1, 0], [0, 0, 3, 0], [0, 0, 0, -1])]  # fmt: skip
    sliced: Arguments = {
        "interleave": 2,
        "dims": [6, 5, 3, 2],
        "strides": [192, 1024, 4096],
        "channels": 16,
        "steps": [1] * 4,
    }
    found += [
        (f"interleave im2col w {w}, h {h}", not (-1 <= w <= 4 and -1 <= h <= 3), _column(**sliced, start=[w, h, 0, 0]))
        for w, h in ((4, 3), (5, 0), (0, 4), (-1, -1), (-2, 0))
    ]
    found += [(f"interleave im2col store, corners {low} and {high}", min(low) < 0 or max(high) > 0,
               _column(**sliced, store=True, offsets=[], start=[1, 1, 0, 0], lower=low, upper=high))
              for low, high in (([0, 0], [0, 0]), ([0, -1], [0, 0]), ([0, 0], [1, 0]))]  # fmt: skip
    return found


def fault(number: int, out: Path) -> Found:
    """Run one copy; return the driver's words if it traps."""
    name, traps, case = fault_cases()[number]
    kernels = Kernels.begin(tensor_bytes(9))
    map_ = map_of({**case, "address": kernels.base})
    orders = orders_of([case])
    orders[0, 0] = case.get("order_kind", case.get("order_rank", orders[0, 0]))
    try:
        ran = "store" if case.get("store") else "load"
        kernels.run(ran, _maps([map_.encoded]), orders, np.zeros((1, REGION), np.uint8))
        came = "no trap"
    except DriverError as error:
        came = str(error)
    return {"name": name, "expected": "a trap" if traps else "no trap", "came": came,
            "agree": traps == (came != "no trap")}  # fmt: skip


# The parts

PARTS: dict[str, Callable[[Path], Found]] = {
    "encode": encode, "replace": replaces, "beyond": beyond,
    "tiled": lambda out: loads(lambda rng: copy_case(rng, REGION), 3000, 1, "tiled", out),
    **{f"im2col{rank}": lambda out, rank=rank: loads(  # type: ignore[misc]
        lambda rng: im2col_case(rng, REGION, rank=rank), 1000, rank, f"im2col{rank}", out) for rank in (3, 4, 5)},
    "store": lambda out: stores(lambda rng: copy_case(rng, REGION, store=True), 1000, 6, "store", out),
    **{f"store_im2col{rank}": lambda out, rank=rank: stores(  # type: ignore[misc]
        lambda rng: im2col_case(rng, REGION, rank=rank, store=True), 500, 10 + rank, "store_im2col", out)
       for rank in (3, 4, 5)},
    "interleave": lambda out: loads(
        lambda rng: copy_case(rng, REGION, interleave=True), 2000, 7, "interleave", out),
    "interleave_im2col": lambda out: loads(
        lambda rng: im2col_case(rng, REGION, rank=int(rng.integers(3, 6)), interleave=True), 2000, 8,
        "interleave_im2col", out),
    "store_interleave": lambda out: stores(
        lambda rng: copy_case(rng, REGION, interleave=True, store=True), 1000, 16, "store_interleave", out),
    "store_interleave_im2col": lambda out: stores(
        lambda rng: im2col_case(rng, REGION, rank=int(rng.integers(3, 6)), interleave=True, store=True), 1000, 17,
        "store_interleave_im2col", out),
    **{f"ignored {kind} {'unused' if unused else 'no field'}":
       lambda out, kind=kind, unused=unused: ignored(kind, unused, out)  # type: ignore[misc]
       for kind in (1, 2, 3, 4, 5, 13, 14, 15, 23, 24, 25, 33, 34) for unused in (False, True)
       if kind % 10 < 5 or not unused},
    **{f"fault {i}": lambda out, i=i: fault(i, out) for i in range(len(fault_cases()))},  # type: ignore[misc]
}  # fmt: skip
"""Every part, in the order of the work: long ones first."""


def _part(name: str, out: Path) -> tuple[str, Found]:
    """Run a part in a process of its own."""
    began = time.monotonic()
    command = [sys.executable, "-m", "lab.record.tensor_maps", "--out", str(out), "--part", name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        found: Found = json.loads(done.stdout) if done.returncode == 0 else {"failed": done.stderr[-1500:]}
    except subprocess.TimeoutExpired:
        found = {"failed": f"no end after {_SECONDS} s"}
    return name, {**found, "seconds": round(time.monotonic() - began, 1)}


def main(arguments: list[str] | None = None) -> int:
    """Run the parts; 0, whatever they find."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--part", choices=PARTS, help="one part in this process; its results as JSON")
    parser.add_argument("--only", nargs="*", metavar="WORD", help="parts whose names begin with one of these words")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    if options.part:
        print(json.dumps(PARTS[options.part](options.out), default=int))
        return 0
    names = [x for x in PARTS if options.only is None or x.startswith(tuple(options.only))]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = dict(pool.map(lambda name: _part(name, options.out), names))
    (options.out / "tensor_maps.json").write_text(json.dumps({**Driver.about(), **found}, indent=1, default=int))
    for name, result in found.items():
        print(name, *_summary(result))
    return 0


def _summary(found: Found) -> Iterator[str]:
    if "failed" in found:
        yield f"FAILED: {found['failed'][-300:]}"
    for key in ("legal", "near"):
        if key in found:
            yield f"{key}: {found[key]['outcomes']}"
    for key in ("chains", "wrong", "cases", "bits", "acting", "expected", "came", "agree"):
        if key in found:
            yield f"{key} {found[key]}"
    for group, row in found.get("tables", {}).items():
        yield f"\n    {group}: {dict(row)}"
    yield f"({found['seconds']} s)"


if __name__ == "__main__":
    sys.exit(main())
