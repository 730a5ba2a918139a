"""Sessions (security test e): a new id at sign-in, two clocks, and an end everywhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings
from django.db import connections
from django.test import Client
from django.utils import timezone

from gpuadmin.accounts import services
from gpuadmin.accounts.access import Refused
from gpuadmin.accounts.audit import COMMAND, Actor
from gpuadmin.accounts.models import AccessToken, AuditEntry, BrowserSession, User
from gpuadmin.accounts.roles import Role
from gpuadmin.accounts.tasks import forget_sessions
from gpuadmin.accounts.tokens import create_token, revoke_token
from gpuadmin.fleet.models import Cluster

pytestmark = pytest.mark.django_db
PASSWORD = "a good password"
HOUR, MINUTE = 3600.0, 60.0


@pytest.fixture(autouse=True)
def user(db: None) -> User:
    Cluster.objects.create(name="default")
    return services.create_user(COMMAND, "k.osei", Role.VIEWER, PASSWORD)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Seconds by which every clock that sessions read is ahead."""
    ahead, real_time, real_now = [0.0], time.time, timezone.now
    monkeypatch.setattr(time, "time", lambda: real_time() + ahead[0])
    monkeypatch.setattr(timezone, "now", lambda: real_now() + timedelta(seconds=ahead[0]))
    return ahead


def browser(**headers: str) -> Client:
    """Signed in through the page."""
    client = Client(headers=headers)
    told = client.post("/sign-in", {"username": "k.osei", "password": PASSWORD})
    assert told.status_code == 302
    return client


def key(client: Client) -> str:
    return client.cookies[settings.SESSION_COOKIE_NAME].value


def let_in(client: Client, address: str = "/findings", **headers: str) -> bool:
    answer = client.get(address, headers=headers)
    assert answer.status_code in (200, 204, 302), answer.status_code
    return answer.status_code != 302


def test_sign_in_gives_a_new_id_and_the_one_from_before_is_worth_nothing() -> None:
    planted = Client()
    planted.session.save()
    planted.cookies[settings.SESSION_COOKIE_NAME] = "planted-by-somebody-else"
    told = planted.post("/sign-in", {"username": "k.osei", "password": PASSWORD})
    assert told.status_code == 302
    first = key(planted)
    assert first != "planted-by-somebody-else"
    thief = Client()
    thief.cookies[settings.SESSION_COOKIE_NAME] = "planted-by-somebody-else"
    assert not let_in(thief)

    planted.post("/sign-out")
    again = Client()
    again.cookies[settings.SESSION_COOKIE_NAME] = first
    assert not let_in(again), "signing out ends it at the server, whoever kept the cookie"


def test_the_cookie_cannot_be_read_by_scripts_nor_sent_from_other_sites() -> None:
    cookie = browser().cookies[settings.SESSION_COOKIE_NAME]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"


def test_a_session_that_nobody_uses_ends_after_the_idle_time(clock: list[float]) -> None:
    client = browser()
    clock[0] = settings.SESSION_IDLE_SECONDS - MINUTE
    assert let_in(client)
    clock[0] += settings.SESSION_IDLE_SECONDS - MINUTE
    assert let_in(client), "the use before counted"
    clock[0] += settings.SESSION_IDLE_SECONDS + 1
    assert not let_in(client)


def test_a_page_that_asks_for_itself_keeps_no_session_alive(clock: list[float]) -> None:
    client = browser()
    clock[0] = settings.SESSION_IDLE_SECONDS - MINUTE
    assert let_in(client, **{"HX-Request": "true", "If-None-Match": "hash"})
    clock[0] += 2 * MINUTE
    answer = client.get("/findings", headers={"HX-Request": "true", "If-None-Match": "hash"})
    assert answer.headers["HX-Redirect"].startswith("/sign-in")


def test_a_session_in_use_ends_all_the_same(clock: list[float]) -> None:
    client = browser()
    while clock[0] < settings.SESSION_COOKIE_AGE - HOUR:
        clock[0] += HOUR
        assert let_in(client)
    clock[0] = settings.SESSION_COOKIE_AGE + 1
    assert not let_in(client)


@pytest.mark.parametrize(
    "end",
    [
        lambda: services.sign_out_everywhere(COMMAND, "k.osei", tokens=False),
        lambda: services.disable(COMMAND, "k.osei"),
        lambda: services.set_password(COMMAND, "k.osei", "another good password"),
    ],
    ids=["signed out", "disabled", "new password"],
)
def test_every_session_ends_at_once_when_the_user_is(end: Any, user: User) -> None:
    clients = [browser(), browser()]
    assert all(map(let_in, clients))
    end()
    assert not any(map(let_in, clients))
    assert not user.sessions.exists()


def test_signing_out_everywhere_revokes_tokens_only_where_it_is_asked(user: User) -> None:
    create_token(COMMAND, "k.osei", "ci", cap=None, days=None)
    services.sign_out_everywhere(COMMAND, "k.osei", tokens=False)
    assert AccessToken.objects.exists()
    browser()
    services.sign_out_everywhere(COMMAND, "k.osei", tokens=True)
    assert not AccessToken.objects.exists()
    details = AuditEntry.objects.filter(action="user.sign-out").order_by("id")
    assert [row.detail for row in details] == [
        {"sessions": 0, "tokens": 0},
        {"sessions": 1, "tokens": 1},
    ]


def test_a_session_is_listed_with_where_it_is_from_and_never_with_its_key(user: User) -> None:
    client = browser(**{"User-Agent": "Firefox/150 <b>"})
    row = user.sessions.get()
    assert (row.address, row.browser) == ("127.0.0.1", "Firefox/150 <b>")
    assert row.signed_in_at is not None
    assert row.session_key == key(client)
    assert row.public_id not in row.session_key
    assert row.session_key not in str(row)


def test_sessions_that_are_over_are_forgotten(clock: list[float]) -> None:
    browser()
    clock[0] = settings.SESSION_IDLE_SECONDS + 1
    browser()
    forget_sessions()
    assert BrowserSession.objects.count() == 1


def test_an_open_session_is_no_way_to_guess_the_password(user: User) -> None:
    actor = Actor(user, Role.VIEWER, "session")
    for _ in range(5):
        with pytest.raises(services.AccountError, match="not your present password"):
            services.change_password(actor, "a guess", "another good password")
    with pytest.raises(services.AccountError, match="Too many wrong passwords"):
        services.change_password(actor, PASSWORD, "another good password")
    assert AuditEntry.objects.filter(outcome="refused").count() == 5


@pytest.mark.parametrize(
    "change",
    [
        lambda actor: services.change_password(actor, PASSWORD, "another good password"),
        lambda actor: create_token(actor, "k.osei", "more", cap=None, days=None),
        lambda actor: services.sign_out_everywhere(actor, "k.osei", tokens=True),
        lambda actor: services.end_session(actor, "x"),
    ],
)
def test_a_token_with_a_lowered_role_cannot_win_the_role_back(user: User, change: Any) -> None:
    services.set_role(COMMAND, "k.osei", Role.OPERATOR)
    with pytest.raises(Refused, match="may do less than its owner"):
        change(Actor(user, Role.VIEWER, "token:ci"))
    assert AuditEntry.objects.latest("id").outcome == "refused"


@pytest.mark.parametrize(
    "change",
    [
        lambda actor: services.create_user(actor, "other", Role.ADMIN, "a good password"),
        lambda actor: services.set_role(actor, "k.osei", Role.ADMIN),
        lambda actor: services.set_password(actor, "m.ruiz", "a good password"),
        lambda actor: services.disable(actor, "m.ruiz"),
        lambda actor: services.enable(actor, "m.ruiz"),
        lambda actor: services.sign_out_everywhere(actor, "m.ruiz", tokens=True),
        lambda actor: create_token(actor, "m.ruiz", "t", cap=None, days=None),
        lambda actor: revoke_token(actor, "m.ruiz", "t"),
    ],
)
def test_what_is_an_administrators_is_refused_to_everybody_else(user: User, change: Any) -> None:
    services.create_user(COMMAND, "m.ruiz", Role.VIEWER, PASSWORD)
    with pytest.raises(Refused):
        change(Actor(user, Role.OPERATOR, "session"))
    row = AuditEntry.objects.latest("id")
    assert (row.action, row.outcome) == ("admin.users", "refused")


@pytest.mark.django_db(transaction=True)
def test_of_two_who_take_one_name_at_the_same_moment_one_is_told(user: User) -> None:
    """Where the look before the write saw nothing yet: the database has the last word."""
    actor = Actor(user, Role.VIEWER, "session")

    def both(make: Callable[[], object]) -> list[str]:
        start, told = threading.Barrier(2), []

        def run() -> None:
            start.wait()
            try:
                make()
            except services.AccountError as error:
                told.append(str(error))
            finally:
                connections.close_all()

        threads = [threading.Thread(target=run) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        return told

    for make in (
        lambda: services.create_user(COMMAND, "m.ruiz", Role.VIEWER, PASSWORD),
        lambda: create_token(actor, "k.osei", "ci", cap=None, days=None),
    ):
        told = both(make)
        assert len(told) == 1
        assert "already" in told[0]
