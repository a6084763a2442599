"""Typical first mistakes with a .cu file, nvcc and no GPU: each message says what to do."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import warpmma as wm
from warpmma import ptx
from warpmma.cli import main
from warpmma.errors import LimitError, OperandError, PtxError, TargetError
from warpmma.machine import HazardError
from warpmma.ptx.names.mangled_names import unmangled

pytestmark = pytest.mark.quick

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
NAMES = ["_Z5saxpyifPfS_", "_ZN3bar4tmplIfEEvPT_", "_ZN3bar4tmplIdEEvPT_", "_ZN3foo4onlyEv", "plain"]
MODULE = HEAD + "".join(f".visible .entry {name}(.param .u64 {name}_param_0) {{ ret; }}\n" for name in NAMES)
DYNAMIC = (
    HEAD
    + """.extern .shared .align 4 .b8 rows[];
.visible .entry k(.param .u64 p)
{ .reg .b32 %r<3>; mov.u32 %r1, rows; st.shared.u32 [%r1+128], 7; ret; }
"""
)


def launched(text: str, *args: Any, **options: Any) -> BaseException:
    entry, device = ptx.load(text)["k"], wm.Device("sm_90")
    with pytest.raises(wm.WarpmmaError) as caught:
        entry.launch(device, 1, 32, list(args), **options)
    return caught.value


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("saxpy", "_Z5saxpyifPfS_"),
        ("_Z5saxpyifPfS_", "_Z5saxpyifPfS_"),
        ("only", "_ZN3foo4onlyEv"),
        ("foo::only", "_ZN3foo4onlyEv"),
        ("plain", "plain"),
    ],
)
def test_an_entry_is_found_by_its_name_in_cpp(name: str, entry: str) -> None:
    module = ptx.load(MODULE)
    assert module[name].name == entry and name in module
    assert list(module) == NAMES


@pytest.mark.parametrize("name", ["tmpl", "bar::tmpl"])
def test_a_name_of_several_entries_is_none(name: str) -> None:
    with pytest.raises(
        KeyError,
        match=rf"'{name}' means 2 entries of <ptx>; say which: _ZN3bar4tmplIfEEvPT_ \(bar::tmpl<float>\), "
        r"_ZN3bar4tmplIdEEvPT_ \(bar::tmpl<double>\)$",
    ):
        ptx.load(MODULE)[name]


@pytest.mark.parametrize("name", ["", "axpy", "::saxpy", "r::tmpl", "saxpyi"])
def test_a_part_of_a_name_is_none(name: str) -> None:
    with pytest.raises(OperandError, match=r"has no entry .*_Z5saxpyifPfS_ \(saxpy\), .*, plain$"):
        ptx.load(MODULE)[name]


def test_many_entries_are_not_all_named() -> None:
    text = HEAD + "".join(f".entry k{i}() {{ ret; }}\n" for i in range(30))
    with pytest.raises(OperandError, match=r"k18, k19 and 10 more$"):
        ptx.load(text)["x"]


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("_Z1kv", "k"),
        ("_ZL6staticv", "static"),
        ("_ZN12_GLOBAL__N_13fooEPf", "foo"),
        ("_ZN6cudapy8__main__4axpyB2v1B4cw51Ef", "cudapy::__main__::axpy"),
        ("_ZN7cutlass6KernelINS_4gemmEEEvT_", "cutlass::Kernel"),
        ("_Z", "_Z"),
        ("_Z99short", "short"),
        ("_Znwm", "_Znwm"),
        ("matmul_kernel", "matmul_kernel"),
    ],
)
def test_unmangled(mangled: str, name: str) -> None:
    assert unmangled(mangled) == name


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "1:1: this is empty"),
        (b" \n\n", "1:1: this is empty"),
        (b"\x7fELF\x02\x01\xff", "is an ELF file .* `cuobjdump -ptx`"),
        (b"P\xedU\xba\x01\x00", "is a fatbin"),
        (b"MZ\x90", "is a Windows program"),
        (b"BC\xc0\xde", "is LLVM bitcode"),
        (MODULE.encode("utf-16"), "is UTF-16"),
        (b"\xfe\xff\x00.", "is UTF-16"),
        (b"#include <cstdio>\n__global__ void k() {}\n", r"is CUDA C\+\+; PTX text is what `nvcc -ptx .* writes"),
        (b'target triple = "nvptx64"\n', "is LLVM IR"),
        (b"tt.func public @k() {\n}\n", "is Triton's IR"),
        (b"import triton\n", "is Python"),
        (b"        /*0000*/ MOV R1, c[0x0][0x28] ;\n", "is machine code as text"),
        (b"hello\n", "1:1: expected a directive"),
    ],
)
def test_what_is_no_ptx(tmp_path: Path, data: bytes, says: str) -> None:
    file = tmp_path / "given"
    file.write_bytes(data)
    with pytest.raises(PtxError, match=says) as caught:
        ptx.load(file)
    assert str(caught.value).startswith(f"{file}:1:1: ")


def test_no_text_at_all() -> None:
    with pytest.raises(PtxError, match="this is empty"):
        ptx.load("")


@pytest.mark.parametrize("data", [MODULE.replace("\n", "\r\n").encode(), b"\xef\xbb\xbf" + MODULE.encode()])
def test_files_of_windows(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "windows.ptx"
    file.write_bytes(data)
    assert ptx.load(file)["saxpy"].launch(wm.Device("sm_90"), 1, 32, [None]).text()


def test_names_of_parameters_are_short() -> None:
    assert repr(ptx.load(MODULE)["saxpy"]) == "<PtxEntry _Z5saxpyifPfS_(.u64 param_0)>"


def test_a_list_for_a_pointer() -> None:
    error = launched(DYNAMIC, [1, 2, 3])
    assert "args[0] of k(.u64 p), .u64 p, is [1, 2, 3] (list); expected an integer of 64 bits" in str(error)
    assert str(error).endswith("or an array: of NumPy, or of the device (device.array)")


def test_an_array_of_another_device() -> None:
    other = wm.Device("sm_90").array(np.zeros(4, np.float32))
    assert "args[0] is <device array 0: float32 (4,) at" in str(error := launched(DYNAMIC, other))
    assert "an array of another device than <Device sm_90" in str(error)


def test_dynamic_shared_memory_that_was_forgotten() -> None:
    error = launched(DYNAMIC, None)
    assert isinstance(error, HazardError) and error.hazard.kind == "bounds"
    assert error.__notes__ == [
        "shared memory of k: 0 bytes that it declares, and 0 that the launch gave it by shared=0"
    ]
    ptx.load(DYNAMIC)["k"].launch(wm.Device("sm_90"), 1, 32, [None], shared=132, hazards={"race": "warn"})


def test_other_errors_do_not_speak_of_shared_memory() -> None:
    text = DYNAMIC.replace(
        "mov.u32 %r1, rows; st.shared.u32 [%r1+128], 7;", "{ .reg .b64 %x; mov.u64 %x, 16; st.global.u32 [%x], 7; }"
    )
    error = launched(text, None)
    assert isinstance(error, HazardError) and not hasattr(error, "__notes__")


def test_a_device_is_no_string() -> None:
    with pytest.raises(
        OperandError, match=r"device is 'sm_90'; expected a warpmma.Device, such as warpmma.Device\('sm_90'\)"
    ):
        ptx.load(MODULE)["plain"].launch("sm_90", 1, 32, [None])  # type: ignore[arg-type]
    with pytest.raises(TargetError, match=r"\(nvcc -arch\), or run it on a device of sm_80"):
        ptx.load(MODULE)["plain"].launch(wm.Device("sm_75"), 1, 32, [None])


def test_hazards_are_words() -> None:
    assert "; or 'error', 'strict', 'warn', 'count' or 'off' for all" in str(launched(DYNAMIC, None, hazards=True))


SPIN = HEAD + ".visible .entry k() { LOOP: bra LOOP; }"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (DYNAMIC, {}),
        (DYNAMIC, {"shared": -1}),
        (DYNAMIC, {"contract": "no"}),
        (DYNAMIC.replace("st.shared", "sst.shared"), {}),
        (SPIN, {"limit": 1000}),
    ],
)
def test_tracebacks_end_at_the_caller(text: str, options: dict[str, Any]) -> None:
    error = launched(text, *([] if text is SPIN else [None]), **options)
    assert isinstance(error, LimitError) == (text is SPIN)
    assert traceback.extract_tb(error.__traceback__)[-1].filename == __file__


@pytest.mark.parametrize("given", ["", "nowhere.ptx", MODULE + "{", HEAD + ".entry k() {", None])
def test_tracebacks_of_loading_end_at_the_caller(given: Any) -> None:
    with pytest.raises(wm.WarpmmaError) as caught:
        ptx.load(given)
    assert traceback.extract_tb(caught.value.__traceback__)[-1].filename == __file__


def test_what_a_function_of_the_caller_raises_ends_there() -> None:
    def failing(done: int, total: int) -> None:
        raise OperandError(f"{done} of {total}")

    text = HEAD + ".visible .entry k() { ret; }"
    error = launched(text, progress=failing)
    assert traceback.extract_tb(error.__traceback__)[-1].name == "failing"


def test_the_command_shows_the_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "cut.ptx"
    file.write_text(HEAD + ".vvisible .entry k() { ret; }\n")
    assert main(["ptx", "check", str(file)]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith(f"warpmma: {file}:4:1: expected a directive") and said[1:] == [
        "  .vvisible .entry k() { ret; }",
        "  ^",
    ]


def test_addresses_of_32_bits_are_refused() -> None:
    with pytest.raises(PtxError, match=r"<ptx>:3:15: addresses of 32 bits are not simulated; 64 are what nvcc makes"):
        ptx.load(MODULE.replace("_size 64", "_size 32"))
