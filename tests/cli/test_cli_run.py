"""The command `run`: arguments, results, hazards and errors, of PTX, which needs no compiler."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from cli_cases import Capture

from warpmma.cli import main
from warpmma.cli.commands.kernel_arguments import arguments_of, ordered
from warpmma.errors import OperandError

pytestmark = pytest.mark.quick

TEXT = """.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 x, .param .u64 y, .param .f32 factor, .param .u32 n)
{
    .reg .pred %p<2>;  .reg .f32 %f<4>;  .reg .b32 %r<6>;  .reg .b64 %rd<8>;
    .shared .align 4 .b8 tile[4096];
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.param.f32 %f1, [factor];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
    setp.ge.u32 %p1, %r2, %r1;
    @%p1 bra DONE;
    mul.wide.u32 %rd3, %r2, 4;
    add.s64 %rd4, %rd1, %rd3;
    ld.global.f32 %f2, [%rd4];
    mul.f32 %f3, %f2, %f1;
    shl.b32 %r3, %r2, 7;
    mov.u32 %r4, tile;
    add.u32 %r4, %r4, %r3;
    st.shared.f32 [%r4], %f3;
    add.s64 %rd5, %rd2, %rd3;
    st.global.f32 [%rd5], %f3;
DONE:
    ret;
}
"""
LAUNCH = ["--grid", "1", "--block", "32"]
ARGS = ["--arg", "n=32", "--arg", "factor=2", "--arg", "x=f32[32]:range", "--arg", "y=out:f32[32]"]


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "scale.ptx").write_text(TEXT)
    return str(tmp_path / "scale.ptx")


def test_a_kernel_runs_and_its_arrays_are_saved(file: str, tmp_path: Path, capsys: Capture) -> None:
    saved, picture = tmp_path / "out.npz", tmp_path / "conflicts.svg"
    assert main(["run", file, *LAUNCH, *ARGS, "--save", str(saved), "--output", str(picture)]) == 0
    said = capsys.readouterr().out
    assert "scale of " in said and "on sm_80: grid 1, block 32" in said and said.endswith("no hazard was found\n")
    assert "y     float32[32]  0 2 4 6 ...         0        62    0" in said
    assert "1       1          32         31" in said and max(map(len, said.splitlines())) < 120
    with np.load(saved) as arrays:
        assert set(arrays) == {"x", "y"} and (arrays["y"] == 2 * np.arange(32)).all()
    assert "wavefront" in picture.read_text() and sorted(x.name for x in tmp_path.iterdir()) == [
        "conflicts.svg", "out.npz", "scale.ptx",
    ]  # fmt: skip


def test_clusters(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "ranks.ptx"
    file.write_text(""".version 8.0
.target sm_90
.address_size 64
.visible .entry ranks(.param .u64 y) { .reg .b32 %r<3>; .reg .b64 %y;
ld.param.u64 %y, [y]; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %cluster_ctarank;
mad.wide.u32 %y, %r1, 4, %y; st.global.u32 [%y], %r2; ret; }
""")
    run = ["run", str(file), "--grid", "4", "--block", "1", "--arg", "y=out:i32[4]"]
    assert main([*run, "--cluster", "2"]) == 0
    said = capsys.readouterr().out
    assert "grid 4, block 1, cluster 2" in said and "0 1 0 1" in said
    assert main([*run, "--cluster", "3"]) == 2
    assert "the nearest larger one is 6" in capsys.readouterr().err


def test_json(file: str, capsys: Capture) -> None:
    assert main(["run", file, "--kernel", "scale", *LAUNCH, *ARGS, "--json", "--target", "sm_90"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["arrays"]["y"] == {"type": "float32", "shape": [32]} and found["error"] is None
    assert "on sm_90" in found["launch"] and found["hazards"] == [] and len(found["sites"]) > 10


def test_a_hazard_is_status_1_and_what_was_computed_is_saved(file: str, tmp_path: Path, capsys: Capture) -> None:
    saved = tmp_path / "out.npz"
    wrong = ["--arg", "x=f32[32]:ones", "--arg", "y=out:f32[16]", "--arg", "factor=3", "--arg", "n=32"]
    assert main(["run", file, *LAUNCH, *wrong, "--save", str(saved)]) == 1
    said = capsys.readouterr().out
    assert ("bounds" in said and "The launch ended" in said) or "1 hazard" in said
    with np.load(saved) as arrays:
        assert set(arrays) == {"x", "y"}


def test_a_limit_ends_a_launch(file: str, tmp_path: Path, capsys: Capture) -> None:
    assert main(["run", file, *LAUNCH, *ARGS, "--limit", "3", "--save", str(tmp_path / "out.npz")]) == 1
    assert "The launch ended" in capsys.readouterr().out and (tmp_path / "out.npz").exists()


def test_contents() -> None:
    found = {x.name: x for x in arguments_of(
        ["a=f16[4]:ones", "b=s8[2,3]:-3", "c=out:bf16[8]", "u=f64[1000]:uniform", "v=f32[1000]:normal", "w=e4m3[2]:0.3",
         "n=0x10", "f=1e-3", "t=true", "p=null", "s=hex:00ff", "7"], 0,
    )}  # fmt: skip
    assert (found["a"].array == 1).all() and found["a"].array.dtype == np.float16
    assert (found["b"].array == -3).all() and found["b"].array.shape == (2, 3)
    assert found["c"].array.dtype.name == "bfloat16" and found["w"].array[0] == 0.3125
    assert 0 <= found["u"].array.min() < 0.1 < 0.9 < found["u"].array.max() < 1
    assert abs(found["v"].array.mean()) < 0.2 and 0.9 < found["v"].array.std() < 1.1
    values = [found[x].value for x in ("n", "f", "t", "p", "s", "arg11")]
    assert values == [16, 1e-3, True, None, b"\0\xff", 7]
    again = arguments_of(["x=f32[9]:normal"], 3)[0].array
    assert (again == arguments_of(["y=f32[9]:normal"], 3)[0].array).all()
    assert (again != arguments_of(["x=f32[9]:normal"], 4)[0].array).any()


def test_files(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(4, dtype=np.float32))
    (tmp_path / "bad.npy").write_bytes(b"no array")
    whole, typed = arguments_of([f"x={tmp_path}/x.npy", f"y=f64[4]:{tmp_path}/x.npy"], 0)
    assert whole.array.dtype == np.float32 and typed.array.dtype == np.float64 and (typed.array == range(4)).all()
    for text, says in (
        (f"x={tmp_path}/none.npy", "No such file"), (f"x={tmp_path}/bad.npy", "not an .npy file of numbers"),
        (f"x=f32[5]:{tmp_path}/x.npy", r"holds float32\[4\]; expected float32\[5\]"),
    ):  # fmt: skip
        with pytest.raises(OperandError, match=says):
            arguments_of([text], 0)


def test_names_give_the_order() -> None:
    arguments = arguments_of(["b=1", "a=2"], 0)
    assert [x.value for x in ordered(arguments, ["a", "b"], "k")] == [2, 1]
    assert [x.value for x in ordered(arguments, [], "k")] == [1, 2]
    assert [x.value for x in ordered(arguments, ["c", "d"], "k")] == [1, 2]
    with pytest.raises(OperandError, match=r"k has no parameter 'b'; it has a, c"):
        ordered(arguments, ["a", "c"], "k")
    with pytest.raises(OperandError, match=r"k\(a, b, c\) lacks an argument for c"):
        ordered(arguments, ["a", "b", "c"], "k")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--arg", "x=f33[4]"], "'f33' is not a type of elements; did you mean 'f32'"),
        (["--arg", "x=f32[n]"], r"\[n\] is not a shape"),
        (["--arg", "x=f32[4]:random"], "'random' is not the contents of an array; did you mean"),
        (["--arg", "x=s32[4]:normal"], "normal is for floats"),
        (["--arg", "x=u8[4]:300"], "300 is out of range of uint8"),
        (["--arg", "x=out:f32[4]:ones"], r"has no contents before the launch; expected inout:f32\[4\]:ones"),
        (["--arg", "x=float"], "'float' is not a value of an argument; expected a number"),
        (["--arg", "x=hex:0"], "'0' is not a hexadecimal number of whole bytes"),
        (["--arg", "x=1", "--arg", "x=2"], "there are two arguments 'x'"),
        (["--arg", "1"], "scale takes 4 arguments"),
        (["--kernel", "scala"], "no entry 'scala'; did you mean 'scale'"),
        (["--limit", "soon"], "--limit 'soon': expected instructions"),
        (["--save", "out.csv"], r"expected a file \*.npz"),
        (["--seed", "-1"], "expected an integer from 0 on"),
        (["--grid", "1,2,3,4"], "--grid '1,2,3,4': expected 1 to 3 numbers"),
        (["--option=-DX"], "--option is for what is compiled"),
        (["--target", "sm_75"], "is PTX for sm_80, which sm_75 does not take"),
        (["--hazards", "loud"], "loud"),
    ],
)
def test_what_is_refused_is_one_line(file: str, given: list[str], says: str, capsys: Capture) -> None:
    assert main(["run", file, *LAUNCH, *given]) == 2
    captured = capsys.readouterr()
    assert re.search(says, captured.err) and captured.out == "" and captured.err.count("\n") == 1


def test_what_cannot_be_written_is_said(file: str, tmp_path: Path, capsys: Capture) -> None:
    assert main(["run", file, *LAUNCH, *ARGS, "--save", str(tmp_path / "none" / "out.npz")]) == 2
    assert "out.npz cannot be written: No such file" in capsys.readouterr().err
