"""The simulated device: memory, warps, barriers, asynchronous copies, hazards and costs."""

from .costs import Costs, Swizzle
from .hazards import KINDS, Hazard, HazardError, HazardWarning, Site

__all__ = ["KINDS", "Costs", "Hazard", "HazardError", "HazardWarning", "Site", "Swizzle"]
