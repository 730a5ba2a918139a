"""Security tests d, g and h (faults.md): forgery, tokens, and guessing.

Forgery is swept over the table of routes, so that a new one cannot be forgotten.
"""

from __future__ import annotations

import base64
import json
import logging
from typing import Any

import pytest
from django.contrib.auth.hashers import MD5PasswordHasher
from django.db import connection
from django.test import Client
from psycopg.sql import SQL, Identifier

from gpuadmin.accounts.audit import COMMAND
from gpuadmin.accounts.models import AccessToken, User
from gpuadmin.accounts.roles import Role
from gpuadmin.accounts.services import create_user, disable
from gpuadmin.accounts.tokens import create_token
from gpuadmin.fleet.models import Cluster
from tests.operations.conftest import api_client, api_folder, nudges, world
from tests.support.routes import API, Row, Scene, person
from tests.test_routes import REFUSALS, ROWS, resolve_route, scene

__all__ = ["api_client", "api_folder", "nudges", "scene", "world"]
pytestmark = pytest.mark.django_db
SAFE = ("GET", "HEAD")
UNSAFE = [row for row in ROWS if row.method not in SAFE]
OVERRIDES = ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override")
PASSWORD = "a good password"


def admin(**kwargs: Any) -> Client:
    client = Client(**kwargs)
    client.force_login(User.objects.filter(username="chief").first() or person("chief", Role.ADMIN))
    return client


# --- d: forgery


@pytest.mark.parametrize("row", UNSAFE, ids=str)
@pytest.mark.parametrize("kind", ["form", "text/plain", "application/json"])
def test_another_site_cannot_send_what_changes_something(row: Row, kind: str, scene: Scene) -> None:
    """With the browser's session and without the form's token, whatever the body calls itself."""
    client = admin(enforce_csrf_checks=True)
    before, address = scene.state(), row.address.format(**scene.names)
    body = row.body(scene)
    send = getattr(client, row.method.lower())
    if kind == "form" and row.method == "POST":
        answer = send(address, body if not _nested(body) else {})
    else:
        answer = send(address, json.dumps(body), content_type=kind.replace("form", "text/plain"))
    assert answer.status_code == 403
    assert scene.state() == before


def _nested(body: dict[str, Any]) -> bool:
    return any(isinstance(value, dict | list) or value is None for value in body.values())


def test_no_header_or_field_turns_a_post_into_another_method(scene: Scene) -> None:
    client = admin()
    posts = {resolve_route(row.address, scene) for row in ROWS if row.method == "POST"}
    before = scene.state()
    for row in UNSAFE:
        if row.method == "POST" or resolve_route(row.address, scene) in posts:
            continue
        address = row.address.format(**scene.names)
        for field in ("_method", "method", "_httpmethod"):
            answer = client.post(
                address,
                row.body(scene) | {field: row.method},
                content_type="application/json",
                headers=dict.fromkeys(OVERRIDES, row.method),
                query_params={field: row.method},
            )
            assert answer.status_code in REFUSALS, row
    assert scene.state() == before


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "text/html"])
def test_json_under_another_name_is_not_read(scene: Scene, kind: str) -> None:
    token = create_token(COMMAND, "the-operator", "plain", cap=None, days=1)
    client = Client(headers={"Authorization": f"Bearer {token}"})
    before = scene.state()
    answer = client.post(f"{API}/operations/preview", json.dumps(scene.change()), kind)
    assert answer.status_code == 415
    assert scene.state() == before


# --- g: API tokens


@pytest.fixture
def token(db: None) -> str:
    Cluster.objects.create(name="default")
    create_user(COMMAND, "k.osei", Role.ADMIN, PASSWORD)
    return create_token(COMMAND, "k.osei", "pipeline", cap=Role.OPERATOR, days=1)


def test_a_token_counts_in_its_header_and_nowhere_else(token: str) -> None:
    basic = base64.b64encode(f"k.osei:{token}".encode()).decode()
    assert (
        Client(headers={"Authorization": f"Bearer {token}"}).get(f"{API}/nodes").status_code == 200
    )
    for place in ("sessionid", "token", "Authorization", "gpa"):
        client = Client()
        client.cookies[place] = token
        assert client.get(f"{API}/nodes").status_code == 401
        assert client.get("/").status_code == 302
        assert Client().get(f"{API}/nodes", {place: token}).status_code == 401
    for header in (f"Basic {basic}", f"Token {token}", token):
        assert Client(headers={"Authorization": header}).get(f"{API}/nodes").status_code == 401
    page = Client(headers={"Authorization": f"Bearer {token}"}).get("/")
    assert page.status_code == 302, "pages know sessions only"


def test_a_token_needs_no_form_token_since_no_browser_adds_it_by_itself(token: str) -> None:
    client = Client(enforce_csrf_checks=True, headers={"Authorization": f"Bearer {token}"})
    answer = client.post(f"{API}/operations/preview", {"kind": "no"}, "application/json")
    assert answer.status_code in (400, 422)


def test_a_capped_token_reaches_as_far_as_its_cap(token: str) -> None:
    client = Client(headers={"Authorization": f"Bearer {token}"})
    assert client.get(f"{API}/account").json() == {
        "name": "k.osei",
        "role": "operator",
        "via": "token:pipeline",
    }
    assert client.get(f"{API}/users").status_code == 403
    more = client.post(f"{API}/account/tokens", {"name": "more"}, "application/json")
    assert more.status_code == 403
    assert AccessToken.objects.count() == 1


def test_of_a_token_the_database_has_only_a_digest(token: str) -> None:
    secret = token.removeprefix("gpa_")
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            query = SQL("SELECT row_to_json(t)::text FROM {} t").format(Identifier(table))
            cursor.execute(query)
            for (row,) in cursor.fetchall():
                assert secret[8:] not in row, table


def test_no_log_line_has_a_token_a_password_or_a_session(
    token: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    client = Client(headers={"Authorization": f"Bearer {token}"})
    for address in ("nodes", "nowhere", "users"):
        client.get(f"{API}/{address}")
    AccessToken.objects.all().delete()
    client.get(f"{API}/nodes")
    browser = Client()
    browser.post("/sign-in", {"username": "k.osei", "password": "the-canary-password"})
    browser.post("/sign-in", {"username": "k.osei", "password": PASSWORD})
    browser.post("/account/password", {"old": "the-canary-password", "password": "n", "again": "n"})
    said = "\n".join(record.getMessage() for record in caplog.records)
    assert said
    for secret in (token, PASSWORD, "the-canary-password", browser.cookies["sessionid"].value):
        assert secret not in said


# --- h: guessing; the limits themselves are in tests/accounts/test_signins.py


@pytest.mark.parametrize("name", ["k.osei", "nobody", "gone"])
def test_a_failed_sign_in_costs_the_same_whoever_it_is_for(
    name: str, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of a sign-in is that of its password hash: each failure computes just one."""
    create_user(COMMAND, "gone", Role.VIEWER, PASSWORD)
    disable(COMMAND, "gone")
    hashes, encode = [], MD5PasswordHasher.encode

    def counted(self: MD5PasswordHasher, password: str, salt: str) -> str:
        hashes.append(password)
        return encode(self, password, salt)

    monkeypatch.setattr(MD5PasswordHasher, "encode", counted)
    answer = Client().post("/sign-in", {"username": name, "password": "wrong"})
    assert answer.status_code == 200
    assert hashes == ["wrong"]


def test_every_failed_sign_in_is_told_the_same(token: str) -> None:
    create_user(COMMAND, "gone", Role.VIEWER, PASSWORD)
    disable(COMMAND, "gone")
    told = set()
    for name, password in (("k.osei", "wrong"), ("nobody", "wrong"), ("gone", PASSWORD)):
        page = Client().post("/sign-in", {"username": name, "password": password}).content.decode()
        assert "do not fit together" in page
        told.add(page.count("do not fit together"))
    assert told == {1}
