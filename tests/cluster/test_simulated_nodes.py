"""A simulated node behaves on the real control plane as on the simulator's own."""

from __future__ import annotations

import pytest

from simulator import marks
from tests.cluster.objects import (
    GPU,
    SETTLE_SECONDS,
    gpu_pod,
    node_of,
    refusal,
    taint,
    wait_gone,
    wait_phase,
)
from tests.cluster.simulated import NODES
from tests.controlplane.client import Client, Document
from tests.controlplane.waiting import until

pytestmark = pytest.mark.both

REAL = [pytest.param("real", marks=pytest.mark.cluster)]
NODE = "l40s-01"
AGENTS = "/api/v1/namespaces/gpuadmin/pods?labelSelector=app%3Dgpuadmin-agent"


@pytest.mark.parametrize("name", NODES)
def test_a_simulated_node_registers_and_becomes_ready_with_its_cards(
    cluster: Client, name: str
) -> None:
    node = cluster.get(f"/api/v1/nodes/{name}")
    conditions = {c["type"]: c["status"] for c in node["status"]["conditions"]}
    assert conditions["Ready"] == "True"
    assert not node["spec"].get("taints")
    assert node["status"]["capacity"][GPU] == str(NODES[name])
    assert node["status"]["allocatable"][GPU] == str(NODES[name])
    assert node["status"]["nodeInfo"]["bootID"]


@pytest.mark.real_only
@pytest.mark.parametrize("cluster", REAL, indirect=True, scope="module")
def test_its_lease_is_renewed_before_the_node_would_turn_unknown(cluster: Client) -> None:
    lease = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{NODE}"
    first = cluster.get(lease)["spec"]["renewTime"]
    until(lambda: cluster.get(lease)["spec"]["renewTime"] > first, SETTLE_SECONDS, "a renewal")


def test_a_gpu_pod_runs_and_ends(cluster: Client) -> None:
    ends = {marks.RUNS_FOR: "1s"}
    with gpu_pod(cluster, "short", gpus=1, node=NODE, annotations=ends) as pod:
        assert node_of(cluster, pod) == NODE
        ended = wait_phase(cluster, pod, "Succeeded")
        state = ended["status"]["containerStatuses"][0]["state"]["terminated"]
        assert state["exitCode"] == 0
        assert state["startedAt"] <= state["finishedAt"]


def test_a_taint_bars_a_pod_and_its_removal_lets_it_in(cluster: Client) -> None:
    taint(cluster, NODE, {"key": "repair", "effect": "NoSchedule"})
    with gpu_pod(cluster, "barred", gpus=1, node=NODE) as pod:
        sentence = refusal(cluster, pod)
        assert sentence.startswith("0/2 nodes are available: ")
        assert "1 node(s) had untolerated taint" in sentence
        taint(cluster, NODE)
        wait_phase(cluster, pod, "Running")


def test_a_pod_that_asks_for_more_than_the_node_has_waits(cluster: Client) -> None:
    with gpu_pod(cluster, "greedy", gpus=5, node=NODE) as pod:
        assert f"1 Insufficient {GPU}" in refusal(cluster, pod)


def test_held_cards_are_not_given_twice(cluster: Client) -> None:
    with gpu_pod(cluster, "holder", gpus=3, node=NODE) as holder:
        wait_phase(cluster, holder, "Running")
        with gpu_pod(cluster, "late", gpus=2, node=NODE) as late:
            assert f"1 Insufficient {GPU}" in refusal(cluster, late)
            cluster.ok("DELETE", holder)
            wait_phase(cluster, late, "Running")


def test_a_no_execute_taint_ends_a_running_pod(cluster: Client) -> None:
    with gpu_pod(cluster, "doomed", gpus=1, node=NODE) as pod:
        wait_phase(cluster, pod, "Running")
        taint(cluster, NODE, {"key": "repair", "effect": "NoExecute"})
        try:
            wait_gone(cluster, pod)
        finally:
            taint(cluster, NODE)


def test_an_agent_pod_that_is_deleted_comes_back_on_its_node(cluster: Client) -> None:
    def running() -> dict[str, Document]:
        pods = cluster.get(AGENTS)["items"]
        return {pod["spec"]["nodeName"]: pod for pod in pods if pod["status"]["phase"] == "Running"}

    until(lambda: running().keys() == NODES.keys(), SETTLE_SECONDS, "an agent on each node")
    first = running()[NODE]["metadata"]
    cluster.ok("DELETE", f"/api/v1/namespaces/gpuadmin/pods/{first['name']}")

    def another() -> bool:
        found = running().get(NODE)
        return found is not None and found["metadata"]["uid"] != first["uid"]

    until(another, SETTLE_SECONDS, "another agent pod")
