"""Names that are neither targets nor mnemonics: the messages explain them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import needs

import warpmma as wm
from warpmma.errors import MnemonicError, TargetError, WarpmmaError
from warpmma.isa import check_known, explained, near, parse_any, parse_warpgroup
from warpmma.isa.gpus import GPUS, unknown
from warpmma.isa.grammar.vocabulary import ABSENT, OPCODES, SIMULATED
from warpmma.isa.names.foreign import CUDA, MACHINE, matrix, ptx_of
from warpmma.kernel import launch, matrix_move, matrix_moves, operation
from warpmma.operations import operations

F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
NO_KERNELS = "not simulated yet in kernels: compile them for sm_80, where they have mma.sync instead"
WGMMA = "computed by warpmma.matmul(A, B, instruction='wgmma...', target='sm_90a'), and in kernels"


def message(function: Any, *args: Any, **options: Any) -> str:
    with pytest.raises(WarpmmaError) as caught:
        function(*args, **options)
    return str(caught.value)


# Targets.

KINDS = ("sm_{0}f or sm_{0}a for .kind::f8f6f4", "sm_{0}f or sm_{0}a for .kind and block scales")
HOPPER = "is sm_90 (sm_90a for wgmma)"
B200, B300 = f"is sm_100 ({KINDS[0].format(100)})", f"is sm_103 ({KINDS[0].format(103)})"
THOR, RTX, SPARK = (
    f"is sm_{n} ({kinds.format(n)})" for n, kinds in ((110, KINDS[0]), (120, KINDS[1]), (121, KINDS[1]))
)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("V100", "V100 is sm_70"),
        ("Titan V", "Titan V is sm_70"),
        ("Tesla V100-SXM2-16GB", "V100 is sm_70"),
        ("Jetson AGX Xavier", "Xavier is sm_72"),
        ("T4", "T4 is sm_75"),
        ("RTX 2080 Ti", "RTX 2080 is sm_75"),
        ("Quadro RTX 6000", "Quadro RTX 6000 is sm_75"),
        ("A100", "A100 is sm_80"),
        ("NVIDIA A100-SXM4-80GB", "A100 is sm_80"),
        ("A30", "A30 is sm_80"),
        ("A10", "A10 is sm_86"),
        ("A40", "A40 is sm_86"),
        ("RTX 3090", "RTX 3090 is sm_86"),
        ("NVIDIA RTX A6000", "RTX A6000 is sm_86"),
        ("Jetson Orin Nano", "Jetson Orin is sm_87"),
        ("Orin (nvgpu)", "Orin is sm_87"),
        ("L4", "L4 is sm_89"),
        ("L40S", "L40S is sm_89"),
        ("RTX 4090", "RTX 4090 is sm_89"),
        ("rtx4090", "RTX 4090 is sm_89"),
        ("4090", "RTX 4090 is sm_89"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada is sm_89"),
        ("H100", f"H100 {HOPPER}"),
        ("NVIDIA H100 80GB HBM3", f"H100 {HOPPER}"),
        ("h200", f"H200 {HOPPER}"),
        ("B200", f"B200 {B200}"),
        ("GB200", f"GB200 {B200}"),
        ("B300", f"B300 {B300}"),
        ("Jetson AGX Thor", f"Thor {THOR}"),
        ("NVIDIA GeForce RTX 5090", f"RTX 5090 {RTX}"),
        ("NVIDIA GeForce RTX 5070 Ti Laptop GPU", f"RTX 5070 {RTX}"),
        ("RTX PRO 6000 Blackwell Workstation Edition", f"RTX PRO 6000 {RTX}"),
        ("GB10", f"GB10 {SPARK}"),
        ("DGX Spark", f"DGX Spark {SPARK}"),
        ("Hopper", f"Hopper {HOPPER}"),
        ("ampere", "Ampere is sm_80 (A100), sm_86 (RTX 3090) or sm_87 (Jetson Orin)"),
        ("Ada Lovelace", "Ada is sm_89"),
        (
            "Blackwell",
            "Blackwell is sm_100 (B200), sm_103 (B300), sm_110 (Jetson Thor), sm_120 (RTX 5090) or sm_121 (GB10)",
        ),
        ("RTX Blackwell", "RTX Blackwell is sm_120 (RTX 5090) or sm_121 (GB10)"),
        ("RTX 6000", f"Quadro RTX 6000 is sm_75; RTX 6000 Ada is sm_89; RTX PRO 6000 {RTX}"),
        ("P100", "P100 is sm_60, which has no mma: the oldest target that has is sm_70"),
        ("sm_61", "it has no mma: the oldest target that has is sm_70"),
        ("3.5", "it has no mma: the oldest target that has is sm_70"),
    ],
)
def test_names_of_gpus_lead_to_their_target(name: str, says: str) -> None:
    assert message(check_known, name) == f"unknown target {name!r}; {says}. Known are {', '.join(wm.TARGETS)}"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("sm90", "sm_90"), ("SM_90a", "sm_90a"), ("90", "sm_90"), ("90a", "sm_90a"), ("compute_90", "sm_90"),
        ("9.0", "sm_90"), ("cc 9.0", "sm_90"), ("8.0", "sm_80"), ("12.0a", "sm_120a"), ("10.3", "sm_103"),
        (" sm_80", "sm_80"), ("sm_101a", "sm_110a"), ("sm_9", "sm_90"), ("sm_99", "sm_90"), ("sm_8", "sm_80"),
    ],
)  # fmt: skip
def test_other_spellings_lead_to_the_target(name: str, meant: str) -> None:
    assert f"unknown target {name!r}; did you mean {meant!r}? Known are " in message(check_known, name)


@pytest.mark.parametrize("name", ["", "foo", "gfx90a", "MI300X", "Jetson", "rtx", "cuda", "\n", "sm"])
def test_far_names_lead_nowhere(name: str) -> None:
    assert message(check_known, name) == f"unknown target {name!r}. Known are {', '.join(wm.TARGETS)}"


def test_long_names_are_cut() -> None:
    assert message(check_known, "H100 " * 1_000_000).startswith(f"unknown target {'H100 ' * 16!r}...; H100 is sm_90")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ((9, 0), ". Did you mean 'sm_90'?"), ([8, 9], ". Did you mean 'sm_89'?"), (90, ". Did you mean 'sm_90'?"),
        (9.0, ". Did you mean 'sm_90'?"), (None, ""), (True, ""), (7, ""), ((9, 0, 0), ""), (("9", "0"), ""),
    ],
)  # fmt: skip
def test_capabilities_lead_to_the_target(value: object, says: str) -> None:
    assert message(check_known, value) == f"a target is a string such as 'sm_90'; got {value!r}{says}"


@pytest.mark.parametrize("value", [10**5000, (10**5000, 0), np.zeros((30, 40))], ids=["long", "pair", "array"])
def test_what_is_no_name_is_shown_shortly(value: object) -> None:
    assert len(message(check_known, value)) < 300


def test_whoever_takes_a_target_says_so() -> None:
    A, B = np.zeros((16, 16), np.float16), np.zeros((16, 8), np.float16)
    for use in (
        lambda: wm.mma(F16, A, B, target="H100"),
        lambda: wm.matmul(A, B, target="H100"),
        lambda: wm.instructions("H100"),
        lambda: wm.evidence(F16, target="H100"),
        lambda: launch(lambda t: None, 1, 32, [], target="H100"),
        lambda: operation("add.u32", "H100"),
    ):
        with pytest.raises(TargetError, match=r"^unknown target 'H100'; H100 is sm_90 \(sm_90a for wgmma\)\. Known"):
            use()


def test_every_gpu_leads_to_its_own_row() -> None:
    assert [row.target for row in GPUS] == sorted((row.target for row in GPUS), key=lambda t: int(t[3:]))
    for row in GPUS:
        for name in row.names:
            for spelled in (name, name.upper(), name.replace(" ", "-"), f"NVIDIA {name} (80 GB)"):
                assert f"; {name} is {row.meaning}" in unknown(spelled, wm.TARGETS), spelled
    plain = {target for target in wm.TARGETS if target[-1] not in "af"}
    named = {row.target for row in GPUS if int(row.target[3:]) >= 70}
    assert {row.target for row in GPUS if not row.older} == named  # the others' targets name their generation
    assert plain - named == {"sm_88"} and named <= plain  # no GPU in NVIDIA's lists is sm_88


def test_what_suffixes_add_is_so() -> None:
    for row in GPUS:
        suffixed = [target for target in wm.TARGETS if target in (f"{row.target}f", f"{row.target}a")]
        assert all(target in row.suffixed for target in suffixed), row
        kinds = {
            target: {i.kind for i in set(wm.instructions(target)) - set(wm.instructions(row.target))}
            for target in suffixed
        }
        if row.target == "sm_90":
            assert kinds == {"sm_90a": set()} and row.suffixed.endswith("for wgmma")
        for target in suffixed if "Blackwell" in row.generation else ():
            assert (kinds[target] == {"f8f6f4"}) == row.suffixed.endswith("for .kind::f8f6f4")
            assert ("mxf4" in kinds[target]) == row.suffixed.endswith("for .kind and block scales")


# Mnemonics.


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("foo", ""),
        ("", ""),
        ("é", ""),
        ("txq.width.b32", "txq is PTX, not simulated yet"),
        ("sqrt.rn.f32", "sqrt is PTX, for kernels: warpmma.kernel"),
        ("div.s32", "div is PTX, for kernels: warpmma.kernel"),
        ("tcgen05.mma.cta_group::1.kind::f16", f"tcgen05 is PTX, {NO_KERNELS}"),
        ("bar.red.and.pred", "bar is PTX, for kernels: warpmma.kernel"),
        ("tcgen05.wait::ld.sync.aligned", f"tcgen05 is PTX, {NO_KERNELS}"),
        ("multimem.st.global.f32", "multimem is PTX, not simulated yet"),
        ("MMA.SYNC.ALIGNED", "PTX is written in small letters"),
        ("__syncthreads", "this is CUDA C++; in PTX it is bar.sync, for kernels: warpmma.kernel"),
        ("__syncthreads();", "this is CUDA C++; in PTX it is bar.sync, for kernels: warpmma.kernel"),
        ("atomicAdd", "this is CUDA C++; in PTX it is atom.global.add, for kernels: warpmma.kernel"),
        (
            "__expf",
            "this is CUDA C++; in PTX it is ex2.approx.f32, after a multiplication, for kernels: warpmma.kernel",
        ),
        (
            "nvcuda::wmma::mma_sync",
            "this is CUDA C++; in PTX it is wmma.mma (two mma.sync of its types), for kernels: warpmma.kernel",
        ),
        ("wmma::load_matrix_sync", "this is CUDA C++; in PTX it is wmma.load, for kernels: warpmma.kernel"),
        ("cudaMemcpyAsync", "this is a function of the host, not of a kernel"),
        ("__nv_expf", "this is a function of a library, not an instruction"),
        ("HMMA.16816.F32", f"this is machine code; in PTX it is {F16}"),
        ("HMMA", "this is machine code; in PTX it is mma.sync.aligned"),
        ("MUFU.EX2", "this is machine code; in PTX it is ex2.approx.ftz.f32, for kernels: warpmma.kernel"),
        ("BAR.SYNC.DEFER_BLOCKING", "this is machine code; in PTX it is bar.sync, for kernels: warpmma.kernel"),
        (
            "LDSM.16.MT88.4",
            "this is machine code; in PTX it is ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16, "
            "for kernels: warpmma.kernel",
        ),
        (
            "QGMMA.64x128x32.F32.E4M3.E4M3",
            f"this is machine code; in PTX it is wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3, {WGMMA}",
        ),
    ],
)  # fmt: skip
def test_names_that_are_no_mma_are_explained(name: str, says: str) -> None:
    start = name.rstrip(";").split(".")[0]
    known = f" ({says})" if says else ""
    assert message(wm.parse, name) == f"{name}: starts with {start!r}; expected 'mma'{known}"
    if not start.startswith("wgmma"):
        assert message(parse_any, name) == message(wm.parse, name)


def test_every_parser_names_the_others() -> None:
    wgmma = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
    assert message(wm.parse, wgmma).endswith(f"expected 'mma' (wgmma is PTX, {WGMMA})")
    assert message(wm.parse, "add.rn.f32").endswith("expected 'mma' (add is PTX, for kernels: warpmma.kernel)")
    assert message(parse_warpgroup, F16).endswith("expected 'wgmma.mma_async' (mma is PTX, read by warpmma.parse)")
    assert message(operation, F16) == f"{F16!r} is not a simulated operation: mma is PTX, read by warpmma.parse"
    says = "is not a simulated ldmatrix or stmatrix: add is PTX, for kernels: warpmma.kernel"
    assert message(matrix_move, "add.u32").endswith(says)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("foo", ""),
        ("foo.f32", ""),
        ("shfl.what", ""),
        ("txq.width.b32", ": txq is PTX, not simulated yet"),
        ("__hfma2", ": this is CUDA C++; in PTX it is fma.rn.f16x2"),
        ("__shfl_xor_sync", ": this is CUDA C++; in PTX it is shfl.sync.bfly.b32"),
        ("HMMA.16816.F32", f": this is machine code; in PTX it is {F16}"),
        ("ad.u32", ". Nearest: add.u32"),
        ("shlf.sync.bfly.b32", ". Nearest: shfl.sync.bfly.b32"),
    ],
)
def test_names_that_are_no_operation_are_explained(name: str, says: str) -> None:
    assert message(operation, name) == f"{name!r} is not a simulated operation{says}"
    in_a_kernel = message(lambda: launch(lambda t: t(name), 1, 32, [], target="sm_90"))
    assert in_a_kernel == message(operation, name)


@pytest.mark.parametrize("name", ["multimem.st.global.f32", "tex.2d.v4.f32.f32", "tcgen05.wait::ld.sync.aligned"])
def test_what_kernels_lack_is_not_called_wrong(name: str) -> None:
    says = message(lambda: launch(lambda t: t(name), 1, 32, [], target="sm_90a"))
    assert "not simulated" in says or "expected cp.async.ca" in says


@pytest.mark.parametrize("value", [None, 3, [], {}, b"add.u32", np.zeros(3)])
def test_what_is_no_string_is_no_operation(value: Any) -> None:
    for use in (operation, matrix_move):
        with pytest.raises(MnemonicError, match=r"^a mnemonic is a string, such as"):
            use(value)


@pytest.mark.parametrize(
    ("mnemonic", "says"),
    [
        ("mma", "mma: needs .sync; got none"),
        ("mma.foo", "mma.foo: unknown qualifier '.foo'"),
        ("mma.sync.aligned", "mma.sync.aligned: needs one shape, such as .m16n8k16; got none"),
        (F16.replace("row", "xyz"), f"{F16.replace('row', 'xyz')}: unknown qualifier '.xyz'. Nearest legal: {F16}"),
    ],
)
def test_only_what_is_near_is_suggested(mnemonic: str, says: str) -> None:
    assert message(wm.parse, mnemonic) == says


# The tables.


def test_opcodes_are_those_that_are_simulated() -> None:
    door = {opcode: name for opcode, name in SIMULATED.items() if name in ("operation", "move")}
    assert {str(row).split(".")[0] for row in operations()} == {o for o, name in door.items() if name == "operation"}
    assert {str(row).split(".")[0] for row in matrix_moves()} == {o for o, name in door.items() if name == "move"}
    for name in ABSENT:
        assert name.split(".")[0] in OPCODES and name not in SIMULATED
        with pytest.raises(MnemonicError):
            wm.parse(name)
        with pytest.raises(WarpmmaError):
            launch(lambda t, name=name: t(name), 1, 32, [], target="sm_90a")


@needs("ptxas")
def test_opcodes_are_those_of_ptxas(tmp_path: Path) -> None:
    """ptxas names what is no opcode; it knows some only with what follows them."""
    followed = {
        "brx": "idx", "clusterlaunchcontrol": "try_cancel.async", "cp": "async", "createpolicy": "fractional",
        "mad24": "lo", "madc": "lo", "mbarrier": "init", "mul24": "lo", "multimem": "red", "setmaxnreg": "inc",
        "shf": "l", "suld": "b", "sured": "b", "sust": "b", "tcgen05": "mma", "tensormap": "replace",
        "wgmma": "mma_async", "wmma": "mma",
    }  # fmt: skip
    lines = [f"{name}.{followed[name]} %r1;" if name in followed else f"{name}.zzz %r1;" for name in [*OPCODES, "foo"]]
    source = tmp_path / "opcodes.ptx"
    header = ".version 9.0\n.target sm_100a\n.address_size 64\n.entry k() {\n"
    source.write_text(header + "\n".join(lines) + "\n}\n")
    done = subprocess.run(["ptxas", "-arch=sm_100a", source, "-o", "/dev/null"], capture_output=True, text=True)
    assert re.findall(r"Not a name of any known instruction: '(.+?)'", done.stderr) == ["foo"]


def test_what_foreign_names_mean_is_what_is_said() -> None:
    """PTX that is said to be simulated is, and the rest is not; both are named with an opcode of PTX."""
    rows = {str(row) for row in operations()} | {str(row) for row in matrix_moves()}
    for name, ptx in {**CUDA, **MACHINE}.items():
        mnemonic = re.split(r"[, ]", ptx)[0]
        door = SIMULATED.get(mnemonic.split(".")[0])
        absent = any(mnemonic == start or mnemonic.startswith(f"{start}.") for start in ABSENT)
        assert door is not None or absent, name
        says = explained(name, "access")
        assert (says.endswith(", not simulated yet") or ("matmul" not in says and NO_KERNELS in says)) == absent, name
        whole = re.search(r"\.([bsu](16|32|64)|b?f(16|32|64)(x2)?|pred)$", mnemonic) is not None
        if whole and not absent and door in ("operation", "move"):
            assert mnemonic in rows, name
        elif whole and not absent:
            assert "is not simulated" not in message(launch, lambda t, m=mnemonic: t(m), 1, 32, [], target="sm_90a")


@pytest.mark.parametrize(
    ("name", "mnemonic"),
    [
        ("HMMA.884.F32.F16.STEP2", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f16"),
        ("HMMA.1688.F16", "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16"),
        ("HMMA.16816.F32.BF16", "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"),
        ("HMMA.1684.F32.TF32", "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32"),
        ("HMMA.SP.16832.F32", "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"),
        ("IMMA.8816.U8.S8", "mma.sync.aligned.m8n8k16.row.col.s32.u8.s8.s32"),
        ("IMMA.16864.S4.U4.SAT", "mma.sync.aligned.m16n8k64.row.col.satfinite.s32.s4.u4.s32"),
        ("IMMA.SP.16864.S8.S8", "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32"),
        ("QMMA.16832.F32.E4M3.E5M2", "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32"),
        ("QMMA.16832.F16.E2M1.E4M3", "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f16.e2m1.e4m3.f16"),
        (
            "QMMA.SF.16832.F32.E2M3.E3M2.E8",
            "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e2m3.e3m2.f32.ue8m0",
        ),
        (
            "QMMA.SP.16864.F16.E4M3.E4M3",
            "mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f16.e4m3.e4m3.f16",
        ),
        (
            "OMMA.SF.16864.F32.E2M1.E2M1.UE4M3.4X",
            "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue4m3",
        ),
        (
            "OMMA.SF.SP.168128.F32.E2M1.E2M1.E8",
            "mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0",
        ),
        ("DMMA.884", "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"),
        ("DMMA.16x8x16", "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64"),
        ("BMMA.168256.XOR.POPC", "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc"),
        ("HGMMA.64x128x16.F32.BF16", "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16"),
        ("IGMMA.64x256x32.S8.U8.SAT", "wgmma.mma_async.sync.aligned.m64n256k32.satfinite.s32.s8.u8"),
        ("BGMMA.64x64x256.AND.POPC", "wgmma.mma_async.sync.aligned.m64n64k256.s32.b1.b1.and.popc"),
    ],
)
def test_machine_code_leads_to_its_mnemonic(name: str, mnemonic: str) -> None:
    """Names in ptxas 13.0's code of these mnemonics (those of wgmma in published listings)."""
    assert ptx_of(name) == ("machine code", mnemonic)
    assert str(parse_any(mnemonic)) == mnemonic


@pytest.mark.parametrize(
    "name",
    [
        "HMMA.16832.F32", "HMMA.16816", "HMMA.16816.S8.S8", "HMMA.16816.F32.SAT", "HMMA.F32", "QMMA.16816.F32.E4M3",
        "IMMA.16816.S8.U4", "OMMA.16864.F32.E2M1.E2M1", "DMMA.16x8x32", "BMMA.168256.POPC", "HGMMA.64x12x16.F32",
        "HGMMA.64x64x32.F32", "HGMMA.SP.64x128x32.F32", "BGMMA.64x64x256",
    ],
)  # fmt: skip
def test_machine_code_that_does_not_say_enough_has_no_mnemonic(name: str) -> None:
    opcode, *words = name.split(".")
    assert matrix(opcode, words) is None
    assert explained(name, "mma").split("in PTX it is ")[1].split(",")[0] in ("mma.sync.aligned", "wgmma.mma_async")


def test_near() -> None:
    legal = ["add.f32", "add.rn.f32", "cvt.f32.f16", "cvt.rn.f16.f32"]
    assert near("cvt.f16.f32.rn", legal) == "cvt.rn.f16.f32"
    assert near("cvt.f32.f61", legal) == "cvt.f32.f16"
    assert near("ad.f32", legal) == "add.f32"
    assert near("sub.f32", legal) is near("", legal) is near("add", []) is None
