"""Every route x method x person → status. A route without a row fails here.

People: nobody signed in, signed in without a role, viewer, operator, admin. What is allowed is
shown by its effect; what is refused has none. A row with equal columns is marked public.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, resolve
from django.utils import timezone

from gpuadmin.accounts.access import role_of
from gpuadmin.accounts.audit import COMMAND, Actor
from gpuadmin.accounts.models import AccessToken, AuditEntry, BrowserSession, User
from gpuadmin.accounts.roles import Role
from gpuadmin.accounts.services import set_role
from gpuadmin.accounts.tokens import create_token
from gpuadmin.fleet.models import Cluster, Finding, Gpu, Node
from gpuadmin.operations import services
from gpuadmin.operations.models import Operation
from gpuadmin.operations.store import Confirmation
from gpuadmin.workloads.models import Pod
from tests.operations.conftest import api_client, api_folder, nudges, run, world
from tests.operations.world import World

__all__ = ["api_client", "api_folder", "nudges", "world"]
pytestmark = pytest.mark.django_db

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
PEOPLE: tuple[Role | None, ...] = (None, Role.NONE, Role.VIEWER, Role.OPERATOR, Role.ADMIN)
PASSWORD, OTHER = "the password of the tests", "another password of the tests"
REFUSALS = (302, 401, 403, 404, 405)


@dataclass
class Scene:
    """One object of each sort; a route is tried on it."""

    world: World
    uid: str
    queued: Operation
    done: Operation
    operator: Actor

    @property
    def names(self) -> dict[str, str]:
        return {"uid": self.uid, "queued": str(self.queued.pk), "done": str(self.done.pk)}

    def change(self) -> dict[str, Any]:
        parameters = {"nodes": [self.uid], "key": "route", "effect": "NoSchedule"}
        return {"kind": "taint.add", "parameters": parameters}

    def create(self) -> dict[str, Any]:
        change = self.change()
        shown = services.preview(
            self.operator, self.world.cluster, change["kind"], change["parameters"]
        )
        return change | {"fingerprint": shown.fingerprint, "reason": "a test"}

    def undo(self) -> dict[str, Any]:
        shown = services.preview_undo(self.operator, self.done)
        return {"fingerprint": shown.fingerprint, "reason": "a test"}

    def taint_form(self) -> dict[str, Any]:
        sent = self.create()
        choice = {"node": "h100-01", "action": "add", "key": "route", "effect": "NoSchedule"}
        return choice | {name: sent[name] for name in ("fingerprint", "reason")}

    def credentials(self) -> dict[str, Any]:
        return {"username": "the-operator", "password": PASSWORD}

    def new_user(self) -> dict[str, Any]:
        return {"name": "new", "role": "viewer", "password": OTHER}

    def state(self) -> tuple[object, ...]:
        """All that a route could change."""
        operations = sorted(Operation.objects.values_list("pk", "state"))
        users = sorted(User.objects.values_list("username", "password", "is_active", "groups"))
        keys = AccessToken.objects.count(), BrowserSession.objects.count()
        return (operations, self.world.taints("h100-01"), users, keys)


Effect = Callable[[Scene, Any], bool]


def shows(*texts: str) -> Effect:
    """A reading is allowed when the object is in the answer."""
    return lambda scene, answer: all(
        text.format(**scene.names) in answer.content.decode() for text in texts
    )


def makes(undo: bool = False) -> Effect:
    """A new operation waits in the queue."""

    def made(scene: Scene, answer: Any) -> bool:
        newest = Operation.objects.order_by("-created_at")[0]
        return newest.pk not in (scene.queued.pk, scene.done.pk) and (
            newest.undo_of_id == scene.done.pk if undo else newest.undo_of_id is None
        )

    return made


def has_no_token(user: User) -> bool:
    return not user.auth_token_set.exists()


def cancels(scene: Scene, answer: Any) -> bool:
    scene.queued.refresh_from_db()
    return scene.queued.state == "cancelled"


def account(test: Callable[[User], bool], name: str = "") -> Effect:
    """A change of the user ``name``, or else of the one who asks."""

    def changed(scene: Scene, answer: Any) -> bool:
        return test(User.objects.get(username=name or answer.wsgi_request.user.get_username()))

    return changed


def signs_in(scene: Scene, answer: Any) -> bool:
    return bool(answer.wsgi_request.user.is_authenticated)


def signs_out(scene: Scene, answer: Any) -> bool:
    return not answer.wsgi_request.user.is_authenticated


@dataclass(frozen=True)
class Row:
    """One route and method; ``statuses`` in the order of PEOPLE."""

    method: str
    address: str
    statuses: tuple[int, int, int, int, int]
    effect: Effect
    body: Callable[[Scene], dict[str, Any]] = lambda scene: {}
    public: bool = False

    def __str__(self) -> str:
        return f"{self.method} {self.address}"


PAGE = (302, 403, 200, 200, 200)
CHANGE_PAGE = (302, 403, 403, 200, 200)
CHANGE_FORM = (302, 403, 403, 303, 303)
READ = (401, 403, 200, 200, 200)
CHANGE = (401, 403, 403, 200, 200)
CREATE = (401, 403, 403, 201, 201)
OWN_FORM = (302, 403, 303, 303, 303)
ADMIN_PAGE = (302, 403, 403, 403, 200)
ADMIN_FORM = (302, 403, 403, 403, 303)
OPEN = (200, 200, 200, 200, 200)

API = "/api/v1"
ROWS = (
    Row("GET", "/livez", OPEN, shows("ok"), public=True),
    Row("GET", "/readyz", OPEN, shows("ok"), public=True),
    Row("GET", "/healthz", OPEN, shows('"status"'), public=True),
    Row("GET", f"{API}/no/such/address", (404,) * 5, shows(), public=True),
    Row("GET", f"{API}/clusters", READ, shows("default")),
    Row("GET", f"{API}/nodes", READ, shows("{uid}")),
    Row("GET", f"{API}/nodes/{{uid}}", READ, shows("{uid}")),
    Row("GET", f"{API}/gpus", READ, shows("GPU-1")),
    Row("GET", f"{API}/gpus/GPU-1", READ, shows("GPU-1")),
    Row("GET", f"{API}/pods", READ, shows("pod-1")),
    Row("GET", f"{API}/pods/pod-1", READ, shows("pod-1")),
    Row("GET", f"{API}/findings", READ, shows("A finding of the test.")),
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
    Row("GET", "/nodes", PAGE, shows("h100-01")),
    Row("GET", "/nodes/h100-01", PAGE, shows("h100-01")),
    Row("GET", "/nodes/taint?node=h100-01", CHANGE_PAGE, shows("h100-01")),
    Row("POST", "/nodes/taint", CHANGE_FORM, makes(), Scene.taint_form),
    Row("GET", "/findings", PAGE, shows("A finding of the test.")),
    Row("GET", "/operations", PAGE, shows("{queued}", "{done}")),
    Row("GET", "/operations/{done}", PAGE, shows("{done}")),
    Row("GET", "/operations/{done}/undo", CHANGE_PAGE, shows("fingerprint")),
    Row("POST", "/operations/{done}/undo", CHANGE_FORM, makes(undo=True), Scene.undo),
    Row("POST", "/operations/{queued}/cancel", CHANGE_FORM, cancels),
    Row("GET", "/setup", PAGE, shows("Set-up")),
    Row("GET", "/account", PAGE, shows("My account")),
    Row(
        "POST",
        "/account/password",
        OWN_FORM,
        account(lambda user: user.check_password(OTHER)),
        lambda scene: {"old": PASSWORD, "password": OTHER, "again": OTHER},
    ),
    Row("GET", "/account/new-token", PAGE, shows("A new API token")),
    Row(
        "POST", "/account/new-token", PAGE, shows("gpa_"), lambda scene: {"name": "n", "days": "7"}
    ),
    Row("POST", "/account/revoke-token", OWN_FORM, account(has_no_token), lambda _: {"token": "t"}),
    Row("POST", "/account/end-session", OWN_FORM, signs_out, lambda scene: {"all": "1"}),
    Row("GET", "/users", ADMIN_PAGE, shows("the-operator")),
    Row("GET", "/new-user", ADMIN_PAGE, shows("Add a user")),
    Row("POST", "/new-user", ADMIN_FORM, account(lambda user: True, "new"), Scene.new_user),
    Row("GET", "/users/the-operator", ADMIN_PAGE, shows("the-operator")),
    Row(
        "POST",
        "/users/the-operator/role",
        ADMIN_FORM,
        account(lambda user: role_of(user) is Role.VIEWER, "the-operator"),
        lambda scene: {"role": "viewer"},
    ),
    Row(
        "POST",
        "/users/the-operator/password",
        ADMIN_FORM,
        account(lambda user: user.check_password(OTHER), "the-operator"),
        lambda scene: {"password": OTHER},
    ),
    Row(
        "POST",
        "/users/the-operator/disable",
        ADMIN_FORM,
        account(lambda user: not user.is_active, "the-operator"),
    ),
    Row(
        "POST",
        "/users/the-operator/enable",
        ADMIN_FORM,
        account(lambda user: user.is_active, "the-operator"),
    ),
    Row(
        "POST",
        "/users/the-operator/sign-out",
        ADMIN_FORM,
        account(has_no_token, "the-operator"),
        lambda scene: {"tokens": "1"},
    ),
    Row(
        "POST",
        "/users/the-operator/revoke-token",
        ADMIN_FORM,
        account(has_no_token, "the-operator"),
        lambda scene: {"token": "t"},
    ),
)


@pytest.fixture
def scene(world: World) -> Scene:
    uid = world.node("h100-01")
    _store_one_of_each(world.cluster, uid)
    operator = Actor(person("the-operator", Role.OPERATOR), Role.OPERATOR, "session")
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
    if expected in (200, 201, 303) or row.public:
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


def person(name: str, role: Role) -> User:
    user = User.objects.create_user(name, password=PASSWORD)
    if role is not Role.NONE:
        set_role(COMMAND, name, role)
    create_token(COMMAND, name, "t", cap=None, days=1)
    return user


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
