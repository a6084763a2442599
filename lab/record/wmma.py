"""Record `wmma` of a GPU: `python -m lab.record.wmma --help`. `warpmma compare --instructions wmma` compares more.

Needs the GPU and its driver, which assembles the text: forms with generic addresses, of global memory, with the kernels
and operands of `warpmma compare`. The archive is for tests on machines without a GPU. Differences from the simulator
are printed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.gpu.driver import Driver
from warpmma.hardware import (
    LaunchedWork,
    launched_in_simulator,
    ptx_module,
    wmma_forms,
    wmma_inputs,
    wmma_kernel,
    wmma_result,
)
from warpmma.operations import WmmaMove, WmmaMultiply

Array = npt.NDArray[Any]
Form = WmmaMove | WmmaMultiply

_PTX = 8, 0
_APART = 1 << 32  # bytes between arrays in the simulator


def forms(target: str) -> list[Form]:
    """List the forms of a target, with generic addresses."""
    return [x for x in wmma_forms(target) if isinstance(x, WmmaMultiply) or not x.space]


def text(form: Form, target: str) -> str:
    """Write a module that executes it in every block; its parameters are the addresses of the inputs."""
    return ptx_module([wmma_kernel(form, target)], target, _PTX)


def ours(form: Form, target: str, given: dict[str, Array]) -> Array:
    """Do the same in the simulator."""
    work = LaunchedWork(text=text(form, target), arrays=given, compared=(wmma_result(form),))
    addresses = {name: _APART * i for i, name in enumerate(given, 1)}
    return launched_in_simulator(work.text, target, work, addresses)[wmma_result(form)]


def theirs(driver: Driver, form: Form, target: str, given: dict[str, Array]) -> Array:
    """Run it on the GPU."""
    (function,) = driver.load(text(form, target), ["compared"]).values()
    addresses = {name: driver.place(x) for name, x in given.items()}
    blocks = len(given[wmma_result(form)])
    driver.launch(function, (blocks,), (32,), [x.to_bytes(8, "little") for x in addresses.values()])
    driver.synchronise()
    found = driver.fetch(addresses[wmma_result(form)], given[wmma_result(form)])
    for address in addresses.values():
        driver.free(address)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Record; 1 if anything differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path, metavar="OUT.npz")
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--warps", type=int, default=1, help="warps of each form")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    rng, listed = np.random.default_rng(options.seed), forms(options.target)
    driver = Driver()
    differences, outputs, recorded = 0, 0, {}
    for form in listed:
        given = wmma_inputs(form, options.target, options.warps, rng)
        got, expected = theirs(driver, form, options.target, given), ours(form, options.target, given)
        unequal = got != expected
        count = int(unequal.sum())
        if count:
            print(f"{count:8d} of {unequal.size} registers or bytes differ: {form}", flush=True)
            place = tuple(np.argwhere(unequal)[0].tolist())
            print(f"  at {place}: gpu {int(got[place]):#x}, ours {int(expected[place]):#x}")
        differences, outputs = differences + count, outputs + unequal.size
        for name, x in (given | {"out": got}).items():
            if name != wmma_result(form) or name == "memory":
                recorded[f"{form}|{name}"] = x
    about = driver.about()
    print(f"{about['gpu']}, {about['driver']}: {len(listed)} forms, {outputs} outputs, {differences} differences")
    np.savez_compressed(options.out, device=np.array(about["gpu"]), **recorded)  # type: ignore[arg-type]
    return int(differences > 0)


if __name__ == "__main__":
    sys.exit(main())
