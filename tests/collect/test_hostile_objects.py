"""Kubernetes objects that no sane client makes: they cost themselves, never the watch."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from django.utils import timezone

from gpuadmin.collect.batches import Batch, FromNodes, FromPods
from gpuadmin.collect.findings import refresh_findings
from gpuadmin.collect.poll import shards
from gpuadmin.collect.reading import node_reader, pod_reader
from gpuadmin.fleet.models import AgentState, Cluster, Finding, Node, NodeResource
from gpuadmin.fleet.services import ensure_cluster
from gpuadmin.kube.objects import Unreadable
from gpuadmin.kube.stream import Changed, Listed
from gpuadmin.workloads.models import Pod
from tests.support.scripted_api import Json, node, pod

pytestmark = pytest.mark.django_db
HUGE = "9223372036854775807"
LONG = "x" * 400


class Watched:
    """A cluster whose watch has just listed one good node."""

    def __init__(self) -> None:
        self.batch = Batch(lambda: (None, "none"))
        self.cluster = ensure_cluster("test")
        self.list_nodes(node("good"))
        self.list_pods()

    def list_nodes(self, *nodes: Json) -> None:
        listed = Listed([node_reader()(raw(each)) for each in nodes])
        self.apply(FromNodes(listed))

    def list_pods(self, *pods: Json) -> None:
        listed = Listed([pod_reader("gpuadmin")(raw(each)) for each in pods])
        self.apply(FromPods(listed))

    def apply(self, *changes: Any) -> None:
        cluster = Cluster.objects.get(pk=self.cluster.pk)
        self.batch.apply(cluster, list(changes), timezone.now())


def raw(thing: Json) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(thing).encode())


def odd_pod(**changes: Any) -> Json:
    made = pod("odd", "good")
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = made
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
    return made


def asking(count: str, name: str = "nvidia.com/gpu", containers: int = 2) -> list[Json]:
    return [{"name": "c", "resources": {"limits": {name: count}}} for _ in range(containers)]


ODD_PODS = [
    odd_pod(metadata__ownerReferences=[{"kind": "K" * 64, "name": LONG, "controller": True}]),
    odd_pod(metadata__ownerReferences=[{"kind": "K", "name": "a\0b", "controller": True}]),
    odd_pod(status__reason=LONG, status__message="a\0b"),
    odd_pod(status__conditions=[{"type": "PodScheduled", "status": "False", "message": "\0"}]),
    odd_pod(spec__containers=asking(HUGE)),
    odd_pod(spec__containers=asking("1", "example.com/" + "gpu" * 200)),
    odd_pod(spec__schedulerName=LONG),
    odd_pod(spec__tolerations=[{"key": "a\0", "value": "\ud800"}]),
    odd_pod(status__startTime="0001-01-01T00:00:00+14:00"),
    odd_pod(metadata__name="n" * 300, metadata__namespace="m" * 300),
]


@pytest.mark.parametrize("odd", ODD_PODS)
def test_an_odd_pod_does_not_keep_a_good_one_from_being_stored(odd: Json) -> None:
    watched = Watched()
    watched.list_pods(odd, pod("fine", "good"))
    assert Pod.objects.filter(name="fine", gone_at=None).exists()
    row = NodeResource.objects.get(node__name="good", name="nvidia.com/gpu")
    assert (row.requested or 0) >= 1
    stored = Pod.objects.filter(uid="uid-odd").exists()
    told = Finding.objects.filter(code="unreadable_object", resolved_at=None).exists()
    asks_nothing = "gpugpu" in str(odd)
    assert stored or told or asks_nothing


@pytest.mark.parametrize(
    "amount", ["99999999999999999999", "1" * 4000, HUGE, "1000000000", "-5", "many", ""]
)
def test_an_odd_amount_on_a_node_is_a_fault_or_unknown_and_costs_no_memory(amount: str) -> None:
    watched = Watched()
    counts = {"nvidia.com/gpu": amount}
    odd = node("odd", status={"capacity": counts, "allocatable": counts})
    odd["metadata"]["labels"] = {"nvidia.com/gpu.count": "3000000", "nvidia.com/gpu.replicas": HUGE}
    watched.list_nodes(odd, node("good"))
    row = NodeResource.objects.get(node__name="odd")
    assert row.note == "fault" or row.capacity is None
    assert not row.free_now


def test_odd_text_on_a_node_is_kept_as_far_as_it_can_be() -> None:
    watched = Watched()
    odd = node("odd")
    odd["metadata"]["labels"] = {"a": "b\0c", "long": LONG * 20}
    odd["status"]["conditions"] = [{"type": "Ready", "status": "True", "message": "x\0y"}]
    watched.list_nodes(odd, node("good"))
    found = Node.objects.get(name="odd")
    assert found.labels["a"] == "b\ufffdc"
    assert found.ready_reason == "x\ufffdy"


def test_an_object_that_cannot_be_read_is_no_finding_any_more_once_it_is_gone() -> None:
    watched = Watched()
    bad = Unreadable("u9", "m" * 300 + "/p", "spec is no object")
    watched.apply(FromPods(Changed(bad, gone=False)))
    assert Finding.objects.filter(code="unreadable_object", resolved_at=None).count() == 1
    watched.apply(FromPods(Changed(bad, gone=True)))
    assert not Finding.objects.filter(code="unreadable_object", resolved_at=None).exists()


def test_two_pods_of_owners_with_long_names_are_two_findings() -> None:
    watched = Watched()
    first, second = pod("p1"), pod("p2")
    for number, each in enumerate((first, second)):
        owner = {"kind": "Job", "name": "j" * 200 + str(number), "uid": "u", "controller": True}
        each["metadata"]["ownerReferences"] = [owner]
    watched.list_pods(first, second)
    refresh_findings(watched.cluster, timezone.now())
    assert Finding.objects.filter(code="pods_pending").count() == 2


def test_a_node_that_lost_its_cards_is_not_asked_any_more() -> None:
    watched = Watched()
    state = AgentState.objects.get(node__name="good")
    AgentState.objects.update(address="127.0.0.1", port=9, status="ok")
    watched.list_nodes(node("good", status={"conditions": [{"type": "Ready", "status": "True"}]}))
    state.refresh_from_db()
    assert (state.status, state.address) == ("missing", None)
    assert shards(watched.cluster) == []
