"""Kernels that mutants are made of: those of `examples/`, in sizes that meet every line and take little time."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

from lab.programs.examples import EXAMPLES, example

from .operators import EVERYWHERE, edits
from .syntax import Edit, Function

__all__ = ["EXAMPLES", "EndlessError", "Mutant", "Names", "Subject", "example", "mutants", "subjects"]

Names = Mapping[str, Any]

_TURN = "_turn"
_TURNS = 2000  # of a loop, after which it has no end

HABITS = ("classics", "habits_warps", "habits_barriers", "habits_memory", "habits_copies")
# Cases, and functions that are changed. In the first, blocks and warps of which only a part is inside of the product,
# and so many steps that each buffer is used twice; in the second no tail along k.
PRODUCTS = {
    "gemm_f16": (((136, 72, 88, "f16"), (24, 24, 64, "f32")), ("gemm",)),
    "gemm_int8": (((136, 72, 144, "bf16"), (24, 16, 128, "bf16")), ("gemm",)),
    "gemm_sparse": (((136, 40, 144, "f32"), (20, 24, 128, "f32")), ("gemm",)),
    "gemm_nvfp4": (((136, 72, 320, "bf16"), (20, 16, 256, "f32")), ("gemm", "_loaded")),
}
# Rows of which the last turn is a part; warps of a block without a row, blocks of which threads have no elements.
ROWS = (
    ("softmax", 5, 72, "f16"), ("softmax", 5, 266, "bf16x2"), ("rmsnorm", 2, 600, "bf16"),
    ("rmsnorm", 2, 131, "f32"), ("gelu", 2, 75, "f32"), ("gelu", 3, 360, "f16x2"),
)  # fmt: skip
ROWS_FUNCTIONS = (
    "_row_of_warp", "_places", "_loaded", "_store", "_access", "_folded", "_over_warp", "_pair", "_halves",
    "softmax", "softmax_of_pairs", "rmsnorm", "gelu", "gelu_of_pairs",
)  # fmt: skip


class EndlessError(Exception):
    """A loop of a kernel has had more turns than any that ends."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A kernel, of which mutants are made.

    Attributes
    ----------
    name : str
    functions : tuple
        What is changed: modules, and names of their functions; last those of the kernel's own module.
    run : callable
        Launches the kernel that it finds in a namespace, with options of `launch`; returns all arrays as they are then.
    """

    name: str
    functions: tuple[tuple[ModuleType, tuple[str, ...]], ...]
    run: Callable[..., list[Any]]

    def launch(self, mutant: Mutant | None = None, **options: Any) -> list[Any]:
        """Run the kernel, or a mutant of it."""
        names: dict[str, Any] = {}
        for module, functions in self.functions:
            space = {**vars(module), "KERNELS": {}, EVERYWHERE: nullcontext, _TURN: _turns(), **names}
            body = [_syntax(module)[x] for x in functions]
            if mutant is not None and mutant.module is module:
                body = [mutant.function.made(mutant.edit) if x is mutant.function.syntax else x for x in body]
            tree = ast.fix_missing_locations(ast.Module(body=[_counted(x) for x in body], type_ignores=[]))
            exec(compile(tree, str(module.__file__), "exec"), space)
            names |= {x: space[x] for x in (*functions, "KERNELS")}
        return self.run(names, **options)


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A kernel with one change; `name` is another for each of a subject."""

    subject: Subject
    module: ModuleType
    function: Function
    edit: Edit
    name: str

    @property
    def line(self) -> str:
        """Where the change is."""
        return f"{Path(str(self.module.__file__)).name}:{getattr(self.edit.node, 'lineno', 0)}"


@cache
def subjects() -> tuple[Subject, ...]:
    """Return every subject."""
    twins = example("twins")
    example("habits")
    found = []
    for name, (cases, functions) in PRODUCTS.items():
        module = example(name)
        # `copied` masks the lanes whose pieces are outside.
        of = (twins, ("copied",)), (module, functions)
        calls = tuple(_call(module, case) for case in cases)
        found.append(Subject(name=name, functions=of, run=partial(_product, calls)))
    attention = example("attention")
    of = (twins, ("copied",)), (attention, ("_over_quad", "_select", "_update", "attention"))
    kinds = attention.Case(1, 130, causal=True), attention.Case(1, 77)
    calls = tuple(cache(partial(attention.call, case)) for case in kinds)
    found.append(Subject(name="attention", functions=of, run=partial(_product, calls)))
    rowwise = example("rowwise")
    calls = tuple(cache(partial(rowwise.call, rowwise.Case(*case))) for case in ROWS)
    found.append(Subject(name="rowwise", functions=((rowwise, ROWS_FUNCTIONS),), run=partial(_product, calls)))
    for name in HABITS:
        module = example(name)
        for kernel in module.KERNELS:
            helpers = ("_ring",) if kernel.endswith("_buffers") and name == "habits_copies" else ()
            run = partial(_habit, kernel)
            found.append(Subject(name=f"{name}.{kernel}", functions=((module, (*helpers, kernel)),), run=run))
    return tuple(found)


@cache
def mutants(subject: Subject) -> tuple[Mutant, ...]:
    """Make all mutants of a subject, in order."""
    seen: dict[str, int] = {}
    found = []
    for module, names in subject.functions:
        for name in names:
            function = Function(_syntax(module)[name], vars(module))
            for edit in edits(function):
                times = seen[edit.name] = seen.get(edit.name, 0) + 1
                which = edit.name if times == 1 else f"{edit.name} #{times}"
                found.append(Mutant(subject=subject, module=module, function=function, edit=edit, name=which))
    return tuple(found)


@cache
def _syntax(module: ModuleType) -> dict[str, ast.FunctionDef]:
    """Return the functions of a module."""
    tree = ast.parse(Path(str(module.__file__)).read_text())
    return {x.name: x for x in tree.body if isinstance(x, ast.FunctionDef)}


class _Counted(ast.NodeTransformer):
    def visit_While(self, node: ast.While) -> ast.While:
        """Count the turns of a loop that might have no end."""
        self.generic_visit(node)
        turn = ast.Expr(ast.Call(func=ast.Name(_TURN, ast.Load()), args=[], keywords=[]))
        for x in ast.walk(turn):
            ast.copy_location(x, node)
        return ast.copy_location(ast.While(test=node.test, body=[turn, *node.body], orelse=node.orelse), node)


def _counted(function: ast.FunctionDef) -> ast.FunctionDef:
    made: ast.FunctionDef = _Counted().visit(copy.deepcopy(function))
    return made


def _turns() -> Callable[[], None]:
    left = [_TURNS]

    def turn() -> None:
        left[0] -= 1
        if left[0] < 0:
            raise EndlessError

    return turn


# Launches


def _call(module: ModuleType, case: tuple[Any, ...]) -> Callable[[], Any]:
    made = example("twins").Case(*case)
    if hasattr(module, "call"):
        return cache(lambda: module.call(made))
    return cache(lambda: module.product(*module.operands(made), made.out))


def _product(calls: Sequence[Callable[[], Any]], names: Names, **options: Any) -> list[Any]:
    simulate, outputs = example("twins").simulate, []
    for call in (make() for make in calls):
        arrays = [x.copy() for x in call.arrays]
        arrays[-1].view("u1").fill(0xA5)
        kernel = names[getattr(call.kernel, "func", call.kernel).__name__]
        if isinstance(call.kernel, partial):
            kernel = partial(kernel, *call.kernel.args, **call.kernel.keywords)
        simulate(replace(call, kernel=kernel, arrays=tuple(arrays)), **options)
        outputs += arrays
    return outputs


def _habit(name: str, names: Names, **options: Any) -> list[Any]:
    arrays: list[Any] = names["KERNELS"][name].simulate(**options)[1]
    return arrays
