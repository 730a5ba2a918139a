"""Failed sign-ins: how many are let through, from where they are counted, what is kept of them."""

from datetime import timedelta
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.contrib.auth import authenticate
from django.db.models import F
from django.test import Client, RequestFactory

from gpuadmin.accounts.models import AuditEntry, User
from gpuadmin.accounts.peers import address_of
from gpuadmin.accounts.signins import counted_address

pytestmark = pytest.mark.django_db
GOOD, WRONG = "a good password", "wrong"


@pytest.fixture(autouse=True)
def user(db: None) -> User:
    return User.objects.create_user("k.osei", password=GOOD)


def sign_in(name: str, password: str = WRONG, address: str = "10.1.2.3") -> object:
    request = RequestFactory().post("/sign-in", REMOTE_ADDR=address)
    return authenticate(request, username=name, password=password)


def rows() -> list[tuple[str, str | None]]:
    found = AuditEntry.objects.filter(action="sign-in", outcome="refused").order_by("id")
    return list(found.values_list("object_name", "address"))


def test_a_failed_sign_in_is_audited_with_the_users_name_and_the_address(user: User) -> None:
    assert sign_in("k.osei") is None
    row = AuditEntry.objects.get()
    assert (row.actor, row.object_uid, row.object_name) == (None, str(user.pk), "k.osei")
    assert row.address == "10.1.2.3"
    assert WRONG not in str(row.detail) + row.reason


def test_what_was_typed_is_not_kept_where_it_is_nobodys_name() -> None:
    for typed in ("hunter2, typed too early", "correct horse", "battery staple"):
        assert sign_in(typed) is None
    sign_in("correct horse", address="10.9.9.9")
    assert rows() == [("", "10.1.2.3"), ("", "10.9.9.9")]


def test_the_sixth_wrong_password_is_refused_by_the_lock_and_leaves_no_row() -> None:
    for _ in range(5):
        sign_in("k.osei")
    for _ in range(20):
        assert sign_in("k.osei", GOOD) is None
    assert len(rows()) == 5
    assert sign_in("k.osei", GOOD, address="10.9.9.9"), "a stranger locks out nobody else"


def test_a_password_tried_on_many_names_locks_the_address_for_all(client: Client) -> None:
    for number in range(30):
        User.objects.create_user(f"user{number}")
        assert sign_in(f"user{number}") is None
    assert sign_in("k.osei", GOOD) is None
    for number in range(60):
        sign_in(f"nobody{number}")
    assert len(rows()) == 30
    told = client.post("/sign-in", {"username": "k.osei", "password": GOOD}, REMOTE_ADDR="10.1.2.3")
    assert told.status_code == 429
    assert sign_in("k.osei", GOOD, address="10.9.9.9")

    AccessAttempt.objects.update(attempt_time=F("attempt_time") - timedelta(minutes=16))
    assert sign_in("k.osei", GOOD), "a quarter of an hour later all is forgotten"


def test_one_ipv6_customer_is_one_address() -> None:
    for number in range(40):
        sign_in(f"nobody{number}", address=f"2001:db8:1:2::{number:x}")
    assert sign_in("k.osei", GOOD, address="2001:db8:1:2:ffff::1") is None
    assert sign_in("k.osei", GOOD, address="2001:db8:1:3::1")
    assert rows() == [("", "2001:db8:1:2::")]


@pytest.mark.parametrize(
    ("proxies", "forwarded", "address"),
    [
        (0, "1.1.1.1", "10.0.0.1"),
        (1, "", "10.0.0.1"),
        (1, "9.9.9.9, 1.1.1.1", "1.1.1.1"),
        (2, "9.9.9.9, 1.1.1.1, 10.0.0.2", "1.1.1.1"),
        (2, "1.1.1.1", "10.0.0.1"),
        (1, "unknown", "10.0.0.1"),
        (1, "fe80::1%eth0", "fe80::1"),
    ],
)
def test_behind_trusted_proxies_the_client_is_whom_the_first_of_them_saw(
    settings: Any, proxies: int, forwarded: str, address: str
) -> None:
    settings.TRUSTED_PROXIES = proxies
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    request = RequestFactory().get("/", REMOTE_ADDR="10.0.0.1", headers=headers)
    assert address_of(request) == address


def test_a_unix_socket_has_no_address_and_is_not_locked_as_a_whole() -> None:
    assert counted_address(RequestFactory().get("/", REMOTE_ADDR="")) is None
    for number in range(40):
        sign_in(f"nobody{number}", address="")
    assert sign_in("k.osei", GOOD, address="")
    assert rows() == [("", None)]
