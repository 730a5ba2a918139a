"""From where a request comes."""

from __future__ import annotations

import ipaddress
from typing import Any

from django.conf import settings


def address_of(request: Any) -> str | None:
    """The client's IP address; None where there is none, as on a unix socket.

    Each trusted proxy has appended the address that it saw to X-Forwarded-For. What stands left of
    theirs is anybody's claim; where theirs are missing, the peer's own address counts.
    """
    peer, proxies = request.META.get("REMOTE_ADDR", ""), settings.TRUSTED_PROXIES
    told = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")
    forwarded = told[-proxies] if 0 < proxies <= len(told) else ""
    return _ip_address(forwarded) or _ip_address(peer)


def _ip_address(text: str) -> str | None:
    try:
        return str(ipaddress.ip_address(text.strip().partition("%")[0]))  # without an IPv6 zone
    except ValueError:
        return None
