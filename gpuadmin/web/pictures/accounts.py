"""Users, API tokens and sessions as lists."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from gpuadmin.accounts.access import role_of
from gpuadmin.accounts.models import AccessToken, BrowserSession, User
from gpuadmin.accounts.roles import Role
from gpuadmin.web.pictures import states
from gpuadmin.web.pictures.states import State
from gpuadmin.web.pictures.text import plain

ACTIVE = State(states.FINE, "ok", "ok", "active")
NO_ROLE = State(states.WARNING, "warn", "warn", "no role")
DISABLED = State(states.CORDONED, "cordon", "t2", "disabled")
EXPIRED = State(states.WARNING, "warn", "warn", "expired")
ROLES = {
    Role.VIEWER: "sees everything and changes nothing",
    Role.OPERATOR: "changes nodes as well",
    Role.ADMIN: "users and the connection as well",
    Role.NONE: "signs in and sees nothing",
}
_BROWSERS = (
    ("Edg/", "Edge"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS = ("Windows", "Android", "iPhone", "iPad", "Mac", "Linux")


@dataclass(frozen=True)
class UserLine:
    user: User
    role: str
    state: State
    you: bool


@dataclass(frozen=True)
class TokenLine:
    token: AccessToken
    name: str
    cap: str
    state: State | None  # None: it is good


@dataclass(frozen=True)
class SessionLine:
    """``browser`` is what it says of itself, in two words; ``current``: the one that asks."""

    session: BrowserSession
    browser: str
    full: str
    current: bool


@dataclass(frozen=True)
class Choice:
    """One role to choose."""

    value: str
    words: str
    current: bool


def user_line(user: User, me: User | None) -> UserLine:
    role = role_of(user)
    state = DISABLED if not user.is_active else ACTIVE if role else NO_ROLE
    return UserLine(user, role.label or "none", state, user == me)


def role_choices(current: Role) -> list[Choice]:
    """The lowest first, none at the end."""
    return [Choice(role.label or "none", words, role is current) for role, words in ROLES.items()]


def token_lines(tokens: Iterable[AccessToken], now: datetime) -> list[TokenLine]:
    return [
        TokenLine(
            token,
            plain(token.name),
            f"at most {token.role_cap}" if token.role_cap else "as its owner",
            EXPIRED if token.expiry and token.expiry <= now else None,
        )
        for token in tokens
    ]


def session_lines(sessions: Iterable[BrowserSession], key: str | None) -> list[SessionLine]:
    return [
        SessionLine(one, short_browser(one.browser), plain(one.browser), one.session_key == key)
        for one in sessions
    ]


def short_browser(agent: str) -> str:
    """``Firefox on Linux``; of others the first word of what they call themselves."""
    name = next((name for mark, name in _BROWSERS if mark in agent), "")
    system = next((system for system in _SYSTEMS if system in agent), "")
    if not name:
        return re.split(r"[\s/]", plain(agent).strip())[0][:40] or "an unnamed browser"
    return f"{name} on {system}" if system else name
