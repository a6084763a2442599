"""Dispatch: a handler for each class of instruction."""

from .computing import compute
from .dispatch import execute, handler
from .timeline_recording import Handler, recorded
