"""From a request to an actor, and from an actor to a yes or a refusal."""

from __future__ import annotations

import ipaddress
from typing import Any

from gpuadmin.accounts.audit import Actor, Outcome, Subject, audit
from gpuadmin.accounts.models import AccessToken, User
from gpuadmin.accounts.roles import Permission, Role


class Refused(Exception):
    """The actor's role does not reach; the audit row is written. ``str()`` is for the person."""


def role_of(user: User, token: AccessToken | None = None) -> Role:
    """The user's highest group, lowered by the token's cap where it has one."""
    role = Role.highest(list(user.groups.values_list("name", flat=True)))
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
    request._gpuadmin_actor = actor
    return actor


def address_of(request: Any) -> str | None:
    """The peer's IP address; None on a unix socket."""
    try:
        return str(ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")))
    except ValueError:
        return None


def may(actor: Actor, permission: Permission) -> bool:
    """Whether the actor's role reaches; for pages that hide what would be refused."""
    return actor.role >= permission.least


def require(actor: Actor, permission: Permission, subject: Subject | None = None) -> None:
    """Lets the actor pass, or writes the audit row and raises ``Refused`` with a sentence."""
    if may(actor, permission):
        return
    audit(actor, permission.key, Outcome.REFUSED, subject)
    if actor.role is Role.NONE:
        raise Refused(
            f"{actor.name} has no role here. An administrator gives one with "
            f"“manage.py gpuadmin_user set-role {actor.name} viewer”."
        )
    raise Refused(
        f"Your role is {actor.role.label}. It takes {permission.least.label} "
        f"to {permission.sentence}."
    )
