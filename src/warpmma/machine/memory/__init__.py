"""Memory: bytes, their shadow, and the state spaces of a device, a block and a thread."""

from .accesses import Taken, Touch, Turns
from .allocation import Allocation
from .device import Device, DeviceArray
from .global_memory import GlobalMemory
from .loans import Content, Loan, content
from .local_memory import LocalMemory
from .lockstep_touch import LockstepTouch
from .process_memory import ProcessMemory, likely_addresses, mapped_memory, memory_of, merged_memory
from .retyping import Retyped, contradicts, expected, float_sites, retyped
from .shadow_memory import Overwritten
from .shared_memory import SharedMemory, report_outlived
from .spaces import GlobalSpace, Space
from .undoing import Undoing
