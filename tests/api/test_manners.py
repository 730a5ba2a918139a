"""What holds for every address of the REST interface."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from gpuadmin.accounts.audit import COMMAND
from gpuadmin.accounts.models import AccessToken, AuditEntry, User
from gpuadmin.accounts.roles import Role
from gpuadmin.accounts.services import disable
from gpuadmin.fleet.models import Cluster, Node
from gpuadmin.workloads.models import Pod
from tests.api.conftest import AsRole

pytestmark = pytest.mark.django_db
PROBLEM = "application/problem+json"


@pytest.fixture
def cluster(db: None) -> Cluster:
    return Cluster.objects.create(name="default")


def is_problem(answer: Any, status: int) -> bool:
    body = answer.json()
    return bool(
        answer.status_code == status
        and answer.headers["Content-Type"] == PROBLEM
        and body["status"] == status
        and body["title"]
        and body["detail"]
        and body["type"]
    )


def test_without_a_sign_in_every_answer_is_401_and_names_the_scheme() -> None:
    answer = APIClient().get("/api/v1/nodes")
    assert is_problem(answer, 401)
    assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("header", ["Bearer nonsense", "Bearer", "Bearer a b", "Bearer \udcff"])
def test_a_bad_token_is_401(header: str) -> None:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=header.encode("utf-8", "surrogateescape"))
    assert is_problem(client.get("/api/v1/nodes"), 401)


def test_an_expired_token_and_one_of_a_disabled_user_are_401(
    as_role: AsRole, cluster: Cluster
) -> None:
    client = as_role(Role.VIEWER)
    assert client.get("/api/v1/pods").status_code == 200
    AccessToken.objects.update(expiry=timezone.now() - timedelta(seconds=1))
    assert is_problem(client.get("/api/v1/pods"), 401)

    disabled = as_role(Role.OPERATOR)
    disable(COMMAND, "a-operator")
    assert is_problem(disabled.get("/api/v1/pods"), 401)


def test_the_last_use_of_a_token_is_dated_at_most_once_a_minute(
    as_role: AsRole, cluster: Cluster
) -> None:
    client = as_role(Role.VIEWER)
    client.get("/api/v1/pods")
    first = AccessToken.objects.get().last_used
    assert first is not None
    client.get("/api/v1/pods")
    assert AccessToken.objects.get().last_used == first
    AccessToken.objects.update(last_used=first - timedelta(minutes=1))
    client.get("/api/v1/pods")
    assert AccessToken.objects.filter(last_used__gte=first).exists()


def test_a_user_without_a_role_is_refused_and_audited(as_role: AsRole) -> None:
    answer = as_role(Role.NONE).get("/api/v1/nodes")
    assert is_problem(answer, 403)
    assert "has no role here" in answer.json()["detail"]
    assert AuditEntry.objects.filter(outcome="refused", action="view").count() == 1


def test_a_session_needs_the_csrf_token_and_json() -> None:
    user = User.objects.create_user("k.osei")
    call_command("gpuadmin_user", "set-role", "k.osei", "operator")
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    body = {"kind": "taint.add", "parameters": {}}
    answer = client.post("/api/v1/operations/preview", body, content_type="application/json")
    assert is_problem(answer, 403)
    assert "CSRF" in answer.json()["detail"]


def test_errors_of_form_are_problems(as_role: AsRole, cluster: Cluster) -> None:
    client = as_role(Role.OPERATOR)
    for nothing in ("/api", "/api/", "/api/v1", "/api/v1/", "/api/v2/nodes", "/api/v1/nodes/"):
        assert is_problem(client.get(nothing), 404), nothing
    assert is_problem(client.get("/api/v1/nothing/here"), 404)
    assert is_problem(client.post("/api/v1/nothing/here", {}), 404)
    assert is_problem(client.get("/api/v1/nodes/nobody"), 404)
    assert is_problem(client.get("/api/v1/gpus/nobody"), 404)
    assert is_problem(client.get("/api/v1/pods/nobody"), 404)
    assert is_problem(client.get("/api/v1/nodes?cluster=other"), 404)
    assert is_problem(client.delete("/api/v1/nodes"), 405)
    broken = client.post("/api/v1/operations/preview", "{", content_type="application/json")
    assert is_problem(broken, 400)
    form = client.post("/api/v1/operations/preview", "a=b", content_type="text/plain")
    assert is_problem(form, 415)


def test_an_unexpected_error_is_a_problem_without_its_inside(
    as_role: AsRole, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the secret inside")

    monkeypatch.setattr("gpuadmin.api.v1.pods.present_pods", broken)
    client = as_role(Role.VIEWER)
    client.raise_request_exception = False
    answer = client.get("/api/v1/pods")
    assert is_problem(answer, 500)
    assert "secret" not in answer.content.decode()


READINGS = ("clusters", "nodes", "nodes/u", "gpus", "gpus/u", "pods", "pods/u", "findings")
OPERATIONS = ("operations", "operations/1f0a6c1e-5a68-4a3c-9f37-0c1d5a5d2b11")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("address", [*READINGS, *OPERATIONS])
def test_every_reading_shows_one_moment(as_role: AsRole, address: str) -> None:
    Cluster.objects.create(name="default")
    client = as_role(Role.VIEWER)
    with CaptureQueriesContext(connection) as captured:
        client.get(f"/api/v1/{address}")
    told = [query["sql"] for query in captured]
    start = told.index("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
    places = [n for n, sql in enumerate(told) if re.search("fleet_|workloads_|operations_", sql)]
    end = next(n for n, sql in enumerate(told) if n > start and sql in ("COMMIT", "ROLLBACK"))
    assert places
    assert start < min(places) <= max(places) < end


def test_lists_come_in_pages(as_role: AsRole, cluster: Cluster) -> None:
    Pod.objects.bulk_create(
        Pod(
            cluster=cluster,
            uid=f"u{number:03}",
            namespace="team",
            name=f"p{number:03}",
            phase="Running",
            observed_at=timezone.now(),
        )
        for number in range(120)
    )
    client = as_role(Role.VIEWER)
    first = client.get("/api/v1/pods").json()
    assert (first["count"], len(first["results"]), first["previous"]) == (120, 100, None)
    second = client.get(first["next"]).json()
    assert (len(second["results"]), second["next"]) == (20, None)
    assert len(client.get("/api/v1/pods?page_size=7").json()["results"]) == 7
    for size in ("0", "501", "x", "-1"):
        answer = client.get(f"/api/v1/pods?page_size={size}")
        assert is_problem(answer, 400)
        assert list(answer.json()["errors"]) == ["page_size"]
    for page in ("0", "x", "-1", "1.5", "last"):
        answer = client.get(f"/api/v1/pods?page={page}")
        assert is_problem(answer, 400)
        assert list(answer.json()["errors"]) == ["page"]
    beyond = client.get("/api/v1/pods?page=99")
    assert is_problem(beyond, 404)
    assert "the last is" in beyond.json()["detail"]


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("nodes/u-1", "There is no node with the uid “u-1” in default; GET /api/v1/nodes lists"),
        ("gpus/GPU-1", "There is no card with the UUID “GPU-1” in default; GET /api/v1/gpus lists"),
        ("pods/u-1", "There is no pod with the uid “u-1” in default; GET /api/v1/pods lists"),
        ("nodes?cluster=other", "There is no cluster “other”; GET /api/v1/clusters lists"),
    ],
)
def test_what_is_not_there_says_where_to_look(
    as_role: AsRole, cluster: Cluster, address: str, told: str
) -> None:
    answer = as_role(Role.VIEWER).get(f"/api/v1/{address}")
    assert is_problem(answer, 404)
    assert answer.json()["detail"].startswith(told)
    assert answer.json()["type"] == "urn:gpuadmin:missing"


def test_pods_and_nodes_are_found_by_their_exact_name(as_role: AsRole, cluster: Cluster) -> None:
    now = timezone.now()
    for name in ("train-1", "train-10"):
        Pod.objects.create(cluster=cluster, uid=name, namespace="a", name=name, observed_at=now)
        Node.objects.create(cluster=cluster, uid=name, name=name, observed_at=now)
    client = as_role(Role.VIEWER)
    for noun in ("pods", "nodes"):
        found = client.get(f"/api/v1/{noun}?name=train-1").json()
        assert [one["name"] for one in found["results"]] == ["train-1"]
        assert client.get(f"/api/v1/{noun}?name=train").json()["count"] == 0
