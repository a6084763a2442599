"""Instructions that read, write, copy or address memory."""

from . import addresses, atomics, bulk, caches, loads_and_stores
from .addresses import ClusterAddress
from .atomics import Atomic
from .bulk import AsyncStore, BulkCopy
from .caches import CacheControl, CachePolicy

FORMS = (*loads_and_stores.FORMS, *bulk.FORMS, *caches.FORMS, *addresses.FORMS, *atomics.FORMS)
