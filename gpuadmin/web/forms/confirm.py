"""The footer of a plan: what confirms it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from django.http import QueryDict

from gpuadmin.operations.store import Confirmation

LASTS: dict[str, tuple[str, int | None]] = {
    "": ("until somebody undoes it", None),
    "1h": ("1 hour", 3600),
    "4h": ("4 hours", 4 * 3600),
    "1d": ("1 day", 86400),
    "3d": ("3 days", 3 * 86400),
    "7d": ("7 days", 7 * 86400),
}


@dataclass(frozen=True)
class ConfirmForm:
    """The footer of a plan. A fresh key makes a second click harmless."""

    fingerprint: str = ""
    reason: str = ""
    confirm: str = ""
    lasts: str = ""
    key: str = field(default_factory=lambda: secrets.token_urlsafe(16))

    @classmethod
    def read(cls, query: QueryDict) -> ConfirmForm:
        lasts = query.get("lasts", "")
        return cls(
            query.get("fingerprint", ""),
            query.get("reason", ""),
            query.get("confirm", ""),
            lasts if lasts in LASTS else "",
            query.get("idempotency_key", "")[:120] or secrets.token_urlsafe(16),
        )

    @property
    def choices(self) -> list[tuple[str, str, bool]]:
        """How long the change may last: value, words, chosen."""
        return [(value, words, value == self.lasts) for value, (words, _) in LASTS.items()]

    def confirmation(self) -> Confirmation:
        """As operations take it."""
        seconds = LASTS[self.lasts][1]
        return Confirmation(self.fingerprint, self.reason, self.confirm.strip(), self.key, seconds)
