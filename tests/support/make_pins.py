"""Choose the vectors of `pins.npz`: `PYTHONPATH=. python tests/support/make_pins.py`.

For every recipe and every one-step change of it, some rows whose result changes; with what the reference computes.
`test_pins.py` replays them. Run it after a deliberate change of a recipe, and look at the difference.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from recipe_mutations import mutations

from lab.generators import by_reference, operands, recipe_cases, styles
from warpmma.arithmetic import compute

PINS = Path(__file__).parents[1] / "data" / "pins.npz"
ROWS = 4000
PER_MUTATION = 2


def main() -> None:
    arrays: dict[str, npt.NDArray[Any]] = {}
    for number, case in enumerate(recipe_cases()):
        rng = np.random.default_rng(number)
        chosen: list[dict[str, npt.NDArray[Any]]] = []
        left = dict.fromkeys((name for name, _ in mutations(case)), PER_MUTATION)
        for style in styles(case.recipe) * 2:
            given = operands(case.recipe, case.k, ROWS, style, rng, case.blocks)
            d = compute(case.recipe, **given)
            for name, changed in mutations(case):
                if left[name]:
                    rows = np.flatnonzero(changed(**given) != d)[: left[name]]
                    left[name] -= len(rows)
                    chosen.append({key: codes[..., rows] for key, codes in given.items()})
        vectors = {key: np.concatenate([c[key] for c in chosen], axis=-1) for key in chosen[0]}
        vectors["d"] = by_reference(case.recipe, **vectors).astype(compute(case.recipe, **vectors).dtype)
        arrays |= {f"{case}|{key}": codes for key, codes in vectors.items()}
        if sys.stderr.isatty():
            print(f"\r{number + 1}/{len(recipe_cases())}", end="", file=sys.stderr)
    temporary = PINS.with_suffix(".tmp.npz")
    np.savez_compressed(temporary, **arrays)  # type: ignore[arg-type]
    temporary.replace(PINS)


if __name__ == "__main__":
    main()
