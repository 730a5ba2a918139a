"""The simulator's API answers as the real one does, in what gpuadmin builds on."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.cluster.objects import GPU, gpu_pod, taint
from tests.controlplane.client import Client, Document, RefusedError

pytestmark = pytest.mark.both

NODE = "a100-01"
PATH = f"/api/v1/nodes/{NODE}"
OURS = {"key": "ours", "value": "a", "effect": "NoSchedule"}
THEIRS = {"key": "theirs", "effect": "NoExecute"}


@pytest.fixture
def node(cluster: Client) -> Iterator[Document]:
    """The node, which loses its taints again."""
    yield cluster.get(PATH)
    taint(cluster, NODE)


def test_a_patch_against_an_old_version_conflicts(cluster: Client, node: Document) -> None:
    stale = {"resourceVersion": node["metadata"]["resourceVersion"]}
    taint(cluster, NODE, THEIRS)
    body = {"metadata": stale, "spec": {"taints": [OURS]}}
    answer = cluster.call("PATCH", PATH, body)
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")
    assert cluster.get(PATH)["spec"]["taints"] == [THEIRS]


def test_a_json_patch_whose_test_fails_changes_nothing(cluster: Client, node: Document) -> None:
    taint(cluster, NODE, OURS)
    patch = [
        {"op": "test", "path": "/spec/taints/0/value", "value": "another"},
        {"op": "remove", "path": "/spec/taints/0"},
    ]
    answer = cluster.call("PATCH", PATH, patch, patch="json")
    assert (answer.status, answer.body["reason"]) == (422, "Invalid")
    assert cluster.get(PATH)["spec"]["taints"] == [OURS]


@pytest.mark.parametrize("kind", ["merge", "strategic-merge"])
def test_a_taint_list_is_replaced_whole_by_a_merge(
    cluster: Client, node: Document, kind: str
) -> None:
    taint(cluster, NODE, OURS)
    cluster.ok("PATCH", PATH, {"spec": {"taints": [THEIRS]}}, patch=kind)
    assert cluster.get(PATH)["spec"]["taints"] == [THEIRS]


def test_one_key_with_two_effects_is_two_taints(cluster: Client, node: Document) -> None:
    taint(cluster, NODE, OURS, OURS | {"effect": "NoExecute"})
    assert [t["effect"] for t in cluster.get(PATH)["spec"]["taints"]] == ["NoSchedule", "NoExecute"]


@pytest.mark.parametrize(
    ("taints", "words"),
    [
        ([OURS, OURS | {"value": "b"}], "Duplicate value"),
        ([OURS | {"key": "not a key"}], "Invalid value"),
        ([OURS | {"effect": "Never"}], "Unsupported value"),
    ],
)
def test_bad_taints_are_refused(
    cluster: Client, node: Document, taints: list[Document], words: str
) -> None:
    with pytest.raises(RefusedError, match=words) as refused:
        taint(cluster, NODE, *taints)
    assert refused.value.status == 422


def test_what_is_not_there_is_not_found(cluster: Client) -> None:
    answer = cluster.call("GET", "/api/v1/nodes/nobody")
    assert (answer.status, answer.body["reason"]) == (404, "NotFound")
    assert answer.body["message"] == 'nodes "nobody" not found'


def test_a_paged_list_is_the_whole_list(cluster: Client) -> None:
    whole = [node["metadata"]["name"] for node in cluster.get("/api/v1/nodes")["items"]]
    first = cluster.get("/api/v1/nodes?limit=1")
    token = first["metadata"]["continue"]
    second = cluster.get(f"/api/v1/nodes?limit=1&continue={token}")
    assert "continue" not in second["metadata"]
    paged = first["items"] + second["items"]
    assert [node["metadata"]["name"] for node in paged] == whole
    assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]


def test_a_watch_tells_what_happened_since_a_list(cluster: Client, node: Document) -> None:
    listed = cluster.get("/api/v1/nodes")["metadata"]["resourceVersion"]
    taint(cluster, NODE, OURS)
    query = f"watch=true&resourceVersion={listed}&timeoutSeconds=2&allowWatchBookmarks=true"
    text = cluster.call("GET", f"/api/v1/nodes?{query}").text
    events = [json.loads(line) for line in text.splitlines()]
    changes = [e for e in events if e["type"] == "MODIFIED"]
    assert any(e["object"]["spec"].get("taints") == [OURS] for e in changes)
    versions = [int(e["object"]["metadata"]["resourceVersion"]) for e in events]
    assert versions == sorted(versions)
    assert versions[0] > int(listed)


def test_a_delete_for_another_uid_conflicts(cluster: Client) -> None:
    with gpu_pod(cluster, "kept", gpus=1, node=NODE) as pod:
        answer = cluster.call("DELETE", pod, {"preconditions": {"uid": "another"}})
        assert (answer.status, answer.body["reason"]) == (409, "Conflict")
        assert "deletionTimestamp" not in cluster.get(pod)["metadata"]


def test_a_new_pod_has_the_defaults_that_gpuadmin_reads(cluster: Client) -> None:
    with gpu_pod(cluster, "plain", gpus=2, node=NODE) as path:
        spec = cluster.get(path)["spec"]
        resources = spec["containers"][0]["resources"]
        assert resources["requests"] == resources["limits"] == {GPU: "2"}
        assert spec["schedulerName"] == "default-scheduler"
        assert {(t["key"], t["effect"], t["tolerationSeconds"]) for t in spec["tolerations"]} == {
            ("node.kubernetes.io/not-ready", "NoExecute", 300),
            ("node.kubernetes.io/unreachable", "NoExecute", 300),
        }
