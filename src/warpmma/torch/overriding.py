"""The override: while it is on, PyTorch's products are computed with a target's arithmetic, and counted.

1. Products of this thread inside the `with` are replaced, forward and backward: a gradient that is computed after it is
   PyTorch's. Overrides nest; the innermost one computes.
2. Operators that PyTorch composes of others are decomposed first. Fused layers of `torch.nn` that only inference takes
   (`torch.backends.mha`) are off meanwhile, in all threads, since their products cannot be intercepted.
3. Operators with sums of products inside that are not replaced are computed by PyTorch and counted in the report; or
   refused.
4. Subclasses of tensors follow their own rules; what these compute with plain tensors is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType, TracebackType
from typing import Any, Literal

from .._arguments import check_choice
from ..arithmetic import Engine
from ..errors import UnsupportedError
from ..products import Float32
from .attention import attention_gradients, fused_attention, unfused_on_gpu
from .convolutions import convolution, convolution_gradients
from .foreign_graphs import refuse_foreign_graphs
from .grouped import grouped_product
from .replaced import LEFT, PRODUCTS, OperatorCall
from .report import ProductReport
from .scaled import int8_product, scaled_product, scaled_product_of_recipes
from .settings import Accumulator, ProductSettings, checked_settings
from .tensors import dtype_name, pytorch

OPERATORS: Mapping[str, Callable[[OperatorCall], Any]] = MappingProxyType({
    **PRODUCTS,
    "aten::convolution": convolution,
    "aten::convolution_backward": convolution_gradients,
    "aten::_scaled_mm": scaled_product,
    "aten::_scaled_mm_v2": scaled_product_of_recipes,
    "aten::_int_mm": int8_product,
    "aten::_grouped_mm": grouped_product,
    "aten::_scaled_dot_product_flash_attention_for_cpu": fused_attention,
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": attention_gradients,
})  # fmt: skip


Others = Literal["leave", "refuse"]

# Operators that compute sums of products. Those that are replaced can also be called with types that are not.
_WITH_PRODUCTS = re.compile(
    r"""
    aten::(
      # products of matrices and vectors
      (add)?(mm|mv|bmm) | baddbmm | v?dot | addr | _addmm_activation | _(int|grouped|scaled|scaled_grouped)_mm\w*
      | _weight_int\w* | _?dyn_quant_\w* | mkldnn_linear\w* | linear_backward | _linear\w* | fbgemm_\w*
      | \w*sparse\w*(mm|matmul|linear)\w* | sspaddmm | hspmm | _trilinear | _euclidean_dist | _foreach_mm
      | matmul_backward | _mixed_dtypes_linear | \w*quantized_linear\w*
      # convolutions, recurrent layers, attention
      | \w*conv(?!ert)\w* | mkldnn_rnn\w* | \w*attention\w* | \w*transformer_encoder\w*
      # factorizations and what solves by them
      | _?linalg_(?!vector_norm|cross|diagonal|check|_powsum)\w* | \w*cholesky\w* | triangular_solve | lu_solve
      | lu_unpack | ormqr | orgqr | geqrf | _spsolve
    ) | (mkldnn|mkldnn_prepacked|onednn|quantized|xnnpack)::\w+
    """,
    re.VERBOSE,
)


def arithmetic(
    target: str, *, instruction: object = None, float32: Float32 = "ieee", accumulate: Accumulator = "f32",
    split_k: int = 1, promote_every: int | None = None, convolution_k: Mapping[str, str] | None = None,
    others: Others = "leave", engine: Engine = "auto", threads: int | None = None,
) -> Arithmetic:  # fmt: skip
    """Compute PyTorch's products with the bits of a target, inside a `with`; of tensors on an NVIDIA GPU, there.

    Parameters
    ----------
    target : str
        Such as "sm_90a".
    instruction : str, Instruction, or several of these, optional
        "mma", by default, or "wgmma", which keeps fewer bits of fp8 sums on sm_90a; a mnemonic is used for products of
        its types.
    float32 : {"ieee", "tf32", "tf32-truncated"}
        How float32 is multiplied, as for `warpmma.matmul`: by a chain of `fma.rn.f32`, as PyTorch's default on GPUs;
        or on tensor cores, for which both factors are rounded to tf32, as PyTorch does, or truncated.
    accumulate : {"f32", "f16"}
        The type of accumulators for f16 and 8-bit floating point.
    split_k : int
        The number of slices of k; their sums are added in f32. 1 for types whose sums are not f32.
    promote_every : int, optional
        Of 8-bit floating point: after how much of k a sum is added to an f32 sum and begins again; 0 for never. By
        default `_scaled_mm(use_fast_accum=False)` does that every 128 where the instruction's sums keep fewer bits
        than f32, as an H200's library does, and nothing else.
    convolution_k : mapping, optional
        The order of k of convolutions ("forward"), and of the gradients of their inputs ("data") and weights
        ("weight"): letters, the last is the fastest, with "-" before those that descend. By default
        {"forward": "rsc", "data": "-r-sk", "weight": "npq"}, where r and s are rows and columns of the kernel, c and k
        input and output channels, n images, p and q rows and columns of the output. t and z, the depth in three
        dimensions, go before r and p where they are not named.
    others : {"leave", "refuse"}
        The treatment of operators with products inside that are not replaced, such as LSTMs: PyTorch computes
        them and the report lists them, or an error.
    engine : {"auto", "native", "numpy"}
        Of tensors on the CPU; those on a GPU are multiplied there, with "auto".
    threads : int, optional
        For large products; one by default.

    Returns
    -------
    Arithmetic
        For a `with` statement, which gives a `ProductReport`.

    Raises
    ------
    UnsupportedError
        No PyTorch. Inside the `with`: an operator that is not replaced, with others="refuse".
    WarpmmaError
        No such target or instruction, or an invalid option. Inside the `with`: a target that has no
        instruction for the types of a product, a tensor on another device, such as meta.
    """
    pytorch()
    check_choice("others", others, ("leave", "refuse"))
    return Arithmetic(
        checked_settings(
            target, instruction, float32, accumulate, split_k, promote_every, engine, threads, convolution_k
        ),
        others,
    )


# Dynamo, where it compiles a function that calls this, runs the call and the `with` uncompiled: torch.compiler.disable.
arithmetic._torchdynamo_disable = True  # type: ignore[attr-defined]
arithmetic._torchdynamo_disable_msg = "inside of it nothing is compiled; warpmma.torch.matmul can be"  # type: ignore[attr-defined]


class Arithmetic:
    """An override of PyTorch's products, as `arithmetic` makes it; on inside a `with`.

    Attributes
    ----------
    report : ProductReport
        What was computed, in every `with` together.
    """

    def __init__(self, given: ProductSettings, others: Others) -> None:
        self.report = ProductReport(given.target)
        self._given, self._others = given, others
        self._entered: list[tuple[Any, Any, bool]] = []

    def __enter__(self) -> ProductReport:
        torch = pytorch()
        mode, attention = _mode(torch)(self), unfused_on_gpu(torch)()
        refuse_foreign_graphs(type(mode))
        fused = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)  # rule 2
        attention.__enter__()
        mode.__enter__()
        self._entered.append((mode, attention, fused))
        return self.report

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        mode, attention, fused = self._entered.pop()
        mode.__exit__(kind, error, trace)
        attention.__exit__(kind, error, trace)
        pytorch().backends.mha.set_fastpath_enabled(fused)

    def _run(self, mode: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Compute one operator, or hand it on."""
        name = func._schema.name
        plain = name.removesuffix("_")
        if replacement := OPERATORS.get(plain):
            x = _bound(func, args, kwargs)
            d = replacement(OperatorCall(op=plain, x=x, given=self._given, report=self.report))
            into = next((x[each.name] for each in func._schema.arguments if _writes(each)), None)
            if d is not LEFT and (into is None or into.dtype == d.dtype):
                return d if into is None else _written(into, d)
        elif _composite(func):
            with mode:
                d = func.decompose(*args, **kwargs)
            if d is not NotImplemented:
                return d
        if _WITH_PRODUCTS.fullmatch(plain):
            said = f"{name} of {_first_dtype(args)}"
            if self._others == "refuse":
                raise UnsupportedError(f"{said} has products that are not replaced; others='leave' leaves them")
            self.report.left[said] += 1
        return func(*args, **kwargs)


@cache
def _mode(torch: Any) -> Any:
    """Make the dispatch class of PyTorch's operators; the class needs PyTorch."""
    from torch.utils._python_dispatch import TorchDispatchMode

    known = {torch.Tensor, torch.nn.Parameter, torch.nn.parameter.Buffer}

    class Mode(TorchDispatchMode):  # type: ignore[misc]
        def __init__(self, arithmetic: Arithmetic) -> None:
            super().__init__()
            self._arithmetic = arithmetic

        def __torch_dispatch__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            if not known.issuperset(types):
                return NotImplemented  # rule 4
            return self._arithmetic._run(self, func, args, kwargs or {})

    return Mode


@cache
def _composite(func: Any) -> bool:
    """Return whether PyTorch makes an operator of others; without gradients it would hand it on whole."""
    torch = pytorch()
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), key))


def _bound(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Name arguments as the schema does."""
    named = {each.name: each.default_value for each in func._schema.arguments}
    return named | dict(zip(named, args, strict=False)) | kwargs


def _writes(argument: Any) -> bool:
    """Return whether an operator writes to an argument: to `out`, or to the first of those whose name ends in "_"."""
    return argument.alias_info is not None and bool(argument.alias_info.is_write)


def _written(into: Any, d: Any) -> Any:
    """Write a result where the caller wants it."""
    if into.shape != d.shape:
        into.resize_(d.shape)
    return into.copy_(d)


def _first_dtype(args: tuple[Any, ...]) -> str:
    return next((dtype_name(x.dtype) for x in args if hasattr(x, "dtype")), "no tensor")
