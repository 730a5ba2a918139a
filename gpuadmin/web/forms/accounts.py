"""What people send about users and about themselves."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import QueryDict

from gpuadmin.accounts.roles import Role
from gpuadmin.accounts.services import AccountError
from gpuadmin.accounts.tokens import DEFAULT_DAYS, MAX_DAYS

NO_ROLE = "none"
LIVES = {"7": "7 days", "30": "30 days", str(DEFAULT_DAYS): f"{DEFAULT_DAYS} days", "365": "a year"}
FOR_EVER = "never"


def role_named(label: str, *, field: str = "role") -> Role:
    """A role by its label, ``none`` for NONE. Raises ``AccountError``."""
    if label == NO_ROLE:
        return Role.NONE
    try:
        return Role.named(label)
    except ValueError as error:
        raise AccountError(str(error), field) from error


def typed_twice(query: QueryDict) -> str:
    """The new password. Raises ``AccountError`` where the second one differs."""
    new = query.get("password", "")
    if new != query.get("again", ""):
        raise AccountError("The two are not the same.", "again")
    return new


@dataclass(frozen=True)
class TokenForm:
    """A token to make. ``cap`` "": as much as its owner; ``days`` "never": no expiry."""

    name: str = ""
    cap: str = ""
    days: str = str(DEFAULT_DAYS)

    @classmethod
    def read(cls, query: QueryDict) -> TokenForm:
        return cls(query.get("name", "").strip(), query.get("cap", ""), query.get("days", ""))

    @property
    def role_cap(self) -> Role | None:
        return role_named(self.cap, field="cap") if self.cap else None

    @property
    def life_days(self) -> int | None:
        """Raises ``AccountError`` for what is no number of days."""
        if self.days == FOR_EVER:
            return None
        if not (self.days.isascii() and self.days.isdigit() and 1 <= int(self.days) <= MAX_DAYS):
            raise AccountError(f"Choose from 1 to {MAX_DAYS} days.", "days")
        return int(self.days)
