"""What computes each of PyTorch's operators, by name; without the "_" of those that write to their first argument."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from .attention import attention_gradients, fused_attention
from .replaced import PRODUCTS, OperatorCall
from .scaled import int8_product, scaled_product, scaled_product_of_recipes

OPERATORS: Mapping[str, Callable[[OperatorCall], Any]] = MappingProxyType({
    **PRODUCTS,
    "aten::_scaled_mm": scaled_product,
    "aten::_scaled_mm_v2": scaled_product_of_recipes,
    "aten::_int_mm": int8_product,
    "aten::_scaled_dot_product_flash_attention_for_cpu": fused_attention,
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward": attention_gradients,
})  # fmt: skip
