"""What exists can be asked without NumPy: instructions, targets, layouts and formats, in processes that have none."""

from __future__ import annotations

import subprocess
import sys

import pytest

BEGIN = """
import sys
sys.modules["numpy"] = sys.modules["ml_dtypes"] = None
import warpmma as wm
from warpmma import errors, formats, isa, layouts, registers
F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
F8 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0"
"""

USES = {
    "parse and print": """
for i in (*wm.instructions(), *isa.warpgroup_instructions()):
    assert isa.parse_any(str(i)) is i or isa.parse_any(str(i)) == i
    assert i.targets and i.ptx and i.family
""",
    "list": """
assert len(wm.instructions("sm_90a")) == 198 and isa.TARGETS["sm_90a"].generation
assert set(wm.TARGETS) == set(isa.TARGETS) and isa.since("sm_120f")
""",
    "find": """
assert F16 in map(str, wm.find(target="sm_80", a="f16"))
""",
    "explain": """
for wrong in ("HMMA.16816.F32", "mma.sync.aligned.m16n8k61.row.col.f32.f16.f16.f32", "sm_80"):
    try:
        wm.parse(wrong)
    except wm.MnemonicError as error:
        assert wrong in str(error)
    else:
        raise SystemExit(wrong)
assert "did you mean 'sm_90'" in str(caught(lambda: isa.check_known("sm_91")))
""",
    "look up": """
i = wm.parse(F16)
layout = i.layout("A")
assert layout.locate(3, 5) == (14, 0, 16) and layout.shape == (16, 16) and layout.registers == 4
assert layout.formulas()["row"] == "groupID + ((i >> 1) & 0x1) * 8"
places = {layout.locate(row, column) for row in range(16) for column in range(16)}
assert places == {(lane, register, bit) for lane in range(32) for register in range(4) for bit in (0, 16)}
assert i.layout("B").words().registers == 2
assert "expected a row of 0 to 15" in str(caught(lambda: layout.locate(16, 0)))
""",
    "layouts of every instruction": """
for i in wm.instructions():
    for operand in layouts.OPERANDS:
        layout = i.layout(operand)
        last = layout.locate(layout.shape[-2] - 1, layout.shape[-1] - 1, layout.matrices - 1)
        assert last[1] < layout.registers and layout.packing.per_register and i.packing(operand).mask
""",
    "places and words of every kind": """
for i in (*wm.instructions(), *isa.warpgroup_instructions()[::20]):
    sparse, scaled = i.sparse, i.block_scale
    for operand in ("A", "C", "D", *["B"] * (i.m < 64), *["metadata"] * sparse, *["scale_a", "scale_b"] * scaled):
        for ids in wm.lookup.ids_of(i, operand):
            found = wm.where(i, operand, 1, 0, **ids)
            assert found in wm.what(i, operand, lane=found.lane, register=found.register)
            parts = wm.lookup.read_word(i, operand, 0x44444444, lane=found.lane, register=found.register)
            assert found in [part.cell for part in parts] and all(part.meaning for part in parts)
for i in isa.fragment_instructions()[::11]:
    for operand in i.operands:
        for targets in i.fragments(operand).values():
            found = wm.where(i, operand, 1, 0, target=targets[0])
            chosen = {"lane": found.lane, "register": found.register, "target": targets[0]}
            assert found in wm.what(i, operand, **chosen)
            assert found in [part.cell for part in wm.lookup.read_word(i, operand, 0x44444444, **chosen)]
table = wm.lookup.layout_table(F8, "scale_a")
assert all(getattr(table, form)() for form in layouts.TABLE_FORMATS)
""",
    "formats": """
i = wm.parse(F8)
assert i.format("A").unpack(7) == formats.Number("finite", 0, 3, 1) and i.format("A").largest.significand == 3
assert formats.floating("e4m3").emax == 8 and formats.integer("s8").unpack(0xFF) == -1
assert wm.FORMATS["f16"].nan_code == 0x7FFF
assert "code 16 does not fit 4 bits" in str(caught(lambda: i.format("A").unpack(16)))
assert "a code is an integer" in str(caught(lambda: i.format("A").unpack(1.5)))
assert "no format 'f15'" in str(caught(lambda: wm.FORMATS["f15"]))
""",
    "copies": """
import copy, pickle
i = wm.parse(F16)
for x in (i, i.layout("A"), i.packing("A"), i.format("A")):
    assert pickle.loads(pickle.dumps(x)) == x == copy.deepcopy(x) and repr(x)
""",
}

HELP = """
def caught(call):
    try:
        call()
    except wm.WarpmmaError as error:
        return error
    raise SystemExit("nothing was raised")
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)


@pytest.mark.parametrize("use", USES)
def test_what_exists_needs_no_numpy(use: str) -> None:
    done = run(BEGIN + HELP + USES[use])
    assert not done.returncode, done.stderr


def test_nothing_of_it_loads_numpy_where_it_is_installed() -> None:
    code = BEGIN.replace('sys.modules["numpy"] = sys.modules["ml_dtypes"] = None', "")
    done = run(code + HELP + "".join(USES.values()) + "\nprint(sorted({'numpy', 'ml_dtypes'} & set(sys.modules)))")
    assert done.stdout == "[]\n", done.stderr


@pytest.mark.parametrize("use", ["wm.mma", "wm.parse(F16).layout('A').flat", "wm.FORMATS['f16'].decode([0])"])
def test_what_makes_arrays_says_what_it_lacks(use: str) -> None:
    done = run(BEGIN + use)
    assert done.returncode
    assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: import of numpy halted; None in sys.modules"
