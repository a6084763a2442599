"""Arrays that tests compare."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Rng = np.random.Generator
same = partial(np.testing.assert_array_equal, strict=True)  # shapes and dtypes too
