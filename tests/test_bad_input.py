"""Hostile characters in addresses, forms and bodies: 400 or 422 with a sentence, never a 500."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from gpuadmin.accounts.roles import Role
from gpuadmin.operations.models import Operation
from tests.operations.conftest import api_client, api_folder, nudges, world
from tests.operations.world import World
from tests.web.conftest import signed_in

__all__ = ["api_client", "api_folder", "nudges", "world"]
pytestmark = pytest.mark.django_db

PAGES = (
    "/nodes/a%00b",
    "/nodes?name=%00",
    "/operations?who=%00",
    "/operations?node=%00",
    "/?cluster=%00",
    "/nodes/taint?node=%00",
    "/sign-in?next=%00",
)
READINGS = (
    "/api/v1/nodes/a%00",
    "/api/v1/pods/a%00",
    "/api/v1/gpus/a%00",
    "/api/v1/nodes?cluster=%00",
    "/api/v1/nodes?page=%00",
    "/api/v1/no%00where",
)
TAINT = {"node": "h100-01", "action": "add", "key": "maint", "effect": "NoSchedule"}
CONFIRM = {"fingerprint": "x", "reason": "r", "idempotency_key": "k"}


@pytest.fixture
def operator(db: None) -> Client:
    return signed_in(Role.OPERATOR)


@pytest.mark.parametrize("address", PAGES)
@pytest.mark.parametrize("method", ["get", "post"])
def test_a_nul_in_the_address_of_a_page_is_a_400(
    world: World, operator: Client, address: str, method: str
) -> None:
    for client in (operator, Client()):
        answer = getattr(client, method)(address)
        assert answer.status_code == 400
        assert "This was not understood" in answer.content.decode()
        assert "default-src" in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize("address", READINGS)
def test_a_nul_in_an_address_of_rest_is_a_problem(
    world: World, operator: Client, address: str
) -> None:
    for client in (operator, Client()):
        answer = client.get(address)
        assert answer.status_code == 400
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert "NUL" in answer.json()["detail"]


def test_an_escaped_percent_sign_is_no_nul(world: World, operator: Client) -> None:
    assert operator.get("/nodes?name=%2500").status_code == 200
    assert operator.get("/api/v1/nodes/%2500").status_code == 404


@pytest.mark.parametrize("field", [*TAINT, *CONFIRM])
def test_a_nul_in_a_form_is_a_400(world: World, operator: Client, field: str) -> None:
    world.node("h100-01")
    answer = operator.post("/nodes/taint", TAINT | CONFIRM | {field: "a\0"})
    assert answer.status_code == 400
    assert not Operation.objects.exists()


def test_a_nul_in_the_sign_in_form_signs_nobody_in(db: None) -> None:
    answer = Client().post("/sign-in", {"username": "a\0", "password": "a\0"})
    assert answer.status_code == 200
    assert not answer.wsgi_request.user.is_authenticated


@pytest.mark.parametrize("bad", ["\0", "\ud800", "a\udfffb"])
@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (lambda bad: {"nodes": [bad]}, "nodes"),
        (lambda bad: {"key": bad}, "key"),
        (lambda bad: {"value": bad}, "value"),
        (lambda bad: {bad: "a"}, "parameters"),
        (lambda bad: {"nodes": [{"a": [bad]}]}, "nodes"),
    ],
)
def test_what_is_no_text_in_parameters_is_told_by_field(
    world: World, operator: Client, wrong: Any, field: str, bad: str
) -> None:
    parameters = {"nodes": ["u"], "key": "a", "effect": "NoSchedule"} | wrong(bad)
    body = json.dumps({"kind": "taint.add", "parameters": parameters})
    answer = operator.post("/api/v1/operations/preview", body, content_type="application/json")
    assert (answer.status_code, list(answer.json()["errors"])) == (422, [field])


@pytest.mark.parametrize("bad", ["\0", "\ud800"])
@pytest.mark.parametrize("field", ["kind", "fingerprint", "reason", "confirm"])
def test_what_is_no_text_in_a_body_is_told_by_field(
    world: World, operator: Client, field: str, bad: str
) -> None:
    sent = {"kind": "taint.add", "parameters": {}, "fingerprint": "x", "reason": "r", "confirm": ""}
    answer = operator.post(
        "/api/v1/operations",
        json.dumps(sent | {field: bad}),
        content_type="application/json",
        headers={"Idempotency-Key": "k"},
    )
    assert (answer.status_code, list(answer.json()["errors"])) == (400, [field])
