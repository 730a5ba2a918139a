"""Users, tokens and sessions over REST; who may is in tests/test_routes.py."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from gpuadmin.accounts.audit import COMMAND
from gpuadmin.accounts.models import AuditEntry, User
from gpuadmin.accounts.roles import Role
from gpuadmin.accounts.services import create_user
from gpuadmin.fleet.models import Cluster
from tests.api.conftest import AsRole

pytestmark = pytest.mark.django_db
PASSWORD, OTHER = "a good password", "another good password"


@pytest.fixture
def admin(as_role: AsRole) -> Any:
    Cluster.objects.create(name="default")
    return as_role(Role.ADMIN)


def test_a_user_is_made_changed_and_disabled(admin: Any) -> None:
    made = admin.post("/api/v1/users", {"name": "m.ruiz", "role": "viewer", "password": PASSWORD})
    assert (made.status_code, made.headers["Location"]) == (201, "/api/v1/users/m.ruiz")
    assert made.json() | {"created_at": ""} == {
        "name": "m.ruiz",
        "role": "viewer",
        "active": True,
        "created_at": "",
        "signed_in_at": None,
        "sessions": 0,
        "tokens": 0,
    }
    Client().post("/sign-in", {"username": "m.ruiz", "password": PASSWORD})
    assert admin.get("/api/v1/users/m.ruiz").json()["sessions"] == 1
    changed = admin.patch("/api/v1/users/m.ruiz", {"role": None, "active": False}).json()
    assert (changed["role"], changed["active"], changed["sessions"]) == (None, False, 0)
    rows = AuditEntry.objects.filter(object_name="m.ruiz", via__startswith="token:")
    actions = rows.order_by("id").values_list("action", flat=True)
    assert list(actions) == ["user.create", "user.set-role", "user.disable"]
    assert admin.patch("/api/v1/users/nobody", {"active": True}).status_code == 404


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({"name": "a b"}, "name"),
        ({"name": "a-admin"}, "name"),
        ({"password": "password"}, "password"),
        ({"role": "root"}, "role"),
        ({"name": ""}, "name"),
    ],
)
def test_what_is_wrong_is_told_by_field(admin: Any, sent: dict[str, str], field: str) -> None:
    form = {"name": "m.ruiz", "role": "viewer", "password": PASSWORD} | sent
    told = admin.post("/api/v1/users", form)
    assert told.status_code in (400, 422)
    assert list(told.json()["errors"]) == [field]
    assert PASSWORD not in told.content.decode()


def test_the_last_administrator_is_a_409_with_the_reason(admin: Any) -> None:
    for change in ({"active": False}, {"role": "operator"}):
        told = admin.patch("/api/v1/users/a-admin", change)
        assert told.status_code == 409
        assert "the last active administrator" in told.json()["detail"]


def test_a_token_is_told_once_and_listed_without_itself(as_role: AsRole) -> None:
    Cluster.objects.create(name="default")
    client = as_role(Role.OPERATOR)
    sent = {"name": "ci/main", "role_cap": "viewer", "days": None}
    made = client.post("/api/v1/account/tokens", sent)
    token = made.json()["token"]
    listed = client.get("/api/v1/account/tokens")
    assert token not in listed.content.decode()
    row = next(row for row in listed.json()["results"] if row["name"] == "ci/main")
    assert (row["role_cap"], row["expires_at"], row["last_used_at"]) == ("viewer", None, None)
    program = Client(headers={"Authorization": f"Bearer {token}"})
    assert program.get("/api/v1/account").json()["role"] == "viewer"
    assert client.delete("/api/v1/account/tokens/ci/main").status_code == 204
    assert program.get("/api/v1/account").status_code == 401
    assert client.delete("/api/v1/account/tokens/ci/main").status_code == 404


def test_a_session_ends_itself_and_everything_else_without_a_fault(db: None) -> None:
    Cluster.objects.create(name="default")
    create_user(COMMAND, "k.osei", Role.VIEWER, PASSWORD)

    def browser() -> Client:
        client = Client()
        client.post("/sign-in", {"username": "k.osei", "password": PASSWORD})
        session = client.session
        session["seen_at"] -= 3600  # so that the next request has something to save of it
        session.save()
        return client

    one, two = browser(), browser()
    listed = one.get("/api/v1/account/sessions").json()["results"]
    mine = next(row for row in listed if row["current"])
    assert len(listed) == 2
    assert one.delete(f"/api/v1/account/sessions/{mine['id']}").status_code == 204
    assert one.get("/api/v1/account").status_code == 401

    third = browser()
    assert third.delete("/api/v1/account/sessions").status_code == 204
    assert two.get("/api/v1/account").status_code == third.get("/api/v1/account").status_code == 401
    assert not User.objects.get(username="k.osei").sessions.exists()
