"""The engine's tests run on the simulator's API and on real PostgreSQL."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from gpuadmin.accounts.audit import COMMAND, Actor
from gpuadmin.accounts.models import User
from gpuadmin.accounts.roles import Role
from gpuadmin.accounts.services import set_role
from gpuadmin.fleet.models import Cluster
from gpuadmin.kube.client import KubeClient
from gpuadmin.operations import clients, engine, nudge, services
from gpuadmin.operations.models import Operation
from gpuadmin.operations.store import Confirmation, Previewed
from tests.operations.world import World, simulated_api


@pytest.fixture(scope="session")
def api_folder() -> Iterator[Path]:
    """Where the simulated API keeps its kubeconfig."""
    with tempfile.TemporaryDirectory(prefix="gpa-ops-") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def api_client(api_folder: Path) -> Iterator[KubeClient]:
    with simulated_api(api_folder) as client:
        yield client


@pytest.fixture(scope="session")
def real_nudge() -> Callable[..., None]:
    """The one that speaks to the queue, which the other tests put aside."""
    return nudge.send


@pytest.fixture
def nudges(monkeypatch: pytest.MonkeyPatch) -> list[UUID]:
    """What would have been put into the queue."""
    sent: list[UUID] = []
    monkeypatch.setattr(nudge, "send", lambda operation, after_seconds=0: sent.append(operation))
    return sent


@pytest.fixture
def world(
    db: None, api_client: KubeClient, monkeypatch: pytest.MonkeyPatch, nudges: list[UUID]
) -> Iterator[World]:
    monkeypatch.setattr(clients, "_client", lambda *arguments: api_client)
    read = Cluster.objects.create(name="default", pods_observed_at=timezone.now())
    made = World(api_client, read)
    made.make_namespaces("team", "gpuadmin")
    yield made
    made.clear()


@pytest.fixture
def operator(db: None) -> Actor:
    user = User.objects.create_user("k.osei")
    set_role(COMMAND, user.username, Role.OPERATOR)
    return Actor(user, Role.OPERATOR, "session")


Make = Callable[..., Operation]


@pytest.fixture
def make(world: World, operator: Actor) -> Make:
    """Preview and confirm in one go, as somebody does who reads fast."""

    def made(kind: str, typed: str | None = None, **parameters: Any) -> Operation:
        shown = services.preview(operator, world.cluster, kind, parameters)
        return confirm(operator, world, shown, typed=typed)

    return made


def confirm(
    actor: Actor, world: World, shown: Previewed, *, typed: str | None = None, **more: Any
) -> Operation:
    phrase = shown.plan.confirm.phrase if typed is None else typed
    confirmation = Confirmation(shown.fingerprint, "maintenance", phrase, **more)
    return services.create(actor, world.cluster, shown.kind, shown.parameters, confirmation)[0]


def run(operation: Operation, client: KubeClient | None = None, **more: Any) -> Operation:
    """What a worker does with one message; the row as it is afterwards."""
    engine.run(operation.pk, worker="w1", client=client, **more)
    operation.refresh_from_db()
    return operation
