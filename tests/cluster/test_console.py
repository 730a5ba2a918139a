"""The product on a real cluster: nodes appear, a taint bars and evicts, an undo is only ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.cluster.between import Between
from tests.cluster.changes import END_SECONDS, confirm, node_in, preview, undo
from tests.cluster.console import Console
from tests.cluster.grants import granted
from tests.cluster.objects import (
    GPU,
    bare_node,
    gpu_pod,
    node_of,
    refusal,
    remove_node,
    wait_phase,
)
from tests.cluster.simulated import NODES, nodes_on
from tests.controlplane.client import Client, Document
from tests.controlplane.plane import ControlPlane
from tests.controlplane.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.real_only]

NODE = "l40s-01"
PATH = f"/api/v1/nodes/{NODE}"
REPAIR = {"key": "repair", "effect": "NoSchedule"}
THEIRS = {"key": "theirs", "value": "a", "effect": "NoSchedule"}


@pytest.fixture(scope="module")
def simulated(
    console: Console, plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Client]:
    """One simulated node on the real control plane, registered while the product watches."""
    with nodes_on(plane, tmp_path_factory.mktemp("nodes"), [NODE]):
        yield plane.admin


@pytest.fixture
def taints(simulated: Client) -> Iterator[Client]:
    """The administrator's client; the node loses every taint again."""
    yield simulated
    simulated.ok("PATCH", PATH, {"spec": {"taints": None}})


def taints_of(admin: Client) -> list[Document]:
    """The node's taints without the times that the API server adds."""
    found = admin.get(PATH)["spec"].get("taints", [])
    return [{k: v for k, v in taint.items() if k != "timeAdded"} for taint in found]


def test_a_node_appears_by_the_watch_and_has_readings_once_polled(
    console: Console, simulated: Client
) -> None:
    def polled() -> Document | None:
        node = node_in(console, NODE)
        return node if node["agent"]["status"] == "ok" else None

    node = until(polled, END_SECONDS, f"readings of {NODE}")
    real = simulated.get(PATH)
    assert node["uid"] == real["metadata"]["uid"]
    assert (node["ready"], node["closed"], node["cards"]["owned"]) == (True, "", NODES[NODE])
    [row] = node["resources"]["items"]
    assert (row["name"], row["physical"], row["allocatable"]) == (GPU, NODES[NODE], NODES[NODE])
    cards = [card for card in console.all("gpus") if card["node_name"] == NODE]
    assert len(cards) == NODES[NODE]
    assert all(card["reading"]["temperature_celsius"] for card in cards)


def test_what_came_and_went_while_nobody_watched_is_seen_by_the_list(
    console: Console, plane: ControlPlane
) -> None:
    with bare_node(plane.admin, "went", gpus=2), ExitStack() as later:
        node_in(console, "went")
        with console.without_watcher():
            remove_node(plane.admin, "went")
            later.enter_context(bare_node(plane.admin, "came", gpus=3))
        assert node_in(console, "came")["cards"]["owned"] == 3
        assert not_in(console, "went")
        remove_node(plane.admin, "came")
        until(lambda: not_in(console, "came"), END_SECONDS, "the watch to tell of the removal")


def not_in(console: Console, name: str) -> bool:
    return name not in {node["name"] for node in console.all("nodes")}


def test_a_taint_by_the_product_bars_a_pod_until_it_is_undone(
    console: Console, taints: Client, tainter: Path
) -> None:
    done = confirm(console, preview(console, "taint.add", node_in(console, NODE), **REPAIR))
    assert (done["state"], done["message"]) == ("succeeded", "Verified on 1.")
    assert taints_of(taints) == [REPAIR]
    with gpu_pod(taints, "barred", gpus=1, node=NODE) as pod:
        sentence = refusal(taints, pod)
        assert "1 node(s) had untolerated taint" in sentence
        until(lambda: sentence in waits(console, "barred"), END_SECONDS, "the product to say why")
        back = undo(console, done)
        assert (back["state"], back["undo_of"]) == ("succeeded", done["id"])
        assert node_of(taints, pod) == NODE
        wait_phase(taints, pod, "Running")
    assert taints_of(taints) == []


def test_an_action_is_greyed_with_its_components_name_until_the_cluster_grants_it(
    console: Console, plane: ControlPlane, simulated: Client, reader: Path
) -> None:
    greyed = "does not hold the component “taint”"

    def is_greyed() -> bool:
        return greyed in unescape(console.page("/nodes"))

    until(is_greyed, END_SECONDS, "the taint to be greyed")
    refused = preview(console, "taint.add", node_in(console, NODE), **REPAIR)
    [blocker] = refused["plan"]["blockers"]
    assert greyed in blocker
    with granted(plane, reader, "taint"):
        until(lambda: not is_greyed(), END_SECONDS, "the taint to be offered")
        offered = preview(console, "taint.add", node_in(console, NODE), **REPAIR)
        assert offered["plan"]["blockers"] == []


def waits(console: Console, name: str) -> list[str]:
    return [pod["message"] for pod in console.all("pods") if pod["name"] == name]


def test_a_no_execute_by_the_product_ends_the_pods_that_its_preview_names(
    console: Console, taints: Client, tainter: Path
) -> None:
    with gpu_pod(taints, "doomed", gpus=1, node=NODE) as pod:
        wait_phase(taints, pod, "Running")
        repair = {"key": "repair", "effect": "NoExecute"}
        shown = preview(console, "taint.add", node_in(console, NODE), **repair)
        plan = shown["plan"]
        dying = {one["uid"] for one in plan["pods_touched"] if one["dies"]}
        assert dying == pods_on(taints, NODE), "none of them tolerates it, the agent neither"
        assert plan["confirm"] == {"needed": True, "phrase": NODE}
        done = confirm(console, shown)
        [target] = done["targets"]
        assert (done["state"], target["leaving"]) == ("succeeded", [])
        assert [step["state"] for step in target["steps"]] == ["succeeded"] * 3
        assert not dying & pods_on(taints, NODE)
        assert taints.call("GET", pod).status == 404
        assert undo(console, done)["state"] == "succeeded"


def pods_on(admin: Client, node: str) -> set[str]:
    """The uids of the pods that are bound to the node."""
    found = admin.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{node}")["items"]
    return {pod["metadata"]["uid"] for pod in found}


def test_an_undo_leaves_what_kubectl_tainted_meanwhile(
    console: Console, plane: ControlPlane, taints: Client, tainter: Path
) -> None:
    done = confirm(console, preview(console, "taint.add", node_in(console, NODE), **REPAIR))
    plane.kubectl("taint", "node", NODE, "theirs=a:NoSchedule", "repair=theirs:NoExecute")
    assert undo(console, done)["state"] == "succeeded"
    assert taints_of(taints) == [
        THEIRS,
        {"key": "repair", "value": "theirs", "effect": "NoExecute"},
    ]


def test_a_taint_written_at_the_same_moment_survives_ours_and_its_undo(
    console: Console, between: Between, taints: Client, tainter: Path
) -> None:
    """Their write lands between our read and our write: c20's conflict, made certain."""
    node = node_in(console, NODE)
    also = THEIRS | {"key": "also-theirs"}

    between.before("PATCH", PATH, lambda: append(taints, THEIRS))
    done = confirm(console, preview(console, "taint.add", node, **REPAIR))
    assert between.acted("PATCH", PATH)
    assert taints_of(taints) == [THEIRS, REPAIR]
    assert "Somebody else wrote first: read again." in told(done)

    between.before("PATCH", PATH, lambda: append(taints, also))
    back = undo(console, done)
    assert between.acted("PATCH", PATH)
    assert taints_of(taints) == [THEIRS, also]
    assert "Somebody else wrote first: read again." in told(back)


def append(admin: Client, taint: Document) -> None:
    """As another careful writer does it: the whole list, against the version read."""
    node = admin.get(PATH)
    body = {
        "metadata": {"resourceVersion": node["metadata"]["resourceVersion"]},
        "spec": {"taints": [*node["spec"].get("taints", []), taint]},
    }
    admin.ok("PATCH", PATH, body)


def told(operation: Document) -> list[str]:
    """All log lines of an operation that succeeded."""
    assert operation["state"] == "succeeded", operation["message"]
    return [
        line["text"]
        for target in operation["targets"]
        for step in target["steps"]
        for line in step["log"]
    ]


def test_with_the_read_role_alone_a_taint_is_blocked_in_one_sentence_and_nothing_is_written(
    console: Console, taints: Client
) -> None:
    before = taints.get(PATH)["spec"]
    shown = preview(console, "taint.add", node_in(console, NODE), **REPAIR)
    [said] = shown["plan"]["blockers"]
    assert "“taint”" in said
    body = {name: shown[name] for name in ("kind", "parameters", "fingerprint")}
    headers = {"Idempotency-Key": "read-alone"}
    refused = console.call("POST", "/operations", {**body, "reason": "try"}, headers=headers)
    assert (refused.status, refused.body["blockers"]) == (409, [said])
    query = urlencode({"node": NODE, **REPAIR})
    assert said in unescape(console.page(f"/nodes/taint?{query}"))
    assert taints.get(PATH)["spec"] == before
