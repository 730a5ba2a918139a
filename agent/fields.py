"""Reading one device field by field: what fails is ``None`` and leaves its reason behind."""

from __future__ import annotations

from typing import Any

from agent import nvml
from agent.contract.report import FieldError


class Fields:
    """Reads one NVML device. ``errors`` maps a field of the wire to why it is ``None``."""

    def __init__(self, handle: nvml.Handle) -> None:
        self.handle = handle
        self.errors: dict[str, FieldError] = {}

    def read(self, field: str, names: str | tuple[str, ...], *args: Any) -> Any | None:
        """The answer of NVML's ``names`` for this device, or None.

        Raises ``nvml.CardLostError``: no other field of a lost card is worth asking for.
        """
        try:
            return nvml.call(names, self.handle, *args)
        except nvml.FieldUnreadableError as error:
            self.errors[field] = error.reason
            return None

    def read_memory(self) -> Any | None:
        """Memory {total, used} in bytes, or None. A total of 0 is unknown too (C27)."""
        try:
            info = nvml.memory_info(self.handle)
        except nvml.FieldUnreadableError as error:
            self._no_memory(error.reason)
            return None
        if info.total == 0:
            self._no_memory("not_supported")
            return None
        return info

    def _no_memory(self, reason: FieldError) -> None:
        self.errors["memory_total_bytes"] = self.errors["memory_used_bytes"] = reason
