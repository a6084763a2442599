"""Tensor maps: what a tensor copy reads and writes, as NVIDIA's 128 bytes.

1. Everything is in the order of arrays, the outermost dimension first: shape, strides, box, element strides, corners
   and coordinates. PTX and the driver begin with the innermost; `encode_tiled` and `encode_im2col` take the arguments
   of the driver's functions in the driver's order.
2. A legal record is what the driver's encode accepts, and its bytes are the driver's.
3. The address is a multiple of 16 below 2^57. Strides are multiples of 16 bytes below 2^40, one for each dimension but
   the innermost, and may be 0 or smaller than a row. With an interleave of 32 bytes all of them are multiples of 32.
4. A dimension has 1 to 2^32 elements, a box 1 to 256 along each, a step between elements is 1 to 8.
5. The innermost row of a box is a multiple of 16 bytes, and without interleave not wider than the swizzle. A box has at
   most 228 KiB, with b / e elements along each dimension, rounded down.
6. Interleave and im2col need 3 to 5 dimensions. A fill with NaN needs a type of floats.
7. im2col: 1 to 256 channels, 1 to 1,024 pixels, corners of 16, 8 or 5 bits with 3, 4 or 5 dimensions. The size of each
   spatial dimension plus the upper minus the lower corner is positive, as integers of 32 bits (2^32 counts as 0). With
   interleave that is asked of the sizes one dimension further in.

Source: 23,000 encodes of an H200's driver (580, CUDA 13.0), accepted and refused; `cuda.h` 13.0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, Self

from ..._arguments import check_choice, is_integer, members
from ..._lazy_numpy import Array, np
from ..._records import Record
from ..._views import view
from ...errors import OperandError, UnsupportedError, shown
from . import map_fields as fields
from . import tensor_boxes as boxes
from .tensor_boxes import BoxCopy

_HOST_TYPES = (
    "u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32.ftz", "tf32", "tf32.ftz",
)  # fmt: skip
_OF_DTYPES = {
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "int32": "s32", "uint64": "u64", "int64": "s64",
    "float16": "f16", "float32": "f32", "float64": "f64", "bfloat16": "bf16",
}  # fmt: skip
_OF_WIDTHS = {1: "u8", 2: "u16"}  # of other dtypes, such as int8 and float8_e4m3fn: copies keep their bits
_ROUNDED_TYPES = tuple(fields.MAP_TYPES.index(x) for x in ("f32", "f32.ftz"))
_ADDRESSES = 1 << 57
_MOST_BYTES = 228 << 10


@dataclass(frozen=True, kw_only=True)
class Im2colBox(Record):
    """The box of an im2col map: a column of pixels, each with some channels.

    Attributes
    ----------
    lower, upper : tuple of int
        Corners of the box of starting pixels, relative to the first and the last pixel of an image, outermost spatial
        dimension first: (d, h, w), (h, w) or (w).
    channels : int
        Channels that are copied of a pixel, 1 to 256.
    pixels : int
        Pixels that are copied, 1 to 1,024.
    """

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    channels: int
    pixels: int


@dataclass(frozen=True)
class TensorMap(Record):
    """A tensor in global memory and a box of it, for `cp.async.bulk.tensor`.

    Everything is in the order of arrays, the outermost dimension first; `encode_tiled` and `encode_im2col` take the
    driver's order.

    Attributes
    ----------
    address : int
        Of the tensor's first element. In its place an array can be given: then address, type, shape and strides are
        those of the array where they are not given. A `DeviceArray` has the address of simulated memory.
    box : tuple of int or Im2colBox
        Elements along each dimension; of an im2col map its channels, pixels and corners.
    type : str
        One of "u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f32.ftz", "f64", "bf16", "tf32", "tf32.ftz".
        Of an array of another type, such as int8 or an fp8, it is "u8" or "u16", as CUTLASS has it.
    shape : tuple of int
        Elements along each of the 1 to 5 dimensions.
    strides : tuple of int
        Bytes, of every dimension but the innermost, whose elements are adjacent. By default the array is dense.
    element_strides : tuple of int
        Steps between the elements that are copied; 1 by default. The innermost is ignored without interleave.
    interleave : {0, 16, 32}
        Bytes of a slice of channels, or 0. The tensor is [n, slice, ..., w] then, and w counts slices.
    swizzle : {0, 32, 64, 128}
        Bytes of a row within which chunks of 16 bytes are permuted, or 0.
    l2_promotion : {0, 64, 128, 256}
        Bytes that the L2 cache fetches at least.
    fill : {"zero", "nan"}
        What elements outside of the tensor become.

    Raises
    ------
    OperandError
        What the driver's encode refuses, with the nearest legal value.

    Examples
    --------
    >>> import numpy as np
    >>> map = TensorMap(0x7F0000000400, (64, 32), type="f16", shape=(1024, 512), swizzle=64)
    >>> map.encoded[:8].hex()
    '00040000007f0000'
    >>> TensorMap.from_bytes(map.encoded) == map
    True
    >>> map.copied_bytes
    4096
    """

    address: Any
    box: Any
    _: KW_ONLY
    type: str = ""
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    element_strides: tuple[int, ...] = ()
    interleave: int = 0
    swizzle: int = 0
    l2_promotion: int = 0
    fill: str = "zero"

    def __post_init__(self) -> None:
        put = object.__setattr__
        if not is_integer(array := self.address):
            for name, value in _of_array(array).items():
                if name == "address" or not getattr(self, name):
                    put(self, name, value)
        check_choice("type", self.type, fields.MAP_TYPES)
        if not is_integer(array) and array.dtype.itemsize != self.itemsize:
            raise OperandError(
                f"type is {self.type!r}, of {self.itemsize} bytes, and the array is of {array.dtype}; expected a type "
                f"of {array.dtype.itemsize} bytes; the nearest is array.view(np.uint{8 * self.itemsize})"
            )
        check_choice("fill", self.fill, fields.MAP_FILLS)
        for name, legal in (
            ("interleave", fields.MAP_INTERLEAVES), ("swizzle", fields.MAP_SWIZZLES),
            ("l2_promotion", fields.MAP_PROMOTIONS),
        ):  # fmt: skip
            fields.check_member(name, getattr(self, name), legal)
        put(self, "shape", _integers("shape", self.shape, range(1, (1 << 32) + 1)))
        self._check_rank()
        unit = 32 if self.interleave == 32 else 16  # rule 3
        fields.check_legal("address", self.address, range(0, _ADDRESSES, unit))
        strides = self.strides if members(self.strides, 1) != [] else _dense(self.shape, self.itemsize)
        put(self, "strides", _integers("strides", strides, range(0, 1 << 40, unit), self.rank - 1))
        steps = self.element_strides if members(self.element_strides, 1) != [] else (1,) * self.rank
        put(self, "element_strides", _integers("element_strides", steps, range(1, 9), self.rank))
        self._check_box()
        if self.fill == "nan" and "f" not in self.type:
            raise OperandError(
                f"fill is 'nan' and type {self.type!r}; expected a type of floats; the nearest is 'zero'"
            )
        for name in ("address", "interleave", "swizzle", "l2_promotion"):
            put(self, name, int(getattr(self, name)))

    def _check_rank(self) -> None:
        """Rule 6."""
        least = 3 if self.interleave or isinstance(self.box, Im2colBox) else 1
        if not least <= self.rank <= fields.MOST_DIMENSIONS:
            why = "im2col has" if isinstance(self.box, Im2colBox) else "an interleave has" if least > 1 else "a map has"
            raise OperandError(
                f"shape has {self.rank} dimensions; {why} {least} to {fields.MOST_DIMENSIONS}; the nearest is "
                f"{min(max(self.rank, least), fields.MOST_DIMENSIONS)}: pad it with dimensions of 1, or join two"
            )

    def _check_box(self) -> None:
        """Rules 5 and 7."""
        name = "channels" if isinstance(self.box, Im2colBox) else f"box[{self.rank - 1}]"
        if isinstance(self.box, Im2colBox):
            bits = fields.OFFSET_BITS[self.rank]
            corner = range(-(1 << bits - 1), 1 << bits - 1)
            made = Im2colBox(
                lower=_integers("lower", self.box.lower, corner, self.rank - 2),
                upper=_integers("upper", self.box.upper, corner, self.rank - 2),
                channels=_integers("channels", (self.box.channels,), range(1, 257))[0],
                pixels=_integers("pixels", (self.box.pixels,), range(1, 1025))[0],
            )
            object.__setattr__(self, "box", made)
        else:
            object.__setattr__(self, "box", _integers("box", self.box, range(1, 257), self.rank))
        row = self._inner * self.itemsize
        most = 256 * self.itemsize
        if self.swizzle and not self.interleave:
            most = min(self.swizzle, most)
        if row % 16 or row > most:
            unit = max(16 // self.itemsize, 1)
            near = unit * min(max(round(self._inner / unit), 1), most // self.itemsize // unit)
            wide = f", and at most {self.swizzle}, the width of the swizzle" if most == self.swizzle else ""
            raise OperandError(
                f"{name} is {self._inner}: {row} bytes of {self.type}; expected a multiple of 16 bytes{wide}; the "
                f"nearest is {near}"
            )
        if self._stored_bytes > _MOST_BYTES:
            raise OperandError(
                f"box has {self._stored_bytes:,} bytes; expected at most {_MOST_BYTES:,}, the shared memory of an SM; "
                f"the nearest has {_MOST_BYTES / self._stored_bytes:.0%} of its rows"
            )
        if isinstance(self.box, Im2colBox):
            self._check_corners(self.box)

    def _check_corners(self, box: Im2colBox) -> None:
        """Rule 7."""
        sizes = self.shape[2:] if self.interleave else self.shape[1:-1]
        for axis, (size, lower, upper) in enumerate(zip(sizes, box.lower, box.upper, strict=True)):
            pixels = (size + upper - lower + (1 << 31)) % (1 << 32) - (1 << 31)
            if pixels <= 0:
                raise OperandError(
                    f"upper[{axis}] - lower[{axis}] is {upper - lower}, and shape[{axis + 1 + bool(self.interleave)}] "
                    f"is {size}: a box of {pixels} pixels; expected at least 1; the nearest upper[{axis}] is "
                    f"{upper + 1 - pixels}"
                )

    @property
    def _inner(self) -> int:
        """Elements along the innermost dimension."""
        inner: int = self.box.channels if isinstance(self.box, Im2colBox) else self.box[-1]
        return inner

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return fields.ITEM_BYTES[self.type]

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def im2col(self) -> bool:
        """Whether copies are of mode im2col."""
        return isinstance(self.box, Im2colBox)

    @property
    def _stored_bytes(self) -> int:
        """What the driver keeps in word 8, which is less than is copied where a step does not divide the box."""
        if isinstance(self.box, Im2colBox):
            return self.itemsize * self.box.channels * self.box.pixels
        size: int = math.prod(b // e for b, e in zip(self.box, self.element_strides, strict=True))
        return self.itemsize * size

    @property
    def copied_elements(self) -> tuple[int, ...]:
        """Elements, with an interleave slices, that a copy brings along each dimension; of im2col pixels and channels.

        With a step e, a box of b has b / e elements, rounded up. The innermost step is ignored without interleave.
        With one, a copy has one slice along dimension 1, and one of each pixel.
        """
        if isinstance(self.box, Im2colBox):
            return self.box.pixels, 1 if self.interleave else self.box.channels
        counts = [-(-b // e) for b, e in zip(self.box, self._steps, strict=True)]
        if self.interleave:
            counts[1] = 1
        return tuple(counts)

    @property
    def _steps(self) -> tuple[int, ...]:
        """Steps of a tiled copy."""
        return self.element_strides if self.interleave else (*self.element_strides[:-1], 1)

    @property
    def copied_bytes(self) -> int:
        """Bytes that a copy adds to its mbarrier, those of elements outside of the tensor too."""
        return math.prod(self.copied_elements) * (self.interleave or self.itemsize)

    @cached_property
    def encoded(self) -> bytes:
        """The 128 bytes, as the driver writes them; `bytes(map)` are the same."""
        inner_first = {
            "size": [x - 1 for x in self.shape[::-1]], "step": [x - 1 for x in self.element_strides[::-1]],
            "stride": [0, *(x // 16 for x in self.strides[::-1])],
        }  # fmt: skip
        rounds = self.type.startswith("tf32")
        codes = {
            "address": self.address, "im2col": int(self.im2col), "rank": self.rank - 1,
            "type": fields.MAP_TYPES.index(self.type) - fields.ROUNDED * rounds, "rounds": int(rounds),
            "interleave": fields.MAP_INTERLEAVES.index(self.interleave),
            "swizzle": (swizzle := fields.MAP_SWIZZLES.index(self.swizzle)), "fill": int(self.fill == "nan"),
            "promotion": fields.MAP_PROMOTIONS.index(self.l2_promotion), "bytes": self._stored_bytes,
            "alignment": 0x80 << swizzle if swizzle else 0x10,
        }  # fmt: skip
        if isinstance(self.box, Im2colBox):
            inner_first |= {"lower": list(self.box.lower[::-1]), "upper": list(self.box.upper[::-1])}
            inner_first["box"] = [self.box.channels - 1]
            codes["pixels"] = self.box.pixels - 1
        else:
            inner_first["box"] = [x - 1 for x in self.box[::-1]]
        codes |= {f"{name}{i}": x for name, values in inner_first.items() for i, x in enumerate(values)}
        return fields.pack_fields(codes, self.im2col, self.rank)

    def __bytes__(self) -> bytes:
        return self.encoded

    @classmethod
    def from_bytes(cls, encoded: bytes) -> Self:
        """Decode 128 bytes.

        Words 8 and 9, which are the driver's own and which the GPU ignores, may hold anything: maps that are built on
        the device have zeros there.

        Raises
        ------
        OperandError
            Not 128 bytes, or a field that no legal map has.
        UnsupportedError
            A bit is set that no host call sets, and what it does is not measured.
        """
        fields.check_bytes(encoded)
        codes = fields.unpack_fields(bytes(encoded))
        rank = codes["rank"] + 1
        stored, rounds = codes["type"], codes["rounds"]
        if stored not in (_ROUNDED_TYPES if rounds else range(fields.MAP_TYPES.index("tf32"))):
            raise UnsupportedError(
                f"tensor map: word 1, bits 7-10, hold element type {stored}{' with bit 16' * rounds}; expected 0 to "
                "10, or 7 or 8 with bit 16"
            )
        if codes["interleave"] >= len(fields.MAP_INTERLEAVES):
            raise OperandError(
                f"tensor map: word 1, bits 11-12, hold interleave {codes['interleave']}; expected 0 to 2"
            )

        def values(name: str, first: int, last: int, more: int = 1) -> tuple[int, ...]:
            return tuple(codes[f"{name}{i}"] + more for i in range(last - 1, first - 1, -1))

        box: tuple[int, ...] | Im2colBox
        if codes["im2col"]:
            sign = 1 << fields.OFFSET_BITS[rank] - 1
            lower, upper = (tuple((x ^ sign) - sign for x in values(n, 0, rank - 2, 0)) for n in ("lower", "upper"))
            box = Im2colBox(lower=lower, upper=upper, channels=codes["box0"] + 1, pixels=codes["pixels"] + 1)
        else:
            box = values("box", 0, rank)
        return cls(
            codes["address"], box, type=fields.MAP_TYPES[stored + fields.ROUNDED * rounds],
            shape=values("size", 0, rank), strides=tuple(16 * x for x in values("stride", 1, rank, 0)),
            element_strides=values("step", 0, rank),
            interleave=fields.MAP_INTERLEAVES[codes["interleave"]], swizzle=fields.MAP_SWIZZLES[codes["swizzle"]],
            l2_promotion=fields.MAP_PROMOTIONS[codes["promotion"]], fill=fields.MAP_FILLS[codes["fill"]],
        )  # fmt: skip

    @classmethod
    def encode_tiled(
        cls, tensor_data_type: int | str, tensor_rank: int, global_address: int, global_dim: Sequence[int],
        global_strides: Sequence[int], box_dim: Sequence[int], element_strides: Sequence[int], interleave: int = 0,
        swizzle: int = 0, l2_promotion: int = 0, oob_fill: int = 0,
    ) -> Self:  # fmt: skip
        """Make a tiled map from the arguments of `cuTensorMapEncodeTiled`: innermost first, modes by their numbers.

        Parameters
        ----------
        tensor_data_type : int or str
            A number of `CUtensorMapDataType`, 0 to 12, or a name as in `type`.
        tensor_rank : int
        global_address : int
        global_dim, box_dim, element_strides : sequence of int
            One for each dimension, the innermost first.
        global_strides : sequence of int
            Bytes, of every dimension but the innermost.
        interleave, swizzle, l2_promotion, oob_fill : int
            Numbers of the driver's enumerations.

        Examples
        --------
        >>> TensorMap.encode_tiled(6, 2, 0x400, [512, 1024], [1024], [32, 64], [1, 1], swizzle=2).box
        (64, 32)
        """
        given = _driver(
            tensor_data_type, tensor_rank, global_dim, global_strides, element_strides, interleave, swizzle,
            l2_promotion, oob_fill,
        )  # fmt: skip
        return cls(global_address, _reversed("box_dim", box_dim, tensor_rank), **given)

    @classmethod
    def encode_im2col(
        cls, tensor_data_type: int | str, tensor_rank: int, global_address: int, global_dim: Sequence[int],
        global_strides: Sequence[int], pixel_box_lower_corner: Sequence[int], pixel_box_upper_corner: Sequence[int],
        channels_per_pixel: int, pixels_per_column: int, element_strides: Sequence[int], interleave: int = 0,
        swizzle: int = 0, l2_promotion: int = 0, oob_fill: int = 0,
    ) -> Self:  # fmt: skip
        """Make an im2col map from the arguments of `cuTensorMapEncodeIm2col`, as `encode_tiled` does.

        Corners have an entry for each spatial dimension, the innermost, w, first.
        """
        given = _driver(
            tensor_data_type, tensor_rank, global_dim, global_strides, element_strides, interleave, swizzle,
            l2_promotion, oob_fill,
        )  # fmt: skip
        box = Im2colBox(
            lower=_reversed("pixel_box_lower_corner", pixel_box_lower_corner, tensor_rank - 2),
            upper=_reversed("pixel_box_upper_corner", pixel_box_upper_corner, tensor_rank - 2),
            channels=channels_per_pixel, pixels=pixels_per_column,
        )  # fmt: skip
        return cls(global_address, box, **given)

    # The geometry

    def distance(self, coordinates: Sequence[int]) -> int | None:
        """Return how many bytes behind the box at the tensor's first element a tiled box lies.

        None if it is not inside of the tensor as a whole, if it does not begin at a multiple of 16 bytes, or if the map
        is of another mode: such a box may copy something else than one at the first element does.
        """
        if self.im2col or self.interleave or len(coordinates) != self.rank or coordinates[-1] * self.itemsize % 16:
            return None
        extents = zip(coordinates, self.copied_elements, self._steps, self.shape, strict=True)
        if any(at < 0 or at + step * (count - 1) >= size for at, count, step, size in extents):
            return None
        return sum(at * stride for at, stride in zip(coordinates, (*self.strides, self.itemsize), strict=True))

    def box_copy(
        self, coordinates: Sequence[int], at: int = 0, *, offsets: Sequence[int] = (), store: bool = False
    ) -> BoxCopy:
        """Return what a copy of the box at some coordinates moves, element by element.

        Parameters
        ----------
        coordinates : sequence of int
            Of the box's first element, in elements, the outermost dimension first: PTX's list from its end.
        at : int
            Address of the box in shared memory, a multiple of 128.
        offsets : sequence of int
            Of an im2col load: what is added to the coordinates of each pixel, outermost spatial dimension first.
        store : bool
            Whether the copy goes from shared to global memory.

        Returns
        -------
        BoxCopy

        Raises
        ------
        OperandError
            What the instruction traps on: a rank other than the map's, `at` that is not a multiple of 128, an
            innermost coordinate that is not at a multiple of 16 bytes; negative coordinates of a store; an im2col
            start outside of the box of pixels; a store of an im2col map whose box of pixels reaches beyond the image.
        """
        sliced, unit = bool(self.interleave), self.interleave or self.itemsize
        bits = fields.OFFSET_BITS[self.rank] if self.im2col else 0
        start, at, moved = boxes.check_start(coordinates, at, offsets, self.rank, unit, bits, store=store)
        if isinstance(box := self.box, Im2colBox):
            if store:
                boxes.check_stored_corners(box.lower, box.upper)
            index = boxes.im2col_index(
                start, moved, self.shape, box.lower, box.upper, self.element_strides, box.pixels, box.channels,
                sliced=sliced,
            )  # fmt: skip
        else:
            index = boxes.tiled_index(start, self.copied_elements, self._steps)
            if sliced:
                index = tuple(x[..., None] for x in index)
        inside = boxes.inside_of(index, self.shape, unit, store=store)
        source = boxes.source_of(index, (*self.strides, unit))
        if sliced:
            source = source + self.itemsize * np.arange(unit // self.itemsize)
        target, span = boxes.landing(source.shape, self.itemsize, self.swizzle, at, sliced=sliced)
        return BoxCopy(
            index=index, inside=np.broadcast_to(inside, source.shape), source=source, target=target, at=at, span=span,
            itemsize=self.itemsize, swizzle=self.swizzle, nan=self.fill == "nan", rounds=self.type.startswith("tf32"),
        )  # fmt: skip

    def read(
        self, memory: Array, coordinates: Sequence[int], at: int = 0, *, offsets: Sequence[int] = (),
        shared: Array | None = None,
    ) -> Array:  # fmt: skip
        """Return the bytes of shared memory after a load.

        Parameters
        ----------
        memory : ndarray
            The tensor: the bytes of its C-contiguous memory begin at the map's address.
        coordinates, at, offsets
            As of `box_copy`.
        shared : ndarray of uint8, optional
            Bytes of shared memory from address `at` on, for the gaps that a load leaves as they are; zeros by default.

        Returns
        -------
        ndarray of uint8
            Bytes of shared memory from address `at` on, `box_copy(...).span` of them.
        """
        return self.box_copy(coordinates, at, offsets=offsets).load(memory, shared)

    def write(self, memory: Array, shared: Array, coordinates: Sequence[int], at: int = 0) -> None:
        """Write a box of shared memory to the tensor, as a store does; elements outside of the tensor are skipped.

        Parameters
        ----------
        memory : ndarray
            The tensor, which is changed: the bytes of its C-contiguous memory begin at the map's address.
        shared : ndarray of uint8
            Bytes of shared memory from address `at` on.
        coordinates, at
            As of `box_copy`.

        Raises
        ------
        UnsupportedError
            Elements of the box lie on one another in the tensor, so that the order of writes would matter.
        """
        self.box_copy(coordinates, at, store=True).store(memory, shared)

    # Views

    def __str__(self) -> str:
        return view(self, "text")

    def svg(self, coordinates: Sequence[int], at: int = 0, *, offsets: Sequence[int] = (), theme: str = "auto") -> str:
        """Draw what a load at some coordinates brings: the tensor, the box, and where its chunks land.

        Parameters
        ----------
        coordinates, at, offsets
            As of `box_copy`.
        theme : {"auto", "light", "dark"}

        Returns
        -------
        str
            SVG. Each chunk of 16 bytes has attributes `data-address`, `data-index` and `data-filled`.
        """
        return view(self, "svg", coordinates, at, offsets=offsets, theme=theme)


def _dense(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    return tuple(itemsize * math.prod(shape[i:]) for i in range(1, len(shape)))


def _of_array(array: Any) -> dict[str, Any]:
    """Return the fields that follow from an array: of NumPy, or one with `address`, `dtype` and `shape`."""
    placed = hasattr(type(array), "address") and isinstance(getattr(array, "dtype", None), np.dtype)
    if not placed and not isinstance(array, np.ndarray):
        raise OperandError(f"address is {shown(array)}; expected an integer, a NumPy array or a device array")
    name, size = str(array.dtype), array.dtype.itemsize
    if (kind := _OF_DTYPES.get(name, _OF_WIDTHS.get(size))) is None:
        raise OperandError(f"the array is of {name}; expected one of {', '.join(_OF_DTYPES)}, or of 1 or 2 bytes")
    found = {"type": kind, "shape": tuple(array.shape)}
    if placed:
        return {**found, "address": array.address}
    if array.ndim and array.strides[-1] != size and array.shape[-1] > 1:
        raise OperandError(
            f"the array's innermost stride is {array.strides[-1]} bytes; expected {size}: the innermost elements of a "
            "tensor map are adjacent; the nearest is np.ascontiguousarray(array)"
        )
    return {**found, "address": array.ctypes.data, "strides": array.strides[:-1]}


def _integers(name: str, values: Any, legal: range, count: int | None = None) -> tuple[int, ...]:
    """Check a sequence of integers, and its length."""
    found = members(values, fields.MOST_DIMENSIONS)
    if found is None or (count is not None and len(found) != count) or len(found) > fields.MOST_DIMENSIONS:
        many = f"{count} integers" if count is not None else "1 to 5 integers"
        raise OperandError(f"{name} is {shown(values)}; expected {many}, the outermost dimension first")
    for i, x in enumerate(found):
        fields.check_legal(name if name in ("channels", "pixels") else f"{name}[{i}]", x, legal)
    return tuple(int(x) for x in found)


def _reversed(name: str, values: Any, count: int) -> tuple[Any, ...]:
    found = members(values, fields.MOST_DIMENSIONS)
    if found is None or len(found) != count:
        raise OperandError(f"{name} is {shown(values)}; expected {count} integers, the innermost dimension first")
    return tuple(found[::-1])


def _driver(
    data_type: Any, rank: Any, sizes: Any, strides: Any, steps: Any, interleave: Any, swizzle: Any, promotion: Any,
    fill: Any,
) -> dict[str, Any]:  # fmt: skip
    """Return what both encodes of the driver take, in our words."""
    fields.check_legal("tensor_rank", rank, range(1, fields.MOST_DIMENSIONS + 1))
    if not isinstance(data_type, str):
        fields.check_legal("tensor_data_type", data_type, range(len(_HOST_TYPES)))
        data_type = _HOST_TYPES[data_type]
    modes = {
        "interleave": (interleave, fields.MAP_INTERLEAVES), "swizzle": (swizzle, fields.MAP_SWIZZLES),
        "l2_promotion": (promotion, fields.MAP_PROMOTIONS), "oob_fill": (fill, fields.MAP_FILLS),
    }  # fmt: skip
    for name, (code, legal) in modes.items():
        fields.check_legal(name, code, range(len(legal)))
    chosen: dict[str, Any] = {name: legal[code] for name, (code, legal) in modes.items()}
    chosen["fill"] = chosen.pop("oob_fill")
    return {
        "type": data_type, "shape": _reversed("global_dim", sizes, rank),
        "strides": _reversed("global_strides", strides, rank - 1),
        "element_strides": _reversed("element_strides", steps, rank), **chosen,
    }  # fmt: skip
