"""Browser sessions: kept in the database with their user, and ended by two clocks.

A session ends GPUADMIN_SESSION_HOURS after its sign-in, whatever happens, and earlier once nobody
used it for GPUADMIN_SESSION_IDLE_MINUTES. A page that asks for itself is no use (SESSION_ENGINE).
"""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends import db
from django.contrib.sessions.backends.base import UpdateError

from gpuadmin.accounts.peers import address_of

NOTED_EVERY_SECONDS = 60.0
SIGNED_IN, SEEN, ADDRESS, BROWSER = "signed_in_at", "seen_at", "address", "browser"


class SessionStore(db.SessionStore):
    """Django's, with a row that says whose it is. Moments in its data are Unix seconds."""

    @classmethod
    def get_model_class(cls) -> Any:
        from gpuadmin.accounts.models import BrowserSession  # noqa: PLC0415  apps load first

        return BrowserSession

    def create_model_instance(self, data: dict[str, Any]) -> Any:
        row: Any = super().create_model_instance(data)
        row.user_id = data.get(SESSION_KEY)
        row.signed_in_at, row.seen_at = _moment(data.get(SIGNED_IN)), _moment(data.get(SEEN))
        row.address, row.browser = data.get(ADDRESS), data.get(BROWSER, "")
        return row

    def save(self, must_create: bool = False) -> None:
        """What was ended while its own request ran stays ended; there is nothing to keep of it."""
        with suppress(UpdateError):
            super().save(must_create)

    def get_expiry_date(self, **kwargs: Any) -> datetime:
        """The earlier of the two ends. What is saved is what the next request is held to."""
        if SIGNED_IN not in self:
            return super().get_expiry_date(**kwargs)
        last = self[SIGNED_IN] + settings.SESSION_COOKIE_AGE
        return datetime.fromtimestamp(min(last, self[SEEN] + settings.SESSION_IDLE_SECONDS), UTC)

    def get_expiry_age(self, **kwargs: Any) -> int:
        if SIGNED_IN not in self:
            return super().get_expiry_age(**kwargs)
        return max(0, int(self.get_expiry_date().timestamp() - time.time()))


def begin(request: Any) -> None:
    """Starts both clocks; Django has just given the session a new id."""
    request.session[SIGNED_IN] = request.session[SEEN] = time.time()
    request.session[ADDRESS] = address_of(request)
    request.session[BROWSER] = request.META.get("HTTP_USER_AGENT", "")[:200]


def note_use(request: Any) -> None:
    """Dates the last use, at most once a minute. Live parts, which send If-None-Match, are none."""
    session = getattr(request, "session", None)
    if session is None or SEEN not in session or "HTTP_IF_NONE_MATCH" in request.META:
        return
    now = time.time()
    if now - session[SEEN] >= NOTED_EVERY_SECONDS:
        session[SEEN] = now


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
