"""Nodes and cards over REST: the numbers of the one account, and nothing invented."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from gpuadmin.accounts.roles import Role
from gpuadmin.fleet.models import AgentState, Cluster, Gpu, Node
from gpuadmin.workloads.models import Pod, PodDevice
from tests.api.conftest import AsRole

pytestmark = pytest.mark.django_db
NOW = timezone.now()
TEAM = {"key": "team", "value": "a", "effect": "PreferNoSchedule"}
MAINT = {"key": "maint", "effect": "NoExecute", "timeAdded": "2026-11-01T00:00:00Z"}


@pytest.fixture
def cluster(db: None) -> Cluster:
    return Cluster.objects.create(name="default", pods_observed_at=NOW, nodes_observed_at=NOW)


def node(cluster: Cluster, name: str, *, agent: bool = True, gpus: int = 2) -> Node:
    amount = {"nvidia.com/gpu": gpus}
    made = Node.objects.create(
        cluster=cluster,
        uid=f"uid-{name}",
        name=name,
        observed_at=NOW,
        ready=True,
        capacity=amount,
        allocatable=amount,
        is_gpu_node=True,
        taints=[TEAM, MAINT],
    )
    if agent:
        AgentState.objects.create(
            node=made, status="ok", since=NOW, reported_at=NOW, driver_version="570.158.01"
        )
        for index in range(gpus):
            Gpu.objects.create(
                node=made,
                uuid=f"GPU-{name}-{index}",
                index=index,
                name="H100",
                state_since=NOW,
                first_seen=NOW,
                read_at=NOW,
                utilization_percent=80,
                temperature_celsius=60,
            )
    return made


def hold(made: Node, uuid: str) -> None:
    Pod.objects.create(
        cluster=made.cluster,
        uid=f"pod-{uuid}",
        namespace="team",
        name="job",
        node_name=made.name,
        phase="Running",
        requests={"nvidia.com/gpu": 1},
        observed_at=NOW,
    )
    PodDevice.objects.create(
        node=made,
        namespace="team",
        pod_name="job",
        container="main",
        resource="nvidia.com/gpu",
        device_id=uuid,
        gpu_uuid=uuid,
    )


def test_a_node_tells_its_numbers_with_source_and_time(cluster: Cluster, as_role: AsRole) -> None:
    hold(node(cluster, "h100-01"), "GPU-h100-01-0")
    [shown] = as_role(Role.VIEWER).get("/api/v1/nodes").json()["results"]
    assert shown["resources"]["source"] == "kubernetes"
    [row] = shown["resources"]["items"]
    numbers = ("physical", "capacity", "allocatable", "requested", "free", "free_now")
    assert [row[name] for name in numbers] == [2, 2, 2, 1, 1, 0]
    cards = shown["cards"]
    assert (cards["source"], cards["owned"], cards["allocated"]) == ("agent", 2, 1)
    parts = ("working", "busy", "quiet", "idle", "free", "blocked")
    assert [cards[name] for name in parts] == [2, 1, 0, 0, 0, 1]
    assert shown["agent"]["status"] == "ok"
    assert shown["taints"] == [
        {"key": "team", "value": "a", "effect": "PreferNoSchedule", "time_added": None},
        {
            "key": "maint",
            "value": None,
            "effect": "NoExecute",
            "time_added": "2026-11-01T00:00:00Z",
        },
    ]
    assert shown == as_role(Role.VIEWER).get("/api/v1/nodes/uid-h100-01").json()


def test_what_is_not_known_is_null(cluster: Cluster, as_role: AsRole) -> None:
    Cluster.objects.update(pods_observed_at=None)
    node(cluster, "t4-01", agent=False)
    shown = as_role(Role.VIEWER).get("/api/v1/nodes/uid-t4-01").json()
    [row] = shown["resources"]["items"]
    assert (row["capacity"], row["allocatable"]) == (2, 2)
    for name in ("physical", "requested", "free", "free_now", "over_committed"):
        assert row[name] is None, name
    assert shown["agent"]["status"] is None
    assert shown["cards"]["source"] == "kubernetes"
    assert shown["cards"]["owned"] == 2
    for name in ("allocated", "working", "busy", "quiet", "idle"):
        assert shown["cards"][name] is None, name


def test_a_card_tells_its_reading_and_who_holds_it(cluster: Cluster, as_role: AsRole) -> None:
    hold(node(cluster, "h100-01"), "GPU-h100-01-1")
    shown = as_role(Role.VIEWER).get("/api/v1/gpus/GPU-h100-01-1").json()
    assert (shown["node_name"], shown["index"], shown["use"], shown["held"]) == (
        "h100-01",
        1,
        "busy",
        True,
    )
    assert shown["reading"]["source"] == "agent"
    assert shown["reading"]["temperature_celsius"] == 60
    assert shown["reading"]["power_watts"] is None
    assert [holder["pod"] for holder in shown["holders"]] == ["job"]
    listed = as_role(Role.VIEWER).get("/api/v1/gpus").json()["results"]
    assert [card["uuid"] for card in listed] == ["GPU-h100-01-0", "GPU-h100-01-1"]


def test_a_node_that_is_gone_is_no_longer_at_its_address(cluster: Cluster, as_role: AsRole) -> None:
    gone = node(cluster, "h100-01")
    Node.objects.filter(pk=gone.pk).update(gone_at=NOW - timedelta(minutes=1))
    client = as_role(Role.VIEWER)
    assert client.get("/api/v1/nodes").json()["count"] == 0
    assert client.get("/api/v1/nodes/uid-h100-01").status_code == 404
    assert client.get("/api/v1/gpus/GPU-h100-01-0").status_code == 404


@pytest.mark.parametrize("path", ["nodes", "gpus"])
def test_queries_do_not_grow_with_rows(cluster: Cluster, as_role: AsRole, path: str) -> None:
    client: Any = as_role(Role.VIEWER)

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert client.get(f"/api/v1/{path}").status_code == 200
        return len(captured)

    node(cluster, "n-0")
    client.get(f"/api/v1/{path}")
    few = queries()
    for number in range(1, 12):
        hold(node(cluster, f"n-{number}"), f"GPU-n-{number}-0")
    assert queries() == few
