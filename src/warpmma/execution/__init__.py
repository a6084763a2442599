"""Execution: registers in, registers out; matrices in, matrices out."""

from .checks import check_sparse
from .matrices import load, mma, store
from .registers import evidence, execute

__all__ = ["check_sparse", "evidence", "execute", "load", "mma", "store"]
