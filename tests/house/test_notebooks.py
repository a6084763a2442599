"""Notebooks: what they hold is a notebook without outputs, and their cells run one after the other, without Jupyter."""

from __future__ import annotations

import ast
import json
import linecache
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples" / "notebooks").glob("*.ipynb"))
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
FIELDS = {"markdown": {"cell_type", "id", "metadata", "source"}}
FIELDS["code"] = FIELDS["markdown"] | {"execution_count", "outputs"}


def run(path: Path) -> dict[str, Any]:
    """Run the cells of code in one namespace; what they show last is computed, and thrown away."""
    names: dict[str, Any] = {"__name__": path.stem}
    for i, cell in enumerate(json.loads(path.read_text())["cells"]):
        if cell["cell_type"] == "code":
            text, file = "".join(cell["source"]), f"{path.name}[{i}]"
            # As IPython does: Triton and tracebacks look a cell's source up.
            linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
            exec(compile(text, file, "exec"), names)
    return names


@each_notebook
def test_cells_run(path: Path) -> None:
    needed = json.loads(path.read_text())["metadata"]["warpmma"]["needs"]
    for module in needed:
        pytest.importorskip(module)
    run(path)


@each_notebook
def test_notebook_is_one_and_has_no_outputs(path: Path) -> None:
    notebook = json.loads(path.read_text())
    assert (notebook["nbformat"], notebook["metadata"]["language_info"]["name"]) == (4, "python")
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    assert notebook["cells"][0]["cell_type"] == "markdown"
    for cell in notebook["cells"]:
        assert set(cell) == FIELDS[cell["cell_type"]]
        assert (cell.get("outputs", []), cell.get("execution_count")) == ([], None)
        lines = "".join(cell["source"]).splitlines()
        assert max(map(len, lines)) <= 120
        assert not [line for line in lines if line.startswith(("%", "!"))]
        if cell["cell_type"] == "code":
            ast.parse("\n".join(lines))


def test_a_cell_that_fails_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "wrong.ipynb"
    cells = [{"cell_type": "code", "source": [text]} for text in ("x = 1\n", "assert x == 2, x\n")]
    path.write_text(json.dumps({"cells": cells}))
    with pytest.raises(AssertionError, match="1"):
        run(path)
