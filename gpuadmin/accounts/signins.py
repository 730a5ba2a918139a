"""Sign-ins and failed sign-ins: their limits and their audit rows."""

from __future__ import annotations

import ipaddress
from typing import Any

from axes.attempts import get_cool_off_threshold
from axes.handlers.database import AxesDatabaseHandler
from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.auth.signals import user_logged_in
from django.db.models import Sum
from django.dispatch import receiver
from django.http import HttpRequest

from gpuadmin.accounts import sessions
from gpuadmin.accounts.access import role_of
from gpuadmin.accounts.audit import Actor, Outcome, Subject, audit, refused_since
from gpuadmin.accounts.models import User
from gpuadmin.accounts.peers import address_of
from gpuadmin.accounts.roles import Role

ACTION = "sign-in"


@receiver(user_logged_in)
def on_sign_in(*, request: HttpRequest, user: User, **kwargs: Any) -> None:
    sessions.begin(request)
    audit(Actor(user, role_of(user), "session", address_of(request)), ACTION, Outcome.DONE)


def counted_address(request: HttpRequest) -> str | None:
    """The address by which failures are counted: of IPv6 the /64, which one customer has whole."""
    address = address_of(request)
    if address is None or ":" not in address:
        return address
    return str(ipaddress.ip_network(f"{address}/64", strict=False).network_address)


class Limits(AxesDatabaseHandler):  # type: ignore[misc]  # axes has no types
    """axes' limit on a name from an address, and one on the address whatever the name.

    A failure is audited until the lock falls, and not while it holds.
    """

    def is_locked(self, request: Any, credentials: dict[str, Any] | None = None) -> bool:
        return super().is_locked(request, credentials) or _is_spraying(request)

    def user_login_failed(
        self, sender: Any, credentials: dict[str, Any], request: Any = None, **kwargs: Any
    ) -> None:
        was_locked = request is None or request.axes_locked_out
        super().user_login_failed(sender, credentials, request, **kwargs)
        if not was_locked:
            _audit_failure(request, str(credentials.get("username", "")))


def _is_spraying(request: Any) -> bool:
    address = request.axes_ip_address
    if address is None:  # a unix socket: whoever is behind it cannot be told apart
        return False
    lately = AccessAttempt.objects.filter(
        ip_address=address, attempt_time__gte=get_cool_off_threshold(request)
    )
    failures: int = lately.aggregate(sum=Sum("failures_since_start"))["sum"] or 0
    return failures >= settings.SIGN_IN_FAILURES_PER_ADDRESS


def _audit_failure(request: Any, typed: str) -> None:
    """What was typed is kept only where it is somebody's name: it may be a password. Of all other
    failures an address gets one row for the time of a lock.
    """
    user = User.objects.filter(username=typed).first()
    if user is not None:
        actor = Actor(None, Role.NONE, "session", address_of(request))
        audit(actor, ACTION, Outcome.REFUSED, Subject("user", str(user.pk), user.get_username()))
        return
    stranger = Actor(None, Role.NONE, "session", request.axes_ip_address)
    lately = get_cool_off_threshold(request)
    if not refused_since(lately, ACTION, object_uid="", address=stranger.address):
        audit(stranger, ACTION, Outcome.REFUSED, Subject("user"))
