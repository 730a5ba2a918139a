"""The audit record: who did or tried what, to what, and with which result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gpuadmin.accounts.models import AuditEntry, User
from gpuadmin.accounts.roles import Role

Outcome = AuditEntry.Outcome


@dataclass(frozen=True)
class Actor:
    """Who asks: a user with the role that holds for this request, or a process of ours.

    ``via`` is ``session``, ``token:<name>``, ``command`` or ``system``; ``address`` is the peer's
    IP address, None where there is none.
    """

    user: User | None
    role: Role
    via: str
    address: str | None = None

    @property
    def name(self) -> str:
        return self.user.get_username() if self.user else self.via


COMMAND = Actor(None, Role.ADMIN, "command")


@dataclass(frozen=True)
class Subject:
    """The object of an audit row."""

    kind: str
    uid: str = ""
    name: str = ""


def audit(
    actor: Actor,
    action: str,
    outcome: AuditEntry.Outcome,
    subject: Subject | None = None,
    *,
    reason: str = "",
    detail: Mapping[str, Any] | None = None,
) -> AuditEntry:
    """Writes one row. A refusal is written outside the transaction that it ends."""
    return AuditEntry.objects.create(
        actor=actor.user,
        actor_name=actor.name[:150],
        via=actor.via[:80],
        role=actor.role.label,
        action=action,
        outcome=outcome,
        object_kind=subject.kind if subject else "",
        object_uid=subject.uid if subject else "",
        object_name=subject.name[:253] if subject else "",
        reason=reason,
        detail=dict(detail or {}),
        address=actor.address,
    )


def refused_since(moment: datetime, action: str, **columns: Any) -> bool:
    """Whether such a refusal has a row already: what anybody may repeat must not fill the table."""
    rows = AuditEntry.objects.filter(at__gte=moment, action=action, outcome=Outcome.REFUSED)
    return rows.filter(**columns).exists()
