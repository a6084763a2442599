"""Compare every `wmma` of a target with the GPU: `python -m lab.compare.wmma --help`.

Needs the GPU and its driver, which assembles the text. A block is one warp with its own memory. Loads and stores have
random bytes and a stride; products have random and hard elements in their registers, including those that no `mma`
reads. `--record FILE` stores a few warps of each form, for tests on machines without a GPU.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.generators import mixed
from lab.gpu.driver import Driver
from warpmma.formats import FORMATS
from warpmma.kernel import launch
from warpmma.operations import WmmaMove, WmmaMultiply, rows
from warpmma.registers import LANES

Array = npt.NDArray[Any]
Form = WmmaMove | WmmaMultiply

_SLACK = 16  # bytes between lines


def forms(target: str) -> list[Form]:
    """List the forms of a target, with generic addresses."""
    found = [x for x in rows(target, "wmma") if isinstance(x, WmmaMove | WmmaMultiply)]
    return [x for x in found if isinstance(x, WmmaMultiply) or not x.space]


def fragments(form: Form, target: str) -> dict[str, tuple[int, int]]:
    """Count the registers of each operand, and their bits."""
    if isinstance(form, WmmaMove):
        layout = form.layout(target)
        return {"fragment": (layout.registers, layout.packing.width)}
    layouts = {name: form.layout(name, target) for name in ("A", "B", "C", "D")}
    return {name: (x.registers, x.packing.width) for name, x in layouts.items()}


def stride(form: WmmaMove) -> int:
    """Elements between lines."""
    return form.line + _SLACK * 8 // form.bits


def size(form: WmmaMove) -> int:
    """Bytes of the memory of a warp."""
    return form.lines * stride(form) * form.bits // 8


def inputs(form: Form, target: str, warps: int, rng: np.random.Generator) -> dict[str, Array]:
    """Make the inputs and outputs of a form: `[warp, register, lane]`, or bytes of memory `[warp, byte]`."""
    given: dict[str, Array] = {}
    for name, (count, bits) in fragments(form, target).items():
        shape = (warps, count, LANES)
        if isinstance(form, WmmaMove) or name == "D":
            given[name] = rng.integers(0, 1 << 32, (*shape, bits // 32), np.uint32).view(f"u{bits // 8}")[..., 0]
        else:
            layout = form.layout(name, target)  # type: ignore[arg-type]
            type_ = form.type(name)  # type: ignore[arg-type]
            of = (*shape, layout.packing.per_register)
            few = type_ in ("s4", "u4", "b1")
            codes = rng.integers(0, layout.packing.mask + 1, of) if few else mixed(FORMATS[type_], of, rng)
            given[name] = np.ascontiguousarray(layout.packing.join(np.ascontiguousarray(codes)))
    if isinstance(form, WmmaMove):
        given["memory"] = rng.integers(0, 256, (warps, size(form)), np.uint8)
    return given


def result(form: Form) -> str:
    """Name what a form writes."""
    if isinstance(form, WmmaMultiply):
        return "D"
    return "fragment" if form.direction == "load" else "memory"


def text(form: Form, target: str, name: str) -> str:
    """Write an entry that executes it in every block; its parameters are the addresses of `inputs`."""
    moved, lines = fragments(form, target), []
    declared = [".reg .b64 %p<8>; .reg .b32 %t<4>;", *(f".reg .b{b} %{x}<{n}>;" for x, (n, b) in moved.items())]
    lines += ["mov.u32 %t0, %ctaid.x; mov.u32 %t1, %tid.x;"]
    for i, (operand, (count, bits)) in enumerate(moved.items()):
        at = f"%p{i}"
        lines += [f"ld.param.u64 {at}, [{name}_{i}]; mad.wide.u32 {at}, %t0, {count * LANES * bits // 8}, {at};"]
        lines += [f"mad.wide.u32 {at}, %t1, {bits // 8}, {at};"]
        if operand != result(form):
            lines += [f"ld.b{bits} %{operand}{r}, [{at}+{r * LANES * bits // 8}];" for r in range(count)]
    listed = {x: "{" + ", ".join(f"%{x}{r}" for r in range(n)) + "}" for x, (n, _) in moved.items()}
    if isinstance(form, WmmaMove):
        lines += [f"ld.param.u64 %p7, [{name}_1]; mad.wide.u32 %p7, %t0, {size(form)}, %p7;"]
        of = (listed["fragment"], "[%p7]") if form.direction == "load" else ("[%p7]", listed["fragment"])
        lines += [f"{form} {', '.join(of)}, {stride(form)};"]
    else:
        lines += [f"{form} {', '.join(listed[x] for x in 'DABC')};"]
    for i, (operand, (count, bits)) in enumerate(moved.items()):
        if operand == result(form):
            lines += [f"st.b{bits} [%p{i}+{r * LANES * bits // 8}], %{operand}{r};" for r in range(count)]
    parameters = ", ".join(f".param .u64 {name}_{i}" for i in range(len(moved) + isinstance(form, WmmaMove)))
    return "\n".join([f".visible .entry {name}({parameters}) {{", *declared, *lines, "ret; }\n"])


def ours(form: Form, target: str, given: dict[str, Array]) -> Array:
    """Do the same on the simulated machine."""
    arrays = {name: x.copy() for name, x in given.items()}
    wanted = result(form)

    def kernel(t: Any, *addresses: Any) -> None:
        at = dict(zip(arrays, addresses, strict=True))
        held: dict[str, Any] = {}
        for name, x in arrays.items():
            each = x[0].nbytes
            at[name] = at[name] + t("mul.wide.u32", t.ctaid[0], each)
            if name not in (wanted, "memory"):
                lane = at[name] + t("mul.wide.u32", t.laneid, x.itemsize)
                held[name] = [
                    t(f"ld.global.b{8 * x.itemsize}", lane + r * LANES * x.itemsize) for r in range(x.shape[1])
                ]
        if isinstance(form, WmmaMultiply):
            made = t(str(form), held["A"], held["B"], held["C"])
        elif form.direction == "load":
            made = t(str(form), at["memory"], stride(form))
        else:
            t(str(form), at["memory"], held["fragment"], stride(form))
            return
        x = arrays[wanted]
        lane = at[wanted] + t("mul.wide.u32", t.laneid, x.itemsize)
        for r, register in enumerate(made if isinstance(made, tuple) else (made,)):
            t(f"st.global.b{8 * x.itemsize}", lane + r * LANES * x.itemsize, register)

    launch(kernel, len(given[wanted]), LANES, tuple(arrays.values()), target=target)
    return arrays[wanted]


def theirs(driver: Driver, function: Any, form: Form, given: dict[str, Array]) -> Array:
    """Run it on the GPU."""
    addresses = {name: driver.place(x) for name, x in given.items()}
    driver.launch(
        function, (len(given[result(form)]),), (LANES,), [x.to_bytes(8, "little") for x in addresses.values()]
    )
    driver.synchronise()
    found = driver.fetch(addresses[result(form)], given[result(form)])
    for address in addresses.values():
        driver.free(address)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run the comparison; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--warps", type=int, default=256, help="warps for each form")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", type=Path, metavar="FILE", help="record some warps of each form here")
    parser.add_argument("--keep", type=int, default=1, help="warps to record")
    options = parser.parse_args(arguments)
    rng, listed = np.random.default_rng(options.seed), forms(options.target)
    names = {str(form): f"form{i}" for i, form in enumerate(listed)}
    body = "".join(text(form, options.target, names[str(form)]) for form in listed)
    head = f".version 8.0\n.target {options.target}\n.address_size 64\n"
    driver = Driver()
    functions = driver.load(head + body, list(names.values()))
    differences, outputs, recorded = 0, 0, {}
    for form in listed:
        given = inputs(form, options.target, options.warps, rng)
        got, expected = theirs(driver, functions[names[str(form)]], form, given), ours(form, options.target, given)
        unequal = got != expected
        count = int(unequal.sum())
        if count:
            print(f"{count:8d} of {unequal.size} registers or bytes differ: {form}", flush=True)
            place = tuple(np.argwhere(unequal)[0].tolist())
            print(f"  at {place}: gpu {int(got[place]):#x}, ours {int(expected[place]):#x}")
        differences, outputs = differences + count, outputs + unequal.size
        for name, x in (given | {"out": got}).items():
            if name != result(form) or name == "memory":
                recorded[f"{form}|{name}"] = x[: options.keep]
    about = driver.about()
    print(f"{about['gpu']}, {about['driver']}: {len(listed)} forms, {outputs} outputs, {differences} differences")
    if options.record:
        np.savez_compressed(options.record, device=np.array(about["gpu"]), **recorded)  # type: ignore[arg-type]
    return int(differences > 0)


if __name__ == "__main__":
    sys.exit(main())
