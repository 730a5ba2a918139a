"""What a change makes of the part of an object that it writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Value = Any  # the part as JSON: a node's taint list, or {"unschedulable": bool}


@dataclass(frozen=True)
class Edit:
    """The new value, or None where nothing is to be written; ``message`` says what, or why not."""

    value: Value | None
    message: str
