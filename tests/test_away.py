"""Fault 6 without a database to kill (tests/faults does): what pages and REST are told."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import InterfaceError, OperationalError
from django.test import Client

from gpuadmin.web.views import session

pytestmark = pytest.mark.django_db
AWAY = (OperationalError("terminating connection"), InterfaceError("the connection is closed"))


@pytest.mark.parametrize("error", AWAY)
def test_a_page_without_a_database_is_a_503_that_says_when_to_try_again(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    answer = _sign_in(monkeypatch, error)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert "The database is away" in answer.content.decode()
    assert "default-src" in answer.headers["Content-Security-Policy"]


def test_another_error_of_ours_stays_a_500(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = _sign_in(monkeypatch, KeyError("x"))
    assert answer.status_code == 500
    assert "Retry-After" not in answer.headers
    assert "Something broke on our side" in answer.content.decode()


@pytest.mark.parametrize("error", AWAY)
def test_rest_without_a_database_is_a_503_problem(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def broken(*_: Any) -> None:
        raise error

    monkeypatch.setattr("gpuadmin.api.auth.BearerToken.authenticate", broken)
    answer = Client(raise_request_exception=False).get("/api/v1/nodes")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert answer.json()["type"] == "urn:gpuadmin:database-away"


def _sign_in(monkeypatch: pytest.MonkeyPatch, error: Exception) -> Any:
    def broken(*_: Any) -> None:
        raise error

    monkeypatch.setattr(session.SignIn, "get", broken)
    return Client(raise_request_exception=False).get("/sign-in")
