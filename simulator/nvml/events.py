"""Event sets: XIDs with a number above the last one at registration (contracts.md 6.5)."""

from __future__ import annotations

import ctypes
import time
from typing import Any

import pynvml

from simulator.hardware import SimXid
from simulator.nvml.devices import NO_INSTANCE
from simulator.nvml.library import FakeNvml, Refused, Target, device_function, function, number, put

LOOK_SECONDS = 0.5  # how often a wait looks at the file: cheap, and soon enough
XID = pynvml.nvmlEventTypeXidCriticalError


class EventSet:
    """The cards that are listened to, each with the number of the last XID already told."""

    def __init__(self) -> None:
        self.last_number: dict[str, int] = {}

    def next_xid(self, library: FakeNvml) -> SimXid | None:
        """The oldest XID not yet told, now told; None while there is none."""
        for xid in library.world.hardware.xids:
            if xid.number > self.last_number.get(xid.gpu_uuid, xid.number):
                self.last_number[xid.gpu_uuid] = xid.number
                return xid
        return None


@function("nvmlEventSetCreate")
def _create(library: FakeNvml, out: Any) -> None:
    library.put_handle(out, EventSet())


@function("nvmlEventSetFree")
def _free(library: FakeNvml, handle: Any) -> None:
    library.forget(_event_set(library, handle))


@device_function("nvmlDeviceGetSupportedEventTypes", on_mig=False)
def _supported(_: FakeNvml, target: Target, out: Any) -> None:
    put(out, 0 if target.card.unified_memory else XID)


@device_function("nvmlDeviceRegisterEvents", on_mig=False)
def _register(library: FakeNvml, target: Target, types: Any, handle: Any) -> None:
    if number(types) & ~XID or target.card.unified_memory:
        raise Refused(pynvml.NVML_ERROR_NOT_SUPPORTED)
    newest = max((xid.number for xid in library.world.hardware.xids), default=0)
    _event_set(library, handle).last_number[target.card.uuid] = newest


@function("nvmlEventSetWait_v2")
def _wait(library: FakeNvml, handle: Any, out: Any, milliseconds: Any) -> None:
    event_set = _event_set(library, handle)
    deadline = time.monotonic() + number(milliseconds) / 1000
    while (xid := event_set.next_xid(library)) is None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise Refused(pynvml.NVML_ERROR_TIMEOUT)
        time.sleep(min(left, LOOK_SECONDS))
    event = out._obj
    event.device = ctypes.cast(library.address(xid.gpu_uuid), pynvml.c_nvmlDevice_t)
    event.eventType, event.eventData = XID, xid.code
    event.gpuInstanceId = event.computeInstanceId = NO_INSTANCE


def _event_set(library: FakeNvml, handle: Any) -> EventSet:
    event_set = library.thing(handle)
    if not isinstance(event_set, EventSet):
        raise Refused(pynvml.NVML_ERROR_INVALID_ARGUMENT)
    return event_set
