"""Explanations of single elements, step by step, and errors of whole products."""

from .error_report import BINS, ErrorPlace, ErrorReport, ProductError
from .explaining import explain
from .explanation import ChainLink, Explanation, Parting, ulp_at
from .in_launches import explain_launch
from .product_bounds import bounds
from .product_errors import error
from .tolerances import Advice, Judged, Tolerance

__all__ = [
    "BINS", "Advice", "ChainLink", "ErrorPlace", "ErrorReport", "Explanation", "Judged", "Parting", "ProductError",
    "Tolerance", "bounds", "error", "explain", "explain_launch", "ulp_at",
]  # fmt: skip
