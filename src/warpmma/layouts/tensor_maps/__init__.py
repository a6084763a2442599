"""Tensor maps: the 128 bytes of NVIDIA's tensor copies, and what a copy of a box moves.

`map_fields` is the table of bits, with `tensormap.replace`; `tensor_map` the record, with encoder and decoder;
`tensor_boxes` the geometry of a copy.
"""

from .map_fields import MAP_BYTES, MAP_TYPES, REPLACED, replace_field
from .tensor_boxes import BoxCopy
from .tensor_map import Im2colBox, TensorMap

__all__ = ["MAP_BYTES", "MAP_TYPES", "REPLACED", "BoxCopy", "Im2colBox", "TensorMap", "replace_field"]
