"""The simulated device: memory, warps, barriers, asynchronous copies, hazards and costs."""

from .banks import BANKS, BankPattern, SharedSite, wavefronts
from .batch import Batch
from .clocks import History
from .costs import Costs, no_site
from .door import execute
from .global_memory import GlobalMemory
from .grid import Grid
from .hazards import KINDS, Hazard, HazardError, HazardWarning, Policy, Reporter
from .literals import fits, literal
from .outcome import Launch
from .program import Step, run
from .register_file import RegisterFile
from .site import Site
from .swizzles import CANDIDATES, Swizzle
from .warp_register import WarpRegister, merged

__all__ = [
    "BANKS",
    "CANDIDATES",
    "KINDS",
    "BankPattern",
    "Batch",
    "Costs",
    "GlobalMemory",
    "Grid",
    "Hazard",
    "HazardError",
    "HazardWarning",
    "History",
    "Launch",
    "Policy",
    "RegisterFile",
    "Reporter",
    "SharedSite",
    "Site",
    "Step",
    "Swizzle",
    "WarpRegister",
    "execute",
    "fits",
    "literal",
    "merged",
    "no_site",
    "run",
    "wavefronts",
]
