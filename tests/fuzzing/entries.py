"""The fuzz table: every public callable with the ways to call it, and those that are left out with the reason."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

import warpmma as wm
from warpmma import isa, sparsity
from warpmma.formats import FORMATS
from warpmma.kernel import Site, Swizzle, matrix_moves
from warpmma.operations import operations

from . import (
    legal,
    surface,
    table_cuda,
    table_devices,
    table_errors,
    table_execution,
    table_files,
    table_fragments,
    table_front_ends,
    table_gpu,
    table_instructions,
    table_kernel,
    table_lookup,
    table_numbers,
    table_pictures,
    table_ptx,
    table_rows,
    table_tensor_maps,
    table_threads,
    table_warpgroups,
)
from .calls import Entry
from .hostile import Rng, pick

__all__ = ["INNER", "entries", "missing", "surplus"]

_WRITTEN = (
    *table_numbers.ENTRIES, *table_instructions.ENTRIES, *table_execution.ENTRIES, *table_kernel.ENTRIES,
    *table_threads.ENTRIES, *table_rows.ENTRIES, *table_files.ENTRIES, *table_devices.ENTRIES,
    *table_ptx.ENTRIES, *table_cuda.ENTRIES, *table_fragments.ENTRIES,
    *table_warpgroups.ENTRIES, *table_tensor_maps.ENTRIES,
    *table_lookup.ENTRIES, *table_pictures.ENTRIES, *table_errors.ENTRIES,
)  # fmt: skip

INNER: dict[str, str] = {
    **table_cuda.INNER,
    **table_errors.INNER,
    **table_fragments.INNER,
    **table_front_ends.INNER,
    **table_gpu.INNER,
    **table_tensor_maps.INNER,
    **table_warpgroups.INNER,
    "warpmma.isa:check_since": "asked about operands that were bound",
    "warpmma.operations:lowest_version": "asked about rows",
    **dict.fromkeys((f"warpmma.ptx:{x}" for x in ("entries_meant", "source_name")), "for names of entries"),
    **dict.fromkeys(
        ("warpmma.registers:Packing.join", "warpmma.registers:Packing.split"), "for codes and words that are checked"
    ),
    **dict.fromkeys(
        (f"warpmma.products:{x}" for x in (
            "Given", "Product", "Product.flat", "ProductOptions", "choice_of", "computed", "multiply",
            "prepare", "prepared",
        )),
        "`matmul`, in parts",
    ),
    "warpmma.arithmetic:recipe_of": "`recipe` for records that are checked",
    "warpmma.arithmetic.recipes:lowering_of": "`lowering` for records that are checked",
    "warpmma.arithmetic:evidence_of": "`evidence` for records that are checked",
    "warpmma.arithmetic:dot": "`compute` for codes that are checked",
    "warpmma.arithmetic:dot_chain": "`product` for codes that are checked",
    "warpmma.execution:mma_call": "`mma` without computing, for `explain`",
    **dict.fromkeys(
        (f"warpmma.arithmetic:{x}" for x in (
            "NativeRegisters", "NativeRegisters.run", "approximate_reference", "as_fraction", "engine_text",
            "exact_product", "fma64", "folded_divisor", "folded_reference", "fused_steps", "library_note",
            "library_sums", "machine_text", "native_product", "quotient", "quotient_reference", "reference_dot",
            "code_fields", "reference_trace", "resolve", "rounded_step", "run_elements", "runs_elements",
            "special_function_reference", "square_root", "square_root_reference", "squarer", "sum_to_odd",
            "take_rows", "warn_of_numpy",
        )),
        "for rooms above, which check"
    ),
    **dict.fromkeys(
        (f"warpmma.arithmetic:{x}" for x in (
            "ApproximateForm", "ElementForm", "FloatChains", "FmaChain", "FusedDotAdd", "GroupedDotAdd", "IntegerSum",
            "Interpolator", "Interpolator.scaled_rows", "Interpolator.sum", "LibrarySums", "LibrarySums.__str__",
            "Popcount", "Recipe", "SpecialFunction",
            "Squarer",
            "Squarer.square", "interpolators",
        )),
        "parameters of arithmetic; what takes them checks them",
    ),
    "warpmma.arithmetic:ApproximateForm": "a row of `SEQUENCES`, with names of rows for what it takes",
    **dict.fromkeys(
        (f"warpmma.arithmetic:{x}{member}" for x in ("Addend", "SumStep") for member in ("", ".__getstate__")),
        "what a trace holds",
    ),
    **dict.fromkeys(
        (f"warpmma.analysis:{x}{member}" for x in ("ChainLink", "Explanation") for member in ("", ".__getstate__")),
        "made by `explain`",
    ),
    **dict.fromkeys(
        (f"warpmma.isa:Gpus{x}" for x in ("", ".generation", ".meaning")), "a row of `GPUS`, read by messages and lists"
    ),
    "warpmma.analysis:bounds": "of a product that `prepare` has checked",
    "warpmma.analysis:FirstDifference": "made by `explain`",
    "warpmma.analysis:ulp_at": "of a format, at a rational number, for rooms above",
    **dict.fromkeys((f"warpmma.analysis:Explanation.{x}" for x in ("__str__", "json", "svg", "text")), "tests/show"),
    "warpmma.operations:float_code": "for rooms above, which check",
    **{x: "tests/isa/test_signatures.py prints all of them" for x in surface.callables() if x.endswith(".statement")},
    **dict.fromkeys(
        (f"warpmma.isa:{x}" for x in (
            "OperandSpec", "OperandSpec.__str__", "OperandSpec.accepts", "OperandSpec.allowed", "OperandSpec.declared",
            "OperandSpec.expected", "OperandSpec.problem", "OperandSpec.text", "address", "numbered", "packed",
            "present", "printed", "register_type", "value",
        )),
        "signatures, for tables, which prove them",
    ),
    "warpmma.kernel:Operation.carriage": "for the machine, which has masks of the shapes that it takes",
    "warpmma.kernel:Operation.for_target": "for rows that a front end runs on a target that it has checked",
    **dict.fromkeys(
        (f"warpmma.arithmetic:Lowering.{x}" for x in ("__str__", "fits", "fits_in_group", "meets", "within")),
        "how rows are looked up, for records that are checked",
    ),
    **dict.fromkeys(
        (f"warpmma.sparsity:{x}" for x in (
            "SparseA", "sparse_a", "stored_columns", *(f"SparseA.{x}" for x in (
                "batch_of", "check_index", "check_nibbles", "check_nibbles_on", "check_selector", "check_words",
                "check_words_on", "compress", "expand", "groups", "halves", "legal_codes", "nibbles", "pack",
                "positions", "prune", "read", "rows_met",
            )),
        )),
        "for sparse records and arrays, as the public functions hand them on",
    ),
    **dict.fromkeys(
        (f"warpmma.scaling:{x}" for x in (
            "BlockScales", "block_scales", *(f"BlockScales.{x}" for x in (
                "byte_ids", "check_dtype", "check_ids", "codes", "ids", "layout", "pack", "unpack",
            )),
        )),
        "for records and arrays, as the public functions hand them on",
    ),
    **dict.fromkeys(
        ("warpmma.products:Lazy", "warpmma.products:Lazy.__dask_graph__", "warpmma.products:Options"), "types"
    ),
    **dict.fromkeys(
        (f"warpmma.products:{x}" for x in (
            "Chain", "Chain.advance", "Chain.blocks", "Chain.finish", "Chain.padded", "Chain.start", "Operands",
            "Operands.of", "Operands.part", "finish", "is_dask",
        )),
        "for rooms above, which `matmul` is one of",
    ),
    **dict.fromkeys(
        (f"warpmma.products:{x}" for x in (
            "Convolution", "Convolution.data", "Convolution.forward", "Convolution.sizes", "Convolution.weights",
            "ImplicitFactor", "ImplicitProduct", "ImplicitProduct.shape", "ImplicitProduct.size", "Moved",
            "TensorLayout", "convolved_on_gpu",
        )),
        "for `torch.arithmetic`, of tensors whose shapes are checked",
    ),
    "warpmma.products:grouped_product_on_gpu": "for `torch.arithmetic`, on a GPU that need not be here: tests/gpu",
    **dict.fromkeys(
        (f"warpmma.sparsity:SparseA.{x}" for x in ("broken", "check_indices_on", "check_nibble")),
        "the errors of a sparse A, for a group that the host or a GPU has found",
    ),
    "warpmma.products:boundaries": "for rooms above, of a k and slices that are checked",
    **dict.fromkeys(("warpmma.isa:explained", "warpmma.isa:near"), "for texts that `bare` has read"),
    **dict.fromkeys(
        (f"warpmma.isa:{x}" for x in (
            "Named", "every_fitting", "fragment_test", "has_place", "named", "qualifiers", "type_named", "words_of",
        )),
        "for the command line, with words of a shell and records; `parse`, `parse_any` and `plainest` take words",
    ),
    **dict.fromkeys(
        (f"warpmma.products:{x}" for x in (
            "Float32Way", "FloatFma", "FloatFma.__getstate__", "FloatFma.__str__", "FloatFma.format", "checked_float32",
            "evidence_on", "recipe_on",
        )),
        "how `matmul` and what explains it multiply float32, for rooms above",
    ),
    **dict.fromkeys(
        (f"warpmma.{x}" for x in (
            *(f"operations:{kind}{member}" for kind in ("InstructionRow", "Control")
              for member in ("", ".__str__", ".__getstate__", ".known")),
            *(f"isa:{kind}{member}" for kind in ("PtxInstruction", "FormInstruction", "MatrixInstruction")
              for member in ("", ".__str__", ".__getstate__")),
            "isa:FormInstruction.targets", *(f"isa:MatrixInstruction.{member}" for member in (
                "block_scale", "canonical", "documented", "family", "format", "layout", "mnemonic", "packing", "ptx",
                "scales_per_row", "shape", "sparse", "svg", "targets", "type",
            )),
        )),
        "what instructions of all kinds, or of several, have: by itself none is one",
    ),
    **dict.fromkeys(
        ("warpmma.kernel:MatrixMove.known", "warpmma.kernel:Operation.known",
         *(f"warpmma.operations:{kind.__name__}.known" for kind in table_rows.KINDS)),
        "for `operations.evidence`, with targets that have the row",
    ),
    **dict.fromkeys(
        (f"warpmma.operations:{x}" for x in (
            "WmmaMove.layout", "WmmaMultiply.layout", "WmmaMultiply.steps", "WmmaMultiply.type",
        )),
        "for the machine, with targets that have the row",
    ),
    **dict.fromkeys(
        ("warpmma.operations:warpgroup_multiply", *(f"warpmma.operations:WarpgroupMultiply{x}" for x in (
            "", ".__getstate__", ".__str__", ".mnemonic", ".ptx", ".results", ".signature", ".sources", ".syntax",
            ".targets",
        ))),
        "for the machine, with a record and where A is",
    ),
    **dict.fromkeys(("warpmma.operations:shl", "warpmma.operations:shr"), "for registers, which check their operands"),
    **dict.fromkeys((f"warpmma:RegisterFile.{x}" for x in ("get", "put")), "for the machine, with what it has checked"),
    "warpmma:Device.variable": "for front ends, with what a module declares",
    "warpmma.machine:DeviceArray": "what a device makes",
    **dict.fromkeys(
        (f"warpmma.operations:{x}" for x in ("Window", "Window.__contains__", "space_of", "window_of")),
        "the table of windows, for the machine",
    ),
    "warpmma.isa:Family": "a row of the table of instructions, which `Instruction.family` returns",
    **dict.fromkeys(
        (f"warpmma.kernel:{x}" for x in (
            "Threads", "Register",
        )),
        "the machine's own: `launch` makes threads, and threads make registers",
    ),
    **dict.fromkeys(
        (f"warpmma.kernel:Costs{x}" for x in ("", ".accessed", ".barrier", ".count", ".moved", ".shared")),
        "the machine counts; users read `advice` and `together`",
    ),
    **dict.fromkeys(
        (f"warpmma.machine:{x}" for x in (
            "BankPattern", "BankPattern.lanes", "Batch", "Batch.filled", "Batch.finish", "Batch.fragment",
            "Batch.read_fragment", "Batch.function", "Batch.carried", "Batch.check", "Batch.decide", "Batch.held",
            "Batch.hasten", "Batch.leave", "Batch.made",
            "Batch.operand", "Batch.read", "Batch.shape", "Batch.shuffled",
            "GlobalMemory", "GlobalMemory.accessed", "GlobalMemory.add", "GlobalMemory.allocate", "GlobalMemory.call",
            "GlobalMemory.contents", "GlobalMemory.report_left", "ProgramWork.begin_again", "Work.begin_again",
            "GlobalMemory.end", "GlobalMemory.kept", "GlobalMemory.release", "GlobalMemory.text", "GlobalMemory.whole",
            "GlobalMemory.name_of", "GlobalMemory.parameters", "GlobalMemory.touched", "Program.check",
            "GlobalMemory.unwritten", "LaunchOptions", "ProgramWork", "ProgramWork.findings", "ProgramWork.place",
            "ProgramWork.run", "Work", "Work.findings", "Work.place", "Work.run", "launch_program", "run_launch",
            "Batch.stand", "Grid", "Grid.batches", "Grid.cluster_ctaid", "Grid.clusterid", "Grid.ctaid",
            "Grid.in_clusters", "Grid.linear", "Grid.rank", "Grid.threads_per_block", "Grid.tid", "Grid.total",
            "History", "Reporter.linear", "Reporter.running", "SharedAddress", "plain_sizes", "sizes_of",
            "History.begin", "History.site", "Reporter", "Reporter.aligned", "Reporter.block_named",
            "Reporter.extends", "Reporter.decides", "Reporter.end", "Reporter.left", "Reporter.numbered",
            "Reporter.origin", "Reporter.reads", "Reporter.settled",
            "Reporter.found", "Reporter.report", "Reporter.report_launch",
            "SharedSite", "SharedSite.add", "SharedSite.conflicts", "SharedSite.lost",
            "SharedSite.pieces", "SharedSite.size", "WarpRegister", "WarpRegister.__repr__",
            "WarpRegister.kind", "contradicts", "execute", "expected", "fits", "literal", "merged", "no_site",
            "float_sites", "settled", "wavefronts",
        )),
        "the machine's own, for front ends, which hand on what they have checked; users reach it through `launch`",
    ),
    **dict.fromkeys(
        (f"warpmma.machine:{x}" for x in (
            "Alternative", "Argument",
            "Branch", "BranchTable", "Call", "Callee", "Constant", "Frame", "Guard", "Inverted", "Limit", "Limit.over",
            "InstructionStep", "Program", "ReadOnly", "Return", "Slot", "Sum",
             "dead_slots", "early_stores", "loads_in_flight", "product_registers", "run_program", "special_kind",
        )),
        "programs, as front ends make them of texts that they have checked",
    ),
    **dict.fromkeys(
        (
            f"warpmma.machine:{x}"
            for x in ("ProcessMemory", "likely_addresses", "mapped_memory", "memory_of", "merged_memory")
        ),
        "for front ends that know what lies in the process",
    ),
    **dict.fromkeys(
        (f"warpmma.machine:{x}" for x in (
            "Retyped", "Retyped.__str__", "Unpredicted", "Unpredicted.__str__", "Unpredicted.other_value",
            "Unpredicted.value",
        )),
        "what a launch found, which makes it",
    ),
    **dict.fromkeys(
        (f"warpmma.ptx:{x}" for x in (
            "EntryNeeds", "Function", "Module", "Module.error", "Module.error_at", "Module.place", "ModuleNeeds",
            "ModuleNeeds.problems", "ModuleNeeds.json", "ModuleNeeds.text", "PtxEntry", "PtxModule",
            "PtxModule.linked", "PtxModule.prepared", "PtxModule.signature", "Parameter", "declared",
        )),
        "what `load`, `read` and `check` return, and what launches make of it",
    ),
    **dict.fromkeys((f"warpmma.show:explorer_{x}" for x in ("data", "page")), "of no arguments: tests/explorer"),
    **dict.fromkeys(
        (f"warpmma.layouts:TableGrid{x}" for x in ("", ".__getstate__")), "what a `FragmentTable` makes"
    ),
    "warpmma.lookup:RegisterOperand": "a row of `REGISTER_OPERANDS`",
    **dict.fromkeys(
        (f"warpmma.show:{x}" for x in ("Colour", "contrast", "fields_html", "style_sheet", "viewer")),
        "for those who draw: tests/show",
    ),
    "warpmma.show:schedule": "for pictures, of patterns that the machine has made",
}  # fmt: skip
"""What no user calls, though it can be reached, and why."""

_OPERATORS = tuple(
    f"warpmma.kernel:Register.__{x}__"
    for name in ("add", "sub", "mul", "floordiv", "truediv", "mod", "and", "or", "xor", "lshift", "rshift")
    for x in (name, f"r{name}")
) + tuple(f"warpmma.kernel:Register.__{x}__" for x in ("lt", "le", "gt", "ge", "eq", "ne"))


def _instance(name: str, rng: Rng) -> Any:
    """Make an object of a public class that has properties."""
    makers: dict[str, Any] = {
        "warpmma:Instruction": legal.record,
        "warpmma.isa:Target": lambda rng: pick(rng, tuple(isa.TARGETS.values())),
        "warpmma.isa:WarpgroupFamily": lambda rng: legal.wgmma(rng).family,
        "warpmma.isa:WarpgroupInstruction": legal.wgmma,
        "warpmma.formats:FloatFormat": lambda rng: pick(rng, [f for f in FORMATS.values() if hasattr(f, "bias")]),
        "warpmma.formats:IntegerFormat": lambda rng: pick(rng, [f for f in FORMATS.values() if not hasattr(f, "bias")]),
        "warpmma.registers:Packing": table_numbers.packing,
        "warpmma.layouts:Layout": table_numbers.fragment_layout,
        "warpmma.layouts:Cell": table_numbers.cell,
        "warpmma.layouts:FragmentTable": table_numbers.fragment_table,
        "warpmma.lookup:WordPart": table_lookup.part,
        "warpmma.lookup:WarpWords": table_pictures.warp_words,
        "warpmma.sparsity:Pattern": lambda rng: sparsity.pattern(legal.sparse(rng)),
        "warpmma.kernel:Operation": lambda rng: pick(rng, operations()),
        "warpmma.kernel:MatrixMove": lambda rng: pick(rng, matrix_moves()),
        "warpmma:Choice": lambda rng: wm.choose(**table_execution.chosen(rng)),
        "warpmma.kernel:Swizzle": lambda rng: Swizzle(3, 4, 3),
        **{f"warpmma.operations:{kind.__name__}": partial(table_rows.a_row, kind) for kind in table_rows.KINDS},
        **{name: partial(table_fragments.fragment_instruction, kind) for name, kind in table_fragments.KINDS.items()},
        "warpmma.kernel:Site": lambda rng: Site("kernel.py", 3, "add.u32"),
    }  # fmt: skip
    return makers[name](rng) if name in makers else None


def _self(name: str, rng: Rng) -> dict[str, Any]:
    return {"self": _instance(name, rng)}


def _getter(member: str) -> Callable[[Any], Any]:
    return lambda self: getattr(self, member)


_PICKLING = ("__getstate__", "__setstate__", "__reduce__", "__reduce_ex__")


def _pickled(self: Any) -> Any:
    return pickle.loads(pickle.dumps(copy.deepcopy(self)))


def _properties() -> list[Entry]:
    """Make an entry of every property, and of how objects are pickled and copied."""
    made: list[Entry] = []
    callables = surface.callables()
    for name, kind in surface.classes().items():
        if name in INNER or _instance(name, np.random.default_rng(0)) is None:
            continue
        ways = {member: _getter(member) for member in surface.properties(kind)}
        ways |= {member: _pickled for member in _PICKLING if f"{name}.{member}" in callables}
        made += [
            Entry(name=f"{name}.{member}", call=way, make=partial(_self, name), weight=0.15)
            for member, way in ways.items()
        ]
    return made


@cache
def entries() -> dict[str, Entry]:
    """Return the table, by name."""
    return {entry.name: entry for entry in (*_WRITTEN, *_properties())}


def _called() -> set[str]:
    return {name.partition(" ")[0] for name in entries()}


def missing() -> list[str]:
    """List public callables without an entry, and properties of classes without a maker."""
    wanted = set(surface.callables())
    for name, kind in surface.classes().items():
        if name not in INNER:
            wanted |= {f"{name}.{member}" for member in surface.properties(kind)}
    return sorted(wanted - _called() - set(INNER) - set(_OPERATORS))


def surplus() -> list[str]:
    """List entries, and names left out, of which there is no public callable."""
    there = set(surface.callables())
    for name, kind in surface.classes().items():
        there |= {f"{name}.{member}" for member in surface.properties(kind)}
    return sorted((_called() | set(INNER)) - there)
