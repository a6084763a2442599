"""Dispatch: a handler for each class of instruction."""

from .computing import compute
from .door import execute, handler
