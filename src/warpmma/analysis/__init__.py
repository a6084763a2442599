"""Where bits come from: one element explained step by step, and the errors of whole products."""

from .explanation import ChainLink, Explanation, Parting

__all__ = ["ChainLink", "Explanation", "Parting"]
