"""Products on a GPU: what is inside `matmul`, which the table calls."""

from __future__ import annotations

import inspect

from warpmma import gpu

from . import surface

__all__ = ["INNER"]


def _names() -> list[str]:
    names = []
    for name in gpu.__all__:
        made = getattr(gpu, name)
        if inspect.isclass(made):
            names += [f"{name}.{x}" for x in (*surface.public_functions(made), *surface.properties(made))]
        names += [name] * (inspect.isclass(made) or inspect.isroutine(made) or hasattr(made, "__wrapped__"))
    return names


INNER: dict[str, str] = dict.fromkeys(
    (f"warpmma.gpu:{x}" for x in _names()), "given what `matmul` has checked, on a GPU that need not be here: tests/gpu"
)
