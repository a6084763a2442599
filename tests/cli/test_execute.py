"""`execute`: the bits of `mma` and `matmul`, from files and into them, and what is refused in one line."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import ml_dtypes
import numpy as np
import pytest
from cli_cases import Capture

import warpmma as wm
from warpmma import sparsity
from warpmma.cli import main
from warpmma.cli.commands import execute_command
from warpmma.isa import named

pytestmark = pytest.mark.quick

RNG = np.random.default_rng(0)
F16 = "m16n8k16 f16"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def instruction(words: str) -> wm.Instruction:
    return wm.parse(str(named(words).instruction))


def saved(name: str, *shape: int, dtype: Any = np.float16, scale: float = 1) -> Any:
    array = (RNG.standard_normal(shape) * scale).astype(dtype)
    np.save(name, array)
    return array


def executed(words: str, *arguments: str) -> Any:
    assert main(["execute", *words.split(), *arguments, "-o", "D.npy"]) == 0
    return np.load("D.npy", allow_pickle=False)


def same(d: Any, expected: Any) -> None:
    assert d.dtype == expected.dtype and d.shape == expected.shape and d.tobytes() == expected.tobytes()


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_one_instruction(folder: Path, target: str) -> None:
    a, b, c = saved("A.npy", 3, 16, 16), saved("B.npy", 16, 8), saved("C.npy", 16, 8, dtype=np.float32)
    i = instruction(F16)
    same(executed(f"{F16} A.npy B.npy C.npy", "--target", target), wm.mma(i, a, b, c, target=target))
    same(executed(f"A.npy {F16} B.npy", "--target", target), wm.mma(i, a, b, target=target))


def test_whole_products(folder: Path) -> None:
    a, b = saved("A.npy", 40, 100), saved("B.npy", 100, 30)
    i = instruction(F16)
    cases: tuple[tuple[list[str], Any], ...] = (
        ([], {}), (["--split-k", "2"], {"split_k": 2}), (["--promote-every", "32"], {"promote_every": 32}),
        (["--threads", "2"], {}),
    )  # fmt: skip
    for more, options in cases:
        same(executed(f"{F16} A.npy B.npy", "--target", "sm_90", *more),
             wm.matmul(a, b, instruction=i, target="sm_90", **options))  # fmt: skip
    rounded = executed(f"{F16} A.npy B.npy", "--target", "sm_90", "--epilogue", "bf16")
    expected = wm.matmul(a, b, instruction=i, target="sm_90", epilogue="bf16")
    assert rounded.dtype == np.uint16 and rounded.tobytes() == expected.tobytes()


def test_types_that_numpy_cannot_name(folder: Path) -> None:
    a, b = saved("A.npy", 64, 64, dtype=ml_dtypes.bfloat16), saved("B.npy", 64, 64, dtype=ml_dtypes.bfloat16)
    expected = wm.matmul(a, b, target="sm_90a", instruction=named("wgmma n64 bf16").instruction)
    same(executed("wgmma n64 bf16 A.npy B.npy", "--target", "sm_90a"), expected)
    np.save("A.npy", a.view(np.uint16))  # codes
    same(executed("wgmma n64 bf16 A.npy B.npy", "--target", "sm_90a"), expected)


def test_cast(folder: Path) -> None:
    a, b = saved("A.npy", 16, 32, dtype=np.float32), np.arange(256).reshape(32, 8)
    np.save("B.npy", b)
    e4m3 = [x.astype(ml_dtypes.float8_e4m3fn) for x in (a, np.minimum(b, 448).astype(np.float32))]
    expected = wm.mma(instruction("m16n8k32 e4m3"), *e4m3, target="sm_90")
    same(executed("m16n8k32 e4m3 A.npy B.npy", "--target", "sm_90", "--cast"), expected)


def test_sparse_and_scaled(folder: Path) -> None:
    i = instruction("sp m16n8k32 f16")
    dense, b = saved("A.npy", 16, 32), saved("B.npy", 32, 8)
    pruned = sparsity.prune(dense, i)
    stored, indices = sparsity.compress(pruned, i)
    expected = wm.mma(i, pruned, b, target="sm_90")
    for name, array in (("P", pruned), ("S", stored), ("I", indices)):
        np.save(f"{name}.npy", array)
    np.save("E.npy", sparsity.pack_metadata(indices, i, selector=1))
    words = "sp m16n8k32 f16"
    same(executed(f"{words} P.npy B.npy", "--target", "sm_90"), expected)
    same(executed(f"{words} S.npy B.npy", "--target", "sm_90", "--indices", "I.npy"), expected)
    same(executed(f"{words} S.npy B.npy", "--target", "sm_90", "--metadata", "E.npy", "--selector", "1"), expected)
    j = instruction("mxf4")
    a, b = (
        saved(name, *shape, dtype=ml_dtypes.float4_e2m1fn) for name, shape in (("A.npy", (16, 64)), ("B.npy", (64, 8)))
    )
    scales = [np.full(shape, 127 + x, np.uint8) for x, shape in ((1, (16, 2)), (-2, (2, 8)))]
    np.save("SA.npy", scales[0])
    np.save("SB.npy", scales[1].view(ml_dtypes.float8_e8m0fnu))
    scaled = executed("mxf4 A.npy B.npy", "--target", "sm_120a", "--scale-a", "SA.npy", "--scale-b", "SB.npy")
    same(scaled, wm.mma(j, a, b, target="sm_120a", scale_a=scales[0], scale_b=scales[1]))


def test_json_agrees_with_text(folder: Path, capsys: Capture) -> None:
    a, b = saved("A.npy", 16, 16), saved("B.npy", 16, 8)
    a[0], a[1] = np.inf, np.nan
    np.save("A.npy", a)
    d = wm.mma(instruction(F16), a, b, target="sm_90")
    assert main(["execute", *F16.split(), "A.npy", "B.npy", "--target", "sm_90", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["codes"] == d.view(np.uint32).tolist() and facts["shape"] == [16, 8] and facts["type"] == "f32"
    assert np.array_equal(np.array(facts["values"], np.float32), d, equal_nan=True) and facts["values"][1][0] == "nan"
    assert main(["execute", *F16.split(), "A.npy", "B.npy", "--target", "sm_90"]) == 0
    text = capsys.readouterr().out
    assert np.array2string(d, max_line_width=118) in text and f"measured: {facts['evidence']['source']}" in text


def test_what_was_there_stays_where_nothing_new_came(folder: Path) -> None:
    saved("A.npy", 16, 16), saved("B.npy", 16, 8)
    Path("D.npy").write_text("before")
    assert main(["execute", *F16.split(), "A.npy", "A.npy", "C.npy", "--target", "sm_90", "-o", "D.npy"]) == 2
    assert Path("D.npy").read_text() == "before" and len(list(folder.iterdir())) == 3
    executed(f"{F16} A.npy B.npy", "--target", "sm_90")
    assert len(list(folder.iterdir())) == 3


def test_an_interrupt_leaves_nothing(folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    saved("A.npy", 16, 16), saved("B.npy", 16, 8)
    monkeypatch.setattr(execute_command, "matmul", Mock(side_effect=KeyboardInterrupt))
    assert main(["execute", *F16.split(), "A.npy", "B.npy", "--target", "sm_90", "-o", "D.npy"]) == 130
    assert capsys.readouterr() == ("", "warpmma: interrupted\n") and len(list(folder.iterdir())) == 2
    monkeypatch.setattr(execute_command, "matmul", Mock(side_effect=MemoryError))
    assert main(["execute", *F16.split(), "A.npy", "B.npy", "--target", "sm_90"]) == 2
    assert capsys.readouterr() == ("", "warpmma: there is not enough memory for this\n")


class Trap:
    """Unpickled, it makes a file."""

    def __reduce__(self) -> tuple[Any, ...]:
        return open, ("sprung", "w")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("A.npy B.npy --target sm_90",
         "no instruction; expected one before the files, such as m16n8k16 f16 A.npy B.npy"),
        (f"{F16} A.npy --target sm_90", "1 file *.npy; expected those of A, B and, if there is one, C"),
        (f"{F16} A.npy none.npy --target sm_90", "B: none.npy: No such file or directory"),
        (f"{F16} junk.npy B.npy --target sm_90", "A: junk.npy is not an .npy file of numbers: "),
        (f"{F16} trap.npy B.npy --target sm_90",
         "A: trap.npy is not an .npy file of numbers: Object arrays cannot be loaded"),
        (f"{F16} A.npy wide.npy --target sm_90",
         "B: wide.npy is float32; expected float16, or --cast, which rounds to f16"),
        (f"{F16} A.npy B.npy --target sm_90 --selector 1",
         "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 is dense: "),
        (f"{F16} B.npy B.npy --target sm_90",
         "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32: A is (16, 8) and B is"),
        (f"{F16} A.npy B.npy --target sm_70",
         "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 is not legal on sm_70; "),
        (f"{F16} A.npy B.npy --target H100", "unknown target 'H100'; H100 is sm_90"),
        (f"{F16} A.npy B.npy --target sm_90 -o D.txt", "--output 'D.txt': expected a file *.npy"),
        (f"{F16} A.npy B.npy --target sm_90 -o no/D.npy", "no/D.npy cannot be written: No such file or directory"),
        (f"{F16} A.npy B.npy --target sm_90 --split-k 2 --selector 0",
         "--selector is for single mma, --split-k is not"),
        (f"{F16} A.npy B.npy --target sm_90 --epilogue bf15", "epilogue is 'bf15'; expected "),
        (f"{F16} A.npy B.npy --target sm_90 --threads 0", "threads is 0; expected a positive integer"),
        ("mxf4 B.npy B.npy --target sm_120a --cast", "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale"),
    ],
)  # fmt: skip
def test_refusals(folder: Path, capsys: Capture, arguments: str, message: str) -> None:
    saved("A.npy", 16, 16), saved("B.npy", 16, 8), saved("wide.npy", 16, 8, dtype=np.float32)
    Path("junk.npy").write_text("junk")
    np.save("trap.npy", np.array([Trap(), None]), allow_pickle=True)
    assert main(["execute", *arguments.split()]) == 2
    output, error = capsys.readouterr()
    assert error.startswith(f"warpmma: {message}") and error.count("\n") == 1 and not output
    assert not Path("sprung").exists()


def test_the_trap_would_have_sprung(folder: Path) -> None:
    pickle.loads(pickle.dumps(Trap())).close()
    assert Path("sprung").exists()
