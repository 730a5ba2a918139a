"""`manage.py gpuadmin_user`, through the command itself."""

import io
import os
import re
import subprocess
import sys
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
    run("create", "boss", "--role", "admin", "--generate")
    password = run("create", "k.osei", "--role", "admin", "--generate").strip()
    run("token", "k.osei", "--name", "laptop")
    run("disable", "k.osei")
    assert not AccessToken.objects.exists()
    assert "k.osei: admin, disabled" in run("list")
    assert not User.objects.get(username="k.osei").is_active
    with pytest.raises(CommandError, match="is disabled: enable the user first"):
        run("token", "k.osei", "--name", "again")
    request = RequestFactory().post("/sign-in")
    assert authenticate(request, username="k.osei", password=password) is None
    run("enable", "k.osei")
    assert authenticate(request, username="k.osei", password=password) is not None


def test_a_role_can_be_taken_away() -> None:
    run("create", "k.osei", "--role", "operator", "--generate")
    run("set-role", "k.osei", "none")
    assert "k.osei: no role" in run("list")


def test_the_last_active_administrator_stays_one() -> None:
    run("create", "k.osei", "--role", "admin", "--generate")
    run("create", "m.ruiz", "--role", "admin", "--generate")
    run("disable", "m.ruiz")
    for mistake in (("disable", "k.osei"), ("set-role", "k.osei", "operator")):
        with pytest.raises(CommandError, match=r"k\.osei is the last active administrator"):
            run(*mistake)
    run("set-role", "k.osei", "admin")
    run("enable", "m.ruiz")
    run("disable", "k.osei")
    assert "k.osei: admin, disabled" in run("list")


def test_a_new_password_is_printed_or_read_and_the_old_one_ends(monkeypatch: Any) -> None:
    old = run("create", "k.osei", "--role", "viewer", "--generate").strip()
    new = run("set-password", "k.osei", "--generate").strip()
    user = User.objects.get()
    assert user.check_password(new)
    assert not user.check_password(old)
    monkeypatch.setattr("sys.stdin", io.StringIO("long enough for anyone\n"))
    assert run("set-password", "k.osei", "--password-stdin") == ""
    assert User.objects.get().check_password("long enough for anyone")
    assert AuditEntry.objects.filter(action="user.set-password").count() == 2


@pytest.mark.parametrize("database", ["postgresql://u@/none?host=/nowhere", "postgresql:///none"])
def test_without_a_database_it_says_one_sentence_and_fails(database: str) -> None:
    environ = {"PATH": os.environ["PATH"], "GPUADMIN_DATABASE_URL": database, "PGHOST": "/nowhere"}
    command = [sys.executable, "manage.py", "gpuadmin_user", "list"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("CommandError: The database can't be used: ")
    assert len(done.stderr.strip().splitlines()) == 1
    assert done.stdout == ""


def test_a_database_without_tables_says_what_to_run(
    process_environ: dict[str, str],
) -> None:
    environ = process_environ | {
        "GPUADMIN_DATABASE_URL": re.sub(
            r"/[^/?]+\?", "/postgres?", process_environ["GPUADMIN_DATABASE_URL"]
        )
    }
    command = [sys.executable, "manage.py", "gpuadmin_user", "list"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "CommandError: The database is empty: run “manage.py migrate” first.\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("token", "nobody", "--name", "x"), "There is no user “nobody”"),
        (("set-password", "nobody", "--generate"), "There is no user “nobody”"),
        (("set-role", "nobody", "viewer"), "There is no user “nobody”"),
        (("create", "a b", "--role", "viewer", "--generate"), "Enter a valid username"),
        (("token", "x", "--name", "y", "--days", "0"), "from 1 to 3650"),
        (("create", "x", "--role", "root", "--generate"), "invalid choice"),
    ],
)
def test_a_mistake_is_one_sentence(arguments: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence):
        run(*arguments)
