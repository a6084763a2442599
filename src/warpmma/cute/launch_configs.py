"""CUDA's record of a launch, as `cudaLaunchKernelExC` takes it."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from ..errors import UnsupportedError


class _Config(ctypes.Structure):  # cudaLaunchConfig_t
    _fields_ = (
        ("grid", ctypes.c_uint32 * 3), ("block", ctypes.c_uint32 * 3), ("shared", ctypes.c_uint64),
        ("stream", ctypes.c_void_p), ("attributes", ctypes.c_void_p), ("count", ctypes.c_uint32),
    )  # fmt: skip


class _Attribute(ctypes.Structure):  # cudaLaunchAttribute
    _fields_ = (("id", ctypes.c_int32), ("padding", ctypes.c_char * 4), ("value", ctypes.c_uint32 * 16))


_IGNORE, _ACCESS_POLICY, _COOPERATIVE, _SYNCHRONIZATION, _CLUSTER, _CLUSTER_SCHEDULING = range(6)
_SERIALIZATION, _EVENT, _PRIORITY, _DOMAIN_MAP, _DOMAIN, _PREFERRED_CLUSTER, _COMPLETION_EVENT = range(6, 13)
_CARVEOUT = 14

_ACCEPTED = frozenset((
    _IGNORE, _ACCESS_POLICY, _SYNCHRONIZATION, _CLUSTER_SCHEDULING, _SERIALIZATION, _EVENT, _PRIORITY, _DOMAIN_MAP,
    _DOMAIN, _PREFERRED_CLUSTER, _COMPLETION_EVENT, _CARVEOUT,
))  # fmt: skip
"""Attributes that change no result (rule 5 of `runtime_functions`)."""


@dataclass(frozen=True, kw_only=True)
class LaunchConfig:
    """A grid, its blocks, and what they need."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    cluster: tuple[int, int, int] | None
    cooperative: bool


def launch_config(address: int) -> LaunchConfig:
    """Read the record at an address.

    Raises
    ------
    UnsupportedError
        An attribute that a simulated GPU does not have.
    """
    config = _Config.from_address(address)
    cluster, cooperative = None, False
    attributes = (_Attribute * config.count).from_address(config.attributes or 0)
    for each in attributes if config.count else ():
        if each.id == _CLUSTER:
            cluster = _sizes(each.value) if each.value[0] else None
        elif each.id == _COOPERATIVE:
            cooperative = bool(each.value[0])
        elif each.id not in _ACCEPTED and any(each.value):
            raise UnsupportedError(
                f"attribute {each.id} of a launch is not simulated; clusters ({_CLUSTER}), cooperative launches "
                f"({_COOPERATIVE}) and programmatic serialization ({_SERIALIZATION}) are"
            )
    return LaunchConfig(
        grid=_sizes(config.grid), block=_sizes(config.block), shared=config.shared, cluster=cluster,
        cooperative=cooperative,
    )  # fmt: skip


def _sizes(values: ctypes.Array[ctypes.c_uint32]) -> tuple[int, int, int]:
    return values[0], values[1], values[2]
