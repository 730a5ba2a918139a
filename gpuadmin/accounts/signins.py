"""Sign-ins and failed sign-ins as audit rows, from Django's own signals."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.signals import user_logged_in, user_login_failed
from django.dispatch import receiver
from django.http import HttpRequest

from gpuadmin.accounts.access import address_of, role_of
from gpuadmin.accounts.audit import Actor, Outcome, Subject, audit
from gpuadmin.accounts.models import User
from gpuadmin.accounts.roles import Role


@receiver(user_logged_in)
def on_sign_in(*, request: HttpRequest, user: User, **kwargs: Any) -> None:
    actor = Actor(user, role_of(user), "session", address_of(request))
    audit(actor, "sign-in", Outcome.DONE)


@receiver(user_login_failed)
def on_failed_sign_in(
    *, credentials: dict[str, Any], request: HttpRequest | None = None, **kwargs: Any
) -> None:
    """Also called for an account that axes has locked. The name is what was typed."""
    actor = Actor(None, Role.NONE, "session", address_of(request) if request else None)
    typed = str(credentials.get("username", ""))
    audit(actor, "sign-in", Outcome.REFUSED, Subject("user", "", typed))
