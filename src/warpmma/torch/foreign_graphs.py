"""Graphs that Inductor compiled are refused inside of an override, which cannot see their products.

Inside of `with arithmetic(...)` Dynamo compiles nothing, and what it has compiled before is not used: a compiled
function runs as it is written, and its products are replaced. But the backward of a graph that ran outside may be
called inside. Some of its products may be kernels of Inductor's own, so it is an error.
"""

from __future__ import annotations

import sys
from functools import wraps
from typing import Any

from ..errors import UnsupportedError

_GRAPHS = "torch._inductor.output_code"


def refuse_foreign_graphs(mode: type[Any]) -> None:
    """Refuse to run Inductor's graphs while a dispatch mode of a class is on; nothing where Inductor is not loaded."""
    graph = getattr(sys.modules.get(_GRAPHS), "CompiledFxGraph", None)
    if graph is None or hasattr(graph.__call__, "__wrapped__"):
        return
    run = graph.__call__

    @wraps(run)
    def checked(self: Any, inputs: Any) -> Any:
        from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

        if any(isinstance(each, mode) for each in _get_current_dispatch_mode_stack()):
            raise UnsupportedError(
                "a graph that torch.compile compiled runs inside of warpmma.torch.arithmetic, which does not see all "
                "of its products: call the model inside of the same `with`, or multiply by warpmma.torch.matmul"
            )
        return run(self, inputs)

    graph.__call__ = checked
