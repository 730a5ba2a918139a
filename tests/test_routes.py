"""Every route x method x person → status. A route without a row fails here.

People: nobody signed in, signed in without a role, viewer, operator, admin. What is allowed is
shown by its effect; what is refused has none. A row with equal columns is marked public.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, resolve
from django.utils import timezone

from gpuadmin.accounts.audit import Actor
from gpuadmin.accounts.models import AuditEntry, User
from gpuadmin.accounts.roles import Role
from gpuadmin.fleet.models import Cluster, Finding, Gpu, Kubeconfig, Node
from gpuadmin.operations import services
from gpuadmin.operations.models import Operation
from gpuadmin.operations.store import Confirmation
from gpuadmin.workloads.models import Pod
from tests.operations.conftest import api_client, api_folder, nudges, run, world
from tests.operations.world import World
from tests.support.account_routes import ACCOUNT_ROWS
from tests.support.routes import (
    API,
    CHANGE,
    CHANGE_FORM,
    CHANGE_PAGE,
    CREATE,
    OPEN,
    PAGE,
    READ,
    Row,
    Scene,
    cancels,
    makes,
    person,
    shows,
    signs_in,
    signs_out,
)

__all__ = ["api_client", "api_folder", "nudges", "world"]
pytestmark = pytest.mark.django_db

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
PEOPLE: tuple[Role | None, ...] = (None, Role.NONE, Role.VIEWER, Role.OPERATOR, Role.ADMIN)
REFUSALS = (302, 401, 403, 404, 405)
ROWS = (
    *ACCOUNT_ROWS,
    Row("GET", "/livez", OPEN, shows("ok"), public=True),
    Row("GET", "/readyz", OPEN, shows("ok"), public=True),
    Row("GET", "/healthz", OPEN, shows('"status"'), public=True),
    Row("GET", f"{API}/no/such/address", (404,) * 5, shows(), public=True),
    Row("GET", f"{API}/clusters", READ, shows("default")),
    Row("GET", f"{API}/nodes", READ, shows("{uid}")),
    Row("GET", f"{API}/nodes/{{uid}}", READ, shows("{uid}")),
    Row("GET", f"{API}/nodes/{{uid}}/readings", READ, shows("step_seconds")),
    Row("GET", f"{API}/gpus", READ, shows("GPU-1")),
    Row("GET", f"{API}/gpus/GPU-1", READ, shows("GPU-1")),
    Row("GET", f"{API}/pods", READ, shows("pod-1")),
    Row("GET", f"{API}/pods/pod-1", READ, shows("pod-1")),
    Row("GET", f"{API}/findings", READ, shows("A finding of the test.")),
    Row("GET", f"{API}/search?q=h100", READ, shows("h100-01")),
    Row("GET", f"{API}/schema", READ, shows("openapi")),
    Row("GET", f"{API}/operations", READ, shows("{queued}", "{done}")),
    Row("POST", f"{API}/operations", CREATE, makes(), Scene.create),
    Row("POST", f"{API}/operations/preview", CHANGE, shows("fingerprint"), Scene.change),
    Row("GET", f"{API}/operations/{{done}}", READ, shows("{done}")),
    Row("POST", f"{API}/operations/{{done}}/undo/preview", CHANGE, shows("fingerprint")),
    Row("POST", f"{API}/operations/{{done}}/undo", CREATE, makes(undo=True), Scene.undo),
    Row("POST", f"{API}/operations/{{queued}}/cancel", CHANGE, cancels),
    Row("GET", "/sign-in", (200, 302, 302, 302, 302), shows('name="password"')),
    Row("POST", "/sign-in", (302,) * 5, signs_in, Scene.credentials, public=True),
    Row("POST", "/sign-out", (302,) * 5, signs_out, public=True),
    Row("GET", "/", PAGE, shows("A finding of the test.")),
    Row("GET", "/search?q=no+such", PAGE, shows("Nothing has this in its name")),
    Row("GET", "/nodes.csv", PAGE, shows("h100-01")),
    Row("GET", "/findings.csv", PAGE, shows("A finding of the test.")),
    Row("GET", "/operations.csv", PAGE, shows("{queued}", "{done}")),
    Row("GET", "/pods.csv", PAGE, shows("job")),
    Row("GET", "/nodes", PAGE, shows("h100-01")),
    Row("GET", "/nodes/h100-01", PAGE, shows("h100-01")),
    Row("GET", "/nodes/taint?node=h100-01", CHANGE_PAGE, shows("h100-01")),
    Row("POST", "/nodes/taint", CHANGE_FORM, makes(), Scene.taint_form),
    Row("GET", "/nodes/cordon?node=h100-01", CHANGE_PAGE, shows("kubectl cordon h100-01")),
    Row("POST", "/nodes/cordon", CHANGE_FORM, makes(), Scene.cordon_form),
    Row("GET", "/findings", PAGE, shows("A finding of the test.")),
    Row("GET", "/operations", PAGE, shows("{queued}", "{done}")),
    Row("GET", "/operations/{done}", PAGE, shows("{done}")),
    Row("GET", "/operations/{done}/undo", CHANGE_PAGE, shows("fingerprint")),
    Row("POST", "/operations/{done}/undo", CHANGE_FORM, makes(undo=True), Scene.undo),
    Row("POST", "/operations/{queued}/cancel", CHANGE_FORM, cancels),
    Row("GET", "/setup", PAGE, shows("Set-up")),
)


@pytest.fixture
def scene(world: World) -> Scene:
    uid = world.node("h100-01")
    _store_one_of_each(world.cluster, uid)
    operator = Actor(person("the-operator", Role.OPERATOR), Role.OPERATOR, "session")
    Kubeconfig.objects.create(
        cluster=world.cluster,
        server="https://10.0.0.9",
        given_by=User.objects.get(username="the-operator"),
    )
    done = run(_operation(world, operator, uid, "done"))
    queued = _operation(world, operator, uid, "queued")
    return Scene(world, uid, queued, done, operator)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_each_route_lets_in_whom_the_table_says(row: Row, scene: Scene) -> None:
    body = row.body(scene)
    for who, expected in zip(PEOPLE, row.statuses, strict=True):
        with transaction.atomic():
            check(row, who, expected, scene, body)
            transaction.set_rollback(True)


def check(row: Row, who: Role | None, expected: int, scene: Scene, body: dict[str, Any]) -> None:
    """One cell of the table, shown by what it did or did not do."""
    client = client_of(who)
    before, refusals = scene.state(), AuditEntry.objects.filter(outcome="refused").count()
    answer = send(client, row.method, row.address.format(**scene.names), body)
    assert answer.status_code == expected, (who, answer.content[:500])
    if expected in (200, 201, 204, 303) or row.public:
        assert row.effect(scene, answer), who
        return
    assert scene.state() == before, who
    if expected == 403:
        assert AuditEntry.objects.filter(outcome="refused").count() == refusals + 1, who


def test_equal_columns_are_marked_public_and_only_they() -> None:
    assert [str(row) for row in ROWS if (len(set(row.statuses)) == 1) is not row.public] == []


def test_every_route_has_a_row(scene: Scene) -> None:
    covered = {resolve(row.address.format(**scene.names).split("?")[0]).route for row in ROWS}
    assert sorted(routes()) == sorted(covered)


@pytest.mark.parametrize("who", PEOPLE, ids=lambda who: "nobody" if who is None else who.name)
def test_every_method_without_a_row_is_refused_to_everybody(who: Role | None, scene: Scene) -> None:
    rows = {(row.method, resolve_route(row.address, scene)) for row in ROWS}
    reading = {("HEAD", route) for method, route in rows if method == "GET"}
    addresses = {resolve_route(r.address, scene): r.address.format(**scene.names) for r in ROWS}
    client = client_of(who)
    before = scene.state()
    for route, address in addresses.items():
        for method in METHODS:
            if (method, route) not in rows | reading:
                answer = send(client, method, address, {})
                assert answer.status_code in REFUSALS, f"{method} {address}"
    assert scene.state() == before


def routes(resolver: URLResolver | None = None, prefix: str = "") -> Iterator[str]:
    """Every route of the URL map, as `resolve().route` gives it."""
    for entry in (resolver or get_resolver()).url_patterns:
        if isinstance(entry, URLPattern):
            yield prefix + str(entry.pattern)
        else:
            yield from routes(entry, prefix + str(entry.pattern))


def resolve_route(address: str, scene: Scene) -> str:
    return resolve(address.format(**scene.names).split("?")[0]).route


def client_of(who: Role | None) -> Client:
    client = Client()
    if who is not None:
        name = f"route-{who.name.lower()}"
        client.force_login(User.objects.filter(username=name).first() or person(name, who))
    return client


def send(client: Client, method: str, address: str, body: dict[str, Any]) -> HttpResponse:
    send_it = getattr(client, method.lower())
    if method in ("GET", "HEAD"):
        return send_it(address)  # type: ignore[no-any-return]
    if not address.startswith(API):
        return send_it(address, body) if method == "POST" else send_it(address)  # type: ignore[no-any-return]
    return send_it(  # type: ignore[no-any-return]
        address, body, content_type="application/json", headers={"Idempotency-Key": "k"}
    )


def _operation(world: World, operator: Actor, uid: str, key: str) -> Operation:
    parameters = {"nodes": [uid], "key": key, "effect": "NoSchedule"}
    shown = services.preview(operator, world.cluster, "taint.add", parameters)
    confirmation = Confirmation(shown.fingerprint, "a test")
    return services.create(operator, world.cluster, "taint.add", parameters, confirmation)[0]


def _store_one_of_each(cluster: Cluster, uid: str) -> None:
    now = timezone.now()
    node = Node.objects.get(uid=uid)
    Node.objects.filter(pk=node.pk).update(ready=True, is_gpu_node=True)
    Gpu.objects.create(
        node=node, uuid="GPU-1", index=0, state_since=now, first_seen=now, read_at=now
    )
    Pod.objects.create(
        cluster=cluster,
        uid="pod-1",
        namespace="team",
        name="job",
        node_name=node.name,
        phase="Running",
        observed_at=now,
    )
    Finding.objects.create(
        cluster=cluster,
        code="test",
        severity="warning",
        object_kind="node",
        object_uid=uid,
        object_name=node.name,
        node_name=node.name,
        sentence="A finding of the test.",
        first_seen=now,
        last_seen=now,
    )
