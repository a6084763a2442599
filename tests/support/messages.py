"""Texts of errors that tests expect word for word."""

from __future__ import annotations

import re


def exactly(message: str) -> str:
    """Return a pattern of a whole message, in which ~ stands for any part."""
    return f"^{re.escape(message)}$".replace(r"\~", ".*")
