"""Dispatch: a handler for each class of instruction."""

from .computing import compute
from .dispatch import execute, handler
