"""Explanations of single elements, step by step, and errors of whole products."""

from .._lazy import renamed
from .error_report import BINS, ErrorPlace, ErrorReport, ProductError
from .explaining import explain
from .explaining import explain_codes as explain_codes
from .explanation import ChainLink, Explanation, FirstDifference, ulp_at
from .in_launches import explain_launch
from .in_launches import watched_products as watched_products
from .product_bounds import bounds
from .product_errors import error
from .tolerances import Advice, Judged, Tolerance
from .watched_operands import format_of_watched as format_of_watched
from .watched_operands import in_registers as in_registers
from .watched_operands import matrix_of as matrix_of

__getattr__ = renamed(__name__, {"Parting": "FirstDifference"})

__all__ = [
    "BINS",
    "Advice",
    "ChainLink",
    "ErrorPlace",
    "ErrorReport",
    "Explanation",
    "FirstDifference",
    "Judged",
    "ProductError",
    "Tolerance",
    "bounds",
    "error",
    "explain",
    "explain_launch",
    "ulp_at",
]
