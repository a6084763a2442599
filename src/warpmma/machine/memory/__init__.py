"""Memory: bytes, their shadow, and the address spaces of a device, a block and a thread."""

from .allocation import Allocation
from .device import Device, DeviceArray
from .element_types import contradicts, expected
from .global_memory import GlobalMemory
from .local_memory import LocalMemory
from .retyping import Retyped, float_sites, retyped
from .shared_memory import SharedMemory
from .touching import Taken, Touch, Turns
