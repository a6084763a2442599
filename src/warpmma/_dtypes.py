"""NumPy's types of arrays, and those of ml_dtypes, by name."""

from __future__ import annotations

from typing import Any

import numpy as np


def dtype_named(name: str) -> np.dtype[Any]:
    """Return the type of this name, such as "float16" or "float8_e4m3fn"."""
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes  # a tenth of the time of `import warpmma`, and many uses do not need it

        dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return dtype
