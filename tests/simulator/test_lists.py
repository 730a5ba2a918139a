"""Lists in pages, selectors, and watches."""

from __future__ import annotations

import time
from itertools import islice
from pathlib import Path
from urllib.parse import quote

import pytest

from simulator.cluster import SimulatedCluster
from tests.simulator.support import Api, pod

PODS = "/api/v1/namespaces/{}/pods"


def make_pods(api: Api, namespace: str, number: int) -> None:
    for index in range(number):
        body = pod(f"p{index}", schedulerName="nobody")
        body["metadata"]["labels"] = {"app": "even" if index % 2 == 0 else "odd", f"n{index}": ""}
        api.create(PODS.format(namespace), body)


def names(listed: dict) -> list[str]:  # type: ignore[type-arg]
    return [each["metadata"]["name"] for each in listed["items"]]


def test_pages_are_one_snapshot_while_others_write(api: Api, namespace: str) -> None:
    make_pods(api, namespace, 5)
    path = PODS.format(namespace) + "?limit=2"
    first = api.get(path)
    assert first["metadata"]["remainingItemCount"] == 3
    api.call("DELETE", f"{PODS.format(namespace)}/p3")
    api.create(PODS.format(namespace), pod("p2b", schedulerName="nobody"))
    token, seen = first["metadata"]["continue"], names(first)
    while token:
        page = api.get(f"{path}&continue={token}")
        seen += names(page)
        token = page["metadata"].get("continue")
        assert page["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert seen == ["p0", "p1", "p2", "p3", "p4"]


def test_an_unknown_continue_token_is_410_or_400(api: Api, namespace: str) -> None:
    path = PODS.format(namespace) + "?limit=2&continue="
    assert api.call("GET", path + "bm9uZTo5OQ==").code == 410  # a token of another life
    assert api.call("GET", path + "%21").code == 400


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("app=even", ["p0", "p2"]),
        ("app==even,n0", ["p0"]),
        ("app!=even", ["p1", "p3"]),
        ("app in (odd, none)", ["p1", "p3"]),
        ("app notin (odd)", ["p0", "p2"]),
        ("!n0,app=even", ["p2"]),
    ],
)
def test_label_selectors(api: Api, namespace: str, selector: str, found: list[str]) -> None:
    make_pods(api, namespace, 4)
    assert names(api.get(f"{PODS.format(namespace)}?labelSelector={quote(selector)}")) == found


def test_field_selectors_and_one_that_no_server_knows(api: Api, namespace: str) -> None:
    api.create(PODS.format(namespace), pod("here", nodeName="n1"))
    api.create(PODS.format(namespace), pod("there", nodeName="n2"))
    path = PODS.format(namespace) + "?fieldSelector="
    assert names(api.get(path + "spec.nodeName%3Dn1")) == ["here"]
    assert names(api.get(path + "metadata.name!%3Dhere,status.phase%3DPending")) == ["there"]
    refused = api.call("GET", path + "spec.hostNetwork%3Dtrue")
    assert refused.code == 400
    assert "field label not supported" in refused.body["message"]


def test_a_watch_tells_what_happened_since_the_list_and_what_happens_then(
    api: Api, namespace: str
) -> None:
    path = PODS.format(namespace)
    version = api.get(path)["metadata"]["resourceVersion"]
    api.create(path, pod("early", schedulerName="nobody"))
    with api.watch(f"{path}?watch=true&resourceVersion={version}&timeoutSeconds=10") as events:
        first = next(events)
        assert (first["type"], first["object"]["metadata"]["name"]) == ("ADDED", "early")
        api.merge(f"{path}/early", {"metadata": {"annotations": {"a": "b"}}})
        api.call("DELETE", f"{path}/early")
        assert [each["type"] for each in islice(events, 2)] == ["MODIFIED", "DELETED"]


def test_an_object_that_stops_matching_is_deleted_for_that_watch(api: Api, namespace: str) -> None:
    path = PODS.format(namespace)
    make_pods(api, namespace, 1)
    version = api.get(path)["metadata"]["resourceVersion"]
    query = f"?watch=true&resourceVersion={version}&timeoutSeconds=10&labelSelector=app%3Deven"
    with api.watch(path + query) as events:
        api.merge(f"{path}/p0", {"metadata": {"labels": {"app": "odd"}}})
        api.merge(f"{path}/p0", {"metadata": {"labels": {"app": "even"}}})
        assert [each["type"] for each in islice(events, 2)] == ["DELETED", "ADDED"]


def test_bookmarks_come_soon_when_asked_for_and_the_watch_ends_in_time(
    api: Api, namespace: str
) -> None:
    version = api.get(PODS.format(namespace))["metadata"]["resourceVersion"]
    query = f"?watch=true&resourceVersion={version}&timeoutSeconds=2&allowWatchBookmarks=true"
    begun = time.monotonic()
    with api.watch(PODS.format(namespace) + query) as events:
        found = list(events)
    assert [each["type"] for each in found] == ["BOOKMARK"]
    assert int(found[0]["object"]["metadata"]["resourceVersion"]) >= int(version)
    assert time.monotonic() - begun < 4


def test_a_watch_without_a_version_begins_with_all_there_is(api: Api, namespace: str) -> None:
    make_pods(api, namespace, 2)
    with api.watch(PODS.format(namespace) + "?watch=true&timeoutSeconds=1") as events:
        assert [each["type"] for each in events] == ["ADDED", "ADDED"]


def test_what_lies_before_the_kept_history_is_410_for_watches_and_pages(tmp_path: Path) -> None:
    with SimulatedCluster(tmp_path / "sim", nodes=[], history=20) as cluster:
        api, path = Api(cluster.kubeconfig), PODS.format("default")
        make_pods(api, "default", 2)
        listed = api.get(f"{path}?limit=1")["metadata"]
        for number in range(21):
            api.merge(f"{path}/p0", {"metadata": {"annotations": {"n": str(number)}}})
        watch = api.call("GET", f"{path}?watch=true&resourceVersion={listed['resourceVersion']}")
        page = api.call("GET", f"{path}?limit=1&continue={listed['continue']}")
        assert (watch.code, watch.body["reason"]) == (410, "Expired")
        assert (page.code, page.body["reason"]) == (410, "Expired")
