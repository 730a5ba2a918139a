"""From a request to an actor, and from an actor to a yes or a refusal."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone

from gpuadmin.accounts.audit import Actor, Outcome, Subject, audit, refused_since
from gpuadmin.accounts.models import AccessToken, User
from gpuadmin.accounts.peers import address_of
from gpuadmin.accounts.roles import Permission, Role
from gpuadmin.accounts.sessions import note_use

REFUSAL_TOLD_AGAIN = timedelta(hours=1)


class Refused(Exception):
    """The actor's role does not reach; the audit row is written. ``str()`` is for the person."""


def role_of(user: User, token: AccessToken | None = None) -> Role:
    """The user's highest group, lowered by the token's cap where it has one."""
    role = Role.highest([group.name for group in user.groups.all()])
    if token is not None and token.role_cap:
        return min(role, Role.named(token.role_cap))
    return role


def actor_of(request: Any) -> Actor:
    """The signed-in user of a Django or REST request.

    Asked once and kept on the request. Raises TypeError for an anonymous one: sign-in comes first.
    """
    known = getattr(request, "_gpuadmin_actor", None)
    if isinstance(known, Actor):
        return known
    if not isinstance(request.user, User):
        raise TypeError("nobody is signed in")
    token = getattr(request, "auth", None)
    via = f"token:{token.name}" if token else "session"
    actor = Actor(request.user, role_of(request.user, token), via, address_of(request))
    if token is None:
        note_use(request)
    request._gpuadmin_actor = actor
    return actor


def may(actor: Actor, permission: Permission) -> bool:
    """Whether the actor's role reaches; for pages that hide what would be refused."""
    return actor.role >= permission.least


def require(actor: Actor, permission: Permission, subject: Subject | None = None) -> None:
    """Lets the actor pass, or writes the audit row and raises ``Refused`` with a sentence.

    Whoever has no role gets one row an hour for each action: the table never shrinks.
    """
    if may(actor, permission):
        return
    if actor.role is not Role.NONE:
        audit(actor, permission.key, Outcome.REFUSED, subject)
        raise Refused(
            f"Your role is {actor.role.label}. It takes {permission.least.label} "
            f"to {permission.sentence}."
        )
    if not refused_since(timezone.now() - REFUSAL_TOLD_AGAIN, permission.key, actor=actor.user):
        audit(actor, permission.key, Outcome.REFUSED, subject)
    raise Refused(
        f"{actor.name} has no role here. An administrator gives one with "
        f"“manage.py gpuadmin_user set-role {actor.name} viewer”."
    )
