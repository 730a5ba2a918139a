"""Users and their sessions: who may change what, and every change as an audit row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.contrib.auth.models import Group
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone

from gpuadmin.accounts.access import Refused, require, role_of
from gpuadmin.accounts.audit import Actor, Outcome, Subject, audit
from gpuadmin.accounts.models import AuditEntry, User
from gpuadmin.accounts.roles import Permission, Role

CAPPED = "This token may do less than its owner, so it can't change the owner's account."


class AccountError(Exception):
    """What was asked cannot be done; ``str()`` says why and what to do.

    ``field`` names the value that is wrong, "" where it is none in particular.
    """

    def __init__(self, sentence: str, field: str = "") -> None:
        super().__init__(sentence)
        self.field = field


def create_user(actor: Actor, name: str, role: Role, password: str) -> User:
    """A user who signs in with a password that the validators accept.

    Raises ``Refused`` and ``AccountError``, as all of these do.
    """
    require(actor, Permission.USERS)
    user = User(username=name)
    try:
        user.full_clean(exclude=["password"])
    except ValidationError as error:
        raise AccountError(" ".join(error.messages), "name") from error
    _check_password(user, password)
    user.set_password(password)
    with told_of_a_double(f"There is a user “{name}” already."), transaction.atomic():
        user.save()
        _put_into_group(user, role)
        audit(actor, "user.create", Outcome.DONE, subject_of(user), detail={"role": role.label})
    return user


def set_password(actor: Actor, name: str, password: str) -> None:
    """A new password, which ends every session of the user. Tokens go on: programs use them."""
    user = changeable(actor, name)
    _check_password(user, password)
    with transaction.atomic():
        user.set_password(password)
        user.save(update_fields=["password"])
        user.sessions.all().delete()
        audit(actor, "user.set-password", Outcome.DONE, subject_of(user))


def change_password(actor: Actor, old: str, new: str) -> None:
    """One's own, by whoever knows the present one: a session left open is no way to guess it."""
    user, action = _self(actor), "user.set-password"
    lately = AuditEntry.objects.filter(at__gte=timezone.now() - settings.AXES_COOLOFF_TIME)
    wrong = lately.filter(action=action, outcome=Outcome.REFUSED, actor=user)
    if wrong.count() >= settings.AXES_FAILURE_LIMIT:
        raise AccountError("Too many wrong passwords: try again in a quarter of an hour.", "old")
    if not user.check_password(old):
        audit(actor, action, Outcome.REFUSED, subject_of(user), reason="wrong password")
        raise AccountError("This is not your present password.", "old")
    set_password(actor, user.get_username(), new)


def set_role(actor: Actor, name: str, role: Role) -> None:
    """Replaces the user's role; NONE takes it away. It holds from the user's next request on.

    Raises ``AccountError`` also for the last administrator.
    """
    require(actor, Permission.USERS)
    user = find_user(name)
    with transaction.atomic():
        if role is not Role.ADMIN:
            _leave_an_admin(user)
        _put_into_group(user, role)
        audit(actor, "user.set-role", Outcome.DONE, subject_of(user), detail={"role": role.label})


def disable(actor: Actor, name: str) -> None:
    """Ends the user's sessions and tokens; audit rows still name the row.

    Raises ``AccountError`` also for the last administrator.
    """
    require(actor, Permission.USERS)
    user = find_user(name)
    with transaction.atomic():
        _leave_an_admin(user)
        user.is_active = False
        user.save(update_fields=["is_active"])
        user.sessions.all().delete()
        user.auth_token_set.all().delete()
        audit(actor, "user.disable", Outcome.DONE, subject_of(user))


def enable(actor: Actor, name: str) -> None:
    """Lets a disabled user sign in again; tokens have to be made anew."""
    require(actor, Permission.USERS)
    user = find_user(name)
    with transaction.atomic():
        user.is_active = True
        user.save(update_fields=["is_active"])
        audit(actor, "user.enable", Outcome.DONE, subject_of(user))


def sign_out_everywhere(actor: Actor, name: str, *, tokens: bool) -> None:
    """Ends every session of the user at once, and with ``tokens`` every API token too."""
    user = changeable(actor, name)
    with transaction.atomic():
        sessions, _ = user.sessions.all().delete()
        revoked = user.auth_token_set.all().delete()[0] if tokens else 0
        detail = {"sessions": sessions, "tokens": revoked}
        audit(actor, "user.sign-out", Outcome.DONE, subject_of(user), detail=detail)


def end_session(actor: Actor, public_id: str) -> None:
    """Ends one of the actor's own sessions, named as ``BrowserSession.public_id`` does."""
    user = _self(actor)
    for session in user.sessions.all():
        if session.public_id == public_id:
            with transaction.atomic():
                session.delete()
                detail = {"sessions": 1, "tokens": 0}
                audit(actor, "user.sign-out", Outcome.DONE, subject_of(user), detail=detail)
            return
    raise AccountError("There is no such session any more.")


def find_user(name: str) -> User:
    """The user of this name. Raises ``AccountError``."""
    try:
        return User.objects.get(username=name)
    except User.DoesNotExist:
        raise AccountError(f"There is no user “{name}”.", "name") from None


@contextmanager
def told_of_a_double(sentence: str) -> Iterator[None]:
    """A name that somebody else took at the same moment is an ``AccountError`` as well."""
    try:
        yield
    except IntegrityError as error:
        raise AccountError(sentence, "name") from error


def changeable(actor: Actor, name: str) -> User:
    """The user of this name, where the actor is that user or an administrator."""
    if actor.user is not None and actor.user.get_username() == name:
        return _self(actor)
    require(actor, Permission.USERS)
    return find_user(name)


def subject_of(user: User) -> Subject:
    return Subject("user", str(user.pk), user.get_username())


def _self(actor: Actor) -> User:
    """The actor's own row. A token that was given less than its owner's role must not get more by
    making another token, a password or an end of sessions."""
    if actor.user is None:
        raise AccountError("This needs somebody who is signed in.")
    require(actor, Permission.ACCOUNT)
    if actor.role < role_of(actor.user):
        audit(actor, Permission.ACCOUNT.key, Outcome.REFUSED, subject_of(actor.user))
        raise Refused(CAPPED)
    return actor.user


def _check_password(user: User, password: str) -> None:
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise AccountError(" ".join(error.messages), "password") from error


def _leave_an_admin(user: User) -> None:
    """Raises ``AccountError`` where nobody else could undo what is done to this user.

    The group's row is locked, so that two administrators can't take each other out at once.
    """
    Group.objects.select_for_update(no_key=True).filter(name=Role.ADMIN.label).first()
    admins = User.objects.filter(groups__name=Role.ADMIN.label, is_active=True)
    if admins.filter(pk=user.pk).exists() and not admins.exclude(pk=user.pk).exists():
        raise AccountError(
            f"{user.get_username()} is the last active administrator: make another one first."
        )


def _put_into_group(user: User, role: Role) -> None:
    user.groups.remove(*Group.objects.filter(name__in=[one.label for one in Role if one]))
    if role is not Role.NONE:
        user.groups.add(Group.objects.get_or_create(name=role.label)[0])
