"""Triton 3.9 warns of what 3.10 will do with fusing; the variable says what it does now."""

from __future__ import annotations

import os

os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
