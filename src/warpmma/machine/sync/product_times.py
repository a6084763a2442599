"""When warps use registers of products: writes of what is pending, and what no `wgmma.fence` orders (A25 to A28).

`program.accumulators` says at which steps to look. The rules:

1. A step that writes a register of a product which its warp has not waited for is reported. Of A, a step that writes
   whole warps without a guard is only one of the literal manual (A26): ptxas gives it another register.
2. A warp has a time for each step that matters, and for its last `wgmma.fence`. A product is reported if its warp has
   not fenced behind an earlier step.
"""

from __future__ import annotations

import numpy as np

from ..._arrays import Array
from ..base import Site
from ..program import ProductRegister, Program
from ..report import Reporter
from .warpgroup_products import WarpgroupProducts

_NEVER = 0


class ProductTimes:
    """What warps of a batch of blocks have done with registers of products.

    Parameters
    ----------
    reporter : Reporter
    products : WarpgroupProducts
    shape : (int, int, int)
        Blocks, warps and lanes.
    """

    def __init__(self, reporter: Reporter, products: WarpgroupProducts, shape: tuple[int, int, int]) -> None:
        self._reporter, self._products = reporter, products
        self._now = _NEVER
        self._fenced: Array = np.full(shape[:2], _NEVER)
        self._times: dict[int, Array] = {}

    # Rule 1

    def writes(self, program: Program, step: int, lanes: Array, *, guarded: bool) -> None:
        """See lanes, bool `[block, warp, lane]`, write registers at a step."""
        for product in self._products.pending:
            active = lanes & product.active[..., None]
            if not active.any():
                continue
            for x in program.products.writes[step]:
                if x.earlier == product.step:
                    partly = guarded or bool((active.any(axis=-1) & ~active.all(axis=-1)).any())
                    self._written(program, step, x, active, partly=partly)

    def _written(self, program: Program, step: int, x: ProductRegister, bad: Array, *, partly: bool) -> None:
        whose, at = program.steps[x.earlier].site, program.steps[step].site
        detail = (
            f"{program.names[x.slot]} belongs to {x.operand} of the product (wgmma at {whose.place}), and its warp has "
            "not waited for it with wgmma.wait_group"
        )
        rule = "A25" if x.operand == "D" or partly else "A26"
        self._reporter.report("pending", at, bad, detail=detail, other=whose, rule=rule)

    # Rule 2

    def executes(self, step: int, lanes: Array) -> None:
        """See warps execute a step, by its number."""
        self._now += 1
        before = self._times.get(step, self._fenced * 0)
        self._times[step] = np.where(lanes.any(axis=-1), self._now, before)

    def fences(self, lanes: Array) -> None:
        """See warps execute a `wgmma.fence`."""
        self._now += 1
        self._fenced = np.where(lanes.any(axis=-1), self._now, self._fenced)

    def multiplies(self, program: Program, step: int, lanes: Array) -> None:
        """See warps execute a product."""
        known, site = program.products, program.steps[step].site
        for x in known.overlaps.get(step, ()):
            says = f"{program.names[x.slot]} is at another place of D in the product (wgmma at {{}})"
            self._unfenced(program, x, site, lanes, says, "A27")
        if self._reporter.strict:
            for x in known.unfenced.get(step, ()):
                self._unfenced(program, x, site, lanes, _what(program, x), "A28")

    def _unfenced(self, program: Program, x: ProductRegister, site: Site, lanes: Array, says: str, rule: str) -> None:
        begun = x.earlier < 0
        late = self._fenced == _NEVER if begun else self._times.get(x.earlier, self._fenced) > self._fenced
        bad = lanes & late[..., None]
        if not bad.any():
            return
        other = None if begun else program.steps[x.earlier].site
        detail = f"{says.format('' if other is None else other.place)}, and no wgmma.fence lies between"
        self._reporter.report("proxy", site, bad, detail=detail, other=other, rule=rule)


def _what(program: Program, x: ProductRegister) -> str:
    if x.earlier < 0:
        return "the warp begins its products here"
    earlier = program.steps[x.earlier].site
    if x.earlier in program.products.products:
        return f"{program.names[x.slot]} of D belongs to the product (wgmma at {{}}) of another shape or place"
    return f"{program.names[x.slot]} of {x.operand} is accessed at {{}} ({earlier.mnemonic})"
