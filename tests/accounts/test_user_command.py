"""`manage.py gpuadmin_user`, through the command itself."""

import io
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.core.management import CommandError, call_command
from django.test import RequestFactory
from django.utils import timezone

from gpuadmin.accounts.models import AccessToken, AuditEntry, User

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("gpuadmin_user", *arguments, stdout=out)
    return out.getvalue()


def test_a_generated_password_is_printed_and_works() -> None:
    password = run("create", "k.osei", "--role", "operator", "--generate").strip()
    user = User.objects.get(username="k.osei")
    assert user.check_password(password)
    assert [group.name for group in user.groups.all()] == ["operator"]
    row = AuditEntry.objects.get(action="user.create")
    assert (row.via, row.object_name, row.detail) == ("command", "k.osei", {"role": "operator"})


def test_a_password_comes_from_standard_input_and_must_be_good(monkeypatch: Any) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("short\n"))
    with pytest.raises(CommandError, match="too short"):
        run("create", "k.osei", "--role", "viewer", "--password-stdin")
    assert not User.objects.exists()

    monkeypatch.setattr("sys.stdin", io.StringIO("long enough for anyone\n"))
    assert run("create", "k.osei", "--role", "viewer", "--password-stdin") == ""
    assert User.objects.get().check_password("long enough for anyone")


def test_a_token_is_printed_once_and_only_its_digest_is_kept() -> None:
    run("create", "ci", "--role", "admin", "--generate")
    token = run("token", "ci", "--name", "pipeline", "--role-cap", "viewer", "--days", "7").strip()
    row = AccessToken.objects.get()
    assert token.startswith("gpa_")
    assert token not in row.digest
    assert row.role_cap == "viewer"
    assert row.expiry is not None
    assert timedelta(days=6) < row.expiry - timezone.now() < timedelta(days=7)
    assert token not in run("list")
    assert "token pipeline, at most viewer, until" in run("list")
    assert token not in str(list(AuditEntry.objects.values()))


def test_a_token_without_expiry_is_asked_for_by_name_and_names_are_unique() -> None:
    run("create", "ci", "--role", "admin", "--generate")
    run("token", "ci", "--name", "demo", "--no-expiry")
    assert AccessToken.objects.get().expiry is None
    with pytest.raises(CommandError, match="has a token “demo” already"):
        run("token", "ci", "--name", "demo")
    run("revoke", "ci", "--name", "demo")
    assert not AccessToken.objects.exists()
    with pytest.raises(CommandError, match="has no token “demo”"):
        run("revoke", "ci", "--name", "demo")


def test_a_disabled_user_keeps_the_row_and_loses_everything_else() -> None:
    password = run("create", "k.osei", "--role", "admin", "--generate").strip()
    run("token", "k.osei", "--name", "laptop")
    run("disable", "k.osei")
    assert not AccessToken.objects.exists()
    assert "k.osei: admin, disabled" in run("list")
    assert not User.objects.get().is_active
    with pytest.raises(CommandError, match="is disabled: enable the user first"):
        run("token", "k.osei", "--name", "again")
    request = RequestFactory().post("/sign-in")
    assert authenticate(request, username="k.osei", password=password) is None
    run("enable", "k.osei")
    assert authenticate(request, username="k.osei", password=password) is not None


def test_a_role_can_be_taken_away() -> None:
    run("create", "k.osei", "--role", "admin", "--generate")
    run("set-role", "k.osei", "none")
    assert "k.osei: no role" in run("list")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("token", "nobody", "--name", "x"), "There is no user “nobody”"),
        (("set-role", "nobody", "viewer"), "There is no user “nobody”"),
        (("create", "a b", "--role", "viewer", "--generate"), "Enter a valid username"),
        (("token", "x", "--name", "y", "--days", "0"), "from 1 to 3650"),
        (("create", "x", "--role", "root", "--generate"), "invalid choice"),
    ],
)
def test_a_mistake_is_one_sentence(arguments: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence):
        run(*arguments)
