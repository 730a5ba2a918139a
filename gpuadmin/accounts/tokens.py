"""API tokens: only their digests are kept, and each is told once."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from gpuadmin.accounts.audit import Actor, Outcome, audit
from gpuadmin.accounts.models import AccessToken
from gpuadmin.accounts.roles import Role
from gpuadmin.accounts.services import AccountError, changeable, subject_of, told_of_a_double

LAST_USED_EVERY = timedelta(minutes=1)
DEFAULT_DAYS, MAX_DAYS = 90, 3650


def create_token(
    actor: Actor, name: str, token_name: str, *, cap: Role | None, days: int | None
) -> str:
    """A new token of the user, told this once. ``days`` None: it does not expire.

    Raises ``Refused``, and ``AccountError`` for a disabled user or a name that is taken.
    """
    user = changeable(actor, name)
    if not user.is_active:
        raise AccountError(f"{name} is disabled: enable the user first.")
    if not token_name.isprintable() or not 1 <= len(token_name) <= 60:
        raise AccountError("A token's name has 1 to 60 printable characters.", "name")
    taken = f"{name} has a token “{token_name}” already: revoke it, or choose another name."
    with told_of_a_double(taken), transaction.atomic():
        row, token = AccessToken.objects.create(  # type: ignore[no-untyped-call]  # knox's manager
            user,
            expiry=None if days is None else timedelta(days=days),
            name=token_name,
            role_cap=cap.label if cap else "",
        )
        detail = {"token": token_name, "role_cap": row.role_cap, "days": days}
        audit(actor, "token.create", Outcome.DONE, subject_of(user), detail=detail)
    return str(token)


def revoke_token(actor: Actor, name: str, token_name: str) -> None:
    """Ends one token at once. Raises ``Refused``, and ``AccountError`` where there is none."""
    user = changeable(actor, name)
    with transaction.atomic():
        gone, _ = user.auth_token_set.filter(name=token_name).delete()
        if not gone:
            raise AccountError(f"{name} has no token “{token_name}”.")
        detail = {"token": token_name}
        audit(actor, "token.revoke", Outcome.DONE, subject_of(user), detail=detail)


def note_use(token: AccessToken) -> None:
    """Dates the token's last use, at most once a minute."""
    now = timezone.now()
    if token.last_used is None or now - token.last_used >= LAST_USED_EVERY:
        AccessToken.objects.filter(pk=token.pk).update(last_used=now)
