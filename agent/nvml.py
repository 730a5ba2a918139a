"""The one funnel to NVML: the only module that imports pynvml.

Everything else names NVML functions by their text and gets plain values back. A field that can't
be read is ``None`` with its reason; only a lost card, or a library that answers nothing, raises.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pynvml

from agent.contract.report import FieldError

Handle = Any  # an opaque pointer of ctypes
NO_INSTANCE = 0xFFFFFFFF  # what NVML writes where there is no GPU or compute instance

_FIELD_ERRORS: dict[int, FieldError] = {
    pynvml.NVML_ERROR_NOT_SUPPORTED: "not_supported",
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: "not_supported",  # the driver is older than the call
    pynvml.NVML_ERROR_NO_PERMISSION: "no_permission",
    pynvml.NVML_ERROR_GPU_IS_LOST: "gpu_is_lost",
}
_TRY_OLDER = {
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
    pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
}
# What to do about it, for errors of the library as a whole (contracts.md 6.1).
_ADVICE = {
    pynvml.NVML_ERROR_NO_PERMISSION: "let the agent's container see the GPU devices",
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "load or finish installing the NVIDIA driver on the node",
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "give the agent the nvidia runtime class, or install "
    "the container toolkit on the node",
    pynvml.NVML_ERROR_GPU_IS_LOST: "drain the node and power-cycle it",
    pynvml.NVML_ERROR_RESET_REQUIRED: "drain the node and reset the GPU",
    pynvml.NVML_ERROR_OPERATING_SYSTEM: "restart the agent: the node took its GPU devices away",
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "reboot the node: the driver was upgraded and not "
    "reloaded",
    pynvml.NVML_ERROR_UNKNOWN: "read the node's kernel log, then drain and reboot the node",
}


class NvmlError(Exception):
    """NVML as a whole can't be read. The message is one sentence for a person."""


class FieldUnreadableError(Exception):
    """One call failed in a way that concerns only its field; ``reason`` goes on the wire."""

    def __init__(self, reason: FieldError, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class CardLostError(Exception):
    """NVML says that this card is lost (C25)."""


def initialise() -> None:
    """Open NVML. Pair each success with one ``shutdown`` (C18). Raises ``NvmlError``."""
    _whole("NVML can't be opened", pynvml.nvmlInit)


def shutdown() -> None:
    """Close NVML. Raises ``NvmlError``."""
    _whole("NVML can't be closed", pynvml.nvmlShutdown)


def device_count() -> int:
    """How many cards NVML counts. Raises ``NvmlError``: without it nothing can be read."""
    return int(_whole("NVML can't count the GPUs", pynvml.nvmlDeviceGetCount))


def call(names: str | tuple[str, ...], *args: Any, **kwargs: Any) -> Any:
    """The answer of the first of ``names`` (newest first) that this driver knows.

    Raises ``CardLostError`` or ``FieldUnreadableError``.
    """
    *newer, oldest = (names,) if isinstance(names, str) else names
    for name in newer:
        try:
            return _call_one(name, args, kwargs)
        except pynvml.NVMLError as error:
            if error.value not in _TRY_OLDER:
                raise _translated(error, name) from error
    try:
        return _call_one(oldest, args, kwargs)
    except pynvml.NVMLError as error:
        raise _translated(error, oldest) from error


def found(name: str, *args: Any) -> Any | None:
    """Like ``call``, but a hole in a numbered row (NotFound, contracts.md 6.6) is ``None``."""
    try:
        return _call_one(name, args, {})
    except pynvml.NVMLError as error:
        if error.value in (pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_ERROR_INVALID_ARGUMENT):
            return None
        raise _translated(error, name) from error


def memory_info(handle: Handle) -> Any:
    """{total, used, free} in bytes; v2, whose ``used`` leaves out what the driver reserves, or v1.

    Raises as ``call``. Not supported means that neither version is (C27).
    """
    try:
        return pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    except pynvml.NVMLError as error:
        if error.value not in _TRY_OLDER | {pynvml.NVML_ERROR_NOT_SUPPORTED}:
            raise _translated(error, "nvmlDeviceGetMemoryInfo_v2") from error
    return call("nvmlDeviceGetMemoryInfo", handle)


def open_xid_events(handles: list[Handle]) -> Any | None:
    """An event set that hears XIDs of those ``handles`` that can tell them, or None if none can.

    An unsupported bit would register nothing (contracts.md 6.5), hence the mask. A lost card
    can't be listened to, which must not deafen us for the others (C25).
    """
    event_set = call("nvmlEventSetCreate")
    heard = [handle for handle in handles if _register(handle, event_set)]
    if heard:
        return event_set
    close_events(event_set)
    return None


def wait_for_xid(event_set: Any, milliseconds: int) -> Any | None:
    """The next event {device, eventData, gpuInstanceId, computeInstanceId}, or None in that time.

    Raises as ``call``.
    """
    try:
        return pynvml.nvmlEventSetWait(event_set, milliseconds)
    except pynvml.NVMLError as error:
        if error.value == pynvml.NVML_ERROR_TIMEOUT:
            return None
        raise _translated(error, "nvmlEventSetWait") from error


def close_events(event_set: Any) -> None:
    """Free the event set; nobody may be waiting on it. Raises as ``call``."""
    call("nvmlEventSetFree", event_set)


def address(handle: Handle) -> int | None:
    """The number behind a handle: an event names its card by the handle that was registered."""
    return ctypes.cast(handle, ctypes.c_void_p).value


def _register(handle: Handle, event_set: Any) -> bool:
    xid = pynvml.nvmlEventTypeXidCriticalError
    try:
        if not call("nvmlDeviceGetSupportedEventTypes", handle) & xid:
            return False
        call("nvmlDeviceRegisterEvents", handle, xid, event_set)
    except (FieldUnreadableError, CardLostError):
        return False
    return True


def _call_one(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    function = getattr(pynvml, name)
    try:
        return function(*args, **kwargs)
    except UnicodeDecodeError as error:  # text that is no UTF-8 must not spoil the rest
        raise FieldUnreadableError("error", f"{name}: the text is not UTF-8") from error


def _translated(error: Any, name: str) -> Exception:
    if error.value == pynvml.NVML_ERROR_GPU_IS_LOST:
        return CardLostError(f"{name}: {error}")
    return FieldUnreadableError(_FIELD_ERRORS.get(error.value, "error"), f"{name}: {error}")


def _whole(what: str, function: Callable[[], Any]) -> Any:
    try:
        return function()
    except pynvml.NVMLError as error:
        advice = _ADVICE.get(error.value, "look at the node's kernel log")
        raise NvmlError(f"{what} ({error}, code {error.value}): {advice}.") from error
