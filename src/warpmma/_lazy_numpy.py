"""NumPy, array types and array checks for modules that import without NumPy: it is loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._lazy import later

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from . import _arrays
    from ._arrays import Array
    from ._rounding import Float64

    UInt8 = npt.NDArray[np.uint8]
else:
    np, npt, _arrays = later("numpy"), later("numpy.typing"), later("._arrays", __package__)
    Array = Float64 = UInt8 = Any

__all__ = ["Array", "Float64", "UInt8", "_arrays", "np", "npt"]
