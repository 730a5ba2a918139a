"""Users and tokens: every change is an audit row."""

from __future__ import annotations

from datetime import timedelta

from django.contrib.auth.models import Group
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from gpuadmin.accounts.audit import Actor, Outcome, Subject, audit
from gpuadmin.accounts.models import AccessToken, User
from gpuadmin.accounts.roles import Role

LAST_USED_EVERY = timedelta(minutes=1)


class AccountError(Exception):
    """What was asked cannot be done; ``str()`` says why and what to do."""


@transaction.atomic
def create_user(actor: Actor, name: str, role: Role, password: str) -> User:
    """A user who signs in with a password that the validators accept. Raises ``AccountError``."""
    user = User(username=name)
    try:
        user.full_clean(exclude=["password"])
        validate_password(password, user)
    except ValidationError as error:
        raise AccountError(" ".join(error.messages)) from error
    user.set_password(password)
    user.save()
    _put_into_group(user, role)
    audit(actor, "user.create", Outcome.DONE, subject_of(user), detail={"role": role.label})
    return user


@transaction.atomic
def set_password(actor: Actor, name: str, password: str) -> None:
    """A new password, which ends the sessions of the old one. Raises ``AccountError``."""
    user = find_user(name)
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise AccountError(" ".join(error.messages)) from error
    user.set_password(password)
    user.save(update_fields=["password"])
    audit(actor, "user.set-password", Outcome.DONE, subject_of(user))


@transaction.atomic
def set_role(actor: Actor, name: str, role: Role) -> None:
    """Replaces the user's role; NONE takes it away. Raises ``AccountError``, also for the last
    administrator."""
    user = find_user(name)
    if role is not Role.ADMIN:
        _leave_an_admin(user)
    _put_into_group(user, role)
    audit(actor, "user.set-role", Outcome.DONE, subject_of(user), detail={"role": role.label})


@transaction.atomic
def disable(actor: Actor, name: str) -> None:
    """Ends the user's tokens, and by is_active the sessions; audit rows still name the row.

    Raises ``AccountError``, also for the last administrator.
    """
    user = find_user(name)
    _leave_an_admin(user)
    user.is_active = False
    user.save(update_fields=["is_active"])
    user.auth_token_set.all().delete()
    audit(actor, "user.disable", Outcome.DONE, subject_of(user))


@transaction.atomic
def enable(actor: Actor, name: str) -> None:
    """Lets a disabled user sign in again; tokens have to be made anew. Raises ``AccountError``."""
    user = find_user(name)
    user.is_active = True
    user.save(update_fields=["is_active"])
    audit(actor, "user.enable", Outcome.DONE, subject_of(user))


@transaction.atomic
def create_token(
    actor: Actor, name: str, token_name: str, *, cap: Role | None, days: int | None
) -> str:
    """A new token of the user, told this once. ``days`` None: it does not expire.

    Raises ``AccountError`` for a disabled user or a name that is taken.
    """
    user = find_user(name)
    if not user.is_active:
        raise AccountError(f"{name} is disabled: enable the user first.")
    if not token_name.isprintable() or not 1 <= len(token_name) <= 60:
        raise AccountError("A token's name has 1 to 60 printable characters.")
    if user.auth_token_set.filter(name=token_name).exists():
        raise AccountError(
            f"{name} has a token “{token_name}” already: revoke it, or choose another name."
        )
    row, token = AccessToken.objects.create(  # type: ignore[no-untyped-call]  # knox's manager
        user,
        expiry=None if days is None else timedelta(days=days),
        name=token_name,
        role_cap=cap.label if cap else "",
    )
    detail = {"token": token_name, "role_cap": row.role_cap, "days": days}
    audit(actor, "token.create", Outcome.DONE, subject_of(user), detail=detail)
    return str(token)


@transaction.atomic
def revoke_token(actor: Actor, name: str, token_name: str) -> None:
    """Ends one token at once. Raises ``AccountError`` where there is none of this name."""
    user = find_user(name)
    gone, _ = user.auth_token_set.filter(name=token_name).delete()
    if not gone:
        raise AccountError(f"{name} has no token “{token_name}”.")
    audit(actor, "token.revoke", Outcome.DONE, subject_of(user), detail={"token": token_name})


def note_use(token: AccessToken) -> None:
    """Dates the token's last use, at most once a minute."""
    now = timezone.now()
    if token.last_used is None or now - token.last_used >= LAST_USED_EVERY:
        AccessToken.objects.filter(pk=token.pk).update(last_used=now)


def find_user(name: str) -> User:
    """The user of this name. Raises ``AccountError``."""
    try:
        return User.objects.get(username=name)
    except User.DoesNotExist:
        raise AccountError(f"There is no user “{name}”.") from None


def subject_of(user: User) -> Subject:
    return Subject("user", str(user.pk), user.get_username())


def _leave_an_admin(user: User) -> None:
    """Raises ``AccountError`` where nobody else could undo what is done to this user.

    The group's row is locked, so that two administrators can't take each other out at once.
    """
    group = Group.objects.select_for_update(no_key=True).get(name=Role.ADMIN.label)
    admins = User.objects.filter(groups=group, is_active=True)
    if admins.filter(pk=user.pk).exists() and not admins.exclude(pk=user.pk).exists():
        raise AccountError(
            f"{user.get_username()} is the last active administrator: make another one first."
        )


def _put_into_group(user: User, role: Role) -> None:
    user.groups.remove(*Group.objects.filter(name__in=[one.label for one in Role if one]))
    if role is not Role.NONE:
        user.groups.add(Group.objects.get_or_create(name=role.label)[0])
