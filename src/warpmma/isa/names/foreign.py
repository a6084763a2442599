"""Names from CUDA C++ and machine code, and the PTX that they correspond to, for messages about mnemonics.

Sources: the PTX that nvcc 13.0 emits for each CUDA C++ name on sm_90a; the machine instructions that ptxas 13.0 emits
for each `mma` and each approximate function (docs/specification/lowering.md 2 and 3); for the others, NVIDIA's CUDA
Binary Utilities, "Instruction Set Reference".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from ..grammar import Grammar
from ..tables import MMA, WGMMA

_ROUNDED = {"rn": "rn", "rz": "rz", "ru": "rp", "rd": "rm"}  # CUDA's suffixes in PTX

CUDA: Mapping[str, str] = MappingProxyType({
    "__syncthreads": "bar.sync",
    "__syncthreads_and": "bar.red.and.pred",
    "__syncthreads_or": "bar.red.or.pred",
    "__syncthreads_count": "bar.red.popc.u32",
    "__syncwarp": "bar.warp.sync",
    **{
        f"__shfl{name}{sync}": f"shfl.sync.{mode}.b32"
        for name, mode in (("", "idx"), ("_up", "up"), ("_down", "down"), ("_xor", "bfly"))
        for sync in ("_sync", "")
    },
    **{
        f"__{name}{sync}": f"vote.sync.{mode}"
        for name, mode in (("ballot", "ballot.b32"), ("any", "any.pred"), ("all", "all.pred"))
        for sync in ("_sync", "")
    },
    "__activemask": "activemask.b32",
    "__match_any_sync": "match.any.sync.b32",
    "__match_all_sync": "match.all.sync.b32",
    **{f"__reduce_{op}_sync": f"redux.sync.{op}.s32" for op in ("add", "min", "max")},
    **{f"__reduce_{op}_sync": f"redux.sync.{op}.b32" for op in ("and", "or", "xor")},
    "__ldg": "ld.global.nc.b32",
    **{f"__ld{how}": f"ld.global.{how}.b32" for how in ("ca", "cg", "cs", "lu", "cv")},
    **{f"__st{how}": f"st.global.{how}.b32" for how in ("wb", "cg", "cs", "wt")},
    **{
        f"__h{op}{two}{suffix}": f"{op}{'.rn' * bool(suffix)}.f16{two and 'x2'}"
        for op in ("add", "sub", "mul") for two in ("", "2") for suffix in ("", "_rn")
    },
    **{
        f"__h{name}{two}": f"{op}.f16{two and 'x2'}"
        for name, op in (("fma", "fma.rn"), ("max", "max"), ("min", "min"), ("neg", "neg"), ("abs", "abs"))
        for two in ("", "2")
    },
    "__hfma_relu": "fma.rn.relu.f16",
    "__hfma2_relu": "fma.rn.relu.f16x2",
    "__float2half": "cvt.rn.f16.f32",
    "__float2half_rn": "cvt.rn.f16.f32",
    "__float2half_rz": "cvt.rz.f16.f32",
    "__half2float": "cvt.f32.f16",
    "__floats2half2_rn": "cvt.rn.f16x2.f32",
    "__float22half2_rn": "cvt.rn.f16x2.f32",
    "__float2bfloat16": "cvt.rn.bf16.f32",
    "__float2bfloat16_rn": "cvt.rn.bf16.f32",
    "__bfloat162float": "cvt.f32.bf16",
    "__floats2bfloat162_rn": "cvt.rn.bf16x2.f32",
    "__float22bfloat162_rn": "cvt.rn.bf16x2.f32",
    "__nv_cvt_float_to_fp8": "cvt.rn.satfinite.e4m3x2.f32",
    "__nv_cvt_float2_to_fp8x2": "cvt.rn.satfinite.e4m3x2.f32",
    **{
        f"__{letter}{op}_{suffix}": f"{op}.{mode}.{type_}"
        for letter, type_ in (("f", "f32"), ("d", "f64")) for op in ("add", "sub", "mul", "div", "rcp", "sqrt")
        for suffix, mode in _ROUNDED.items()
    },
    **{f"__fmaf_{suffix}": f"fma.{mode}.f32" for suffix, mode in _ROUNDED.items()},
    **{f"__fma_{suffix}": f"fma.{mode}.f64" for suffix, mode in _ROUNDED.items()},
    **{
        f"__float2{name}_{suffix}": f"cvt.{mode}i.{type_}.f32"
        for name, type_ in (("int", "s32"), ("uint", "u32")) for suffix, mode in _ROUNDED.items()
    },
    **{
        f"__{name}2float_{suffix}": f"cvt.{mode}.f32.{type_}"
        for name, type_ in (("int", "s32"), ("uint", "u32")) for suffix, mode in _ROUNDED.items()
    },
    "fmaf": "fma.rn.f32",
    "fmaxf": "max.f32",
    "fminf": "min.f32",
    "fabsf": "abs.f32",
    "__saturatef": "cvt.sat.f32.f32",
    "__expf": "ex2.approx.f32, after a multiplication",
    "__exp10f": "ex2.approx.f32, after a multiplication",
    "exp2f": "ex2.approx.f32",
    "__logf": "lg2.approx.f32, before a multiplication",
    "__log10f": "lg2.approx.f32, before a multiplication",
    "__log2f": "lg2.approx.f32",
    "__powf": "lg2.approx.f32, a multiplication and ex2.approx.f32",
    "__sinf": "sin.approx.f32",
    "__cosf": "cos.approx.f32",
    "__tanf": "sin.approx.f32, divided by cos.approx.f32 with div.approx.f32",
    "__tanhf": "tanh.approx.f32",
    "__fdividef": "div.approx.f32",
    "fdividef": "div.rn.f32",
    "sqrtf": "sqrt.rn.f32",
    "rsqrtf": "rsqrt.approx.f32",
    **{
        name: f"{ptx} with -use_fast_math{around}, else many instructions"
        for name, ptx, around in (
            ("expf", "ex2.approx.ftz.f32", " and a multiplication before"),
            ("exp10f", "ex2.approx.ftz.f32", " and a multiplication before"),
            ("logf", "lg2.approx.ftz.f32", " and a multiplication after"),
            ("log10f", "lg2.approx.ftz.f32", " and a multiplication after"),
            ("log2f", "lg2.approx.ftz.f32", ""),
            ("sinf", "sin.approx.ftz.f32", ""),
            ("cosf", "cos.approx.ftz.f32", ""),
            ("tanhf", "tanh.approx.f32", ""),
        )
    },
    "htanh_approx": "tanh.approx.f16",
    "h2tanh_approx": "tanh.approx.f16x2",
    **{f"h{op}": f"{op}.approx.ftz.f32, between two cvt" for op in ("rcp", "rsqrt", "sqrt")},
    "__popc": "popc.b32",
    "__popcll": "popc.b64",
    "__clz": "clz.b32",
    "__brev": "brev.b32",
    "__brevll": "brev.b64",
    "__byte_perm": "prmt.b32",
    "__funnelshift_l": "shf.l.wrap.b32",
    "__funnelshift_r": "shf.r.wrap.b32",
    "__funnelshift_lc": "shf.l.clamp.b32",
    "__funnelshift_rc": "shf.r.clamp.b32",
    "__dp4a": "dp4a.s32.s32",
    "__mulhi": "mul.hi.s32",
    "__umulhi": "mul.hi.u32",
    "__nanosleep": "nanosleep.u32",
    "__trap": "trap",
    "__threadfence": "membar.gl",
    "__threadfence_block": "membar.cta",
    "__threadfence_system": "membar.sys",
    **{f"atomic{op}": f"atom.global.{op.lower()}" for op in ("Add", "Min", "Max", "And", "Or", "Xor", "CAS", "Exch")},
    "__pipeline_memcpy_async": "cp.async.ca.shared.global",
    "__pipeline_commit": "cp.async.commit_group",
    "__pipeline_wait_prior": "cp.async.wait_group",
    "memcpy_async": "cp.async.ca.shared.global",
    "load_matrix_sync": "wmma.load",
    "mma_sync": "wmma.mma (two mma.sync of its types)",
    "store_matrix_sync": "wmma.store",
})  # fmt: skip
"""Functions of CUDA C++ with their PTX; if a function has several types, that of 32 bits."""

_HOST = re.compile(r"cuda[A-Z]\w*|cu[A-Z]\w*|cublas\w*|cudnn\w*")
_LIBRARY = re.compile(r"__(nv|nvvm)_\w+|llvm\.nvvm\.\S+")
_PYTHON = re.compile(r"(torch|np|numpy|scipy|jnp|jax|math|tl|triton|libdevice|cupy|cute|cutlass|F)\.\w\S*")
_MANY = re.compile(r"__frsqrt_rn|h2?(exp(2|10)?|log(2|10)?|sin|cos|tanh)|exp(2|10)?|log|pow|powf|tanf|erff?")

MACHINE: Mapping[str, str] = MappingProxyType({
    **{
        f"{name}.16.{m}88{n and f'.{n}'}": f"{op}.sync.aligned.m8n8.x{n or 1}{trans}.shared.b16"
        for name, op in (("LDSM", "ldmatrix"), ("STSM", "stmatrix"))
        for m, trans in (("M", ""), ("MT", ".trans")) for n in ("", "2", "4")
    },
    "LDSM": "ldmatrix",
    "STSM": "stmatrix",
    "MOVM": "movmatrix.sync.aligned.m8n8.trans.b16",
    "LDG": "ld.global",
    "STG": "st.global",
    "LDS": "ld.shared",
    "STS": "st.shared",
    "LDL": "ld.local",
    "STL": "st.local",
    "LDC": "ld.const",
    "LD": "ld",
    "ST": "st",
    "LDGSTS": "cp.async",
    "LDGDEPBAR": "cp.async.commit_group",
    "DEPBAR": "cp.async.wait_group",
    "BAR": "bar.sync",
    "BAR.ARV": "bar.arrive",
    "BAR.RED": "bar.red",
    "WARPSYNC": "bar.warp.sync",
    "SHFL": "shfl.sync",
    **{f"SHFL.{mode.upper()}": f"shfl.sync.{mode}.b32" for mode in ("idx", "up", "down", "bfly")},
    "VOTE": "vote.sync",
    "MATCH": "match.any.sync",
    "REDUX": "redux.sync",
    "MUFU": "rcp.approx.ftz.f32, or another approximate function",
    "MUFU.EX2": "ex2.approx.ftz.f32",
    "MUFU.EX2.F16": "ex2.approx.f16",
    "MUFU.EX2.F16x2": "ex2.approx.f16x2",
    "MUFU.EX2.BF16": "ex2.approx.ftz.bf16",
    "MUFU.EX2.BF16x2": "ex2.approx.ftz.bf16x2",
    "MUFU.LG2": "lg2.approx.ftz.f32",
    "MUFU.RCP": "rcp.approx.ftz.f32",
    "MUFU.RCP64H": "rcp.approx.ftz.f64",
    "MUFU.RSQ": "rsqrt.approx.ftz.f32",
    "MUFU.RSQ64H": "rsqrt.approx.ftz.f64",
    "MUFU.SQRT": "sqrt.approx.ftz.f32",
    "MUFU.SIN": "sin.approx.ftz.f32, of an angle in turns",
    "MUFU.COS": "cos.approx.ftz.f32, of an angle in turns",
    "MUFU.TANH": "tanh.approx.f32",
    "MUFU.TANH.F16": "tanh.approx.f16",
    "MUFU.TANH.BF16": "tanh.approx.bf16",
    "FADD": "add.rn.f32",
    "FMUL": "mul.rn.f32",
    "FFMA": "fma.rn.f32",
    "FMNMX": "min.f32 or max.f32",
    "DADD": "add.rn.f64",
    "DMUL": "mul.rn.f64",
    "DFMA": "fma.rn.f64",
    "HADD2": "add.rn.f16x2",
    "HMUL2": "mul.rn.f16x2",
    "HFMA2": "fma.rn.f16x2",
    "IADD3": "add.s32",
    "IMAD": "mad.lo.s32",
    "IMAD.WIDE": "mad.wide.s32",
    "LOP3": "lop3.b32",
    "SHF": "shf",
    "PRMT": "prmt.b32",
    "SEL": "selp.b32",
    "FSEL": "selp.f32",
    "ISETP": "setp",
    "FSETP": "setp",
    **dict.fromkeys(("F2F", "F2I", "I2F", "F2FP"), "cvt"),
    "F2FP.F16.F32.PACK_AB": "cvt.rn.f16x2.f32",
    "F2FP.BF16.F32.PACK_AB": "cvt.rn.bf16x2.f32",
    "POPC": "popc.b32",
    "BREV": "brev.b32",
    "FLO": "bfind",
    "IDP": "dp4a",
    **dict.fromkeys(("ATOM", "ATOMG"), "atom.global"),
    "ATOMS": "atom.shared",
    **dict.fromkeys(("RED", "REDG"), "red.global"),
    "MEMBAR": "membar",
    "S2R": "mov.u32 of a special register",
    "SYNCS": "mbarrier",
    "UTMALDG": "cp.async.bulk.tensor",
    "UTMASTG": "cp.async.bulk.tensor",
    "UBLKCP": "cp.async.bulk",
    "WARPGROUP.ARRIVE": "wgmma.fence",
    "WARPGROUP.DEPBAR": "wgmma.wait_group",
    "ELECT": "elect.sync",
    "USETMAXREG": "setmaxnreg",
    "LDTM": "tcgen05.ld",
    "STTM": "tcgen05.st",
    **dict.fromkeys(("UTCHMMA", "UTCQMMA", "UTCIMMA", "UTCOMMA"), "tcgen05.mma"),
    **dict.fromkeys(("HMMA", "IMMA", "QMMA", "OMMA", "DMMA", "BMMA"), "mma.sync.aligned"),
    **dict.fromkeys(("HGMMA", "IGMMA", "QGMMA", "BGMMA"), "wgmma.mma_async"),
})  # fmt: skip
"""Names of machine instructions, or prefixes of names, with the PTX that they implement."""


def ptx_of(name: str) -> tuple[str, str] | None:
    """Return the language of a name, and its PTX; None if it is neither CUDA C++ nor machine code.

    Examples
    --------
    >>> ptx_of("__shfl_xor_sync")
    ('CUDA C++', 'shfl.sync.bfly.b32')
    >>> ptx_of("HMMA.16816.F32.BF16")
    ('machine code', 'mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32')
    >>> ptx_of("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    """
    function = _function(name)
    if function in CUDA:
        return "CUDA C++", CUDA[function]
    opcode, *words = name.split(".")
    starts = [".".join([opcode, *words[:n]]) for n in range(len(words), -1, -1)]
    known = next((MACHINE[start] for start in starts if start in MACHINE), None)
    return ("machine code", matrix(opcode, words) or known) if known else None


def no_instruction(name: str) -> str | None:
    """Describe a function that does not correspond to a PTX instruction.

    Examples
    --------
    >>> no_instruction("erff"), no_instruction("torch.exp")
    ('a function of many instructions', 'a function of Python, not an instruction')
    """
    if _HOST.match(name):
        return "a function of the host, not of a kernel"
    if _PYTHON.match(name):
        return "a function of Python, not an instruction"
    if _MANY.fullmatch(_function(name)):
        return "a function of many instructions"
    return "a function of a library, not an instruction" if _LIBRARY.match(name) else None


def _function(name: str) -> str:
    """Return a function's name without namespaces and parentheses."""
    return re.split(r"[(<]", name)[0].rpartition("::")[2]


# Matrix instructions of machine code: the words of a name give the shape, then the types that the opcode does not
# determine (docs/specification/lowering.md 2).

_SHAPE = re.compile(r"(\d+)x(\d+)x(\d+)|(16|8)(8)(\d+)")
_FP8 = ("e4m3", "e5m2")
_TYPES = ("f16", "f32", "bf16", "tf32", *_FP8, "e3m2", "e2m3", "e2m1", "s8", "u8", "s4", "u4")


def matrix(opcode: str, words: list[str]) -> str | None:
    """Return the mnemonic of a matrix instruction, if its words determine one.

    For a sparse one this is the mnemonic with `::ordered_metadata`; if several kinds of block scaling share one
    machine instruction, the first of them; for `m8n8k4`, whose steps are separate machine instructions, that of
    row.col.

    Examples
    --------
    >>> matrix("HMMA", ["16816", "F32"])
    'mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32'
    >>> matrix("QGMMA", ["64x128x32", "F32", "E4M3", "E4M3"])
    'wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3'
    """
    shape = next((found for found in map(_SHAPE.fullmatch, words) if found), None)
    types = _types(opcode, [word.lower() for word in words if word.lower() in _TYPES])
    if shape is None or types is None:
        return None
    m, n, k = (int(x) for x in shape.groups() if x)
    bit_op = next((word.lower() for word in words if word in ("AND", "XOR")), None)
    fields = {"m": m, "n": n, "k": k, "satfinite": "SAT" in words, "bit_op": bit_op, **types}
    if opcode[1] == "G":
        return None if "SP" in words else _legal(WGMMA, fields)
    fields |= {"sparsity": "sp::ordered_metadata" if "SP" in words else None, "a_layout": "row", "b_layout": "col"}
    return _legal(MMA, fields | _kind(opcode, words, fields))


def _types(opcode: str, words: list[str]) -> dict[str, str] | None:
    """Types of the operands: those that the opcode leaves open are in the words, results before multiplicands."""
    match opcode.replace("GMMA", "MMA"), words:
        case "HMMA", [d, *rest] if d in ("f16", "f32"):
            c = rest.pop(0) if rest and rest[0] in ("f16", "f32") else d
            a, b = (rest * 2)[:2] or ("f16", "f16")
            types = d, a, b, c
        case "IMMA", [a, b]:
            types = "s32", a, b, "s32"
        case (("QMMA" | "OMMA"), [d, a, b]):
            types = d, a, b, d
        case "DMMA", []:
            types = "f64", "f64", "f64", "f64"
        case "BMMA", []:
            types = "s32", "b1", "b1", "s32"
        case _:
            return None
    return dict(zip(("d_type", "a_type", "b_type", "c_type"), types, strict=True))


def _kind(opcode: str, words: list[str], fields: Mapping[str, Any]) -> dict[str, str | None]:
    """`kind`, and for block scaling the number of scales per row and their type."""
    if "SF" in words:
        stype = "ue4m3" if "UE4M3" in words else "ue8m0"
        if opcode == "QMMA":
            return {"kind": "mxf8f6f4", "stype": stype}
        if "4X" in words:
            return {"kind": "mxf4nvf4", "scale_vec": "4X", "stype": stype}
        return {"kind": "mxf4", "stype": stype}
    fp8 = fields["a_type"] in _FP8 and fields["b_type"] in _FP8
    plain = opcode != "QMMA" or (fp8 and not (fields["sparsity"] and fields["d_type"] == "f16"))
    return {"kind": None if plain else "f8f6f4"}


def _legal(grammar: Grammar[Any], fields: Mapping[str, Any]) -> str | None:
    """Print a mnemonic if it is legal."""
    mnemonic = grammar.printed(fields)
    return mnemonic if mnemonic in _mnemonics(grammar) else None


@cache
def _mnemonics(grammar: Grammar[Any]) -> frozenset[str]:
    return frozenset(grammar.legal)
