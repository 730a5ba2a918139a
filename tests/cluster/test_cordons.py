"""Cordons by the product on a real cluster, and a worker that dies in the middle of one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from html import unescape
from pathlib import Path

import psycopg
import pytest

from tests.cluster.between import Between
from tests.cluster.changes import END_SECONDS, ENDS, confirm, made, node_in, preview, undo
from tests.cluster.console import LEASE_SECONDS, Console
from tests.cluster.objects import bare_node, gpu_pod, node_of, refusal
from tests.cluster.settings import SWEEP_SECONDS
from tests.conftest import Services
from tests.controlplane.client import Document
from tests.controlplane.plane import ControlPlane
from tests.controlplane.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.real_only]

NODE = "to-cordon"
PATH = f"/api/v1/nodes/{NODE}"


@pytest.fixture
def node(console: Console, plane: ControlPlane, tainter: Path) -> Iterator[Document]:
    """A node with cards that the product knows and may change."""
    with bare_node(plane.admin, NODE, gpus=2):
        yield node_in(console, NODE)


def is_cordoned(plane: ControlPlane) -> bool:
    return bool(plane.admin.get(PATH)["spec"].get("unschedulable"))


def test_a_cordon_keeps_a_pod_off_until_it_is_undone(
    console: Console, plane: ControlPlane, node: Document
) -> None:
    done = confirm(console, preview(console, "node.cordon", node))
    assert (done["state"], done["message"]) == ("succeeded", "Verified on 1.")
    assert is_cordoned(plane)
    with gpu_pod(plane.admin, "kept-off", gpus=1, node=NODE) as pod:
        assert "1 node(s) were unschedulable" in refusal(plane.admin, pod)
        assert undo(console, done)["state"] == "succeeded"
        assert node_of(plane.admin, pod) == NODE
    assert not is_cordoned(plane)


def test_a_cordon_that_kubectl_takes_back_is_shown_and_not_fought(
    console: Console, plane: ControlPlane, node: Document
) -> None:
    done = confirm(console, preview(console, "node.cordon", node))
    plane.kubectl("uncordon", NODE)

    def reversed_at() -> str | None:
        [target] = console.get(f"/operations/{done['id']}")["targets"]
        found: str | None = target["reversed_at"]
        return found

    until(reversed_at, END_SECONDS + SWEEP_SECONDS, "the reversal to be seen")
    assert "Somebody else changed it back" in unescape(console.page(f"/nodes/{NODE}"))
    assert f"Somebody else changed {NODE} back" in console.page(f"/operations/{done['id']}")
    assert not is_cordoned(plane), "nothing is done about it"


def test_a_worker_killed_between_its_write_and_its_row_leaves_one_cordon_and_one_record(
    console: Console, plane: ControlPlane, between: Between, services: Services, node: Document
) -> None:
    """Fault 2: the cordon has landed, nobody has written that down, the worker is gone."""
    between.after("PATCH", PATH, console.kill_worker)
    queued = made(console, preview(console, "node.cordon", node))
    until(lambda: between.acted("PATCH", PATH), END_SECONDS, "the cordon to land")
    assert is_cordoned(plane)
    [lost] = console.get(f"/operations/{queued['id']}")["targets"]
    assert (lost["wrote"], lost["after"]) == (False, None)
    console.restart_worker()

    def over() -> Document | None:
        found = console.get(f"/operations/{queued['id']}")
        return found if found["state"] in ENDS else None

    done = until(over, LEASE_SECONDS + SWEEP_SECONDS + 15, "another worker to end it")
    [target] = done["targets"]
    assert (done["state"], target["wrote"]) == ("succeeded", True)
    assert target["message"] == "Written by an earlier run of this operation."
    assert audited(services, done["id"]) == [("node.cordon", "done")]
    took = datetime.fromisoformat(done["finished_at"]) - datetime.fromisoformat(done["started_at"])
    assert took.total_seconds() <= LEASE_SECONDS + 30
    assert undo(console, done)["state"] == "succeeded"
    assert not is_cordoned(plane)


def audited(services: Services, operation: str) -> list[tuple[str, str]]:
    """Action and outcome of each record of what the operation did to a node."""
    query = (
        "SELECT action, outcome FROM accounts_auditentry"
        " WHERE object_kind = 'node' AND detail->>'operation' = %s ORDER BY id"
    )
    with psycopg.connect(services.postgres.url) as connection:
        return [
            (str(action), str(outcome))
            for action, outcome in connection.execute(query, [operation])
        ]
