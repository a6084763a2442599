"""The examples as modules, wherever a command is started: `examples/` need not be on Python's path."""

from __future__ import annotations

import ast
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

__all__ = ["EXAMPLES", "example"]

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str) -> ModuleType:
    """Return an example by its file's name, as `import` does where the folder is on the path.

    Raises
    ------
    ImportError
        If there is no such file, or a package that the example imports is not installed.
    """
    if name not in sys.modules:
        path = EXAMPLES / f"{name}.py"
        spec = spec_from_file_location(name, path)
        if spec is None or spec.loader is None or not path.exists():
            raise ImportError(f"no example {name}", name=name)
        for other in _imported(path):
            example(other)
        module = sys.modules[name] = module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


def _imported(path: Path) -> list[str]:
    """Return the examples that a file imports, which find each other by these names."""
    tree = ast.parse(path.read_text("utf-8"))
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level]
    return [name for name in dict.fromkeys(names) if (EXAMPLES / f"{name}.py").exists()]
