"""Selectors, tables and refused writes: the simulator's and the real answers."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from tests.cluster.objects import PODS, gpu_pod, node_of
from tests.controlplane.client import Client

pytestmark = pytest.mark.both

NODE = "a100-01"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def names(cluster: Client, query: str) -> set[str]:
    return {pod["metadata"]["name"] for pod in cluster.get(f"{PODS}?{query}")["items"]}


def test_pods_are_selected_by_labels_and_by_node(cluster: Client) -> None:
    with (
        gpu_pod(cluster, "red", gpus=1, node=NODE, labels={"team": "red"}) as red,
        gpu_pod(cluster, "bare", gpus=1, node=NODE) as bare,
    ):
        node_of(cluster, red)
        node_of(cluster, bare)
        for selector, found in (
            ("team=red", {"red"}),
            ("team in (red,blue)", {"red"}),
            ("team notin (red)", {"bare"}),
            ("team", {"red"}),
            ("!team", {"bare"}),
        ):
            assert names(cluster, f"labelSelector={quote(selector)}") == found, selector
        assert names(cluster, f"fieldSelector={quote(f'spec.nodeName={NODE}')}") == {"red", "bare"}
        assert names(cluster, f"fieldSelector={quote('spec.nodeName!=' + NODE)}") == set()


@pytest.mark.parametrize("query", ["labelSelector=%3D%3D", "fieldSelector=spec.colour%3Dred"])
def test_a_selector_that_cannot_be_read_is_400(cluster: Client, query: str) -> None:
    answer = cluster.call("GET", f"{PODS}?{query}")
    assert (answer.status, answer.body["reason"]) == (400, "BadRequest")


def test_a_namespace_that_is_not_there_lists_nothing_and_takes_nothing(cluster: Client) -> None:
    path = "/api/v1/namespaces/nowhere/pods"
    assert cluster.get(path)["items"] == []
    body = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    answer = cluster.call("POST", path, body)
    assert (answer.status, answer.body["reason"]) == (404, "NotFound")


def test_a_name_is_given_once(cluster: Client) -> None:
    with gpu_pod(cluster, "only", gpus=1, node=NODE) as pod:
        body = {"metadata": {"name": "only"}, "spec": cluster.get(pod)["spec"]}
        answer = cluster.call("POST", PODS, body)
        assert (answer.status, answer.body["reason"]) == (409, "AlreadyExists")


def test_a_pods_node_selector_is_not_changed_while_it_lives(cluster: Client) -> None:
    with gpu_pod(cluster, "fixed", gpus=1, node=NODE) as pod:
        node_of(cluster, pod)
        answer = cluster.call("PATCH", pod, {"spec": {"nodeSelector": {"a": "b"}}})
        assert (answer.status, answer.body["reason"]) == (422, "Invalid")


def test_a_pod_that_stops_matching_is_deleted_for_the_watch(cluster: Client) -> None:
    with gpu_pod(cluster, "chameleon", gpus=1, node=NODE, labels={"team": "red"}) as pod:
        node_of(cluster, pod)
        version = cluster.get(PODS)["metadata"]["resourceVersion"]
        cluster.ok("PATCH", pod, {"metadata": {"labels": {"team": "blue"}}})
        query = f"labelSelector=team%3Dred&watch=true&resourceVersion={version}&timeoutSeconds=2"
        lines = cluster.call("GET", f"{PODS}?{query}").text.splitlines()
        assert json.loads(lines[-1])["type"] == "DELETED"


@pytest.mark.parametrize(
    ("path", "columns"),
    [
        ("/api/v1/nodes", "Name Status Roles Age Version"),
        ("/api/v1/pods", "Name Ready Status Restarts Age"),
        ("/api/v1/namespaces", "Name Status Age"),
        ("/api/v1/configmaps", "Name Data Age"),
        ("/api/v1/events", "Last_Seen Type Reason Object Message"),
        (
            "/apis/apps/v1/daemonsets",
            "Name Desired Current Ready Up-to-date Available Node_Selector Age",
        ),
        (
            "/apis/policy/v1/poddisruptionbudgets",
            "Name Min_Available Max_Unavailable Allowed_Disruptions Age",
        ),
    ],
)
def test_kubectl_gets_a_table_with_these_columns(cluster: Client, path: str, columns: str) -> None:
    answer = cluster.call("GET", path, accept=TABLE).body
    assert (answer["kind"], answer["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    shown = [each["name"] for each in answer["columnDefinitions"] if not each["priority"]]
    assert [name.replace(" ", "_") for name in shown] == columns.split()
    assert all(len(row["cells"]) == len(answer["columnDefinitions"]) for row in answer["rows"])
    assert all("metadata" in row["object"] for row in answer["rows"])
