"""Instructions that read, write, copy or address memory."""

from . import addresses, atomics, bulk, caches, loads_and_stores, tensor_copies
from .atomics import Atomic
from .bulk import AsyncStore, BulkCopy
from .caches import CacheControl, CachePolicy
from .tensor_copies import REDUCED, MapPublication, MapReplacement, TensorCopy

FORMS = (*loads_and_stores.FORMS, *bulk.FORMS, *tensor_copies.FORMS, *caches.FORMS, *addresses.FORMS, *atomics.FORMS)
